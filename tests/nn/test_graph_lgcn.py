"""The LGCN for whole graphs: a batch gives what its graphs give alone, whatever their order."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lgcn
from lgcn import Graph, GraphLGCN
from lgcn.nn import LGConv
from lgcn.nn.batch_norm import BatchNorm
from lgcn.ops import k_largest
from lgcn.training.groups import GraphLGCNSettings
from lgcn.training.models import find_model, model_names
from lgcn.training.settings import Settings

SIZES = [4, 0, 1, 7, 0]
ALL = "sum+mean+max+k_largest+sort"
POOLINGS = ("none", "topk", "sag", "cluster")


def batch(sizes: list[int], seed: int = 0, share: float = 0.4) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for size in sizes:
        edges = (torch.rand(size, size, generator=generator) < share).triu(1).nonzero().t()
        x = torch.randn(size, 5, generator=generator)
        graphs.append(Graph.from_edge_index(edges, size, x=x))
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    return replace(Graph.concat(graphs), ptr=ptr)


def network(**options: Any) -> GraphLGCN:
    """One whose norms are not the identity in eval mode."""
    torch.manual_seed(0)
    small = {"hidden_channels": 6, "lgcl_channels": 4, "num_layers": 2, "k": 3, "readout_k": 3}
    model = GraphLGCN(5, 3, **{**small, **options})
    for module in model.modules():
        if isinstance(module, BatchNorm):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            module.bias.data.normal_()
    return model.eval()


@pytest.mark.parametrize("pooling", POOLINGS)
@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 7), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_a_batch_gives_the_rows_of_its_graphs_alone(
    pooling: str, sizes: list[int], seed: int
) -> None:
    # Nodes with the same neighbours have one score in SAGPool, and rounding would choose.
    ratio = 1.0 if pooling == "sag" else 0.5
    graph, model = batch(sizes, seed), network(readout=ALL, pooling=pooling, ratio=ratio)
    assert graph.x is not None
    out = model(graph.x, graph)
    assert out.shape == (len(sizes), 3)
    alone = [model(one.x, one) for one in graph.separate()]  # without ptr
    torch.testing.assert_close(out, torch.cat(alone), rtol=1e-4, atol=1e-5)


def test_the_order_of_graphs_does_not_matter() -> None:
    model, graph = network(readout=ALL), batch(SIZES)
    order = torch.randperm(len(SIZES))
    separate = graph.separate()
    other = replace(
        Graph.concat([separate[i] for i in order]),
        ptr=torch.tensor([0, *(SIZES[i] for i in order)]).cumsum(0),
    )
    assert graph.x is not None
    assert other.x is not None
    torch.testing.assert_close(model(other.x, other), model(graph.x, graph)[order])


@pytest.mark.parametrize("pooling", ["none", "topk", "sag"])  # a matching depends on the order
def test_the_order_of_nodes_does_not_matter(pooling: str) -> None:
    # SortPooling's order has ties where a feature is zero after relu.
    model = network(readout="sum+mean+max+k_largest", pooling=pooling)
    graph = batch([9], seed=2)
    order = torch.randperm(9)
    assert graph.x is not None
    other = Graph.from_edge_index(order.argsort()[graph.edge_index], 9, x=graph.x[order])
    torch.testing.assert_close(model(other.x, other), model(graph.x, graph))


def slow_embed(model: GraphLGCN, x: Tensor, graph: Graph) -> Tensor:
    """What the classifier sees of one graph, with loops over nodes."""
    rows = [graph.col[a:b] for a, b in itertools.pairwise(graph.rowptr.tolist())]
    h = torch.relu(model.norms[0](x @ model.embedding.weight + model.embedding.bias))
    seen = [h.sum(0), h.max(0).values]
    for layer, norm in zip(model.layers, list(model.norms)[1:], strict=True):
        assert isinstance(layer, LGConv)
        grids = []
        for node, row in enumerate(rows):
            near = h[row].sort(0, descending=True).values[: layer.k]
            padded = torch.cat([near, h.new_zeros(layer.k - len(near), h.size(1))])
            grids.append(torch.cat([h[node][None], padded, h[row].sum(0)[None]]))
        convolution = layer.cnn[0]  # type: ignore[index]
        out = torch.einsum("npc,dcp->nd", torch.stack(grids), convolution.weight)
        new = torch.relu(norm(out + convolution.bias))
        seen += [new.sum(0), new.max(0).values]
        h = torch.cat([h, new], 1)
    return torch.cat(seen)


def test_it_equals_loops_over_nodes() -> None:
    model, graph = network(), batch([8], seed=3)
    assert graph.x is not None
    found = model.embed(graph.x, graph)[0]
    torch.testing.assert_close(found, slow_embed(model, graph.x, graph))
    assert found.numel() == 2 * (6 + 4 + 4)


def test_counting_is_possible_with_the_sum_alone() -> None:
    """Graphs that differ in the number of equal neighbours, beyond k."""
    stars = [Graph.from_edge_index(torch.tensor([[0] * n, range(1, n + 1)])) for n in (5, 9)]
    graph = Graph.concat(stars)
    x = torch.ones(graph.num_nodes, 5)
    with_sum, without = (network(append=a, readout="max") for a in ("sum", "none"))
    assert not torch.allclose(*with_sum(x, graph))
    torch.testing.assert_close(*without(x, graph))


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_every_weight_gets_a_gradient(pooling: str, norm: str) -> None:
    graph = batch([6, 0, 5, 7], seed=1)
    model = network(readout=ALL, pooling=pooling, norm=norm, dropout=0.1).train()
    assert graph.x is not None
    model(graph.x, graph).square().sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("sizes", [[1], [0], [0, 0], [1, 0], [3], []])
@pytest.mark.parametrize("training", [True, False])
def test_tiny_batches(pooling: str, sizes: list[int], training: bool) -> None:
    """One node or none, one graph or none: no variance of a batch can be computed."""
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    n = sum(sizes)
    graph = Graph(torch.zeros(n + 1, dtype=torch.long), torch.empty(0, dtype=torch.long), ptr=ptr)
    model = network(readout=ALL, pooling=pooling).train(training)
    out = model(torch.ones(n, 5), graph)
    assert out.shape == (len(sizes), 3)
    assert out.isfinite().all()
    out.sum().backward()


def test_pooling_makes_later_levels_smaller() -> None:
    graph = batch([8, 4], seed=1)
    assert graph.x is not None
    seen: list[int] = []
    for pooling, rows in (("none", [12] * 3), ("topk", [12, 6, 4]), ("sag", [12, 6, 4])):
        model = network(num_layers=3, pooling=pooling, ratio=0.5)
        for layer in model.layers:
            layer.register_forward_hook(lambda layer, args, out: seen.append(len(out)))
        model(graph.x, graph)
        rows = [12, 6, 3] if pooling != "none" else rows
        assert seen == rows
        seen.clear()


def test_sparse_features_and_scaled_ones() -> None:
    graph = batch(SIZES)
    assert graph.x is not None
    model, scaled = network(), network(input_scale=2.0)
    dense = model(graph.x, graph)
    torch.testing.assert_close(model(graph.x.to_sparse_csr(), graph), dense)
    torch.testing.assert_close(scaled(graph.x / 2, graph), dense)


@pytest.mark.parametrize(
    ("options", "captured"),
    [
        ({}, True),
        ({"pooling": "cluster"}, True),
        ({"pooling": "topk"}, False),
        ({"pooling": "sag"}, False),
        ({"adj_dropout": 0.1}, False),
        ({"adj_dropout": 0.1, "zeros": "compete"}, True),
        ({"pooling": "topk", "num_layers": 1}, True),  # there is nothing to pool between
    ],
)
def test_whether_steps_can_be_captured(options: dict[str, Any], captured: bool) -> None:
    model = network(**options)
    assert model.can_capture is captured
    assert model.first_layer is model.embedding


@pytest.mark.parametrize("pooling", POOLINGS)
def test_resetting_draws_new_weights(pooling: str) -> None:
    model = network(pooling=pooling, readout=ALL)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    model.reset_parameters()
    kept = {name for name, weight in model.named_parameters() if torch.equal(weight, before[name])}
    constant = {name for name in before if name.endswith("bias") or name.startswith("norms")}
    assert kept - constant <= {f"classifier.norms.{i}.weight" for i in (0, 1)}


def test_wrong_arguments_are_named() -> None:
    for name, value in (("append", "max"), ("norm", "x"), ("pooling", "all"), ("activation", "y")):
        with pytest.raises(ValueError, match=rf"{name} must be one of .*, got '{value}'"):
            network(**{name: value})
    with pytest.raises(ValueError, match="readout must be one of"):
        network(readout="median")
    graph = batch([3])
    with pytest.raises(ValueError, match=r"\[3, 5\], got \[3, 4\]"):
        network()(torch.ones(3, 4), graph)


def test_its_settings_are_the_arguments_of_the_network() -> None:
    chosen = Settings.create(model="graph_lgcn", readout="sum+k_largest", pooling="sag")
    assert chosen.preset == "graphs"
    assert (chosen.sampling.training, chosen.evaluation.evaluate_on) == ("whole", "graph")
    model = chosen.build_model(5, 3)
    assert isinstance(model, GraphLGCN)
    assert model.readouts[0].names == ("sum", "k_largest")
    with pytest.raises(lgcn.errors.UsageError, match=r"readout must be one of .* got 'median'"):
        Settings.create(model="graph_lgcn", readout="median")
    with pytest.raises(lgcn.errors.UsageError, match="ratio must be"):
        Settings.create(model="graph_lgcn", ratio=0.0)


def test_the_defaults_of_settings_and_network_agree() -> None:
    options = GraphLGCNSettings().options()
    defaults = GraphLGCN.__init__.__kwdefaults__
    assert options == defaults
    assert Settings.create(model="graph_lgcn").model == GraphLGCNSettings()


def test_work_grows_with_width_and_depth() -> None:
    small, wide = GraphLGCNSettings(), GraphLGCNSettings(hidden_channels=64, lgcl_channels=64)
    assert wide.work(100, 400) == 2 * small.work(100, 400)
    assert GraphLGCNSettings(num_layers=4).work(100, 400) > small.work(100, 400)
    assert small.values_per_feature == 10


def test_only_this_model_is_for_graphs() -> None:
    own = [name for name in ("lgcn", "residual", "boosting", "graph_lgcn") if name in model_names()]
    assert [name for name in own if find_model(name).for_graphs] == ["graph_lgcn"]


@pytest.mark.parametrize("append", ["mean", "sum"])
def test_an_lgcl_appends_the_mean_or_the_sum(append: str) -> None:
    graph = batch([7], seed=1)
    assert graph.x is not None
    layer = LGConv(5, 2, k=2, mean=append == "mean", sum=append == "sum")
    rowptr, col, _ = graph.adjacency()
    grid = layer.select(graph.x, graph.x, graph.adjacency())
    assert grid.shape == (7, 4, 5)
    torch.testing.assert_close(grid[:, 1:3], k_largest(graph.x, rowptr, col, 2)[0])
    for node in range(7):
        near = graph.x[col[rowptr[node] : rowptr[node + 1]]]
        wanted = near.sum(0) / (max(len(near), 1) if append == "mean" else 1)
        torch.testing.assert_close(grid[node, 3], wanted)
    with pytest.raises(ValueError, match="mean and sum must not both be true"):
        LGConv(5, 2, mean=True, sum=True)


def test_read_outs_that_are_the_same_in_all_graphs_stay_small_in_evaluation() -> None:
    """In evaluation, the running mean is behind the weights; no variance must magnify that."""
    norm: Any = GraphLGCN(5, 3).classifier.norms[0]
    for step in range(50):
        norm(torch.full((32, norm.num_features), 0.01 * step))
    norm.eval()
    assert norm(torch.full((4, norm.num_features), 0.49)).abs().max() < 0.5
