"""Every form of graph, features and labels that the estimator takes, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from lgcn import Graph
from lgcn.datasets import synthetic
from lgcn.errors import UsageError
from lgcn.estimator import LGCNClassifier
from lgcn.estimator.inputs import as_tensor, graph_of, same_features
from lgcn.inference import predict
from lgcn.training import Settings, train

from .small import adjacency, parts, small


def test_all_forms_of_a_graph_give_the_same(graph: Graph, fitted: LGCNClassifier) -> None:
    x, y, edges = parts(graph)
    nodes = np.arange(200)
    forms: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "PyG": ((graph.to_pyg(),), {}),
        "arrays": ((x, y, edges), {}),
        "tensors": ((graph.x, graph.y, graph.edge_index), {}),
        "lists": ((x.tolist(), y.tolist(), edges.tolist()), {}),
        "SciPy adjacency": ((x, y), {"edges": adjacency(graph)}),
        "SciPy array": ((x, y), {"edges": scipy.sparse.coo_array(adjacency(graph))}),
        "sparse tensor": (
            (x, y),
            {
                "edges": torch.sparse_csr_tensor(
                    graph.rowptr, graph.col, torch.ones(graph.num_edges), (200, 200)
                )
            },
        ),
        "nodes": ((nodes, y), {"graph": graph}),
        "nodes of PyG": ((nodes, y), {"graph": graph.to_pyg()}),
        "nodes, the graph's labels": ((nodes,), {"graph": graph}),
        "a graph and labels": ((graph, y), {}),
    }
    expected = fitted.predict_proba()
    for name, (arguments, options) in forms.items():
        found = small().fit(*arguments, **options).predict_proba()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6, err_msg=name)


def test_networkx(graph: Graph, tmp_path: Path) -> None:
    x, y, edges = parts(graph)
    made = networkx.Graph()
    for i in range(200):
        made.add_node(f"n{i}", vector=x[i].tolist(), kind="even" if i % 2 else "odd")
        if i < 150:
            made.nodes[f"n{i}"]["y"] = int(y[i])
    made.add_edges_from((f"n{a}", f"n{b}") for a, b in edges.T)
    classifier = small().fit(made)
    assert classifier.n_features_in_ == 8 + 2
    assert classifier.classes_.tolist() == ["0", "1", "2"]
    masks = classifier.graph_.train_mask | classifier.graph_.val_mask
    assert torch.equal(masks, torch.arange(200) < 150)
    assert classifier.score(None, y.astype(str)) > 0.6
    assert classifier.predictions([1])["node"].to_pylist() == ["n1"]
    nodes = np.arange(150)
    by_number = small().fit(nodes, y[nodes], graph=made)
    np.testing.assert_array_equal(by_number.predict_proba(), classifier.predict_proba())
    # Another graph's attributes are scaled as those of the fitted one were.
    part = made.subgraph([f"n{i}" for i in range(20)])
    expected = Graph.from_edge_index(
        torch.tensor([(int(a[1:]), int(b[1:])) for a, b in part.edges]).t(),
        x=classifier.graph_.x[:20],
    )
    order = [int(name[1:]) for name in part]
    found = classifier.predict_proba(part)
    np.testing.assert_allclose(found, classifier.predict_proba(expected)[order], atol=1e-5)
    assert classifier.score(part) > 0.5
    classifier.save(tmp_path)
    np.testing.assert_array_equal(LGCNClassifier.load(tmp_path).predict_proba(part), found)


def test_sparse_features_stay_sparse(graph: Graph) -> None:
    x, y, edges = parts(graph)
    x = np.where(np.abs(x) > 1, x, 0).astype(np.float32)
    matrix = scipy.sparse.csr_matrix(x)
    # Dropout draws other numbers for the entries of a sparse matrix.
    sparse, dense = (small(dropout=0.0).fit(form, y, edges) for form in (matrix, x))
    assert sparse.graph_.x.layout == torch.sparse_csr
    assert sparse.graph_.x.values().data_ptr() == matrix.data.ctypes.data
    np.testing.assert_allclose(sparse.predict_proba(), dense.predict_proba(), atol=1e-4)
    np.testing.assert_allclose(sparse.predict_proba(matrix, edges), sparse.predict_proba())
    tensor = torch.from_numpy(x).to_sparse_csr()
    again = small(dropout=0.0).fit(tensor, y, edges)
    np.testing.assert_allclose(again.predict_proba(), sparse.predict_proba(), atol=1e-5)


@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_a_weighted_adjacency_by_int32(graph: Graph, training: str) -> None:
    x, y, _ = parts(graph)
    matrix = adjacency(graph)
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    rows, columns = matrix.nonzero()
    matrix.data[:] = 0.5 + (rows + columns) % 7 / 4  # the same for both directions of an edge
    classifier = small(training=training, max_nodes=100).fit(x, y, matrix)
    assert classifier.graph_.col.dtype == torch.int32
    assert classifier.graph_.edge_weight.data_ptr() == matrix.data.ctypes.data
    wide = Graph(graph.rowptr, graph.col, x=graph.x, edge_weight=torch.from_numpy(matrix.data))
    np.testing.assert_allclose(classifier.predict_proba(wide), classifier.predict_proba())
    assert classifier.score(None, y) > 0.6


def test_features_and_edges_are_not_copied(graph: Graph) -> None:
    x, y, _ = parts(graph)
    x = np.ascontiguousarray(x)
    matrix = adjacency(graph)
    shared = small(max_epochs=1).fit(x, y, matrix).graph_
    assert shared.x.data_ptr() == x.ctypes.data
    assert shared.rowptr.data_ptr() == matrix.indptr.ctypes.data
    assert shared.col.data_ptr() == matrix.indices.ctypes.data
    for held in (
        small(max_epochs=1).fit(graph).graph_,
        small(max_epochs=1).fit(np.arange(50), y[:50], graph=graph).graph_,
    ):
        for key in ("x", "rowptr", "col"):
            assert getattr(held, key).data_ptr() == getattr(graph, key).data_ptr()
    tensor = small(max_epochs=1).fit(graph.x, y).graph_
    assert tensor.x.data_ptr() == graph.x.data_ptr()


def test_arrays_of_any_layout(graph: Graph, fitted: LGCNClassifier) -> None:
    x, y, edges = parts(graph)
    frozen = x.copy()
    frozen.setflags(write=False)
    swapped = x.astype(">f4")
    for form in (frozen, np.asfortranarray(x), x[::-1][::-1], x.astype(np.float64), swapped):
        found = small().fit(form, y, edges).predict_proba()
        np.testing.assert_allclose(found, fitted.predict_proba(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (np.array([0, 1, 2]), [0, 1, 2]),
        (np.array([10, -7, 3]), [-7, 3, 10]),
        (np.array(["red", "green", "blue"]), ["blue", "green", "red"]),
        (np.array(["red", "green", "blue"], dtype=object), ["blue", "green", "red"]),
        (np.array([0.0, 1.0, 2.0]), [0.0, 1.0, 2.0]),
        (np.array([False, True, True]), [False, True]),
    ],
)
def test_classes_of_any_type(graph: Graph, given: Any, classes: list[Any]) -> None:
    x, y, edges = parts(graph)
    labels = given[y]
    classifier = small().fit(x, labels, edges)
    assert classifier.classes_.tolist() == classes
    assert set(classifier.predict()) <= set(classes)
    assert classifier.score(None, labels) > 0.6
    assert classifier.predictions()["predicted"].to_pylist() == classifier.predict().tolist()


def unknown_in(labels: Any, mark: Any, dtype: Any) -> Any:
    out = np.array(labels, dtype=dtype)
    out[50:] = mark
    return out


@pytest.mark.parametrize(
    ("mark", "dtype"),
    [(-1, int), (-1, float), (np.nan, float), (None, object), (np.nan, object), (pd.NA, object)],
)
def test_nodes_without_a_label(graph: Graph, mark: Any, dtype: Any) -> None:
    x, y, edges = parts(graph)
    expected = small().fit(np.arange(50), y[:50], graph=graph)
    classifier = small().fit(x, unknown_in(y, mark, dtype), edges)
    assert classifier.classes_.tolist() == [0, 1, 2]
    used = classifier.graph_.train_mask | classifier.graph_.val_mask
    assert torch.equal(used.nonzero().squeeze(1), torch.arange(50))
    np.testing.assert_array_equal(classifier.predict_proba(), expected.predict_proba())


@pytest.mark.parametrize("mark", [None, np.nan, pd.NA])
def test_texts_without_a_label(graph: Graph, mark: Any) -> None:
    x, y, edges = parts(graph)
    classifier = small().fit(x, pd.Series(unknown_in(y.astype(str), mark, object)), edges)
    assert classifier.classes_.tolist() == ["0", "1", "2"]
    assert int(classifier.graph_.train_mask.sum()) == 40


def test_several_labels_a_node(graph: Graph, tmp_path: Path) -> None:
    x, _, _ = parts(graph)
    y = (x[:, :3] > 0).astype(float)
    y[100:150] = np.nan
    y[150:] = -1
    classifier = small(max_epochs=60, validation_fraction=0.3).fit(x, y)
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert int((classifier.graph_.train_mask | classifier.graph_.val_mask).sum()) == 100
    chances = classifier.predict_proba()
    assert chances.shape == (200, 3)
    np.testing.assert_array_equal(classifier.predict(), chances > 0.5)
    assert ((chances > 0.5) == (x[:, :3] > 0)).mean() > 0.8
    exact = (classifier.predict()[:100] == y[:100]).all(axis=1).mean()
    assert classifier.score(None, y) == pytest.approx(exact)
    table = classifier.predictions([0, 5])
    rows = [";".join(str(i) for i in np.flatnonzero(row > 0.5)) for row in chances[[0, 5]]]
    assert table["predicted"].to_pylist() == rows
    truth = classifier.predictions([0, 120])["true"].to_pylist()
    assert truth == [";".join(str(i) for i in np.flatnonzero(y[0])), None]
    classifier.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(x), classifier.predict())
    named = replace(
        graph, y=torch.from_numpy((x[:, :3] > 0).astype(int)), label_names=("a", "b", "c")
    )
    assert small().fit(named).predictions().column_names[-1] == "probability_c"


def test_the_names_of_a_graph_are_its_classes(graph: Graph) -> None:
    ids = np.array([f"node {i}" for i in range(200)])
    named = replace(graph, label_names=("c", "b", "a"), node_ids=ids)
    classifier = small().fit(named)
    assert classifier.classes_.tolist() == ["c", "b", "a"]
    table = classifier.predictions([3, 7])
    assert table["node"].to_pylist() == ["node 3", "node 7"]
    assert table["predicted"].to_pylist() == classifier.predict([3, 7]).tolist()
    assert table["true"].to_pylist() == np.array(["c", "b", "a"])[graph.y[[3, 7]]].tolist()
    split = classifier.predictions()["split"].to_numpy(zero_copy_only=False)
    for name in ("train", "val", "test"):
        np.testing.assert_array_equal(split == name, classifier.graph_.mask(name))
    assert not {"true", "split"} & set(classifier.predictions(truth=False).column_names)
    assert not {"true", "split"} & set(classifier.predictions(replace(named)).column_names)
    assert classifier.score(named) == classifier.score(None, np.array(["c", "b", "a"])[graph.y])


def test_numbers_of_classes_need_not_be_dense(graph: Graph) -> None:
    sparse = replace(graph, y=graph.y * 10)
    assert small().fit(sparse).classes_.tolist() == [0, 10, 20]


def test_the_masks_of_a_graph_are_used() -> None:
    graph = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, num_val=40)
    classifier = small().fit(graph)
    for key in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(classifier.graph_, key), getattr(graph, key))
    assert classifier.score() == pytest.approx(classifier.result_["test_score"])
    assert classifier.score(graph) == pytest.approx(classifier.result_["test_score"])
    # The same as the loop does with these settings.
    config = Settings.create(
        dataset="tables", seed=0, hidden_channels=8, k=4, lr=0.05, max_epochs=12
    )
    result = train(graph, config)
    assert torch.equal(predict(result.model, graph), predict(classifier.model_, graph))
    # With labels of one's own, the masks say nothing.
    assert int(small().fit(graph, graph.y).graph_.test_mask.sum()) == 0
    # A training mask alone gives its validation nodes from among its own.
    alone = replace(graph, val_mask=None, test_mask=None)
    masks = small().fit(alone).graph_
    assert torch.equal(masks.train_mask | masks.val_mask, graph.train_mask)
    # Validation and test masks alone leave the others to train on.
    others = replace(graph, train_mask=None)
    assert torch.equal(small().fit(others).graph_.train_mask, graph.train_mask)


def test_test_nodes_without_a_label_are_left_out() -> None:
    graph = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, num_val=40)
    y = graph.y.clone()
    y[graph.test_mask] = -1
    assert small().fit(replace(graph, y=y)).result_["test_score"] is None


def test_validation_nodes(graph: Graph) -> None:
    masks = small(validation_fraction=0.3).fit(graph).graph_
    assert not bool((masks.train_mask & masks.val_mask).any())
    assert int(masks.val_mask.sum()) == 60
    none = small(validation_fraction=0).fit(graph).graph_
    assert bool(none.train_mask.all())
    assert torch.equal(none.train_mask, none.val_mask)
    with pytest.raises(UsageError, match="validation_fraction=0"):
        small().fit(np.arange(3), ["a", "b", "c"], graph=graph)
    with pytest.raises(UsageError, match=r"validation_fraction must .*0 to 1"):
        small(validation_fraction=2).fit(graph)
    with pytest.raises(UsageError, match="validation_fraction must leave nodes to train on"):
        small(validation_fraction=1).fit(graph)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ("xy", {"edges": np.zeros((3, 4), int)}, r"edges .* in shape \[2, edges\]"),
        ("xy", {"edges": [[0, 1], [0, 200]]}, r"edges .*200 nodes .* 0 to 199, got"),
        ("xy", {"edges": np.zeros((2, 3))}, r"edges must hold node numbers .* got float64"),
        (
            "xy",
            {"edges": scipy.sparse.eye(3).tocsr()},
            r"edges must have one row .*\[3, 3\].*graph=",
        ),
        ("xy", {"edges": scipy.sparse.eye(200).tocsr() * np.nan}, "edges must have finite weights"),
        ("x", {}, "requires y to be passed, but the target y is None"),
        ("xy", {"graph": "g"}, r"X must hold node numbers, .* got ndarray"),
        ("gy", {"edges": [[0], [1]]}, "edges must be None .*X is a graph"),
        (
            "ny",
            {"graph": 3},
            "graph must be an lgcn.Graph, PyG's Data or a NetworkX graph, got int",
        ),
        ("ny", {"graph": "g", "edges": 1}, "edges must be None if graph is given"),
        ("ny", {}, "Expected 2D array, got 1D array instead"),
        ("x1", {}, "inconsistent numbers of samples"),
    ],
)
def test_arguments_that_do_not_fit(
    graph: Graph, arguments: str, options: dict[str, Any], message: str
) -> None:
    x, y, _ = parts(graph)
    values = {"x": x, "y": y, "g": graph, "n": np.arange(200), "1": y[:10]}
    options = {key: graph if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(ValueError, match=message):
        small().fit(*(values[letter] for letter in arguments), **options)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(200, -1), "y must have some labels, got none in 200 entries: -1, NaN and None"),
        (np.zeros(200), r"y must .*classes, got one class: 0\.0"),
        (np.where(np.arange(200) % 2, -1, 1), "for two classes use 0 and 1"),
        (np.linspace(0, 1, 200), "Unknown label type: continuous"),
        (np.array([1, "a"] * 100, dtype=object), r"y must hold labels .* got int, str"),
        (np.full((200, 2), 2), "must hold a 0 or 1 for every label, got 2"),
        (np.full((200, 2), "a"), "must hold a 0 or 1 for every label, got <U1"),
        (np.full((200, 2), np.nan), "y must have some labels, got none in 200 rows"),
        (np.full(200, np.inf), "Input y contains infinity"),
    ],
)
def test_labels_that_cannot_be_learned(graph: Graph, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().fit(parts(graph)[0], y)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_duplicated_entries_of_a_sparse_adjacency_are_one_edge(kind: str) -> None:
    entries = (np.array([1.0, 1.0, 1.0]), np.array([1, 1, 0]), np.array([0, 2, 3]))
    matrix = scipy.sparse.csr_matrix(entries, shape=(2, 2)).asformat(kind)
    graph = graph_of(torch.zeros(2, 1), matrix)
    assert graph.col.tolist() == [1, 0]
    assert graph.edge_weight.tolist() == [2, 2]
    graph = graph_of(torch.zeros(2, 1), matrix, directed=True)
    assert graph.edge_index.tolist() == [[1, 0], [0, 1]]
    assert graph.edge_weight.tolist() == [1, 2]
    assert matrix.nnz == 3  # the caller's stays as it is


def test_rows_of_an_adjacency_are_sorted_and_lose_self_loops_and_zeros() -> None:
    values, columns = np.array([1.0, 1.0, 1.0, 0.0]), np.array([2, 0, 1, 0])
    matrix = scipy.sparse.csr_matrix((values, columns, np.array([0, 3, 4, 4])), shape=(3, 3))
    graph = graph_of(torch.zeros(3, 1), matrix)
    assert graph.edge_index.tolist() == [[1, 2, 0, 0], [0, 0, 1, 2]]
    assert graph.edge_weight is None
    graph = graph_of(torch.zeros(3, 1), matrix, directed=True)
    assert graph.edge_index.tolist() == [[0, 0], [1, 2]]


def test_wrong_indices_of_a_sparse_adjacency_are_refused() -> None:
    for kind in ("coo", "csr"):
        matrix = scipy.sparse.eye(3).asformat(kind)
        (matrix.row if kind == "coo" else matrix.indices)[0] = 10**6
        with pytest.raises(UsageError, match="edges has wrong indices"):
            graph_of(torch.zeros(3, 1), matrix)


@pytest.mark.parametrize("dtype", ["i1", "u1", "u2", ">i4", "u8"])
def test_edges_of_any_integer_type(dtype: str) -> None:
    edges = np.array([[0, 1, 99], [1, 99, 0]]).astype(dtype)
    graph = graph_of(torch.zeros(100, 1), edges, directed=True)
    assert graph.edge_index.tolist() == [[99, 0, 1], [0, 1, 99]]
    too_large = np.array([[0], [2**64 - 1]], np.uint64)
    with pytest.raises(UsageError, match=f"got {2**64 - 1}"):
        graph_of(torch.zeros(100, 1), too_large)


@pytest.mark.parametrize("kind", ["csr", "coo", "torch"])
def test_wrong_indices_of_sparse_features_are_refused(kind: str) -> None:
    """Scikit-learn and SciPy would read outside of the matrix."""
    matrix: Any = scipy.sparse.eye(20, 3).asformat("coo" if kind == "torch" else kind)
    if kind == "csr":
        matrix.indptr[3] = 2**30
    else:
        matrix.col[0] = 10**6
    if kind == "torch":
        indices = torch.tensor(np.stack([matrix.row, matrix.col]))
        options = {"size": (20, 3), "check_invariants": False}
        matrix = torch.sparse_coo_tensor(indices, torch.ones(3), **options)
    with pytest.raises(UsageError, match="X has wrong indices"):
        LGCNClassifier(max_epochs=1).fit(matrix, np.arange(20) % 2)


def test_which_features_are_the_same() -> None:
    dense = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for one in (dense, dense.to_sparse_csr()):
        for other in (dense.clone(), dense.to_sparse_csr()):
            assert same_features(one, other)
            assert not same_features(one, 2 * other)
        assert not same_features(one, torch.ones(2, 3))
        assert not same_features(one, dense.t() * torch.tensor([1.0, 3.0]))


@pytest.mark.filterwarnings("error")
def test_read_only_arrays_are_shared_without_a_warning() -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    shared = as_tensor(array)
    assert shared.data_ptr() == array.ctypes.data
    assert not array.flags.writeable
    expected = array.tolist()
    del array
    assert shared.tolist() == expected
    for shape in ((0, 3), (3, 0)):
        empty = np.zeros(shape)
        empty.flags.writeable = False
        assert tuple(as_tensor(empty).shape) == shape
