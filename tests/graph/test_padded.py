"""Graphs in padded arrays: what a network reads of them, and nothing else."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from lgcn import Graph
from lgcn.graph.padded import Form, Sizes, assemble, forms_read, shapes_of, sizes_of, write
from lgcn.ops import structure
from lgcn.ops.structure import csr_parts, transpose
from lgcn.utils.flat import FlatArrays

MATRIX = Form(edges=False, normalize=True, self_loops=True)
RAW = Form(edges=False, normalize=False, self_loops=False)
EDGES = Form(edges=True, normalize=True, self_loops=False)
SIZES = Sizes(nodes=12, entries=50, degree=9, values=40, column=8)


@pytest.fixture(params=["plain", "weights", "degrees"])
def graph(request: pytest.FixtureRequest) -> Graph:
    """Directed, with a self-loop, parallel edges and a node without neighbours."""
    edge_index = torch.tensor([[0, 1, 2, 3, 3, 0, 4, 4, 3], [1, 2, 0, 4, 0, 4, 4, 0, 4]])
    given: dict[str, Any] = {"x": torch.arange(15.0).reshape(5, 3) % 4}
    if request.param != "plain":
        given["edge_weight"] = torch.linspace(0.3, 3.1, 9)
    if request.param == "degrees":
        given["degree"] = torch.tensor([4.0, 0.0, 2.0, 9.0, 1.5], dtype=torch.float64)
    return Graph.as_given(edge_index, 5, **given)


def padded(graph: Graph, forms: list[Form]) -> Graph:
    assert sizes_of(graph, forms).fit_into(SIZES)
    flat = FlatArrays(shapes_of(graph, forms, SIZES))
    block = flat.empty().fill_(77)
    assert write(graph, forms, SIZES, flat.arrays(block)) == sizes_of(graph, forms)
    return assemble(flat.views(block), forms, SIZES, graph.num_features)


def dense(rowptr: Any, col: Any, weight: Any, num_cols: int) -> torch.Tensor:
    found = torch.zeros(len(rowptr) - 1, num_cols)
    for row, (first, last) in enumerate(itertools.pairwise(rowptr)):
        for entry in range(int(first), int(last)):
            found[row, col[entry]] += 1 if weight is None else weight[entry]
    return found


@pytest.mark.parametrize("form", [MATRIX, RAW])
def test_a_padded_adjacency_is_that_of_the_graph(graph: Graph, form: Form) -> None:
    options = form._asdict()
    del options["edges"]
    expected = dense(*graph.adjacency(**options), 5)
    found = padded(graph, [RAW, MATRIX])
    rowptr, col, weight = found.adjacency(**options)
    assert found.num_nodes == 12
    assert col.numel() == 50
    wide = torch.nn.functional.pad(expected, (0, 7, 0, 7))
    assert torch.equal(dense(rowptr, col, weight, 12), wide)
    turned = transpose(rowptr, col, 12)
    factor = None if weight is None else weight[turned.entry.long()]
    assert torch.equal(dense(turned.colptr, turned.row, factor, 12), wide.t())
    assert structure.max_degree(rowptr, col) == 9  # a bound, as the contents may change


def test_padded_edges_come_and_go_at_the_last_node(graph: Graph) -> None:
    edge_index, weight = graph.edges(normalize=True)
    found, padded_weight = padded(graph, [EDGES]).edges(normalize=True)
    assert found.shape == (2, 50)
    assert torch.equal(found[:, : graph.num_edges], edge_index)
    assert bool((found[:, graph.num_edges :] == 11).all())
    assert weight is not None
    assert padded_weight is not None
    assert torch.equal(padded_weight[: graph.num_edges], weight.float())
    assert bool((padded_weight[graph.num_edges :] == 0).all())


def test_features_are_padded_with_empty_rows(graph: Graph) -> None:
    assert graph.x is not None
    wide = torch.nn.functional.pad(graph.x, (0, 0, 0, 7))
    assert torch.equal(padded(graph, []).features(), wide)
    sparse = replace(graph, x=graph.x.to_sparse_csr())
    rowptr, col, value = csr_parts(padded(sparse, []).features())
    assert value.numel() == 40
    assert torch.equal(dense(rowptr, col, value, 3), wide)
    turned = transpose(rowptr, col, 3)
    factor = value[turned.entry.long()]
    assert torch.equal(dense(turned.colptr, turned.row, factor, 12), wide.t())


def test_other_forms_are_refused(graph: Graph) -> None:
    found = padded(graph, [MATRIX])
    found.adjacency(normalize=True, self_loops=True)
    with pytest.raises(RuntimeError, match="normalize=False"):
        found.adjacency()
    with pytest.raises(RuntimeError, match="edges=True"):
        found.edges(normalize=True, self_loops=True)
    with pytest.raises(RuntimeError, match="reversed"):
        found.reversed()
    with pytest.raises(RuntimeError, match="blocks"):
        found.adjacency_rows(0, 1)


def test_what_is_read_is_noted(graph: Graph) -> None:
    def read(one: Graph) -> None:
        one.edges(normalize=True)
        one.adjacency()

    assert forms_read(read, graph) == [RAW, EDGES]
    assert forms_read(lambda one: one.num_nodes, graph) == []
    assert forms_read(Graph.reversed, graph) is None
    assert forms_read(Graph.row_degree, graph) is None
    assert forms_read(lambda one: one.adjacency_rows(0, 2), graph) is None
