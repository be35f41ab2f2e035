"""Generators of a training's own: the numbers of torch's global one, without touching it."""

import contextlib
import threading

import pytest
import torch
import torch.nn.functional as F

import lgcn.paper  # noqa: F401 (registers the baselines)
from lgcn.ops.dropout import drop_rows, drop_whole, dropout, torch_dropout
from lgcn.training.models import find_model, model_names, network_class
from lgcn.utils.generators import (
    Generators,
    current_generator,
    drawing_from,
    initializing_from,
    random_seed,
)

CPU = torch.device("cpu")


def seeded(seed: int) -> Generators:
    generators = Generators()
    generators.manual_seed(seed)
    return generators


def test_without_a_context_the_global_generator_is_meant() -> None:
    assert current_generator(CPU) is None
    outer, inner = Generators(), Generators()
    with drawing_from(outer):
        assert current_generator(CPU) is outer.on(CPU)
        with contextlib.suppress(KeyError), drawing_from(inner):
            assert current_generator(CPU) is inner.on(CPU)
            raise KeyError
        assert current_generator(CPU) is outer.on(CPU)
    assert current_generator(CPU) is None


def test_a_context_holds_in_its_own_thread_alone() -> None:
    found: list[torch.Generator | None] = []
    with drawing_from(Generators()):
        thread = threading.Thread(target=lambda: found.append(current_generator(CPU)))
        thread.start()
        thread.join()
    assert found == [None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("drop", [dropout, torch_dropout, drop_rows, drop_whole, F.dropout])
def test_the_numbers_are_those_of_the_global_generator(drop, dtype: torch.dtype) -> None:
    x = torch.randn(40, 7).to(dtype)
    torch.manual_seed(3)
    expected = torch.stack([drop(x, 0.4) for _ in range(6)])
    before = torch.get_rng_state()
    own = torch_dropout if drop is F.dropout else drop
    with drawing_from(seeded(3)):
        found = torch.stack([own(x, 0.4) for _ in range(6)])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found, expected)
    assert len(found.unique(dim=0)) > 1


def test_the_gradient_of_torchs_dropout_is_the_same() -> None:
    x = torch.randn(30, 5, requires_grad=True)
    torch.manual_seed(1)
    (expected,) = torch.autograd.grad((F.dropout(x, 0.3) ** 2).sum(), x)
    with drawing_from(seeded(1)):
        (found,) = torch.autograd.grad((torch_dropout(x, 0.3) ** 2).sum(), x)
    assert torch.equal(found, expected)


def test_torchs_dropout_at_its_limits() -> None:
    x = torch.ones(5)
    with drawing_from(seeded(0)):
        assert torch.equal(torch_dropout(x, 0.0), x)
        assert torch.equal(torch_dropout(x, 1.0), 0 * x)
        assert torch.equal(torch_dropout(x, 0.5, training=False), x)


# Not those of benchmarks, whose tests may run before in this process.
MODELS = [name for name in model_names() if find_model(name).network.startswith("lgcn.")]


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_those_of_the_global_generator(model: str) -> None:
    options = {"aggregator": "lstm"} if model == "sage" else {}
    torch.manual_seed(4)
    expected = network_class(model)(6, 3, **options).state_dict()
    before = torch.get_rng_state()
    with initializing_from(seeded(4)):
        found = network_class(model)(6, 3, **options).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Linear(3, 4).weight,
        lambda: torch.nn.Conv1d(3, 4, 2).bias,
        lambda: torch.nn.Embedding(3, 4).weight,
        lambda: torch.nn.LSTM(3, 4).weight_hh_l0,
        lambda: torch.nn.init.trunc_normal_(torch.empty(5)),
        lambda: torch.nn.init.kaiming_normal_(torch.empty(5, 2)),
        lambda: torch.nn.init.orthogonal_(torch.empty(5, 5)),
        lambda: torch.empty(4).uniform_(),
    ],
)
def test_layers_of_torch_are_drawn_from_the_generators_too(make) -> None:
    torch.manual_seed(6)
    expected = make()
    before = torch.get_rng_state()
    with initializing_from(seeded(6)):
        assert torch.equal(make(), expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_that_is_given_stays() -> None:
    given = torch.Generator().manual_seed(1)
    expected = torch.empty(3).normal_(generator=torch.Generator().manual_seed(1))
    with initializing_from(seeded(0)):
        assert torch.equal(torch.empty(3).normal_(generator=given), expected)


def test_seeds_of_epochs_differ() -> None:
    seeds = {
        random_seed(0),
        *(random_seed(seed, epoch) for seed in range(3) for epoch in range(1, 6)),
    }
    assert len(seeds) == 16
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_compiled_dropout_draws_from_the_generators() -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.cat(
            [dropout(x, 0.5), dropout(x, 0.5), drop_rows(x, 0.5), torch_dropout(x, 0.5)]
        )

    compiled = torch.compile(drop, fullgraph=True, backend="aot_eager")
    x = torch.ones(20, 4, requires_grad=True)
    before = torch.get_rng_state()
    runs = []
    for seed in (1, 1, 2):
        with drawing_from(seeded(seed)):
            out = compiled(x)
        (gradient,) = torch.autograd.grad(out.sum(), x)
        assert torch.equal(gradient, out.detach().view(4, 20, 4).sum(0))
        runs.append(out.detach())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    first, second = runs[0].view(4, 20, 4)[:2]
    assert not torch.equal(first, second)


def test_compiled_dropout_drops_what_plain_dropout_drops() -> None:
    compiled = torch.compile(dropout, fullgraph=True, backend="aot_eager")
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(50, dtype=dtype) + 1
        torch.manual_seed(2)
        expected = dropout(x, 0.3)
        torch.manual_seed(2)
        torch.testing.assert_close(compiled(x, 0.3), expected)
    assert torch.equal(compiled(torch.ones(4), 1.0), torch.zeros(4))
