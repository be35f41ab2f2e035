"""`return_selection`: which neighbour filled which place of the grid."""

import pytest
import torch
from torch import Tensor

from lgcn import Graph, LGConv
from lgcn.ops import reference
from tests.conftest import make_graph


def with_ties(weighted: bool) -> Graph:
    """A graph of few distinct values, so that many of them are equal, some of them zero."""
    graph = make_graph(weighted=weighted)
    assert graph.x is not None
    x = graph.x.round()
    return Graph(graph.rowptr, graph.col, x=x, edge_weight=graph.edge_weight)


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("zeros", ["pad", "compete"])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_selection_is_that_of_the_definition(
    rank: str, self_loops: bool, zeros: str, mean: bool, weighted: bool
) -> None:
    graph = with_ties(weighted)
    conv = LGConv(5, 3, k=4, rank=rank, self_loops=self_loops, zeros=zeros, mean=mean)
    out, (node, value) = conv(graph.x, graph, return_selection=True)
    rowptr, col, weight = graph.adjacency(normalize=rank == "normalized", self_loops=self_loops)
    values, nodes = reference.k_largest(
        graph.x, rowptr, col, 4, weight, zeros == "compete", position_bits=0
    )
    assert torch.equal(node, nodes)
    assert torch.equal(value, values)
    assert torch.equal(out, conv(graph.x, graph))
    assert (node == -1).any()


@pytest.mark.parametrize("self_loops", [False, True])
def test_an_edge_index_gives_the_selection_of_the_graph(self_loops: bool) -> None:
    graph = make_graph()
    conv = LGConv(5, 3, k=4, self_loops=self_loops, return_selection=True)
    _, expected = conv(graph.x, graph)
    _, found = conv(graph.x, graph.edge_index)
    traced = torch.compile(conv, fullgraph=True, backend="eager")
    for selection in (found, traced(graph.x, graph.edge_index)[1]):
        assert torch.equal(selection.node, expected.node)
        assert torch.equal(selection.value, expected.value)
    assert isinstance(conv(graph.x, graph, return_selection=False), Tensor)


def test_the_selection_of_a_bipartite_graph_numbers_the_sources() -> None:
    source, own = torch.tensor([[1.0], [9.0], [4.0]]), torch.tensor([[0.0], [0.0]])
    edge_index = torch.tensor([[0, 2, 1], [1, 1, 1]])
    _, selection = LGConv(1, 1, k=2)((source, own), edge_index, return_selection=True)
    assert selection.node[:, :, 0].tolist() == [[-1, -1], [1, 2]]
    assert selection.value[:, :, 0].tolist() == [[0, 0], [9, 4]]


def test_the_selection_is_that_of_the_edges_that_dropout_left() -> None:
    graph = make_graph()
    conv = LGConv(5, 3, k=12, adj_dropout=0.5, dropout=0.5)
    torch.manual_seed(1)
    out, selection = conv(graph.x, graph, return_selection=True)
    torch.manual_seed(1)
    assert torch.equal(conv(graph.x, graph), out)
    torch.manual_seed(1)
    kept = graph.adjacency().drop_edges(0.5)
    for node, chosen in enumerate(selection.node):
        left = kept.col[kept.rowptr[node] : kept.rowptr[node + 1]].tolist()
        assert sorted(chosen[chosen[:, 0] >= 0, 0].tolist()) == sorted(left)
    assert (selection.value[selection.node >= 0] != 0).all()  # those of dropout come later


def test_gradients_reach_the_features_through_the_selected_values() -> None:
    graph = make_graph()
    x = graph.x.clone().requires_grad_()
    _, selection = LGConv(5, 3, k=1)(x, graph, return_selection=True)
    selection.value.sum().backward()
    expected = torch.zeros_like(x)
    for c in range(5):
        for node in selection.node[:, 0, c].tolist():
            if node >= 0:
                expected[node, c] += 1
    assert torch.equal(x.grad, expected)
