"""Layers that make the grid again in the backward pass: as exact, with less memory."""

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import BatchNorm1d, Conv1d, Dropout, Flatten, Linear, Module, ReLU, Sequential
from torch_geometric.explain.algorithm.utils import set_masks

from lgcn import Graph, LGConv
from lgcn.graph.csr import CSR
from lgcn.nn import lg_conv
from lgcn.nn.residual import ResidualLGCN
from lgcn.ops import structure
from lgcn.ops.blocks import row_blocks_of
from lgcn.training import Settings, train
from tests.conftest import make_graph
from tests.training.graphs import small_graph

RandomGraph = Callable[..., Graph]
CNNS: dict[str, Callable[[int, int], Module | str]] = {
    "double": lambda channels, positions: "double",
    "single": lambda channels, positions: "single",
    "shared": lambda channels, positions: "shared",
    "own": lambda channels, positions: Sequential(
        Conv1d(channels, 4, 2), ReLU(), Flatten(), Linear(4 * (positions - 1), channels)
    ),
}


def both(conv: LGConv) -> tuple[LGConv, LGConv]:
    """The layer, and the same that recomputes."""
    again = copy.deepcopy(conv)
    again.recompute = True
    return conv, again


def gradients(
    conv: Module,
    inputs: list[Tensor | None],
    run: Callable[..., Tensor],
    grad: Tensor | None = None,
) -> list[Tensor]:
    """The output, and the gradients of all inputs and parameters."""
    leaves = [None if i is None else i.detach().clone().requires_grad_() for i in inputs]
    out = run(conv, *leaves)
    if grad is None:
        grad = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device)
    wanted = [leaf for leaf in (*leaves, *conv.parameters()) if leaf is not None]
    found = torch.autograd.grad(out, wanted, grad.view_as(out), allow_unused=True)
    return [out.detach(), *(torch.zeros(()) if g is None else g for g in found)]


@settings(max_examples=60)
@given(
    k=st.integers(1, 6),
    cnn=st.sampled_from(sorted(CNNS)),
    rank=st.sampled_from(["raw", "normalized"]),
    zeros=st.sampled_from(["pad", "compete"]),
    last=st.sampled_from(["none", "mean", "sum"]),
    weighted=st.booleans(),
    self_loops=st.booleans(),
    limit=st.sampled_from([1, 60, 200, 10_000]),
    num_nodes=st.integers(1, 20),
    training=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_outputs_and_gradients_are_those_of_a_layer_that_keeps_its_grid(
    k: int, cnn: str, rank: Any, zeros: Any, last: str, weighted: bool, self_loops: bool,
    limit: int, num_nodes: int, training: bool, seed: int,
) -> None:  # fmt: skip
    graph = make_graph(num_nodes, 0.3, seed=seed, weighted=weighted)
    torch.manual_seed(seed)
    positions = k + 1 + (last != "none")
    layer = LGConv(
        5, 5, k, CNNS[cnn](5, positions), rank=rank, zeros=zeros, self_loops=self_loops,
        mean=last == "mean", sum=last == "sum",
    )  # fmt: skip
    adjacency = graph.adjacency(**layer.adjacency_options)
    layer.train(training)

    def run(conv: Module, x: Tensor, weight: Tensor | None) -> Tensor:
        out: Tensor = conv(x, CSR(adjacency.rowptr, adjacency.col, weight))
        return out

    kept, recomputing = both(layer)
    inputs = [graph.x, adjacency.weight]
    expected = gradients(kept, inputs, run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lg_conv, "MAX_GRID", limit)
        found = gradients(recomputing, inputs, run)
    for actual, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("limit", [40, 10_000])
@pytest.mark.parametrize("targets", ["with", "without"])
@pytest.mark.parametrize("sum_", [False, True])
def test_a_bipartite_graph(
    limit: int, targets: str, sum_: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    edges = torch.stack([torch.randint(7, (30,)), torch.randint(11, (30,))])
    rowptr, col, _ = Graph.as_given(edges, 11).adjacency()
    source, target = torch.randn(7, 4), torch.randn(11, 4)
    kept, recomputing = both(LGConv((4, 4), 3, k=3, sum=sum_))

    def run(conv: Module, x: Tensor, own: Tensor | None, weight: Tensor) -> Tensor:
        out: Tensor = conv((x, own), CSR(rowptr, col, weight))
        return out

    inputs = [source, target if targets == "with" else None, torch.rand(30) + 0.1]
    expected = gradients(kept, inputs, run)
    monkeypatch.setattr(lg_conv, "MAX_GRID", limit)
    for actual, wanted in zip(gradients(recomputing, inputs, run), expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("last", ["none", "mean"])
@pytest.mark.parametrize("limit", [1, 10_000])
def test_gradcheck_and_double_backward(
    last: str, limit: int, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", limit)
    graph = random_graph(6, weighted=True)
    conv = LGConv(2, 2, k=2, recompute=True, mean=last == "mean", activation=torch.tanh).double()
    names = [name for name, _ in conv.named_parameters()]
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(graph.num_edges, dtype=torch.float64) + 0.1
    inputs = [x, weight.requires_grad_(), *conv.parameters()]

    def run(x: Tensor, weight: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        edges = CSR(graph.rowptr, graph.col, weight)
        out: Tensor = torch.func.functional_call(conv, given, (x, edges))
        return out

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


def kept_values(run: Callable[[], Tensor]) -> list[int]:
    """The sizes of the tensors that autograd keeps."""
    sizes = []

    def pack(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sizes


@pytest.mark.parametrize("last", ["none", "mean", "sum"])
def test_nothing_of_the_grids_size_is_kept(last: str, random_graph: RandomGraph) -> None:
    graph = random_graph(50, 0.05)
    x = graph.x.requires_grad_()
    layer = LGConv(5, 3, k=8, mean=last == "mean", sum=last == "sum")
    kept, recomputing = both(layer)
    assert max(kept_values(lambda: kept(x, graph))) >= 50 * 8 * 5
    sizes = kept_values(lambda: recomputing(x, graph))
    assert max(sizes) <= max(50 * 5, *(p.numel() for p in layer.parameters()))


def test_a_deep_network_keeps_no_more_with_a_larger_k(random_graph: RandomGraph) -> None:
    graph = random_graph(60, 0.1)

    def kept(k: int, recompute: bool) -> int:
        model = ResidualLGCN(
            5, 3, hidden_channels=4, num_layers=20, k=k, recompute=recompute, dropout=0.0
        )
        weights = sum(p.numel() for p in model.parameters())
        return sum(kept_values(lambda: model(graph.x, graph))) - weights

    small, large = kept(2, True), kept(10, True)
    # The weights, which are kept twice in other forms without, grow with k.
    assert abs(large - small) <= 20 * 8 * 4 * 4
    assert kept(10, False) > large + 20 * 60 * 10 * 4


@pytest.mark.parametrize("limit", [100, 10_000])
def test_training_gives_the_same_up_to_rounding(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", limit)
    losses = []
    for recompute in (False, True):
        chosen = Settings.create(
            model="residual", dataset="tables", num_layers=3, hidden_channels=8, max_epochs=5,
            training="whole", recompute=recompute,
        )  # fmt: skip
        result = train(small_graph(), chosen)
        losses.append([epoch["train_loss"] for epoch in result.history])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.5, "cnn": "single"},
        {"dropout": 0.5},
        {"adj_dropout": 0.5},
        {"cnn": Sequential(Flatten(), Dropout(0.5), Linear(20, 5))},
        {"cnn": Sequential(Conv1d(5, 5, 4), BatchNorm1d(5))},
    ],
)
def test_the_grid_is_kept_where_the_second_pass_would_differ(
    options: dict[str, Any], random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", 30)
    graph = random_graph()
    kept, recomputing = both(LGConv(5, 5, k=3, **options))
    found = []
    for conv in (kept, recomputing):
        torch.manual_seed(0)
        found.append(gradients(conv, [graph.x], lambda conv, x: conv(x, graph)))
    for actual, wanted in zip(found[1], found[0], strict=True):
        assert torch.equal(actual, wanted)
    sizes = kept_values(lambda: recomputing(graph.x, graph))
    assert max(sizes) >= 12 * 3 * 5
    recomputing.eval()  # without random numbers the second pass is the same
    sizes = kept_values(lambda: recomputing(graph.x, graph))
    assert max(sizes) <= max(12 * 5, *(p.numel() for p in recomputing.parameters()))


class Random(Module):
    """A CNN whose random numbers no module shows."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, 0.5).sum(2)


def test_random_numbers_of_an_own_cnn_are_noticed(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 5, k=3, cnn=Random(), recompute=True)
    with pytest.raises(RuntimeError, match="must not draw random numbers with recompute=True"):
        conv(graph.x.requires_grad_(), graph)


def test_buffers_that_change_are_noticed(random_graph: RandomGraph) -> None:
    linear = torch.nn.utils.parametrizations.spectral_norm(Linear(20, 5))
    graph, conv = random_graph(), LGConv(5, 5, 3, Sequential(Flatten(), linear), recompute=True)
    with pytest.raises(RuntimeError, match="must not change its buffers with recompute=True"):
        conv(graph.x.requires_grad_(), graph)


def test_the_least_memory_of_a_training_is_that_of_a_block() -> None:
    settings = Settings.create(model="residual", dataset="tables", num_layers=20, k=50)
    again = Settings.create(model="residual", dataset="tables", num_layers=20, k=50, recompute=True)
    assert again.model.values_per_feature * 10 < settings.model.values_per_feature


def test_a_gradient_that_would_be_lost_is_noticed(random_graph: RandomGraph) -> None:
    graph, slope = random_graph(), torch.ones((), requires_grad=True)
    conv = LGConv(5, 5, k=3, activation=lambda x: x * slope, recompute=True)
    with pytest.raises(RuntimeError, match="not among its parameters"):
        conv(graph.x.requires_grad_(), graph).sum().backward()


def test_a_change_of_mode_before_the_backward_makes_no_difference(
    random_graph: RandomGraph,
) -> None:
    graph = random_graph()
    conv = LGConv(5, 3, k=3, cnn=Sequential(Flatten(), Dropout(0.5), Linear(20, 3)), recompute=True)
    conv.eval()
    x = graph.x.requires_grad_()
    (expected,) = torch.autograd.grad(conv(x, graph).sum(), x)
    out = conv(x, graph).sum()
    conv.train()
    torch.testing.assert_close(torch.autograd.grad(out, x)[0], expected)
    assert all(module.training for module in conv.modules())


def test_a_change_in_place_before_the_backward_is_noticed(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 3, k=3, recompute=True)
    out = conv(graph.x.clone().requires_grad_(), graph)
    with torch.no_grad():
        conv.cnn[0].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_autocast_holds_in_both_passes(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(30)
    kept, recomputing = both(LGConv(5, 3, k=3, mean=True))

    def run(conv: Module, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            out: Tensor = conv(x, graph)
        return out

    expected = gradients(kept, [graph.x], run)
    monkeypatch.setattr(lg_conv, "MAX_GRID", 100)
    found = gradients(recomputing, [graph.x], run)
    assert found[0].dtype == expected[0].dtype == torch.bfloat16
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == wanted.dtype
        torch.testing.assert_close(actual, wanted, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("recompute", [False, True])
def test_blocks_are_looked_at_once(
    recompute: bool, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", 60)
    graph = random_graph(30)
    conv, x = LGConv(5, 3, k=3, mean=True, recompute=recompute), graph.x.requires_grad_()

    def step(mode: Callable[[], Any]) -> None:
        conv.train()(x, graph).sum().backward()
        with mode():
            conv.eval()(x, graph)

    step(torch.inference_mode)
    looks = []
    look_at = structure._look_at
    monkeypatch.setattr(structure, "_look_at", lambda *a: looks.append(a) or look_at(*a))
    step(torch.inference_mode)
    step(torch.no_grad)
    assert looks == []


def test_masked_edges_keep_the_grid(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", 60)
    graph, mask = random_graph(), torch.rand(random_graph().num_edges).requires_grad_()
    found = []
    for conv in both(LGConv(5, 3, k=3)):
        set_masks(conv, mask, graph.edge_index, apply_sigmoid=False)
        found.append(torch.autograd.grad(conv(graph.x, graph).sum(), mask)[0])
    assert found[0].any()
    assert torch.equal(*found)


def test_it_compiles_and_gives_its_selection(random_graph: RandomGraph) -> None:
    graph = random_graph()
    kept, recomputing = both(LGConv(5, 3, k=3))
    compiled = torch.compile(recomputing, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(graph.x, graph.edge_index), kept(graph.x, graph))
    out, selection = recomputing(graph.x, graph, return_selection=True)
    torch.testing.assert_close(out, kept(graph.x, graph))
    assert selection.node.shape == (12, 3, 5)


def test_blocks_are_kept_with_the_structure_and_dropped_with_it(
    random_graph: RandomGraph,
) -> None:
    graph = random_graph(30)
    rowptr, col = graph.rowptr.clone(), graph.col.clone()
    blocks = row_blocks_of(rowptr, col, 30, 50, 10)
    assert [(b.start, b.stop) for b in blocks] == [(i, i + 5) for i in range(0, 30, 5)]
    assert row_blocks_of(rowptr, col, 30, 50, 10) is blocks
    for block in blocks:
        expected = CSR(rowptr, col).rows(block.start, block.stop)
        assert block.rowptr.equal(expected.rowptr)
        assert block.col.equal(expected.col)
        assert block.col.untyped_storage().data_ptr() == col.untyped_storage().data_ptr()
        columns, near_rowptr, near_col = block.near
        assert columns is not None
        assert near_rowptr.equal(expected.rowptr)
        assert columns[near_col.long()].equal(expected.col)
        assert columns.numel() == near_col.unique().numel()
    col[0] = (col[0] + 1) % 30  # another structure
    assert row_blocks_of(rowptr, col, 30, 50, 10) is not blocks
    gone = weakref.ref(blocks[0])
    kept = weakref.ref(row_blocks_of(rowptr, col, 30, 50, 10)[0])
    del blocks, block, expected, col  # whose col is a view
    gc.collect()
    assert gone() is None
    assert kept() is None


def test_blocks_cost_no_more_than_the_limit(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.2)
    blocks = row_blocks_of(graph.rowptr, graph.col, 40, 100, 5, 2)
    assert [b.start for b in blocks[1:]] == [b.stop for b in blocks[:-1]]
    assert blocks[-1].stop == 40
    for block in blocks:
        assert (block.stop - block.start) * 5 + block.col.numel() * 2 <= 100
    wrong = graph.col.clone()
    wrong[0] = 40
    with pytest.raises(ValueError, match="must be smaller than the number of rows of x"):
        row_blocks_of(graph.rowptr, wrong, 40, 100, 5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("last", ["none", "mean"])
@pytest.mark.parametrize("half", [False, True])
def test_on_a_gpu_it_gives_the_same_with_less_memory(
    last: str, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, channels = 20_000, 64
    target = torch.arange(nodes).repeat_interleave(20)
    source = torch.randint(nodes, target.shape)
    source[:5000], target[:5000] = 7, torch.arange(5000)  # a hub, whose sum is cut into parts
    graph = Graph.as_given(torch.stack([source, target]), nodes).to("cuda")
    x = torch.randn(nodes, channels, device="cuda")
    kept, recomputing = both(LGConv(channels, channels, k=8, mean=last == "mean").cuda())
    monkeypatch.setattr(lg_conv, "MAX_RECOMPUTED_GPU", 2**20)
    # TensorFloat-32 rounds the convolution of a block other than that of the whole grid.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)

    def run(conv: Module, x: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            out: Tensor = conv(x, graph)
        return out

    grad = torch.randn(nodes, channels, device="cuda")
    grad = grad.bfloat16() if half else grad
    results, peaks = [], []
    for conv in (kept, recomputing):
        results.append(gradients(conv, [x], run, grad))  # also looks at the structure
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        again = gradients(conv, [x], run, grad)
        torch.cuda.synchronize()
        peaks.append(torch.cuda.max_memory_allocated() - before)
        for first, second in zip(results[-1], again, strict=True):
            assert torch.equal(first, second)
    for actual, wanted in zip(results[1], results[0], strict=True):
        assert actual.dtype == wanted.dtype
        error = (actual - wanted).float().norm() / wanted.float().norm()
        assert error < (0.02 if half else 1e-4)
    assert peaks[1] < peaks[0] / 2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("recompute", [False, True])
def test_on_a_gpu_a_second_pass_does_not_wait(
    recompute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_RECOMPUTED_GPU", 2**14)
    monkeypatch.setattr(lg_conv, "MAX_GRID_GPU", 2**14)
    graph = make_graph(400, 0.05, num_features=16).to("cuda")
    conv = LGConv(16, 16, k=4, mean=True, recompute=recompute).cuda()
    x = graph.x.requires_grad_()

    def step() -> Tensor:
        conv.train()
        conv(x, graph).sum().backward()
        conv.eval()
        with torch.no_grad():
            out: Tensor = conv(x, graph)
        return out

    first = step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        second = step()  # raises if it waits
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(second, first)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("capture", [False, True])
def test_on_a_gpu_training_gives_the_same_up_to_rounding(
    capture: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_RECOMPUTED_GPU", 2**13)  # several blocks
    losses = []
    for recompute in (False, True, True):
        chosen = Settings.create(
            model="residual", dataset="tables", num_layers=3, hidden_channels=16, max_epochs=8,
            training="whole", device="cuda", capture=capture, recompute=recompute,
        )  # fmt: skip
        result = train(small_graph(), chosen)
        losses.append([epoch["train_loss"] for epoch in result.history])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert losses[1] == losses[2]


@pytest.mark.parametrize("dropped", [{"adj_dropout": 0.1}, {"lgcl_dropout": 0.1}])
def test_what_keeps_the_grid_counts_as_if_there_was_no_recompute(dropped: dict[str, float]) -> None:
    kept = Settings.create(preset="residual", **dropped)
    asked = Settings.create(preset="residual", recompute=True, **dropped)
    assert asked.model.values_per_feature == kept.model.values_per_feature
