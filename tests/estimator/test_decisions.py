"""Metrics, thresholds and decision functions of the classifier, and what training records."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import cross_val_score

from lgcn import Graph
from lgcn.datasets import synthetic
from lgcn.errors import CheckpointError, UsageError
from lgcn.estimator import LGCNClassifier

from .small import parts, small


@pytest.fixture(scope="module")
def uneven() -> Graph:
    """300 nodes of two classes, a sixth of them of the second."""
    made = synthetic(num_nodes=300, num_classes=6, num_features=8, noise=2.0, seed=3)
    assert made.y is not None
    y = (made.y == 5).long()
    masks = {"train_mask": None, "val_mask": None, "test_mask": None}
    return replace(made, y=y, label_names=None, **masks)


BY_HAND: dict[str, Any] = {
    "accuracy": lambda y, p, c: accuracy_score(y, c),
    "balanced_accuracy": lambda y, p, c: balanced_accuracy_score(y, c),
    "macro_f1": lambda y, p, c: f1_score(y, c, average="macro"),
    "roc_auc": lambda y, p, c: roc_auc_score(y, p[:, 1]),
    "average_precision": lambda y, p, c: average_precision_score(y, p[:, 1]),
    "log_loss": lambda y, p, c: log_loss(y, p),
}


@pytest.mark.parametrize("metric", BY_HAND)
def test_the_metric_is_that_of_the_validation_nodes(uneven: Graph, metric: str) -> None:
    model = small(metric=metric).fit(uneven)
    assert uneven.y is not None
    val = model.graph_.val_mask.numpy()
    y, chances, classes = uneven.y.numpy(), model.predict_proba(), model.predict()
    expected = BY_HAND[metric](y[val], chances[val], classes[val])
    assert model.result_["val_score"] == pytest.approx(expected, rel=1e-4)
    assert model.result_["metric"] == metric
    assert model.score(None, y) == accuracy_score(y, classes)  # as in scikit-learn
    # Before the temperature is known, log loss and tuned thresholds are those of temperature 1.
    if metric in ("roc_auc", "average_precision"):
        assert max(model.validation_scores_) == pytest.approx(expected, rel=1e-4)


def test_a_tuned_threshold_is_the_best_of_all(uneven: Graph) -> None:
    model = small(metric="balanced_accuracy").fit(uneven)
    assert uneven.y is not None
    val = model.graph_.val_mask.numpy()
    y, second = uneven.y.numpy()[val], model.predict_proba()[val, 1]
    best = max(balanced_accuracy_score(y, second >= t) for t in [0, *second, 1.1])
    assert balanced_accuracy_score(y, model.predict()[val]) == pytest.approx(best)
    assert model.threshold_ == model.result_["threshold"] != 0.5
    np.testing.assert_array_equal(model.predict(), model.predict_proba()[:, 1] >= model.threshold_)
    plain = small().fit(uneven)
    assert plain.threshold_ == 0.5
    np.testing.assert_array_equal(plain.predict(), plain.predict_proba().argmax(axis=1))


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.9, 1.0])
def test_a_given_threshold(uneven: Graph, threshold: float) -> None:
    model = small(threshold=threshold).fit(uneven)
    assert model.threshold_ == threshold
    second = model.predict_proba()[:, 1]
    np.testing.assert_array_equal(model.predict(), (second >= threshold).astype(int))
    np.testing.assert_array_equal(model.decision_function() > 0, model.predict() == 1)
    if threshold in (0.1, 0.9):
        expected = logit(second.astype(float)) - logit(threshold)
        np.testing.assert_allclose(model.decision_function(), expected, atol=1e-3)


def test_the_decision_function_of_two_classes(uneven: Graph) -> None:
    assert uneven.y is not None
    names = np.array(["bad", "good"])[uneven.y.numpy()]
    model = small(metric="macro_f1").fit(uneven, names)
    scores = model.decision_function()
    assert scores.shape == (300,)
    np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], model.predict())
    np.testing.assert_array_equal(scores[[4, 2]], model.decision_function([4, 2]))
    chances = model.predict_proba()[:, 1]
    np.testing.assert_allclose(expit(scores + logit(model.threshold_)), chances, atol=1e-5)
    assert roc_auc_score(names, scores) == pytest.approx(roc_auc_score(names, chances), abs=1e-4)


@given(
    arrays(np.float32, (7, 2), elements=st.floats(-60, 60, width=32)),
    st.floats(0, 1),
    st.floats(0.05, 20),
)
def test_decisions_agree_with_predictions(
    logits: Any, threshold: float, temperature: float
) -> None:
    model = LGCNClassifier()
    model.classes_, model.multi_label_ = np.array([0, 1]), False
    model.temperature_, model.threshold_ = temperature, threshold
    model._other = lambda X, edges: (None, None)
    model._logits = lambda graph, nodes: torch.from_numpy(logits)
    scores = model.decision_function()
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores > 0, model.predict() == 1)


def test_the_decision_function_of_more_classes(graph: Graph, fitted: LGCNClassifier) -> None:
    scores = fitted.decision_function()
    assert scores.shape == (200, 3)
    np.testing.assert_array_equal(fitted.classes_[scores.argmax(axis=1)], fitted.predict())
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax = exponents / exponents.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax, fitted.predict_proba(), atol=1e-5)
    assert fitted.threshold_ is None


def test_the_decision_function_of_several_labels(graph: Graph) -> None:
    x, y, edges = parts(graph)
    rows = np.stack([y == 0, y > 0], axis=1).astype(int)
    model = small(metric="macro_f1").fit(x, rows, edges)
    scores = model.decision_function()
    assert scores.shape == (200, 2)
    np.testing.assert_array_equal(scores > 0, model.predict() == 1)
    np.testing.assert_allclose(expit(scores), model.predict_proba(), atol=1e-5)


def test_scorers_use_it(uneven: Graph) -> None:
    assert uneven.y is not None
    nodes, y = np.arange(300), uneven.y.numpy()
    model = small(metric="roc_auc")
    scores = cross_val_score(model, nodes, y, cv=2, scoring="roc_auc", params={"graph": uneven})
    assert scores.min() > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "acuracy"}, "unknown metric 'acuracy'; did you mean 'accuracy'"),
        ({"metric": "r2"}, "metric=r2 .*accuracy"),
        ({"metric": 3}, "metric must be"),
        ({"threshold": 1.5}, "threshold must be .*from 0 to 1, got 1.5"),
        ({"threshold": "best"}, "threshold must be .*tuned.*got 'best'"),
        ({"threshold": 0.3}, "threshold=0.3 is for two classes, got 3 classes"),
        ({"threshold": "tuned"}, "threshold=tuned is for two classes, got 3 classes"),
    ],
)
def test_wrong_settings_are_named(graph: Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        small(**options).fit(graph)
    assert "\n" not in str(caught.value)


def test_predictions_use_the_threshold(uneven: Graph) -> None:
    model = small(threshold=0.2).fit(uneven)
    assert model.predictions()["predicted"].to_pylist() == model.predict().tolist()


def test_the_history(graph: Graph, fitted: LGCNClassifier) -> None:
    assert len(fitted.history_) == len(fitted.loss_curve_) == fitted.n_iter_ == 12
    assert [epoch["epoch"] for epoch in fitted.history_] == list(range(1, 13))
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    best = fitted.result_["best_epoch"] - 1
    assert fitted.validation_scores_[best] == max(fitted.validation_scores_)
    assert fitted.validation_scores_[best] == pytest.approx(fitted.result_["val_score"])
    assert "history" not in fitted.result_
    seldom = small(settings={"evaluate_every": 5}).fit(graph)
    assert [epoch["epoch"] for epoch in seldom.history_] == [5, 10, 12]


def test_decisions_are_saved(uneven: Graph, tmp_path: Path) -> None:
    x, _, edges = parts(uneven)
    model = small(metric="macro_f1", class_weight={0: 1.5, 1: np.float64(2)}).fit(uneven)
    model.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.get_params() == model.get_params()
    assert loaded.class_weight == {0: 1.5, 1: 2.0}
    assert loaded.threshold_ == model.threshold_
    np.testing.assert_array_equal(loaded.predict(x, edges), model.predict())
    np.testing.assert_array_equal(loaded.decision_function(x, edges), model.decision_function())
    for attribute in ("history_", "loss_curve_", "validation_scores_", "result_"):
        assert getattr(loaded, attribute) == getattr(model, attribute)
    loaded.save(tmp_path / "again")
    assert LGCNClassifier.load(tmp_path / "again").history_ == model.history_


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("result.json", {"threshold": 2}, "threshold"),
        ("result.json", {"threshold": "high"}, "threshold"),
        ("result.json", {"history": 5}, "history must be a list"),
        ("result.json", {"history": [5]}, "history must hold tables of numbers"),
        ("result.json", {"history": [{"val_score": "x"}]}, "history must hold tables of numbers"),
        ("estimator.json", {"class_weight": [[0, [1]]]}, "class_weight must hold pairs"),
        ("estimator.json", {"class_weight": [0]}, "class_weight must hold pairs"),
        ("estimator.json", {"class_weight": [[0, -1]]}, "class_weight must be a number"),
        ("estimator.json", {"class_weight": {"0": 1}}, "class_weight must not be"),
    ],
)
def test_damaged_decisions_are_named(
    uneven: Graph, tmp_path: Path, name: str, change: dict[str, Any], message: str
) -> None:
    small(max_epochs=1).fit(uneven).save(tmp_path)
    path = tmp_path / name
    record = json.loads(path.read_text())
    (record if name == "result.json" else record["params"]).update(change)
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=message) as caught:
        LGCNClassifier.load(tmp_path)
    assert str(path) in str(caught.value)


def test_folders_of_earlier_versions(uneven: Graph, tmp_path: Path) -> None:
    model = small(max_epochs=2).fit(uneven)
    model.save(tmp_path)
    path = tmp_path / "estimator.json"
    record = json.loads(path.read_text())
    for name in ("class_weight", "metric", "threshold", "time_limit", "positions"):
        del record["params"][name]
    path.write_text(json.dumps(record))
    result = json.loads((tmp_path / "result.json").read_text())
    for name in ("threshold", "history"):
        del result[name]
    (tmp_path / "result.json").write_text(json.dumps(result))
    loaded = LGCNClassifier.load(tmp_path)
    assert (loaded.class_weight, loaded.metric, loaded.history_) == (None, None, [])
    x, _, edges = parts(uneven)
    np.testing.assert_array_equal(loaded.predict(x, edges), model.predict())
