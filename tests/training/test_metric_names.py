"""Metrics by name: which exist, which fit a task, and how they are shown."""

import pytest

from lgcn.errors import UsageError
from lgcn.training import Settings
from lgcn.training.metric_names import FACTS, metric_for, metric_text
from lgcn.training.metrics import METRICS


def test_every_name_can_be_computed():
    assert list(FACTS) == list(METRICS)


@pytest.mark.parametrize(
    ("task", "expected"),
    [("classification", "accuracy"), ("multilabel", "micro_f1"), ("regression", "r2")],
)
def test_auto_depends_on_the_task(task: str, expected: str):
    assert metric_for("auto", task) == expected


@pytest.mark.parametrize(
    ("name", "task"),
    [("r2", "classification"), ("balanced_accuracy", "multilabel"), ("accuracy", "regression")],
)
def test_a_metric_of_another_task_names_those_that_fit(name: str, task: str):
    fitting = [other for other, facts in FACTS.items() if task in facts.tasks]
    with pytest.raises(UsageError, match=f"metric={name} .*{task}.*{', '.join(fitting)}"):
        metric_for(name, task)


def test_an_unknown_metric_has_a_hint():
    with pytest.raises(UsageError, match=r"'balanced_acuracy'.*'balanced_accuracy'"):
        Settings.create(metric="balanced_acuracy")
    with pytest.raises(UsageError, match=r"'f7'.*known: auto, accuracy"):
        Settings.create(metric="f7")
    with pytest.raises(UsageError, match="metric must be a string, got 3"):
        Settings.create(metric=3)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.9127, "91.3 %"),
        ("r2", 0.9127, "0.913"),
        ("rmse", 123456.7, "1.235e+05"),
        ("log_loss", 0.25, "0.250"),
        ("roc_auc", None, "-"),
        ("of another version", 0.5, "50.0 %"),
    ],
)
def test_how_a_value_is_shown(name: str, value: float | None, text: str):
    assert metric_text(name, value) == text
