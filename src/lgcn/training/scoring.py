"""How nodes are scored: the metric, and how the outputs of a network become predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from lgcn.errors import UsageError
from lgcn.training import metrics
from lgcn.training.calibration import probabilities
from lgcn.training.metric_names import FACTS, default_metric, metric_for
from lgcn.training.model_spec import ModelSpec

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.training.settings import Settings


@dataclass(frozen=True)
class Scoring:
    """How nodes are scored.

    Args:
        spec: What the model was built for.
        metric: Name of the metric.
        threshold: For two classes, the calibrated probability from which on the second is
            predicted, or ``"tuned"``: the one that is best on the validation nodes.
            (default: the most likely class)
        temperature: Softmax temperature. (default: 1)
    """

    spec: ModelSpec
    metric: str
    threshold: float | Literal["tuned"] | None = None
    temperature: float = 1.0

    @classmethod
    def of(cls, settings: Settings, spec: ModelSpec) -> Scoring:
        """The scoring that the settings ask for; raises UsageError if it does not fit the task."""
        asked = settings.evaluation
        metric = metric_for(asked.metric, spec.task)
        tunable = FACTS[metric].uses_threshold
        two_classes = spec.task == "classification" and spec.num_classes == 2
        if asked.threshold == "auto":
            tuned = two_classes and tunable and asked.metric != "auto"
            return cls(spec, metric, "tuned" if tuned else None)
        if not two_classes:
            found = "a regression" if spec.task == "regression" else f"{spec.num_classes} classes"
            if spec.multi_label:
                found = "several labels per node"
            raise UsageError(f"threshold={asked.threshold} is for two classes, got {found}")
        if asked.threshold == "tuned" and not tunable:
            names = ", ".join(name for name in FACTS if FACTS[name].uses_threshold)
            raise UsageError(
                f"threshold=tuned needs a metric that depends on it ({names}), got metric={metric}"
            )
        return cls(spec, metric, asked.threshold)

    @classmethod
    def default(cls, graph: Any) -> Scoring:
        """The default metric of a graph's task, for outputs in the units of its labels."""
        spec = ModelSpec(graph.num_features, graph.num_outputs, graph.task)
        return cls(spec, default_metric(graph.task))

    @property
    def greater_is_better(self) -> bool:
        return FACTS[self.metric].greater_is_better

    @property
    def is_default(self) -> bool:
        """Whether it is the default of the labels' kind, which can be added up block by block."""
        argmax = self.threshold is None or self.threshold == 0.5
        labels = self.spec.task != "regression"
        return labels and argmax and self.metric == default_metric(self.spec.task)

    def tuned(self, logits: Tensor, y: Tensor) -> Scoring:
        """The scoring with the threshold that is best on these nodes, if it is to be tuned."""
        if self.threshold != "tuned":
            return self
        chances = probabilities(logits.double(), False, self.temperature)[:, 1]
        found = best_threshold(self.metric, chances.cpu().numpy(), y.cpu().numpy())
        return replace(self, threshold=found)

    def loss(self, logits: Tensor, y: Tensor) -> float:
        """The loss without weights; for a regression, in units of the standardised target."""
        if self.spec.task == "regression":
            wrong = (self.spec.values(logits) - y.double()) / self.spec.target_scale
            return float(wrong.square().mean())
        return float(metrics.loss(logits, y))

    def score(self, logits: Tensor, y: Tensor) -> float | None:
        """The metric; ``None`` if it is not defined for these nodes."""
        if self.spec.task == "regression":
            logits = self.spec.values(logits)
        elif self.temperature != 1:
            logits = logits / self.temperature
        threshold = None if self.threshold == "tuned" else self.threshold
        value = metrics.METRICS[self.metric](logits, y, None, threshold)
        return None if np.isnan(value) else value


def best_threshold(metric: str, chances: Any, y: Any) -> float:
    """The decision threshold at which a metric of two classes is highest.

    It lies halfway between two neighbouring probabilities. Of several that are equally good, the
    one nearest to 0.5 is taken; with nodes of one class only, 0.5.

    Args:
        metric: A metric that depends on the threshold.
        chances: Probabilities of the second class.
        y: Classes, 0 and 1.
    """
    order = np.argsort(chances, kind="stable")
    chances, positive = chances[order], y[order] == 1
    number, positives = len(y), int(positive.sum())
    if positives in (0, number):
        return 0.5
    levels = np.concatenate([[0.0], np.unique(chances), [1.0]])
    thresholds = np.append((levels[:-1] + levels[1:]) / 2, 0.5)
    cuts = np.searchsorted(chances, thresholds)  # nodes below the threshold
    missed = np.concatenate([[0], np.cumsum(positive)])[cuts]  # positives below the threshold
    hits, rejected = positives - missed, cuts - missed
    scores = _OF_COUNTS[metric](hits, rejected, positives, number - positives)
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    return float(thresholds[best[np.abs(thresholds[best] - 0.5).argmin()]])


def _accuracy(hits: Any, rejected: Any, positives: int, negatives: int) -> Any:
    return (hits + rejected) / (positives + negatives)


def _balanced_accuracy(hits: Any, rejected: Any, positives: int, negatives: int) -> Any:
    return (hits / positives + rejected / negatives) / 2


def _macro_f1(hits: Any, rejected: Any, positives: int, negatives: int) -> Any:
    wrong = positives - hits + negatives - rejected
    return (2 * hits / (2 * hits + wrong) + 2 * rejected / (2 * rejected + wrong)) / 2


# From the right predictions of each class, and the number of nodes of each.
_OF_COUNTS: dict[str, Callable[[Any, Any, int, int], Any]] = {
    "accuracy": _accuracy,
    "micro_f1": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "macro_f1": _macro_f1,
}


def conformal_half_width(residuals: Tensor, level: float) -> float | None:
    """Half the width of an interval around predictions that holds new targets with a probability.

    Split conformal prediction, ["Distribution-Free Predictive Inference for
    Regression"](https://arxiv.org/abs/1604.04173): of n absolute residuals, the one of rank
    ceil((n + 1) level). ``None`` if n is too small for that rank.

    Args:
        residuals: Targets minus predictions, of nodes that the model was not trained on.
        level: The probability, below 1.
    """
    number = len(residuals)
    rank = int(np.ceil((number + 1) * level - 1e-9))
    if rank > number:
        return None
    return float(torch.sort(residuals.detach().double().abs()).values[rank - 1])
