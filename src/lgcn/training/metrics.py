"""Losses and scores of nodes with a class, several labels, or a number each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from lgcn.training.calibration import decide, probabilities
from lgcn.training.metric_names import FACTS
from lgcn.utils.choices import Task


def loss(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """Softmax cross-entropy for classes, sigmoid cross-entropy for several labels per node.

    For a regression, whose `y` is a vector of floating-point numbers, the mean squared error.

    Args:
        logits, y: Scores and labels of the nodes; for a regression, predictions [n, 1] and targets.
        weight: Weight of each node in the sum of losses. (default: one over the number of nodes,
            which is the mean)
    """
    if weight is not None:
        return (node_losses(logits, y) * weight).sum()
    if y.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
    if y.is_floating_point():
        return F.mse_loss(logits.squeeze(1), y.to(logits.dtype))
    return F.cross_entropy(logits, y)


def node_losses(logits: Tensor, y: Tensor) -> Tensor:
    """The loss of each node; with several labels, the mean over them."""
    if y.dim() == 1 and y.is_floating_point():
        return (logits.squeeze(1) - y.to(logits.dtype)).square()
    if y.dim() == 2:
        y = y.to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, y, reduction="none").mean(1)
    return F.cross_entropy(logits, y, reduction="none")


def score(logits: Tensor, y: Tensor) -> float:
    """Accuracy for classes, micro-averaged F1 for several labels per node: the default metrics."""
    return micro_f1(logits, y) if y.dim() == 2 else accuracy(logits, y)


def accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of nodes whose highest score is their class."""
    return float((logits.argmax(dim=1) == y).double().mean())


def micro_f1(logits: Tensor, y: Tensor) -> float:
    """F1 over all node-label pairs together; 0 if no label is predicted or true."""
    predicted, true = logits > 0, y > 0.5
    hits = int((predicted & true).sum())
    total = int(predicted.sum()) + int(true.sum())
    return 2 * hits / total if total else 0.0


def label_accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of node-label pairs that are right: the released program's score for PPI.

    The program calls it micro-F1, but predicting no label at all scores about 0.7 on PPI.
    """
    return float(((logits > 0) == (y > 0.5)).double().mean())


@dataclass(frozen=True)
class Metric:
    """A metric, by scikit-learn.

    Call it with `(logits, y, weight=None, threshold=None)`: scores of the nodes before softmax or
    sigmoid (for a regression, predictions in the units of `y`), their labels, a weight per node,
    and the decision threshold for two classes. It is NaN where it is not defined, for example the
    ROC AUC of nodes of one class.

    Attributes:
        name: Its name in `METRICS`.
        compute: The function of these four arguments.
    """

    name: str
    compute: Callable[[Tensor, Tensor, Any, float | None], float]

    def __call__(
        self,
        logits: Tensor,
        y: Tensor,
        weight: Any = None,
        threshold: float | None = None,
    ) -> float:
        return float(self.compute(logits, y, weight, threshold))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks it is for."""
        return FACTS[self.name].tasks

    @property
    def greater_is_better(self) -> bool:
        return FACTS[self.name].greater_is_better

    @property
    def uses_threshold(self) -> bool:
        """Whether it depends on the decision threshold of two classes."""
        return FACTS[self.name].uses_threshold


def predicted_labels(logits: Tensor, y: Tensor, threshold: float | None = None) -> Any:
    """The predicted classes, or a matrix of predicted labels, as an array."""
    if y.dim() == 2:
        return (logits > 0).cpu().numpy()
    if threshold is None or threshold == 0.5:
        return logits.argmax(dim=1).cpu().numpy()
    return decide(probabilities(logits.double(), False), threshold).cpu().numpy()


def _true(y: Tensor) -> Any:
    return (y > 0.5 if y.dim() == 2 else y).cpu().numpy()


def _weights(weight: Any) -> Any:
    if isinstance(weight, Tensor):
        return weight.detach().double().cpu().numpy()
    return None if weight is None else np.asarray(weight, np.float64)


def _accuracy(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    """With several labels per node, the share of nodes whose labels are all right."""
    if weight is None and y.dim() == 1 and threshold in (None, 0.5):
        return accuracy(logits, y)
    from sklearn.metrics import accuracy_score  # takes long to import, here and below

    predicted = predicted_labels(logits, y, threshold)
    return float(accuracy_score(_true(y), predicted, sample_weight=_weights(weight)))


def _micro_f1(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    """With one class per node, the accuracy."""
    if y.dim() == 1:
        return _accuracy(logits, y, weight, threshold)
    if weight is None:
        return micro_f1(logits, y)
    return _f1(logits, y, weight, threshold, "micro")


def _macro_f1(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    """The mean over the classes that occur or are predicted, or over all labels."""
    return _f1(logits, y, weight, threshold, "macro")


def _f1(logits: Tensor, y: Tensor, weight: Any, threshold: float | None, average: str) -> float:
    from sklearn.metrics import f1_score

    predicted = predicted_labels(logits, y, threshold)
    options = {"average": average, "zero_division": 0.0, "sample_weight": _weights(weight)}
    return float(f1_score(_true(y), predicted, **options))


def _balanced_accuracy(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    """The mean recall of the classes that occur."""
    from sklearn.metrics import recall_score

    true = _true(y)  # balanced_accuracy_score would warn of classes that occur only as predictions
    return float(
        recall_score(
            true,
            predicted_labels(logits, y, threshold),
            labels=np.unique(true),
            average="macro",
            sample_weight=_weights(weight),
            zero_division=0.0,
        )
    )


def _one_versus_rest(
    logits: Tensor, y: Tensor, weight: Any, of_class: Callable[..., Any], *, both: bool
) -> float:
    """The mean over the classes or labels that occur; of two classes, that of the second.

    Args:
        logits, y, weight: Those of the nodes.
        of_class: The metric of one class: truth, scores and `sample_weight`.
        both: Whether it needs nodes that are not of the class, too.
    """
    chances = probabilities(logits.double(), y.dim() == 2).cpu().numpy()
    true, weight = _true(y), _weights(weight)
    columns = [1] if y.dim() == 1 and chances.shape[1] == 2 else range(chances.shape[1])
    found = []
    for column in columns:
        positive = true[:, column] if true.ndim == 2 else true == column
        if positive.any() and not (both and positive.all()):
            found.append(of_class(positive, chances[:, column], sample_weight=weight))
    return float(np.mean(found)) if found else float("nan")


def _roc_auc(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    from sklearn.metrics import roc_auc_score

    return _one_versus_rest(logits, y, weight, roc_auc_score, both=True)


def _average_precision(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    from sklearn.metrics import average_precision_score

    return _one_versus_rest(logits, y, weight, average_precision_score, both=False)


def _log_loss(logits: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
    """With several labels per node, the mean over the labels."""
    from sklearn.metrics import log_loss

    chances = probabilities(logits.double(), y.dim() == 2).cpu().numpy()
    true, weight = _true(y), _weights(weight)
    if true.ndim == 2:
        of_label = (
            log_loss(true[:, j], chances[:, j], labels=[False, True], sample_weight=weight)
            for j in range(true.shape[1])
        )
        return float(np.mean(list(of_label)))
    if chances.shape[1] < 2:
        return 0.0
    return float(log_loss(true, chances, labels=range(chances.shape[1]), sample_weight=weight))


def _of_numbers(name: str) -> Callable[[Tensor, Tensor, Any, float | None], float]:
    def compute(values: Tensor, y: Tensor, weight: Any, threshold: float | None) -> float:
        import sklearn.metrics

        if len(y) < 2 and name == "r2_score":
            return float("nan")
        true = y.double().cpu().numpy()
        predicted = values.detach().double().reshape(-1).cpu().numpy()
        return float(
            getattr(sklearn.metrics, name)(true, predicted, sample_weight=_weights(weight))
        )

    return compute


# `roc_auc` and `average_precision` of more than two classes, and of several labels per node, are
# means over the classes that occur, each against the rest.
METRICS: dict[str, Metric] = {
    name: Metric(name, compute)
    for name, compute in {
        "accuracy": _accuracy,
        "balanced_accuracy": _balanced_accuracy,
        "macro_f1": _macro_f1,
        "micro_f1": _micro_f1,
        "roc_auc": _roc_auc,
        "average_precision": _average_precision,
        "log_loss": _log_loss,
        "r2": _of_numbers("r2_score"),
        "rmse": _of_numbers("root_mean_squared_error"),
        "mae": _of_numbers("mean_absolute_error"),
    }.items()
}


@dataclass
class Tally:
    """Loss and default scores of many nodes, added up block by block."""

    nodes: int = 0
    loss: float = 0.0
    hits: int = 0
    marked: int = 0  # node-label pairs that are predicted, plus those that are true
    right: float | None = None

    def add(self, logits: Tensor, y: Tensor) -> None:
        """Adds a block of nodes, which may be empty."""
        if len(y) == 0:
            return
        self.nodes += len(y)
        self.loss += len(y) * float(loss(logits, y))
        if y.dim() == 1:
            # With one class and one prediction per node, F1 is the accuracy.
            self.hits += int((logits.argmax(dim=1) == y).sum())
            self.marked += 2 * len(y)
            return
        predicted, true = logits > 0, y > 0.5
        self.hits += int((predicted & true).sum())
        self.marked += int(predicted.sum()) + int(true.sum())
        self.right = (self.right or 0) + len(y) * label_accuracy(logits, y)

    def scores(self) -> dict[str, float]:
        """Loss and scores of all blocks, as `lgcn.training.evaluate` gives them per split."""
        found = {
            "nodes": self.nodes,
            "loss": self.loss / self.nodes,
            "score": 2 * self.hits / self.marked if self.marked else 0.0,
        }
        if self.right is not None:
            found["label_accuracy"] = self.right / self.nodes
        return found
