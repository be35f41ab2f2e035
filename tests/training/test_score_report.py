"""The report of scores equals scikit-learn's metrics, and counts add up."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from lgcn.errors import UsageError
from lgcn.training import score_report as module
from lgcn.training.metrics import METRICS
from lgcn.training.score_report import score_report

NAMES = ("a", "b", "c", "d")


def draw(seed: int, nodes: int, classes: int) -> tuple[Any, Any]:
    """Probabilities and classes, of which some may not occur."""
    rng = np.random.default_rng(seed)
    allowed = rng.permutation(classes)[: rng.integers(1, classes + 1)]
    p = rng.dirichlet(np.ones(classes) / 2, nodes)
    return p, rng.choice(allowed, nodes)


drawn = st.builds(draw, st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 4))


@given(drawn)
def test_counts_add_up(case: tuple[Any, Any]) -> None:
    p, y = case
    report = score_report("classification", p, y, NAMES[: p.shape[1]])
    matrix = np.array(report["confusion_matrix"])
    labels = range(p.shape[1])
    np.testing.assert_array_equal(matrix, sk.confusion_matrix(y, p.argmax(1), labels=labels))
    assert matrix.sum() == report["nodes"] == len(y)
    assert matrix.sum(1).tolist() == [row["support"] for row in report["per_class"]]
    assert matrix.sum(0).tolist() == [row["predicted"] for row in report["per_class"]]
    assert report["scores"]["accuracy"] == pytest.approx(np.trace(matrix) / len(y))
    wrong = matrix.sum() - np.trace(matrix)
    assert sum(entry["nodes"] for entry in report["confusions"]) == wrong
    never = [n for n, row in zip(NAMES, matrix.T, strict=False) if not row.sum()]
    has = [n for n, row in zip(NAMES, matrix, strict=False) if row.sum()]
    assert report["never_predicted"] == [name for name in never if name in has]
    json.dumps(report, allow_nan=False)


@given(drawn)
def test_classes_have_scikit_learns_scores(case: tuple[Any, Any]) -> None:
    p, y = case
    report = score_report("classification", p, y, NAMES[: p.shape[1]])
    guess, labels = p.argmax(1), range(p.shape[1])
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        y, guess, labels=labels, zero_division=np.nan
    )
    for key, column in (("precision", precision), ("recall", recall), ("f1", f1)):
        found = [np.nan if row[key] is None else row[key] for row in report["per_class"]]
        np.testing.assert_allclose(found, column)
    assert [row["support"] for row in report["per_class"]] == support.tolist()
    scores = report["scores"]
    assert scores["accuracy"] == pytest.approx(sk.accuracy_score(y, guess))
    assert scores["macro_f1"] == pytest.approx(sk.f1_score(y, guess, average="macro"))
    assert scores["log_loss"] == pytest.approx(sk.log_loss(y, p, labels=labels))
    if len(np.unique(y)) == p.shape[1] > 2:
        assert scores["roc_auc"] == pytest.approx(sk.roc_auc_score(y, p, multi_class="ovr"))
        assert scores["average_precision"] == pytest.approx(sk.average_precision_score(y, p))
        assert scores["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(y, guess))
        assert report["notes"] == {}
    if len(np.unique(y)) == p.shape[1] == 2:
        assert scores["roc_auc"] == pytest.approx(sk.roc_auc_score(y, p[:, 1]))
        assert scores["average_precision"] == pytest.approx(sk.average_precision_score(y, p[:, 1]))


@given(drawn, st.sampled_from([None, 0.2, 0.5]))
def test_the_chosen_metric_has_the_same_value_in_the_report(
    case: tuple[Any, Any], threshold: float | None
) -> None:
    p, y = case
    threshold = threshold if p.shape[1] == 2 else None
    scores = score_report("classification", p, y, threshold=threshold)["scores"]
    for name, metric in METRICS.items():
        if "classification" in metric.tasks and name != "micro_f1":
            logits = torch.from_numpy(np.log(np.maximum(p, 1e-300)))
            value = metric(logits, torch.from_numpy(y), None, threshold)
            assert scores[name] == (None if np.isnan(value) else pytest.approx(value)), name


def test_hand_made_numbers() -> None:
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    report = score_report("classification", p, [0, 1, 0, 1], ["no", "yes"])
    assert report["confusion_matrix"] == [[2, 0], [1, 1]]
    assert report["scores"]["accuracy"] == 0.75
    assert report["scores"]["balanced_accuracy"] == 0.75
    assert report["scores"]["roc_auc"] == 1.0
    assert report["per_class"][1]["recall"] == 0.5
    assert report["confusions"] == [{"true": "yes", "predicted": "no", "nodes": 1}]
    lower = score_report("classification", p, [0, 1, 0, 1], ["no", "yes"], threshold=0.4)
    assert lower["confusion_matrix"] == [[2, 0], [0, 2]]
    assert score_report("classification", p, [-1, 1, 0, -1])["nodes"] == 2


def test_a_class_without_nodes_is_left_out_of_means_and_named() -> None:
    p = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.4, 0.5, 0.1]])
    report = score_report("classification", p, [0, 1, 0], ["x", "y", "z"])
    assert report["scores"]["roc_auc"] == 1.0
    assert report["notes"]["roc_auc"] == "no nodes of class 'z'"
    assert report["per_class"][2]["roc_auc"] is None
    alone = score_report("classification", p[:, :2], [1, 1, 1], ["x", "y"])
    assert alone["scores"]["roc_auc"] is None
    assert "'x'" in alone["notes"]["roc_auc"]
    assert alone["never_predicted"] == []
    empty = score_report("classification", p[:0], [], ["x", "y", "z"])
    assert empty["nodes"] == 0
    assert "no labelled nodes" in empty["notes"]["all"]


@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 4))
def test_several_labels_have_scikit_learns_scores(seed: int, nodes: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    p, y = rng.random((nodes, labels)), rng.random((nodes, labels)) < rng.random(labels)
    report = score_report("multilabel", p, y)
    guess, scores = p > 0.5, report["scores"]
    for average in ("micro", "macro"):
        wanted = sk.f1_score(y, guess, average=average, zero_division=0)
        if labels > 1:  # scikit-learn takes one label for two classes
            assert scores[f"{average}_f1"] == pytest.approx(wanted)
    assert scores["accuracy"] == pytest.approx((y == guess).all(1).mean())
    logits = torch.from_numpy(np.log(p / (1 - p)))
    for name in ("roc_auc", "average_precision", "log_loss"):
        value = METRICS[name](logits, torch.from_numpy(y))
        assert scores[name] == (None if np.isnan(value) else pytest.approx(value)), name
    usable = [0 < column.sum() < nodes for column in y.T]
    if all(usable):
        assert scores["roc_auc"] == pytest.approx(sk.roc_auc_score(y, p, average="macro"))
    assert "confusion_matrix" not in report
    json.dumps(report, allow_nan=False)


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_numbers_have_scikit_learns_scores(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    y, found = rng.normal(size=nodes), rng.normal(size=nodes)
    report = score_report("regression", found, y, interval=(0.9, 1.0))
    scores = report["scores"]
    assert scores["r2"] == pytest.approx(sk.r2_score(y, found))
    assert scores["rmse"] == pytest.approx(sk.root_mean_squared_error(y, found))
    assert scores["mae"] == pytest.approx(sk.mean_absolute_error(y, found))
    assert scores["median_absolute_error"] == pytest.approx(np.median(abs(y - found)))
    assert report["coverage"]["share"] == pytest.approx((abs(y - found) <= 1).mean())


def test_numbers_that_have_no_r2() -> None:
    report = score_report("regression", [1.0, 2.0], [3.0, 3.0], interval=(0.9, None))
    assert report["scores"]["r2"] is None
    assert "equal" in report["notes"]["r2"]
    assert report["scores"]["mae"] == 1.5
    assert "coverage" not in report
    broken = score_report("regression", [1.0, np.inf], [3.0, 4.0])
    assert broken["scores"]["rmse"] is None
    assert "finite" in broken["notes"]["rmse"]
    assert score_report("regression", [1.0, 2.0, 9.0], [1.0, np.nan, 9.0])["nodes"] == 2


def test_large_reports_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    p, y = draw(1, 90, 4)
    full = score_report("classification", p, y)
    monkeypatch.setattr(module, "MAX_VALUES", 120)
    monkeypatch.setattr(module, "MAX_MATRIX_CLASSES", 3)
    part = score_report("classification", p, y)
    assert part["sampled_nodes"] == 30
    assert part["confusion_matrix"] is None
    assert part["confusions"] == full["confusions"]
    for name in ("accuracy", "balanced_accuracy", "macro_f1"):
        assert part["scores"][name] == full["scores"][name]
    assert part["scores"]["log_loss"] == pytest.approx(sk.log_loss(y[::3], p[::3], labels=range(4)))
    monkeypatch.setattr(module, "MAX_RANKED_CLASSES", 3)
    none = score_report("classification", p, y)
    assert none["scores"]["roc_auc"] is None
    assert "classes" in none["notes"]["roc_auc"]


def test_the_wrong_shape_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\[nodes, 3\].*\[2, 2\]"):
        score_report("classification", np.ones((2, 2)), [0, 1], ["a", "b", "c"])
