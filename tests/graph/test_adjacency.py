"""Adjacencies, their rows and dropped edges, against dense matrices and PyG."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lgcn import Graph
from lgcn.graph.csr import to_csr

from .graphs import RandomGraph, dense


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("has_loops", [False, True])
def test_adjacency_is_that_of_pyg(
    random_graph: RandomGraph, self_loops: bool, weighted: bool, has_loops: bool
) -> None:
    graph = random_graph(weighted=weighted, self_loops=has_loops, density=0.2)
    edge_index, weight = gcn_norm(
        graph.edge_index, graph.edge_weight, graph.num_nodes, add_self_loops=self_loops
    )
    expected = torch.zeros(graph.num_nodes, graph.num_nodes)
    expected[edge_index[1], edge_index[0]] = weight
    actual = dense(graph.adjacency(normalize=True, self_loops=self_loops))
    torch.testing.assert_close(actual, expected)


def test_self_loops_are_added_where_missing_only() -> None:
    edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    graph = Graph.as_given(edge_index, 3, edge_weight=torch.tensor([5.0, 6.0, 7.0]))
    expected = [[5, 6, 0], [0, 1, 7], [0, 0, 1]]
    assert dense(graph.adjacency(self_loops=True)).tolist() == expected


def test_an_isolated_node_has_finite_weights() -> None:
    graph = Graph.as_given(torch.tensor([[0, 1, 3], [1, 0, 1]]), 4)
    looped = dense(graph.adjacency(normalize=True, self_loops=True))
    assert looped[2].tolist() == [0, 0, 1, 0]
    weight = graph.adjacency(normalize=True).weight
    assert weight.isfinite().all()
    assert dense(graph.adjacency(normalize=True))[1, 3] == 0  # node 3 has no row sum


def test_adjacency_is_computed_once(random_graph: RandomGraph) -> None:
    graph = random_graph()
    for options in ({}, {"normalize": True}, {"normalize": True, "self_loops": True}):
        assert graph.adjacency(**options) is graph.adjacency(**options)
    assert graph.adjacency().col is graph.col


def test_drop_edges_with_rate_zero_is_the_same_object(random_graph: RandomGraph) -> None:
    matrix = random_graph().adjacency(normalize=True)
    assert matrix.drop_edges(0.0) is matrix


@pytest.mark.parametrize("weighted", [False, True])
def test_drop_edges_keeps_some_and_scales_them_up(
    random_graph: RandomGraph, weighted: bool
) -> None:
    matrix = random_graph(weighted=weighted).adjacency()
    torch.manual_seed(0)
    dropped = matrix.drop_edges(0.5)
    assert 0 < dropped.col.numel() < matrix.col.numel()
    assert int(dropped.rowptr[-1]) == dropped.col.numel()
    before, after = dense(matrix), dense(dropped)
    torch.testing.assert_close(after[after != 0], 2 * before[after != 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_drop_edges_keeps_the_expectation(random_graph: RandomGraph, weighted: bool) -> None:
    matrix = random_graph(40, 0.9, weighted=weighted).adjacency()
    torch.manual_seed(0)
    mean = torch.stack([matrix.drop_edges(0.3).values().sum() for _ in range(50)]).mean()
    torch.testing.assert_close(mean, matrix.values().sum(), rtol=0.02, atol=0)


@settings(max_examples=60)
@given(
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["no", "some", "kept"]),
    st.data(),
)
def test_rows_of_the_adjacency_are_those_of_the_whole(
    random_graph: RandomGraph,
    seed: int,
    weighted: bool,
    normalize: bool,
    self_loops: bool,
    loops: str,
    data: st.DataObject,
) -> None:
    graph = random_graph(12, 0.3, seed=seed, weighted=weighted, self_loops=loops != "no")
    if loops == "kept":  # degrees of a larger graph, rows with and without loops
        graph = graph.subgraph(torch.randperm(12)[:9])
    start = data.draw(st.integers(0, graph.num_nodes))
    stop = data.draw(st.integers(start, graph.num_nodes))
    expected = graph.adjacency(normalize=normalize, self_loops=self_loops).rows(start, stop)
    rows = graph.adjacency_rows(start, stop, normalize=normalize, self_loops=self_loops)
    for one, other in zip(rows, expected, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_rows_of_the_adjacency_must_be_there(random_graph: RandomGraph) -> None:
    for start, stop in ((-1, 2), (3, 2), (0, 13)):
        with pytest.raises(ValueError, match="between 0 and 12"):
            random_graph().adjacency_rows(start, stop)


def test_to_csr_of_a_bipartite_graph() -> None:
    matrix = to_csr(torch.tensor([[4, 0, 2], [1, 1, 0]]), num_rows=2, num_cols=5)
    assert dense(matrix, 5).tolist() == [[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]


@pytest.mark.parametrize("normalize", [False, True])
def test_offsets_may_be_wider_than_columns(random_graph: RandomGraph, normalize: bool) -> None:
    graph = random_graph()
    mixed = Graph._trusted(graph.rowptr, graph.col.int(), x=graph.x)
    nodes = torch.tensor([3, 8, 1, 0])
    options = {"normalize": normalize, "self_loops": True}
    for one, other in (
        (mixed.adjacency(**options), graph.adjacency(**options)),
        (mixed.adjacency_rows(2, 9, **options), graph.adjacency_rows(2, 9, **options)),
        (mixed.subgraph(nodes).adjacency(**options), graph.subgraph(nodes).adjacency(**options)),
        (Graph.concat([mixed] * 2).adjacency(), Graph.concat([graph] * 2).adjacency()),
    ):
        assert one.rowptr.dtype == one.col.dtype
        assert torch.equal(dense(one, 24), dense(other, 24))


# Weights that are learned.


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_gradients_of_the_weights(
    random_graph: RandomGraph, normalize: bool, self_loops: bool
) -> None:
    graph = random_graph(6, 0.4, weighted=True)

    def weights(values: Tensor) -> Tensor:
        learned = replace(graph, edge_weight=values)
        return learned.adjacency(normalize=normalize, self_loops=self_loops).weight

    values = graph.edge_weight.double().requires_grad_()
    assert torch.autograd.gradcheck(weights, values)
    assert torch.autograd.gradgradcheck(weights, values)


def test_rows_without_weight_have_gradients_of_zero() -> None:
    weight = torch.tensor([0.0, 2.0], requires_grad=True)
    graph = Graph.as_given(torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=weight)
    graph.adjacency(normalize=True).weight.sum().backward()
    assert weight.grad.tolist() == [0, 0]  # the degree of node 1 is zero


@pytest.mark.parametrize("options", [{}, {"normalize": True, "self_loops": True}])
def test_each_backward_through_learned_weights_has_its_own_graph(
    random_graph: RandomGraph, options: dict[str, bool]
) -> None:
    graph = random_graph(6, 0.4, weighted=True)
    before = graph.adjacency(**options).weight
    graph.edge_weight.requires_grad_()
    with torch.no_grad():
        graph.adjacency(**options)
    for _ in range(2):
        graph.adjacency(**options).weight.square().sum().backward()
        graph.edges(**options)[1].square().sum().backward()
        graph.adjacency_rows(0, 6, **options).weight.square().sum().backward()
        graph.subgraph(torch.arange(4)).adjacency(**options).weight.square().sum().backward()
    torch.testing.assert_close(graph.adjacency(**options).weight.detach(), before)
    assert graph.degree is None


def test_weights_that_changed_while_they_are_learned_are_seen(random_graph: RandomGraph) -> None:
    graph = random_graph(6, 0.4, weighted=True)
    graph.edge_weight.requires_grad_()
    first = graph.adjacency().weight.detach().clone()
    with torch.no_grad():
        graph.edge_weight.mul_(2)
        torch.testing.assert_close(graph.adjacency().weight, 2 * first)


def test_nan_in_a_degree_is_not_hidden() -> None:
    graph = Graph.as_given(
        torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=torch.tensor([float("nan"), 1.0])
    )
    assert graph.adjacency(normalize=True).weight.isnan().any()


@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16])
def test_degrees_of_narrow_weights(dtype: torch.dtype) -> None:
    ends = torch.stack([torch.arange(1, 301), torch.zeros(300).long()])
    weight = torch.ones(300, dtype=dtype)
    graph = Graph.as_given(torch.cat([ends, ends.flip(0)], 1), edge_weight=weight.repeat(2))
    expected = Graph.as_given(graph.edge_index).adjacency(normalize=True).weight
    torch.testing.assert_close(graph.adjacency(normalize=True).weight, expected)


def test_a_graph_that_changed_is_checked_again(random_graph: RandomGraph) -> None:
    graph = random_graph()
    graph.col[0] = 12
    for make in (graph.adjacency, lambda: graph.adjacency_rows(0, 12)):
        with pytest.raises(ValueError, match=r"col must be smaller .*\(12\), got .* = 12"):
            make()


OPTIONS = {"normalize": True, "self_loops": True}


def test_graphs_of_the_same_tensors_share_what_is_derived(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    other = replace(graph, x=None, name="other")
    assert other.adjacency(**OPTIONS) is graph.adjacency(**OPTIONS)
    assert other.edges(**OPTIONS) is graph.edges(**OPTIONS)


@pytest.mark.parametrize("field", ["edge_weight", "degree"])
def test_other_weights_or_degrees_have_results_of_their_own(
    random_graph: RandomGraph, field: str
) -> None:
    graph = random_graph(weighted=True)
    graph.subgraph(torch.arange(4))
    before = graph.adjacency(**OPTIONS)
    graph.adjacency_rows(0, 4, **OPTIONS)
    values = torch.rand(graph.num_edges if field == "edge_weight" else graph.num_nodes) + 1
    changed = replace(graph, **{field: values})
    fresh = Graph(graph.rowptr, graph.col, **{"edge_weight": graph.edge_weight, field: values})
    assert changed.adjacency(**OPTIONS).weight.equal(fresh.adjacency(**OPTIONS).weight)
    assert changed.edges(**OPTIONS)[1].equal(fresh.edges(**OPTIONS)[1])
    actual, expected = (g.adjacency_rows(2, 9, **OPTIONS) for g in (changed, fresh))
    assert actual.weight.equal(expected.weight)
    actual, expected = (g.subgraph(torch.arange(4)) for g in (changed, fresh))
    assert actual.degree.equal(expected.degree)
    assert graph.adjacency(**OPTIONS) is before


def test_weights_that_changed_in_place_are_seen(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    graph.edges(**OPTIONS)
    graph.subgraph(torch.arange(4))
    graph.edge_weight[: graph.num_edges // 2] *= 3
    fresh = Graph(graph.rowptr, graph.col, edge_weight=graph.edge_weight.clone())
    assert graph.adjacency(**OPTIONS).weight.equal(fresh.adjacency(**OPTIONS).weight)
    assert graph.edges(**OPTIONS)[1].equal(fresh.edges(**OPTIONS)[1])
    actual, expected = (g.subgraph(torch.arange(4)).degree for g in (graph, fresh))
    assert actual.equal(expected)


def test_a_graph_made_for_inference_keeps_its_adjacency(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    with torch.inference_mode():
        part = graph.subgraph(torch.arange(6))
        assert part.edge_weight.is_inference()
        assert part.adjacency(**OPTIONS) is part.adjacency(**OPTIONS)


def test_a_graph_stays_as_it_was_given(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    given = dict(vars(graph))
    graph.subgraph(torch.arange(4))
    graph.adjacency_rows(0, 4, **OPTIONS)
    graph.edges(**OPTIONS)
    assert vars(graph) == given
