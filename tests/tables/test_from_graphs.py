"""Graphs of NetworkX and SciPy."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph
from lgcn.tables.from_graphs import from_networkx, from_scipy


def karate() -> Any:
    graph = nx.karate_club_graph()
    for node, data in graph.nodes(data=True):
        data["vector"] = [float(node), float(node % 3)]
    return graph


@pytest.mark.parametrize("weight", [None, "weight"])
def test_networkx(weight: str | None) -> None:
    original = karate()
    graph = from_networkx(original, features=["vector"], label="club", weight=weight)
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == list(original)
    assert graph.label_names == ("Mr. Hi", "Officer")
    assert graph.num_features == 2
    matrix = nx.to_scipy_sparse_array(original, weight=weight, format="csr")
    matrix.sort_indices()
    assert graph.rowptr.tolist() == matrix.indptr.tolist()
    assert graph.col.tolist() == matrix.indices.tolist()
    if weight is None:
        assert graph.edge_weight is None
    else:
        assert graph.edge_weight is not None
        assert graph.edge_weight.tolist() == matrix.data.tolist()
    in_split = [int(mask.sum()) for mask in (graph.train_mask, graph.val_mask, graph.test_mask)]  # type: ignore[union-attr]
    assert sum(in_split) == 34
    assert min(in_split) > 0


def test_directed_multigraph_with_any_names() -> None:
    original = nx.MultiDiGraph(name="mine")
    original.add_edge("a", (1, 2), w=1.0)
    original.add_edge("a", (1, 2), w=3.0)
    original.add_edge((1, 2), (1, 2), w=9.0)
    original.add_node("alone", color="red", size=1)
    original.nodes["a"].update(color="red", size=2)
    original.nodes[(1, 2)].update(color="blue", size=3, kind="k")
    graph = from_networkx(original, weight="w", features="size", directed=True)
    assert graph.name == "mine"
    assert graph.rowptr.tolist() == [0, 0, 1, 1]
    assert graph.col.tolist() == [0]
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [3]
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ["a", (1, 2), "alone"]


def test_all_attributes_are_features_but_label_and_split() -> None:
    original = nx.path_graph(6)
    for node, data in original.nodes(data=True):
        data |= {"f": node / 2, "y": node % 2, "part": "train" if node < 4 else "test"}
    del original.nodes[5]["y"]
    graph = from_networkx(original, label="y", split="part")
    assert graph.encoder is not None
    assert graph.encoder.feature_names == ("f",)
    assert graph.y is not None
    assert graph.y.tolist() == [0, 1, 0, 1, 0, -1]
    assert graph.test_mask is not None
    assert graph.test_mask.tolist() == [False] * 4 + [True, False]


def test_networkx_without_attributes() -> None:
    graph = from_networkx(nx.star_graph(3))
    assert graph.x is None
    assert graph.rowptr.tolist() == [0, 3, 4, 5, 6]
    labelled = nx.path_graph(4)
    nx.set_node_attributes(labelled, dict(enumerate("abab")), "y")
    graph = from_networkx(labelled, label="y", val=0, test=0)
    assert graph.x is None
    assert graph.y is not None
    assert graph.y.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "age"}, "no node has the attribute 'age'; the nodes have 'club'"),
        ({"label": "team"}, "no node has the attribute 'team'"),
        ({"weight": "length"}, "edge attribute 'length' must be a"),
        ({"val": 0.2}, "val and test needs labels"),
    ],
)
def test_networkx_without_what_is_asked_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        from_networkx(karate(), **options)
    with pytest.raises(DataError, match="at least one node"):
        from_networkx(nx.Graph(), **options)


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_scipy(num_nodes: int, seed: int, weighted: bool, directed: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (num_nodes, num_nodes)) * rng.integers(0, 2, (num_nodes, num_nodes))
    if not weighted:
        dense = dense > 0
    graph = from_scipy(scipy.sparse.coo_array(dense), directed=directed)
    expected = dense.T.astype(float) if directed else np.maximum(dense, dense.T).astype(float)
    np.fill_diagonal(expected, 0)
    row, col = expected.nonzero()
    assert graph.col.tolist() == col.tolist()
    assert graph.rowptr.diff().tolist() == np.bincount(row, minlength=num_nodes).tolist()
    if graph.edge_weight is not None:
        assert graph.edge_weight.tolist() == expected[row, col].tolist()
    else:
        assert set(expected[row, col]) <= {1.0}


def test_scipy_features_and_labels() -> None:
    adjacency = scipy.sparse.eye_array(10, k=1, format="csr")
    x = np.random.default_rng(0).random((10, 3)).astype(np.float32)
    y = np.array([0, 1] * 4 + [-1, -1])
    graph = from_scipy(adjacency, x, y)
    assert graph.x is not None
    assert graph.x.data_ptr() == x.ctypes.data
    assert graph.y is not None
    assert graph.y.tolist() == y.tolist()
    assert graph.num_classes == 2
    assert not graph.train_mask[8:].any()  # type: ignore[index]
    graph = from_scipy(adjacency, scipy.sparse.csr_array(x), [*"abababab", None, None])
    assert graph.label_names == ("a", "b")
    assert graph.x is not None
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense().numpy() == pytest.approx(x)
    graph = from_scipy(adjacency, torch.ones(10, 1), np.eye(10)[:, :2], val=0.1, test=0.1)
    assert graph.multi_label
    assert isinstance(graph, Graph)


def test_scipy_leaves_the_matrix_alone() -> None:
    matrix = scipy.sparse.csr_matrix(([1.0, 2.0], [1, 1], [0, 2, 2]), (2, 2))
    graph = from_scipy(matrix)
    assert matrix.nnz == 2
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 2)),), "adjacency must be a SciPy sparse matrix"),
        ((scipy.sparse.csr_array((2, 3)),), r"shape \[2, 3\]"),
        ((scipy.sparse.csr_array([[0, -1], [0, 0]]),), "at least 0 for every edge, got -1"),
        ((scipy.sparse.eye_array(2), np.ones(2)), r"x must have one row per node \(2\)"),
        ((scipy.sparse.eye_array(2), np.ones((3, 1))), "x must have one row per node"),
        ((scipy.sparse.eye_array(2), None, [0]), "y must have one row per node"),
        ((scipy.sparse.eye_array(2), None, [[0, 5], [0, 1]]), "zeros and ones"),
    ],
)
def test_scipy_that_is_no_graph(arguments: Any, message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        from_scipy(*arguments)


def broken(kind: str) -> Any:
    """A matrix whose indices were changed after SciPy looked at them."""
    matrix = scipy.sparse.random(5, 5, 0.5, format=kind, random_state=0)
    if kind == "coo":
        matrix.row[0] = 10**6
    else:
        matrix.indices[0] = 10**6
    return matrix


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_wrong_indices_are_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"adjacency has wrong indices.*"):
        from_scipy(broken(kind))
    with pytest.raises(UsageError, match=r"x has wrong indices.*"):
        from_scipy(scipy.sparse.eye(5).tocsr(), broken(kind))


def test_wrong_offsets_are_refused() -> None:
    matrix = scipy.sparse.random(5, 5, 0.5, format="csr", random_state=0)
    offsets = matrix.indptr.copy()
    for wrong in ([2**31 - 1, -2], [13, 13], [-1, 0]):
        matrix.indptr[1:3] = wrong
        with pytest.raises(UsageError, match=r"adjacency has wrong indices.*indptr"):
            from_scipy(matrix)
    matrix.indptr[:] = offsets
    matrix.indptr[-1] = 10**6
    with pytest.raises(UsageError, match=r"indptr .*\(12\), got 1000000"):
        from_scipy(matrix)


def test_more_nodes_than_32_bits_can_number_are_refused() -> None:
    matrix = scipy.sparse.coo_array((2**31, 2**31))
    with pytest.raises(UsageError, match=r"adjacency .* 2147483647 .*got shape \[2147483648"):
        from_scipy(matrix)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_duplicates_are_summed_in_every_format(kind: str) -> None:
    parts = (np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3, 3]))
    matrix = scipy.sparse.csr_matrix(parts, shape=(3, 3)).asformat(kind)
    graph = from_scipy(matrix, directed=True)
    assert graph.edge_index.tolist() == [[1, 0], [0, 1]]
    assert graph.edge_weight.tolist() == [5, 3]
