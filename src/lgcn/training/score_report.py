"""The report of a model's scores on labelled nodes: all usual metrics, per class and overall.

The metrics are scikit-learn's. A score that cannot be computed is ``None``, and ``notes`` gives the
reason. ROC AUC and average precision of more than two classes, and of several labels, are means
over the classes that occur, each against the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from lgcn.errors import UsageError
from lgcn.training.calibration import decide

Array = np.ndarray[Any, Any]

# Sorting all probabilities takes seconds per 10 million. Of more, every n-th node is used for the
# scores that need probabilities; the others always use all nodes.
MAX_VALUES = 10_000_000
# ROC AUC and average precision take one sort per class.
MAX_RANKED_CLASSES = 500
# A larger confusion matrix is left out; its largest entries are always listed.
MAX_MATRIX_CLASSES = 200
CONFUSIONS_LISTED = 20
NAMES_IN_REASON = 3


def score_report(
    task: str,
    outputs: Any,
    y: Any,
    class_names: Sequence[Any] = (),
    *,
    predicted: Any = None,
    nodes: Any = None,
    threshold: float | None = None,
    interval: tuple[float, float | None] | None = None,
) -> dict[str, Any]:
    """The scores of predictions for labelled nodes, as JSON can hold them.

    ==================  ==========================================================================
    ``nodes``           number of nodes
    ``scores``          metrics by name, ``None`` if one cannot be computed
    ``notes``           by name of the metric: why it is ``None``, or which classes are not in it
    ``per_class``       per class or label: support, predicted, precision, recall, F1, ROC AUC,
                        average precision
    ``confusion_matrix``  rows are true classes, columns predicted ones; ``None`` above 200 classes
    ``confusions``      the largest entries off the diagonal: true, predicted, nodes
    ``never_predicted``  the classes or labels that have nodes, but are never predicted
    ``coverage``        regression: how many true values lie in the interval
    ``sampled_nodes``   how many nodes the scores of probabilities use, if not all
    ==================  ==========================================================================

    Args:
        task: ``"classification"``, ``"multilabel"`` or ``"regression"``.
        outputs: Probabilities [nodes, classes], or the predicted values [nodes].
        y: Classes [nodes], zeros and ones [nodes, labels], or values [nodes]. Nodes whose class is
            -1 or whose value is NaN are left out.
        class_names: The names of the classes or labels. (default: their numbers)
        predicted: The predicted classes [nodes], or zeros and ones [nodes, labels].
            (default: made from the probabilities)
        nodes: If there are too many nodes, ``outputs`` may have some of them only: their places in
            ``y`` and ``predicted``. (default: all)
        threshold: For two classes, see `lgcn.training.calibration.decide`.
            (default: the most likely class)
        interval: For regression, the level of the interval around predictions and half its width.
            (default: none)
    """
    outputs, y = np.asarray(outputs), np.asarray(y)
    if task == "regression":
        return _regression(outputs.reshape(-1), y, interval)
    names = [str(name) for name in class_names] or [str(n) for n in range(outputs.shape[1])]
    if outputs.ndim != 2 or outputs.shape[1] != len(names):
        raise UsageError(
            f"outputs must have shape [nodes, {len(names)}], one column per class, "
            f"got {list(outputs.shape)}"
        )
    rows = np.arange(len(y)) if nodes is None else np.asarray(nodes)
    if predicted is None:
        if len(rows) != len(y):
            raise UsageError("predicted is missing: outputs has some of the nodes only")
        predicted = _decided(outputs, task, threshold)
    predicted = np.asarray(predicted)
    if task == "classification":
        known = y >= 0
        outputs, rows = outputs[known[rows]], rows[known[rows]]
        rows = (np.cumsum(known) - 1)[rows]  # their places among the known ones
        y, predicted = y[known], predicted[known]
    report: dict[str, Any] = {"task": task, "nodes": len(y)}
    if len(y) == 0:
        return {**report, "scores": {}, "notes": {"all": "there are no labelled nodes"}}
    step = -(-outputs.size // MAX_VALUES)
    outputs, rows = outputs[::step], rows[::step]
    parts = _classes if task == "classification" else _labels
    report |= parts(np.asarray(outputs, dtype=np.float64), rows, y, predicted, names)
    if len(rows) < len(y):
        report["sampled_nodes"] = len(rows)
    return report


def score_of(scores: Mapping[str, float | None], metric: str) -> float | None:
    """A score by the name of a metric. With one class per node, micro F1 is the accuracy."""
    if metric == "micro_f1" and metric not in scores:
        metric = "accuracy"
    return scores.get(metric)


def _decided(outputs: Array, task: str, threshold: float | None) -> Array:
    """The predicted classes [nodes], or a matrix of the predicted labels."""
    if task == "multilabel":
        return np.asarray(outputs > 0.5)
    found: Array = decide(torch.as_tensor(np.array(outputs)), threshold).numpy()
    return found


def _classes(p: Array, rows: Array, y: Array, predicted: Array, names: list[str]) -> dict[str, Any]:
    from sklearn.metrics import log_loss

    size = len(names)
    # Counted sparsely: there may be a million classes.
    pairs, counts = np.unique(y.astype(np.int64) * size + predicted, return_counts=True)
    true, guessed = pairs // size, pairs % size
    hits = np.zeros(size, dtype=np.int64)
    diagonal = true == guessed
    hits[true[diagonal]] = counts[diagonal]
    table = _table(hits, np.bincount(predicted, minlength=size), np.bincount(y, minlength=size))
    scores = Scores()
    scores["accuracy"] = hits.sum() / len(y)
    scores["balanced_accuracy"] = np.nanmean(table["recall"])
    scores["macro_f1"] = np.nanmean(table["f1"])
    seen = y[rows]
    q = p / p.sum(axis=1, keepdims=True)  # float32 sums are 1 up to 1e-7
    if size > 1:
        scores["log_loss"] = log_loss(seen, q, labels=np.arange(size))
    else:
        scores["log_loss"] = 0.0
    positives = np.bincount(seen, minlength=size)
    ranked = _ranked(lambda c: seen == c, p, positives, names, "nodes of class", scores)
    if size == 2:  # as scikit-learn has it: the second class is the positive one
        for key in ("roc_auc", "average_precision"):
            scores.replace(key, ranked[key][1], scores.notes.get(key, ""))
    matrix = None
    if size <= MAX_MATRIX_CLASSES:
        dense = np.zeros((size, size), dtype=np.int64)
        dense[true, guessed] = counts
        matrix = dense.tolist()
    order = np.argsort(-counts[~diagonal], kind="stable")[:CONFUSIONS_LISTED]
    wrong = [part[~diagonal][order].tolist() for part in (true, guessed, counts)]
    confusions = [
        {"true": names[a], "predicted": names[b], "nodes": n}
        for a, b, n in zip(*wrong, strict=True)
    ]
    listed = _listed(table, ranked, names)
    more = {"confusion_matrix": matrix, "confusions": confusions}
    return {**scores.record(), **listed, **more}


def _labels(p: Array, rows: Array, y: Array, predicted: Array, names: list[str]) -> dict[str, Any]:
    true, guessed = y > 0.5, predicted > 0.5
    hits = (true & guessed).sum(axis=0)
    table = _table(hits, guessed.sum(axis=0), true.sum(axis=0))
    marked = int(table["predicted"].sum() + table["support"].sum())
    scores = Scores()
    scores["micro_f1"] = 2 * hits.sum() / marked if marked else 0.0
    # As in scikit-learn, a label that no node has and no node gets counts as zero.
    scores["macro_f1"] = np.nan_to_num(table["f1"]).mean()
    scores["accuracy"] = (true == guessed).all(axis=1).mean()  # the exact-match ratio
    seen = true[rows]
    sure = np.clip(np.where(seen, p, 1 - p), np.finfo(p.dtype).eps, 1)
    scores["log_loss"] = -np.log(sure).mean()
    positives = seen.sum(axis=0)
    ranked = _ranked(lambda c: seen[:, c], p, positives, names, "nodes with label", scores)
    return {**scores.record(), **_listed(table, ranked, names)}


def _table(hits: Array, predicted: Array, support: Array) -> dict[str, Array]:
    """Counts and scores per class; NaN where a score divides by zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "support": support,
            "predicted": predicted,
            "precision": hits / predicted,
            "recall": hits / support,
            "f1": 2 * hits / (predicted + support),
        }


def _ranked(
    members: Callable[[int], Array],
    p: Array,
    positives: Array,
    names: list[str],
    what: str,
    scores: Scores,
) -> dict[str, list[float | None]]:
    """ROC AUC and average precision per class against the rest; their means go into ``scores``."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    metrics = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
    found: dict[str, list[float | None]] = {key: [None] * len(names) for key in metrics}
    if len(names) > MAX_RANKED_CLASSES:
        for key in metrics:
            scores.replace(key, None, f"there are more than {MAX_RANKED_CLASSES} classes")
        return found
    for place in np.flatnonzero(positives):
        member = members(int(place))
        for key, metric in metrics.items():
            if key != "roc_auc" or positives[place] < len(p):
                found[key][place] = float(metric(member, p[:, place]))
    lacking = [names[i] for i in np.flatnonzero(positives == 0)]
    everywhere = [names[i] for i in np.flatnonzero(positives == len(p))]
    reason = f"only {what} {_some(everywhere)}" if everywhere else ""
    reason = f"no {what} {_some(lacking)}" if lacking else reason
    for key in metrics:
        values = [value for value in found[key] if value is not None]
        scores.replace(key, np.mean(values) if values else None, reason)
    return found


def _listed(
    table: Mapping[str, Array], ranked: Mapping[str, list[float | None]], names: list[str]
) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {
        key: [_number(value) for value in column.tolist()] for key, column in table.items()
    }
    columns |= ranked
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    per_class = [{"class": name, **row} for name, row in zip(names, rows, strict=True)]
    never = [row["class"] for row in per_class if row["support"] and not row["predicted"]]
    return {"per_class": per_class, "never_predicted": never}


def _regression(
    predicted: Array, y: Array, interval: tuple[float, float | None] | None
) -> dict[str, Any]:
    from sklearn import metrics

    known = ~np.isnan(y)
    y, predicted = y[known].astype(np.float64), predicted[known].astype(np.float64)
    report: dict[str, Any] = {"task": "regression", "nodes": len(y)}
    if len(y) == 0:
        return {**report, "scores": {}, "notes": {"all": "there are no labelled nodes"}}
    scores = Scores()
    if not np.isfinite(predicted).all():
        reason = "some predicted values are not finite"
        for key in ("r2", "rmse", "mae", "median_absolute_error"):
            scores.replace(key, None, reason)
        return {**report, **scores.record()}
    varies = bool((y != y[0]).any())
    r2 = metrics.r2_score(y, predicted) if varies else None
    scores.replace("r2", r2, "" if varies else "all true values are equal")
    scores["rmse"] = math.sqrt(metrics.mean_squared_error(y, predicted))
    scores["mae"] = metrics.mean_absolute_error(y, predicted)
    scores["median_absolute_error"] = metrics.median_absolute_error(y, predicted)
    report |= scores.record()
    if interval is not None and interval[1] is not None:
        level, half_width = interval
        inside = np.abs(y - predicted) <= half_width
        report["coverage"] = {
            "level": level,
            "half_width": half_width,
            "share": inside.mean().item(),
        }
    return report


class Scores(dict[str, Any]):
    """Scores by name, and notes on those that cannot be computed, or not of all classes."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def replace(self, key: str, value: float | None, reason: str) -> None:
        """Sets a score, with the reason why it is ``None`` or lacks something."""
        self[key] = value
        self.notes.pop(key, None)
        if reason:
            self.notes[key] = reason

    def record(self) -> dict[str, Any]:
        for key, value in self.items():
            if value is not None and not math.isfinite(value):
                self.replace(key, None, "it is not finite")
        scores = {key: _number(value) for key, value in self.items()}
        return {"scores": scores, "notes": self.notes}


def _number(value: Any) -> Any:
    """As JSON can hold it: NaN becomes ``None``."""
    if value is None or isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else None


def _some(names: list[str]) -> str:
    """The first few names."""
    more = len(names) - NAMES_IN_REASON
    shown = ", ".join(repr(name) for name in names[:NAMES_IN_REASON])
    return shown if more <= 0 else f"{shown} and {more} more"
