"""The optimiser and the device that settings ask for."""

import pytest
import torch

from lgcn.errors import UsageError
from lgcn.training import train
from lgcn.training.nadam import Nadam
from lgcn.training.setup import make_optimizer

from .graphs import settings, small_graph


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("nadam", Nadam)])
def test_optimizer_by_name(name: str, kind: type):
    model = torch.nn.Linear(2, 2)
    assert type(make_optimizer(model, settings(optimizer=name))) is kind


@pytest.mark.parametrize("decay_biases", [True, False])
def test_biases_decay_where_asked(decay_biases: bool):
    model = torch.nn.Linear(2, 2)
    config = settings(weight_decay=0.01, decay_biases=decay_biases)
    decay = {
        id(p): group["weight_decay"]
        for group in make_optimizer(model, config).param_groups
        for p in group["params"]
    }
    assert decay[id(model.weight)] == 0.01
    assert decay[id(model.bias)] == (0.01 if decay_biases else 0.0)


def test_weight_decay_is_the_gradient_of_half_the_squared_norm():
    weight, decay, lr = torch.tensor([[2.0, -3.0]]), 0.5, 0.1
    expected = torch.nn.Parameter(weight.clone())
    plain = torch.optim.Adam([expected], lr=lr)
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.copy_(weight)
    optimizer = make_optimizer(model, settings(weight_decay=decay, lr=lr))
    for _ in range(3):
        for step, loss in (
            (plain, expected.sum() + decay / 2 * (expected**2).sum()),
            (optimizer, model.weight.sum()),
        ):
            step.zero_grad()
            loss.backward()
            step.step()
    torch.testing.assert_close(model.weight, expected)


@pytest.mark.parametrize("name", ["nonsense", "cuda:99"])
def test_a_device_that_is_not_there_is_named(name: str):
    with pytest.raises(UsageError, match=f"device '{name}' is not available"):
        train(small_graph(), settings(device=name))
