"""Edge lists as rows, against PyG and SciPy."""

from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.graph import Graph
from lgcn.tables.edges import read_edges, to_adjacency
from lgcn.tables.ids import NodeIndex
from lgcn.tables.open_table import open_table


def random_edges(num_nodes: int, num_edges: int, seed: int) -> tuple[Any, Any, Any]:
    """Edges without self-loops, in three parts; some weights are the same."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, num_nodes, num_edges).astype(np.int32)
    target = rng.integers(0, num_nodes, num_edges).astype(np.int32)
    weight = rng.integers(0, 5, num_edges).astype(np.float32) / 4
    kept = source != target
    return source[kept], target[kept], weight[kept]


def in_parts(values: Any) -> list[Any]:
    return list(np.array_split(values, 3))


@settings(max_examples=100)
@given(st.integers(1, 30), st.integers(0, 200), st.integers(0, 2**32 - 1), st.booleans())
def test_undirected_rows_are_those_of_pyg(
    num_nodes: int, num_edges: int, seed: int, weighted: bool
) -> None:
    source, target, weight = random_edges(num_nodes, num_edges, seed)
    expected = Graph.from_edge_index(
        torch.from_numpy(np.stack([source, target]).astype(np.int64)),
        num_nodes,
        edge_weight=torch.from_numpy(weight) if weighted else None,
    )
    rows, duplicates = to_adjacency(
        in_parts(source),
        in_parts(target),
        in_parts(weight) if weighted else None,
        num_nodes,
        directed=False,
    )
    assert rows.rowptr.dtype == rows.col.dtype == torch.int32
    assert torch.equal(rows.rowptr.long(), expected.rowptr)
    assert torch.equal(rows.col.long(), expected.col)
    assert duplicates == len(source) - expected.num_edges // 2
    if weighted:
        assert torch.equal(rows.weight, expected.edge_weight)  # type: ignore[arg-type]
    else:
        assert rows.weight is None


@settings(max_examples=100)
@given(st.integers(1, 30), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_directed_rows_are_those_of_scipy(num_nodes: int, num_edges: int, seed: int) -> None:
    source, target, weight = random_edges(num_nodes, num_edges, seed)
    matrix = scipy.sparse.coo_matrix(
        (np.ones(len(source)), (target, source)), (num_nodes, num_nodes)
    ).tocsr()
    matrix.sum_duplicates()
    heaviest = np.full((num_nodes, num_nodes), -1.0)
    np.maximum.at(heaviest, (target, source), weight)
    rows, duplicates = to_adjacency(
        in_parts(source), in_parts(target), in_parts(weight), num_nodes, directed=True
    )
    assert rows.rowptr.tolist() == matrix.indptr.tolist()
    assert rows.col.tolist() == matrix.indices.tolist()
    assert rows.weight is not None
    assert rows.weight.tolist() == heaviest[heaviest >= 0].tolist()
    assert duplicates == len(source) - matrix.nnz


@pytest.mark.parametrize("directed", [False, True])
def test_long_rows_and_threads_change_nothing(directed: bool) -> None:
    rng = np.random.default_rng(0)
    source, target, _ = random_edges(3000, 40_000, 1)
    target[:20_000] = 7  # a hub
    kept = source != target
    source, target = source[kept], target[kept]
    weight = rng.random(len(source)).astype(np.float32)
    results = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        try:
            parts = [source], [target], [weight]
            results.append(to_adjacency(*parts, 3000, directed=directed))
        finally:
            numba.set_num_threads(1)
    (rows, duplicates), (other, other_duplicates) = results
    assert duplicates == other_duplicates > 0
    assert all(torch.equal(a, b) for a, b in zip(rows, other, strict=True))  # type: ignore[arg-type]
    start, stop = rows.rowptr[7], rows.rowptr[8]
    assert rows.col[start:stop].diff().min() > 0


def test_the_lists_are_emptied() -> None:
    sources, targets = [np.array([0, 1], np.int32)], [np.array([1, 0], np.int32)]
    to_adjacency(sources, targets, None, 2, directed=True)
    assert sources == targets == []


def read(columns: dict[str, Any], ids: list[Any], weight: str | None = None, **options: Any) -> Any:
    options = {"nodes": "nodes.csv", "drop_unknown": False} | options
    source = open_table(columns, "edges")
    return read_edges(source, "s", "t", weight, NodeIndex(pa.array(ids)), **options)


def test_ids_become_numbers_and_loops_are_counted() -> None:
    edges = read({"s": ["b", "a", "c"], "t": ["a", "a", "b"], "w": [2, 3, 4]}, ["a", "b", "c"], "w")
    assert [part.tolist() for part in edges.sources] == [[1, 2]]
    assert [part.tolist() for part in edges.targets] == [[0, 1]]
    assert [part.tolist() for part in edges.weights] == [[2, 4]]
    assert (edges.num_rows, edges.num_self_loops, edges.num_unknown) == (3, 1, 0)


def test_unknown_nodes_are_dropped_if_asked() -> None:
    edges = read({"s": [5, 9, 9, 5], "t": [6, 5, 9, None]}, [5, 6], drop_unknown=True)
    assert [part.tolist() for part in edges.sources] == [[0]]
    assert (edges.num_rows, edges.num_self_loops, edges.num_unknown) == (4, 0, 3)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"s": [5, 9, 5, 9, 9], "t": [6, 5, 8, 7, 6]},
            r"4 of 5 edges.*nodes\.csv: row 1 \(s 9\), row 2 \(t 8\), row 3 \(s 9\), \.\.\.\. Add",
        ),
        (
            {"s": [5, 5], "t": [6, None]},
            r"1 of 2 edges.*row 1 \(t is empty\).*unknown_nodes='drop'",
        ),
        ({"s": [1], "t": [2]}, r"the ids of nodes\.csv look like 5\. Check that id_column"),
        ({"s": ["5", "x"], "t": ["6", "6"]}, "row 1, column 's'.*whole number.*got 'x'"),
        ({"s": [5], "t": [6.5]}, r"row 0, column 't'.*got 6\.5"),
    ],
)
def test_edges_that_name_no_node(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(columns, [5, 6])


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, 1e300, None])
def test_impossible_weights(weight: float | None) -> None:
    with pytest.raises(DataError, match="row 2, column 'w': a weight must be a finite number"):
        read({"s": [0, 1, 0], "t": [1, 0, 1], "w": pa.array([1.0, 0.0, weight])}, [0, 1], "w")


def test_weights_that_are_no_numbers() -> None:
    with pytest.raises(DataError, match="weight_column must name a column of numbers, got 'w'"):
        read({"s": [0], "t": [1], "w": ["heavy"]}, [0, 1], "w")


def test_a_negative_zero_is_a_zero() -> None:
    edges = read({"s": [0, 0], "t": [1, 1], "w": [-0.0, 0.5]}, [0, 1], "w")
    rows, _ = to_adjacency(edges.sources, edges.targets, edges.weights, 2, directed=True)
    assert rows.weight is not None
    assert rows.weight.tolist() == [0.5]
