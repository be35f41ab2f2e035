"""The scikit-learn estimator: scikit-learn's own checks, every form of input, searches, files."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lgcn import Graph
from lgcn.data import synthetic
from lgcn.data.tables.encoder import FeatureEncoder
from lgcn.errors import CheckpointError, UsageError
from lgcn.estimator import LGCNClassifier
from lgcn.inference import predict
from lgcn.training import Config, Run, train

# The checks of scikit-learn 1.9 that cannot apply, with the reason. The docs quote this.
ESTIMATOR_CHECKS_THAT_CANNOT_APPLY = {
    "check_classifiers_classes": (
        "it trains on the classes -1 and 1, and -1 marks nodes without a label here, as in "
        "scikit-learn's semi-supervised models, which the check leaves out by name"
    ),
}


def cannot_apply(estimator: Any) -> dict[str, str]:
    return ESTIMATOR_CHECKS_THAT_CANNOT_APPLY


@parametrize_with_checks(
    [LGCNClassifier(max_epochs=30, lr=0.03)], expected_failed_checks=cannot_apply
)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def small(**given: Any) -> LGCNClassifier:
    """An estimator that trains in a fraction of a second."""
    options = {"hidden_channels": 8, "k": 4, "lr": 0.05, "max_epochs": 12}
    return LGCNClassifier(**{**options, "random_state": 0, **given})


@pytest.fixture(scope="module")
def graph() -> Graph:
    """200 nodes of three classes, without masks."""
    made = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, seed=0)
    return replace(made, train_mask=None, val_mask=None, test_mask=None)


@pytest.fixture(scope="module")
def fitted(graph: Graph) -> LGCNClassifier:
    return small().fit(graph)


def parts(graph: Graph) -> tuple[Any, Any, Any]:
    """Features, labels and edges as arrays."""
    assert graph.x is not None
    assert graph.y is not None
    return graph.x.numpy(), graph.y.numpy(), graph.edge_index.numpy()


def adjacency(graph: Graph) -> Any:
    ones = np.ones(graph.num_edges, dtype=np.float32)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_matrix((ones, graph.col.numpy(), graph.rowptr.numpy()), shape=shape)


def test_it_learns_the_classes(graph: Graph) -> None:
    x, y, edges = parts(graph)
    hidden = np.arange(200) % 2 == 0
    classifier = small(max_epochs=40).fit(x, np.where(hidden, -1, y), edges)
    assert accuracy_score(y[hidden], classifier.predict()[hidden]) > 0.8
    assert classifier.score(None, np.where(hidden, y, -1)) > 0.8
    assert classifier.score(np.flatnonzero(hidden), y[hidden]) > 0.8
    alone = small(max_epochs=40).fit(x, np.where(hidden, -1, y))
    assert alone.graph_.num_edges == 0
    assert classifier.score(None, y) > alone.score(None, y)


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
        undirected=True,
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
    matrix.data[:] = np.linspace(0.5, 2, len(matrix.data))
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
    config = Config.create(dataset="tables", seed=0, hidden_channels=8, k=4, lr=0.05, max_epochs=12)
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
    with pytest.raises(UsageError, match=r"no class has a label to spare .*validation_fraction=0"):
        small().fit(np.arange(3), ["a", "b", "c"], graph=graph)
    with pytest.raises(UsageError, match="validation_fraction must be a number from 0 to 1"):
        small(validation_fraction=2).fit(graph)
    with pytest.raises(UsageError, match="validation_fraction must leave nodes to train on"):
        small(validation_fraction=1).fit(graph)


def test_prediction_of_another_graph(graph: Graph, fitted: LGCNClassifier) -> None:
    other = synthetic(num_nodes=90, num_classes=3, num_features=8, noise=1.0, seed=1)
    x, _, edges = parts(other)
    expected = fitted.predict_proba(other)
    assert expected.shape == (90, 3)
    for arguments in ((x, edges), (other.to_pyg(), None), (pd.DataFrame(x), adjacency(other))):
        np.testing.assert_allclose(fitted.predict_proba(*arguments), expected, atol=1e-6)
    grown = np.concatenate([edges, [[90, 0], [0, 90]]], axis=1)
    new = fitted.predict_proba(np.concatenate([x, x[:1]]), grown)
    assert new.shape == (91, 3)
    assert not np.allclose(new[0], expected[0])
    assert fitted.predictions(other)["node"].to_pylist() == list(range(90))
    np.testing.assert_array_equal(fitted.predict(graph), fitted.predict())


def test_embeddings(graph: Graph, fitted: LGCNClassifier) -> None:
    found = fitted.transform()
    assert found.shape == (200, 8 + 8)
    np.testing.assert_array_equal(fitted.transform([5, 3]), found[[5, 3]])
    x, y, edges = parts(graph)
    np.testing.assert_array_equal(small().fit_transform(x, y, edges), found)
    nodes = np.arange(0, 200, 2)
    some = small().fit_transform(nodes, y[nodes], graph=graph)
    assert some.shape == (100, 16)


def test_node_numbers_and_masks(fitted: LGCNClassifier) -> None:
    everything = fitted.predict()
    for nodes in ([4, 2], np.array([4, 2], np.int32), torch.tensor([4, 2]), pd.Series([4, 2])):
        np.testing.assert_array_equal(fitted.predict(nodes), everything[[4, 2]])
    mask = np.arange(200) < 10
    np.testing.assert_array_equal(fitted.predict(mask), everything[:10])
    np.testing.assert_array_equal(fitted.predict(torch.from_numpy(mask)), everything[:10])


@pytest.mark.parametrize("split", ["cv=3", "PredefinedSplit"])
def test_a_grid_search_over_nodes(graph: Graph, split: str) -> None:
    y = graph.y.numpy()
    nodes = np.arange(0, 150)
    cv = 3 if split == "cv=3" else PredefinedSplit(np.where(nodes < 100, -1, 0))
    grid = {"dropout": [0.0, 0.5], "k": np.array([2, 4])}
    search = GridSearchCV(small(max_epochs=5), grid, cv=cv, error_score="raise")
    search.fit(nodes, y[nodes], graph=graph)
    assert search.cv_results_["mean_test_score"].min() > 0.3
    best = search.best_estimator_
    assert (best.dropout, best.k) == tuple(search.best_params_.values())
    held = torch.arange(150, 200)
    assert not bool((best.graph_.train_mask | best.graph_.val_mask)[held].any())
    assert search.score(held.numpy(), y[held]) == best.score(held, y[held])
    assert search.predict(nodes).shape == (150,)


def test_cross_validation_trains_on_the_other_folds_alone(graph: Graph) -> None:
    y = graph.y.numpy()
    nodes = np.arange(200)
    scores = cross_val_score(small(), nodes, y, cv=4, params={"graph": graph})
    assert scores.min() > 0.5
    # Labels of the held-out nodes have no part in the fit.
    wrong = replace(graph, y=torch.zeros(200, dtype=torch.long))
    again = cross_val_score(small(), nodes, y, cv=4, params={"graph": wrong})
    np.testing.assert_array_equal(scores, again)


def test_in_a_pipeline(graph: Graph) -> None:
    x, y, edges = parts(graph)
    pipeline = make_pipeline(StandardScaler(), small())
    pipeline.fit(x, y, lgcnclassifier__edges=edges)
    assert accuracy_score(y, pipeline[-1].predict()) > 0.6


def test_parameters() -> None:
    classifier = small(settings={"cnn": "single"})
    assert clone(classifier).get_params() == classifier.get_params()
    classifier.set_params(k=7, lr=0.5)
    assert (classifier.k, classifier.lr) == (7, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'kk'"):
        classifier.set_params(kk=1)
    assert repr(LGCNClassifier(k=3)) == "LGCNClassifier(k=3)"


def test_defaults_are_those_of_config(graph: Graph) -> None:
    config = LGCNClassifier(max_epochs=1, random_state=5).fit(graph).config_
    expected = Config.create(dataset="tables", max_epochs=1, seed=5).resolve(graph)
    assert config == expected
    assert config.k == 8
    assert config.input_scale not in (None, 1.0)
    assert config.training == "whole"


def test_further_settings(graph: Graph) -> None:
    config = small(settings={"cnn": "single", "k": 6}, max_epochs=1).fit(graph).config_
    assert config.cnn == "single"
    assert config.k == 4  # the argument wins
    with pytest.raises(UsageError, match=r"settings must not have seed: it is given by random_st"):
        small(settings={"seed": 3}).fit(graph)
    with pytest.raises(UsageError, match=r"unknown setting 'cnnn'; did you mean 'cnn'\?"):
        small(settings={"cnnn": "single"}).fit(graph)


def test_the_same_random_state_gives_the_same(graph: Graph, fitted: LGCNClassifier) -> None:
    np.testing.assert_array_equal(small().fit(graph).predict_proba(), fitted.predict_proba())
    other = small(random_state=1).fit(graph)
    assert not np.array_equal(other.predict_proba(), fitted.predict_proba())
    np.random.seed(3)  # noqa: NPY002
    first = small(random_state=None).fit(graph)
    second = small(random_state=None).fit(graph)
    np.random.seed(3)  # noqa: NPY002
    again = small(random_state=None).fit(graph)
    assert first.config_.seed == again.config_.seed != second.config_.seed
    np.testing.assert_array_equal(first.predict_proba(), again.predict_proba())
    seeds = [small(random_state=np.random.RandomState(2)).fit(graph).config_.seed for _ in "ab"]
    assert seeds[0] == seeds[1]


def test_warm_start(graph: Graph) -> None:
    x, y, edges = parts(graph)
    classifier = small(warm_start=True, max_epochs=1, lr=0.0).fit(graph)
    before = classifier.model_
    classifier.fit(np.arange(60), y[:60], graph=graph)
    assert classifier.model_ is not before
    for key, value in classifier.model_.state_dict().items():
        assert torch.equal(value, before.state_dict()[key])
    # A fit without some of the classes keeps them; one with new ones is refused.
    some = np.flatnonzero(y < 2)
    assert classifier.fit(some, y[some], graph=graph).classes_.tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match=r"y has the class 3, which is none of the model's: 0, 1"):
        classifier.fit(x, y + 1, edges)
    with pytest.raises(ValueError, match="X has 7 features, but LGCNClassifier is expecting 8"):
        classifier.fit(x[:, :7], y, edges)
    with pytest.raises(UsageError, match="weights must be those of a model of the same settings"):
        classifier.set_params(hidden_channels=9).fit(graph)
    cold = small(max_epochs=1, lr=0.0).fit(graph)
    assert cold.fit(x, y + 1, edges).classes_.tolist() == [1, 2, 3]


def test_what_the_graph_decided_stays_in_a_warm_start(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = parts(graph)
    classifier = small(k=None, settings={"k": None}, warm_start=True, max_epochs=1).fit(graph)
    first = classifier.config_
    assert first.k > 8
    second = classifier.fit(3 * x, y).config_  # alone, k would be 8
    assert (second.k, second.input_scale) == (first.k, first.input_scale)
    monkeypatch.setattr("lgcn.training.config.MANY_LABELS", 2)
    assert classifier.fit(x, y).config_.views == 2
    assert small(max_epochs=1).fit(x, y).config_.views == 1


def test_what_is_learned(graph: Graph, fitted: LGCNClassifier) -> None:
    assert fitted.n_features_in_ == 8
    assert fitted.n_iter_ == 12
    assert fitted.result_["val_score"] > 0.5
    assert fitted.temperature_ == fitted.result_["temperature"]
    scores = predict(fitted.model_, graph)
    expected = torch.softmax(scores / fitted.temperature_, dim=1)
    np.testing.assert_allclose(fitted.predict_proba(), expected.numpy(), rtol=1e-6)
    x, y, edges = parts(graph)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(8)])
    named = small(max_epochs=1).fit(frame, y, edges)
    assert named.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(named.fit(graph), "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        small(max_epochs=1).fit(frame, y).predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ("xy", {"edges": np.zeros((3, 4), int)}, r"edges do not fit .* in shape \[2, edges\]"),
        ("xy", {"edges": [[0, 1], [0, 200]]}, r"edges do not fit the 200 nodes .* 0 to 199, got"),
        ("xy", {"edges": np.zeros((2, 3))}, r"edges must hold node numbers .* got float64"),
        (
            "xy",
            {"edges": scipy.sparse.eye(3).tocsr()},
            r"edges must have one row .*\[3, 3\].*graph=",
        ),
        ("xy", {"edges": scipy.sparse.eye(200).tocsr() * np.nan}, "edges must have finite weights"),
        ("x", {}, "requires y to be passed, but the target y is None"),
        ("xy", {"graph": "g"}, r"X must hold node numbers, .* got ndarray"),
        ("gy", {"edges": [[0], [1]]}, "edges must be None where X is a graph"),
        (
            "ny",
            {"graph": 3},
            "graph must be an lgcn.Graph, PyG's Data or a NetworkX graph, got int",
        ),
        ("ny", {"graph": "g", "edges": 1}, "edges must be None where graph is given"),
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
        (np.zeros(200), r"y must have at least two classes, got one class: 0\.0"),
        (np.where(np.arange(200) % 2, -1, 1), "for two classes use 0 and 1, or texts"),
        (np.linspace(0, 1, 200), "Unknown label type: continuous"),
        (np.array([1, "a"] * 100, dtype=object), "y must hold labels of one type, got int, str"),
        (np.full((200, 2), 2), "must hold a 0 or 1 for every label, got 2"),
        (np.full((200, 2), "a"), "must hold a 0 or 1 for every label, got <U1"),
        (np.full((200, 2), np.nan), "y must have some labels, got none in 200 rows"),
        (np.full(200, np.inf), "Input y contains infinity"),
    ],
)
def test_labels_that_cannot_be_learned(graph: Graph, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().fit(parts(graph)[0], y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"dropout": "much"}, "dropout must be a number, got 'much'"),
        ({"activation": "tanh"}, "activation must be one of none, relu"),
        ({"training": "some"}, "training must be one of subgraph, whole, auto, got 'some'"),
        ({"random_state": -1}, "Seed must be between 0 and"),
    ],
)
def test_wrong_settings_are_named_by_fit(
    graph: Graph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        small(**options).fit(graph)


def test_nodes_that_are_not_there(graph: Graph, fitted: LGCNClassifier) -> None:
    for nodes in ([200], [-1]):
        with pytest.raises(UsageError, match=r"X must hold node numbers from 0 to 199, got"):
            fitted.predict(nodes)
        with pytest.raises(UsageError, match=r"X must hold node numbers from 0 to 199, got"):
            small().fit(nodes, [1], graph=graph)
    with pytest.raises(UsageError, match="X must name each node once"):
        small().fit([1, 1], [0, 1], graph=graph)
    with pytest.raises(UsageError, match="edges must come with X"):
        fitted.predict(None, [[0], [1]])


def test_a_wrong_number_of_features(fitted: LGCNClassifier) -> None:
    message = "X has 3 features, but LGCNClassifier is expecting 8 features as input"
    with pytest.raises(ValueError, match=message):
        fitted.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=message):
        fitted.predict(Graph.from_edge_index(torch.empty(2, 0).long(), x=torch.zeros(4, 3)))


def test_scores_need_labels(graph: Graph, fitted: LGCNClassifier) -> None:
    with pytest.raises(UsageError, match="pass the true labels as y="):
        fitted.score()
    with pytest.raises(UsageError, match=r"has no labels \(y\); pass them as y="):
        fitted.score(replace(graph, y=None))
    with pytest.raises(UsageError, match=r"y has the class 9, which is none of the model's"):
        fitted.score([0, 1], [0, 9])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.score([0, 1], [0, 1, 2])
    y = graph.y.numpy()
    weighted = fitted.score(None, y, sample_weight=fitted.predict() == y)
    assert weighted == 1.0


def test_nothing_before_fit(tmp_path: Path) -> None:
    for method in ("predict", "predict_proba", "transform", "score", "predictions"):
        with pytest.raises(NotFittedError):
            getattr(LGCNClassifier(), method)([0])
    with pytest.raises(NotFittedError):
        LGCNClassifier().save(tmp_path)


def test_progress_is_shown_where_asked(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    small(max_epochs=2).fit(graph)
    assert capsys.readouterr() == ("", "")
    small(max_epochs=2, verbose=True).fit(graph)
    assert "epoch 2/2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "labels", [[0, 1, 2], ["a", "b", "c"], [0.5, 1.0, 2.0], [True, False, True]]
)
def test_saved_and_loaded(graph: Graph, tmp_path: Path, labels: list[Any]) -> None:
    x, y, edges = parts(graph)
    names = [str(label) for label in labels] if labels[0] == 0.5 else labels
    classifier = small(k=np.int64(4), settings={"cnn": "single"}).fit(x, np.array(names)[y], edges)
    classifier.save(tmp_path / "saved")
    loaded = LGCNClassifier.load(tmp_path / "saved")
    assert loaded.get_params() == classifier.get_params()
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    np.testing.assert_array_equal(loaded.predict_proba(x, edges), classifier.predict_proba())
    assert loaded.predictions(x, edges).equals(classifier.predictions())
    assert loaded.score(x, np.array(names)[y], edges=edges) == classifier.score(
        None, np.array(names)[y]
    )
    with pytest.raises(UsageError, match="a loaded estimator has no graph of its own"):
        loaded.predict()
    with pytest.raises(UsageError, match="a loaded estimator has no graph of its own"):
        loaded.predict([0])
    assert clone(loaded).fit(graph).graph_ is not None
    assert (
        loaded.set_params(warm_start=True, lr=0.0, max_epochs=1).fit(x, np.array(names)[y]).n_iter_
        == 1
    )


def test_nothing_saved_is_a_pickle(graph: Graph, fitted: LGCNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    names = {"run.json", "estimator.json", "model.safetensors", "result.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())
    fitted.set_params(max_epochs=12).save(tmp_path)  # takes the place of the one before
    assert Run(tmp_path).load_model()[2].label_names == ("0", "1", "2")


def test_column_names_are_saved(graph: Graph, tmp_path: Path) -> None:
    x, y, edges = parts(graph)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(8)])
    small(max_epochs=1, random_state=np.random.RandomState(0)).fit(frame, y, edges).save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert loaded.random_state == loaded.config_.seed
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[frame.columns[::-1]])


def test_how_features_were_made_is_saved(graph: Graph, tmp_path: Path) -> None:
    table = pa.table({"size": np.arange(200.0), "kind": ["a", "b"] * 100})
    encoder = FeatureEncoder.fit(table, np.ones(200, dtype=bool))
    encoded = replace(graph, x=encoder.transform(table), encoder=encoder)
    classifier = small(max_epochs=1).fit(encoded)
    assert classifier.encoder_ is encoder
    classifier.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.encoder_.to_dict() == encoder.to_dict()
    new = replace(graph, x=loaded.encoder_.transform(table))
    np.testing.assert_array_equal(loaded.predict(new), classifier.predict())


def test_a_run_of_the_command_line_can_be_loaded(tmp_path: Path) -> None:
    graph = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, num_val=40)
    result = train(graph, Config.create(dataset="tables", seed=4, max_epochs=3), out=tmp_path)
    loaded = LGCNClassifier.load(tmp_path, device="cpu")
    assert loaded.classes_.tolist() == ["0", "1", "2"]
    assert (loaded.max_epochs, loaded.random_state, loaded.device) == (3, 4, "cpu")
    expected = predict(result.model, graph).argmax(dim=1)
    assert loaded.predict(graph).tolist() == [str(i) for i in expected.tolist()]


def test_a_pickled_copy_predicts_the_same(fitted: LGCNClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())


@pytest.fixture(scope="module")
def saved_once(fitted: LGCNClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "run"
    fitted.save(folder)
    return folder


@pytest.fixture
def saved(saved_once: Path, tmp_path: Path) -> Path:
    """A copy of a saved estimator, to be damaged."""
    return Path(shutil.copytree(saved_once, tmp_path / "run"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format must be 1, got 2"),
        ({"params": []}, "params must be a table"),
        ({"params": {"k": 1}}, "params must be a table"),
        ({"params.k": [1]}, r"k must not be \[1\]"),
        ({"params.settings": "x"}, "settings must not be 'x'"),
        ({"classes.type": "object"}, "the type of classes must be one of"),
        ({"classes.values": [0, 1]}, "there must be 3 classes"),
        ({"classes.values": [0, 1, 1]}, "classes must be distinct"),
        ({"classes.values": [0, 1, True]}, "classes must all be of type int"),
        ({"classes.values": "abc"}, "there must be 3 classes"),
        ({"classes": None}, "damaged"),
        ({"feature_names_in": ["a"]}, "feature_names_in must have 8 names"),
        ({"feature_names_in": [1] * 8}, "feature_names_in must be texts"),
    ],
)
def test_a_damaged_estimator_file_is_named(
    saved: Path, change: dict[str, Any], message: str
) -> None:
    path = saved / "estimator.json"
    record = json.loads(path.read_text())
    for key, value in change.items():
        table, _, inner = key.partition(".")
        if inner:
            record[table][inner] = value
        else:
            record[key] = value
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=message) as caught:
        LGCNClassifier.load(saved)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "null", "{", "{}"])
@pytest.mark.parametrize("name", ["estimator.json", "run.json", "result.json", "model.safetensors"])
def test_other_content_is_named(saved: Path, name: str, content: str) -> None:
    (saved / name).write_text(content)
    with pytest.raises(CheckpointError, match=str(saved / name)):
        LGCNClassifier.load(saved)


def test_no_folder_no_estimator(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such run folder"):
        LGCNClassifier.load(tmp_path / "none")
