"""What a classifier makes of labels and of a network's outputs, for nodes and for whole graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor

from lgcn.estimator.inputs import Array
from lgcn.estimator.saved import read_classes
from lgcn.estimator.targets import Targets, graph_targets, read_targets
from lgcn.estimator.weights import name_class_weight
from lgcn.graph import Graph
from lgcn.training.calibration import decide, probabilities

if TYPE_CHECKING:
    from lgcn.inference import TrainedRun
    from lgcn.training import ModelSpec, Settings


class ClassOutputs:
    """The part of a classifier that knows classes."""

    class_weight: Any
    classes_: Array
    label_names_: tuple[str, ...]
    multi_label_: bool
    result_: dict[str, Any]
    temperature_: float
    threshold_: float | None
    _spec: ModelSpec

    _tasks = ("classification", "multilabel")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_label = True
        return tags

    def _read_y(self, y: Any, fitted: bool) -> Targets:
        return read_targets(y, self.classes_ if fitted else None)

    def _targets_of(self, graph: Graph, fitted: bool) -> Targets:
        return graph_targets(graph, self.classes_ if fitted else None)

    def _with_targets(self, graph: Graph, targets: Targets) -> Graph:
        names = graph.label_names if targets.y.ndim == 2 else None
        if names is None or len(names) != len(targets.classes):
            names = tuple(str(label) for label in targets.classes.tolist())
        return replace(graph, y=torch.from_numpy(targets.y), label_names=names)

    def _for_targets(self, settings: Settings, targets: Targets, graph: Graph) -> Settings:
        assert graph.label_names is not None
        weights = name_class_weight(self.class_weight, targets.classes, graph.label_names)
        return settings if weights is None else settings.replace(class_weight=weights)

    def _keep(self, targets: Targets) -> None:
        self.classes_ = targets.classes
        self.multi_label_ = self._spec.multi_label
        self.label_names_ = self._spec.class_names
        self.temperature_ = self.result_["temperature"]
        self.threshold_ = self.result_["threshold"]

    def _restore(self, run: TrainedRun) -> None:
        self.multi_label_ = run.spec.multi_label
        self.label_names_ = run.class_names
        self.temperature_ = run.temperature
        two_classes = run.spec.num_classes == 2 and not run.spec.multi_label
        self.threshold_ = run.threshold if two_classes else None
        if self.multi_label_:
            self.classes_ = np.arange(run.spec.num_classes)
        else:
            self.classes_ = np.array(run.class_names)

    def _to_json(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        return {"classes": {"type": type(classes[0]).__name__, "values": classes}}

    @classmethod
    def _from_json(cls, stored: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
        return {"classes_": read_classes(stored["classes"], spec.num_classes)}

    def _chances(self, logits: Tensor) -> Tensor:
        """The calibrated probabilities."""
        return probabilities(logits, self.multi_label_, self.temperature_)

    def _classes_of(self, logits: Tensor) -> Array:
        chances = self._chances(logits)
        found: Array
        if self.multi_label_:
            found = (chances > 0.5).long().cpu().numpy()
        else:
            found = self.classes_[decide(chances, self.threshold_).cpu().numpy()]
        return found

    def _decision_scores(self, logits: Tensor) -> Array:
        """The calibrated log-odds; of two classes, minus those of the threshold."""
        scores = (logits.double() / self.temperature_).cpu().numpy()
        if not self.multi_label_ and scores.shape[1] == 2:
            threshold = 0.5 if self.threshold_ is None else self.threshold_
            odds = scores[:, 1] - scores[:, 0] - np.clip(logit(threshold), -100, 100)
            # The sign is that of predict, whatever the rounding.
            second = self._classes_of(logits) == self.classes_[1]
            size = np.maximum(np.abs(odds), np.finfo(np.float32).tiny)
            scores = np.where(second, size, -size)
        found: Array = scores.astype(np.float32)
        return found

    def _names_in_tables(self) -> Any:
        """The classes as tables of predictions show them."""
        return self.label_names_ if self.multi_label_ else self.classes_.tolist()

    def _explained_as(self) -> dict[str, Any]:
        """What `explain` needs to know of the outputs."""
        names = self.label_names_ if self.multi_label_ else map(str, self.classes_.tolist())
        return {
            "spec": replace(self._spec, label_names=tuple(names)),
            "temperature": self.temperature_,
            "threshold": self.threshold_,
        }
