"""The layers that mix neighbours, against PyG's and dense matrices."""

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SimpleConv

from lgcn import Graph
from lgcn.nn.neighbour_layers import (
    Attention,
    NeighbourMax,
    NeighbourMean,
    NeighbourSum,
    NormalizedSum,
    neighbour_layer,
)

RandomGraph = Callable[..., Graph]


def test_normalized_sum_is_pygs_gcn(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer, pyg = NormalizedSum(5, 4), GCNConv(5, 4, bias=False)
    pyg.lin.weight.data = layer.weight.data.t().contiguous()
    expected = pyg(graph.x, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(layer(graph.x, graph), expected)


def test_mean_is_pygs_sage(random_graph: RandomGraph) -> None:
    graph = random_graph()
    if graph.edge_weight is not None:
        pytest.skip("SAGEConv knows no weights")
    layer, pyg = NeighbourMean(5, 4), SAGEConv(5, 4, root_weight=False, bias=False)
    pyg.lin_l.weight.data = layer.weight.data.t().contiguous()
    torch.testing.assert_close(layer(graph.x, graph), pyg(graph.x, graph.edge_index))


def test_weighted_mean_and_a_node_without_neighbours() -> None:
    graph = Graph.as_given(torch.tensor([[0, 1], [2, 2]]), 3, edge_weight=torch.tensor([1.0, 3.0]))
    layer = NeighbourMean(1, 1)
    layer.weight.data.fill_(1)
    out = layer(torch.tensor([[4.0], [8.0], [5.0]]), graph)
    assert out.tolist() == [[0], [0], [7]]


@pytest.mark.parametrize(("cls", "aggr"), [(NeighbourMax, "max"), (NeighbourSum, "sum")])
def test_max_and_sum_are_pygs_with_gradients(
    random_graph: RandomGraph, cls: type[NeighbourMax | NeighbourSum], aggr: str
) -> None:
    graph = random_graph()
    layer, pyg = cls(5, 4), SimpleConv(aggr)
    weight = graph.edge_weight
    results = []
    for run in (
        lambda x: layer(x, graph),
        lambda x: pyg(x @ layer.weight, graph.edge_index, weight),
    ):
        x = graph.x.clone().requires_grad_()
        out = run(x)
        results.append((out, *torch.autograd.grad(out.square().sum(), (x, layer.weight))))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_the_maximum_of_no_neighbours_is_zero_and_of_negative_values_is_not() -> None:
    graph = Graph.as_given(torch.tensor([[0, 1], [2, 2]]), 3, edge_weight=torch.tensor([1.0, 3.0]))
    layer = NeighbourMax(1, 1)
    layer.weight.data.fill_(1)
    out = layer(torch.tensor([[-4.0], [-8.0], [5.0]]), graph)
    assert out.tolist() == [[0], [0], [-4]]


def test_the_maximum_forgets_dropped_edges_in_training(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = NeighbourMax(5, 4, adj_dropout=0.5)
    x = -torch.rand(graph.num_nodes, 5)  # zeros of dropped edges would be the largest values
    layer.weight.data.abs_()
    torch.manual_seed(0)
    kept = graph.adjacency(normalize=False, self_loops=False).drop_edges(0.5)
    empty = kept.rowptr.diff() == 0
    torch.manual_seed(0)
    out = layer(x, graph)
    assert bool((out[empty] == 0).all())
    assert bool((out[~empty] < 0).all())
    with pytest.raises(ValueError, match=r"adj_dropout \(0.5\) .* masked"):
        layer.mix(x, x, graph.adjacency(), torch.ones(graph.num_edges))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_attention_is_pygs_gat(random_graph: RandomGraph, heads: int) -> None:
    graph = random_graph()
    layer, pyg = Attention(5, 8, heads=heads), GATConv(5, 8 // heads, heads=heads, bias=False)
    pyg.lin.weight.data = layer.weight.data.t().contiguous()
    pyg.att_src.data = layer.source.data[None]
    pyg.att_dst.data = layer.target.data[None]
    x = (10 * graph.x).requires_grad_()  # scores large enough to need the shift
    out = layer(x, graph)
    (gradient,) = torch.autograd.grad(out.square().sum(), x)
    expected = pyg(x, graph.edge_index)
    (wanted,) = torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-3)


def test_attention_sums_to_one_and_survives_large_scores(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = Attention(5, 4, heads=2)
    constant = torch.ones(graph.num_nodes, 5)
    torch.testing.assert_close(layer(constant, graph), constant @ layer.weight)
    assert bool(torch.isfinite(layer(1e4 * graph.x, graph)).all())


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match=r"multiple of heads \(3\), got 8"):
        neighbour_layer("attention", 4, 8, heads=3)
