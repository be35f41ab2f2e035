"""The metrics by name: the tasks they are for, their direction, and how they are shown.

`lgcn.training.metrics` computes them. Nothing here imports torch, so that a wrong name is reported
at once.
"""

from typing import NamedTuple

from lgcn.errors import UsageError, did_you_mean
from lgcn.utils.choices import Task

_LABELS: tuple[Task, ...] = ("classification", "multilabel")
_ONE_CLASS: tuple[Task, ...] = ("classification",)
_NUMBERS: tuple[Task, ...] = ("regression",)

# What the nodes of a task have, for messages.
NODES_HAVE: dict[Task, str] = {
    "classification": "one class per node",
    "multilabel": "several labels per node",
    "regression": "a number per node",
}


class MetricFacts(NamedTuple):
    """What is known of a metric without computing it.

    Args:
        tasks: The tasks it is for.
        greater_is_better: Its direction. (default: `True`)
        uses_threshold: Whether it depends on the decision threshold of two classes.
            (default: `False`)
        needs_classes: Whether it is a mean over classes, or needs nodes of several classes.
            (default: `False`)
        is_share: Whether it is shown in per cent. (default: `True`)
    """

    tasks: tuple[Task, ...]
    greater_is_better: bool = True
    uses_threshold: bool = False
    needs_classes: bool = False
    is_share: bool = True


FACTS: dict[str, MetricFacts] = {
    "accuracy": MetricFacts(_LABELS, uses_threshold=True),
    "balanced_accuracy": MetricFacts(_ONE_CLASS, uses_threshold=True, needs_classes=True),
    "macro_f1": MetricFacts(_LABELS, uses_threshold=True, needs_classes=True),
    "micro_f1": MetricFacts(_LABELS, uses_threshold=True),
    "roc_auc": MetricFacts(_LABELS, needs_classes=True),
    "average_precision": MetricFacts(_LABELS, needs_classes=True),
    "log_loss": MetricFacts(_LABELS, greater_is_better=False, is_share=False),
    "r2": MetricFacts(_NUMBERS, is_share=False),
    "rmse": MetricFacts(_NUMBERS, greater_is_better=False, is_share=False),
    "mae": MetricFacts(_NUMBERS, greater_is_better=False, is_share=False),
}
_DEFAULTS: dict[Task, str] = {
    "classification": "accuracy",
    "multilabel": "micro_f1",
    "regression": "r2",
}


def default_metric(task: Task) -> str:
    """The metric of a task if the user names none."""
    return _DEFAULTS[task]


def known_metric(name: str) -> str:
    """The name, if it is that of a metric or `"auto"`; else raises UsageError."""
    if name not in FACTS and name != "auto":
        raise UsageError(f"unknown metric {name!r:.80}; {did_you_mean(name, ['auto', *FACTS])}")
    return name


def metric_for(name: str, task: Task) -> str:
    """The metric, by default that of the task; raises UsageError if it is for other tasks.

    Args:
        name: A metric, or `"auto"` for the default of the task.
        task: The task.
    """
    if known_metric(name) == "auto":
        return default_metric(task)
    if task not in FACTS[name].tasks:
        fitting = ", ".join(other for other in FACTS if task in FACTS[other].tasks)
        raise UsageError(
            f"metric={name} is not for {task}, and the graph has {NODES_HAVE[task]}: "
            f"use one of {fitting}"
        )
    return name


def metric_text(name: str, value: float | None) -> str:
    """The value of a metric as it is shown: in per cent, or as a number; `-` if there is none."""
    if value is None:
        return "-"
    if name in FACTS and not FACTS[name].is_share:
        return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3f}"
    return f"{100 * value:.1f} %"
