"""The estimators over lists of graphs."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from torch_geometric.data import Data

import lgcn
from lgcn import GraphClassifier, GraphRegressor, LGCNClassifier
from lgcn.errors import UsageError
from lgcn.graph import GraphSet
from tests.training.whole_graphs import some_graphs

SMALL: dict[str, Any] = {"hidden_channels": 8, "num_layers": 1, "max_epochs": 12, "device": "cpu"}


def rings_and_stars(count: int = 15) -> tuple[list[nx.Graph], list[str]]:
    sizes = range(5, 5 + count)
    graphs = [nx.cycle_graph(n) for n in sizes] + [nx.star_graph(n) for n in sizes]
    return graphs, ["ring"] * count + ["star"] * count


def as_data(graphs: GraphSet) -> list[Data]:
    found = []
    for number in range(len(graphs)):
        one = graphs.select([number]).graph
        found.append(Data(x=one.x, edge_index=one.edge_index))
    return found


@pytest.fixture(scope="module")
def fitted() -> GraphClassifier:
    graphs, y = rings_and_stars()
    return GraphClassifier(**SMALL, random_state=0).fit(graphs, y)


def test_networkx_graphs_without_features_are_told_apart(fitted: GraphClassifier) -> None:
    graphs, y = rings_and_stars()
    assert fitted.score(graphs, y) > 0.9
    assert fitted.classes_.tolist() == ["ring", "star"]
    assert fitted.predict([nx.cycle_graph(30), nx.star_graph(30)]).tolist() == ["ring", "star"]
    assert is_classifier(fitted)
    assert len(fitted.loss_curve_) == fitted.n_iter_ == 12


def test_probabilities_scores_and_classes_agree(fitted: GraphClassifier) -> None:
    graphs, y = rings_and_stars()
    chances = fitted.predict_proba(graphs)
    assert chances.shape == (30, 2)
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    predicted = fitted.predict(graphs)
    assert predicted.tolist() == fitted.classes_[chances.argmax(1)].tolist()
    assert ((fitted.decision_function(graphs) > 0) == (predicted == "star")).all()
    assert fitted.score(graphs, y) == accuracy_score(y, predicted)
    assert fitted.transform(graphs).shape[0] == 30


def test_the_table_has_ids_truth_and_split(fitted: GraphClassifier) -> None:
    table = fitted.predictions()
    assert table.column_names[:5] == ["graph", "predicted", "confidence", "true", "split"]
    assert table["true"].to_pylist() == rings_and_stars()[1]
    assert set(table["split"].to_pylist()) == {"train", "val"}
    assert "true" not in fitted.predictions([nx.cycle_graph(6)]).column_names


def test_the_order_of_graphs_does_not_matter(fitted: GraphClassifier) -> None:
    graphs, _ = rings_and_stars()
    together = fitted.predict_proba(graphs)
    alone = np.concatenate([fitted.predict_proba([graph]) for graph in graphs])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_scikit_learn_can_search_and_cross_validate() -> None:
    graphs, y = rings_and_stars(9)
    model = GraphClassifier(**SMALL | {"max_epochs": 2}, random_state=0)
    found = cross_val_predict(clone(model), graphs, y, cv=2)
    assert len(found) == len(graphs)
    search = GridSearchCV(model, {"hidden_channels": [4, 8]}, cv=2).fit(graphs, y)
    assert search.best_params_["hidden_channels"] in (4, 8)


def test_a_set_keeps_its_own_split_and_labels() -> None:
    graphs = some_graphs()
    model = GraphClassifier(**SMALL, random_state=0).fit(graphs)
    assert model.graphs_ is not None
    for split in ("train", "val", "test"):
        ours, theirs = model.graphs_.mask(split), graphs.mask(split)
        assert ours is not None
        assert theirs is not None
        assert torch.equal(ours, theirs)
    test = graphs.mask("test")
    assert graphs.y is not None
    assert test is not None
    expected = accuracy_score(
        np.array(["no", "yes"])[graphs.y[test]], model.predict(graphs.select(test))
    )
    assert model.score() == expected == model.result_["test_score"]


def test_lists_of_pyg_data_and_sets_give_the_same() -> None:
    graphs = some_graphs(24)
    assert graphs.y is not None
    y = graphs.y.tolist()
    plain = graphs.with_targets(train_mask=None, val_mask=None, test_mask=None)
    options: dict[str, Any] = {**SMALL, "max_epochs": 3, "random_state": 1}
    one = GraphClassifier(**options).fit(plain, y)
    other = GraphClassifier(**options).fit(as_data(graphs), y)
    np.testing.assert_allclose(one.predict_proba(), other.predict_proba(), atol=1e-6)


def test_labels_that_data_hold_are_used_unless_others_are_given() -> None:
    graphs = some_graphs(24)
    data = as_data(graphs)
    assert graphs.y is not None
    for one, label in zip(data, graphs.y, strict=True):
        one.y = label.reshape(1)
    model = GraphClassifier(**SMALL | {"max_epochs": 2}, random_state=0).fit(data)
    assert model.classes_.tolist() == [0, 1]
    names = ["b" if label else "a" for label in graphs.y.tolist()]
    model = GraphClassifier(**SMALL | {"max_epochs": 2}, random_state=0).fit(data, names)
    assert model.classes_.tolist() == ["a", "b"]


def test_several_labels_per_graph() -> None:
    graphs = some_graphs(30)
    assert graphs.y is not None
    y = np.stack([graphs.y.numpy(), 1 - graphs.y.numpy()], axis=1)
    model = GraphClassifier(**SMALL, random_state=0).fit(as_data(graphs), y)
    assert model.predict().shape == (30, 2)
    assert model.multi_label_


def test_unlabelled_graphs_and_weights_of_zero_are_left_out() -> None:
    graphs, y = rings_and_stars()
    some: list[Any] = [None if n % 5 == 0 else label for n, label in enumerate(y)]
    weight = np.where(np.arange(30) % 7 == 0, 0, 1)
    model = GraphClassifier(**SMALL | {"max_epochs": 2}, random_state=0)
    model.fit(graphs, some, sample_weight=weight)
    assert model.graphs_ is not None
    used = model.graphs_.targets.train_mask | model.graphs_.targets.val_mask  # type: ignore[operator]
    assert not used[np.arange(30) % 5 == 0].any()
    assert not model.graphs_.targets.val_mask[weight == 0].any()  # type: ignore[index]


def test_a_number_per_graph() -> None:
    graphs = [nx.gnp_random_graph(n, 0.3, seed=n) for n in range(6, 46)]
    y = [graph.number_of_nodes() / 10 for graph in graphs]
    options = {**SMALL, "max_epochs": 60, "lr": 0.01}
    model = GraphRegressor(**options, readout="sum", random_state=0).fit(graphs, y)
    assert is_regressor(model)
    predicted = model.predict(graphs)
    assert model.score(graphs, y) == pytest.approx(r2_score(y, predicted))
    assert model.score(graphs, y) > 0.5
    low, high = model.predict_interval(level=0.5).T
    np.testing.assert_allclose((low + high) / 2, predicted, rtol=1e-4)
    assert model.predictions().column_names[:4] == ["graph", "predicted", "lower", "upper"]


def test_a_saved_estimator_predicts_the_same(fitted: GraphClassifier, tmp_path: Path) -> None:
    graphs, _ = rings_and_stars(4)
    fitted.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(graphs), fitted.predict_proba(graphs))
    assert loaded.get_params() == fitted.get_params()
    with pytest.raises(UsageError, match="X must be graphs"):
        loaded.predict()
    with pytest.raises(UsageError, match=r"use lgcn\.GraphClassifier\.load"):
        LGCNClassifier.load(tmp_path / "model")
    assert lgcn.load_run(tmp_path / "model").spec.unit == "graph"


def test_a_baseline_of_the_paper_is_one_setting_away() -> None:
    graphs, y = rings_and_stars(6)
    import lgcn.paper  # noqa: F401

    model = GraphClassifier(
        hidden_channels=8, max_epochs=2, device="cpu", random_state=0, settings={"model": "gin"}
    ).fit(graphs, y)
    assert model.settings_.model.name == "gin"


@pytest.mark.filterwarnings("ignore:graphs. 4 of 4 graphs have no nodes")
@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([], [], "at least one graph"),
        ([nx.path_graph(3)] * 4, ["a"] * 4, "at least two classes"),
        ([nx.path_graph(3), "x"], ["a", "b"], "got str"),
        ([nx.path_graph(3)] * 4, ["a", "b"], "inconsistent numbers of samples"),
        ([nx.Graph()] * 4, ["a", "b"] * 2, "no nodes"),
    ],
)
def test_what_cannot_be_fitted_is_said(X: Any, y: Any, words: str) -> None:
    with pytest.raises((UsageError, ValueError), match=words):
        GraphClassifier(**SMALL).fit(X, y)


def test_graphs_with_other_features_are_refused() -> None:
    graphs = some_graphs(24)
    model = GraphClassifier(**SMALL | {"max_epochs": 1}, random_state=0).fit(graphs)
    with pytest.raises(UsageError, match="have 3 features per node"):
        model.predict(some_graphs(4, features=3))


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (3.0, 4.5)])
def test_graphs_of_pyg_may_have_numbers_as_labels(labels: tuple[Any, Any]) -> None:
    graphs = as_data(some_graphs(40))
    for place, graph in enumerate(graphs):
        graph.y = labels[place % 2]
    if isinstance(labels[0], float):
        assert GraphRegressor(**SMALL, random_state=0).fit(graphs).score(graphs) > 0
    else:
        model = GraphClassifier(**SMALL, random_state=0).fit(graphs)
        assert len(model.classes_) == 2
        assert model.score(graphs) > 0.7
