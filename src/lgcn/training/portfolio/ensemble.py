"""A weighted average of trained models, which is a model itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.layerwise import layerwise
from lgcn.nn.lgcn import LGCN
from lgcn.nn.rows import RowModel
from lgcn.nn.whole_graph import embed, predict
from lgcn.training.calibration import probabilities
from lgcn.training.model_spec import ModelSpec
from lgcn.training.settings import Settings
from lgcn.utils.progress import OnProgress

TINY = 1e-7  # the smallest probability whose logarithm is taken


@dataclass(frozen=True)
class Part:
    """A model of an ensemble.

    Args:
        name: Its name.
        model: The model, in evaluation mode.
        spec: What it was built for; it may add features to a graph.
        weight: Its share.
        temperature: The softmax temperature that calibrates it.
        settings: Its settings, with all automatic choices made; `None` if it was read from a file.
        record: The record of its training.
    """

    name: str
    model: Module
    spec: ModelSpec
    weight: float
    temperature: float = 1.0
    settings: Settings | None = None
    record: dict[str, Any] = field(default_factory=dict)


class Ensemble(Module):
    """Averages the calibrated probabilities of several models, or their values for a regression.

    It takes graphs as the user gives them; each model adds its own features. The outputs are
    logarithms of probabilities, or of their odds if a node can have several labels, so they are
    used as the scores of a single model are.

    Args:
        parts: The models.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__()
        if not parts:
            raise ValueError("an ensemble needs at least one model")
        self.parts = tuple(parts)
        self.models = ModuleList(part.model for part in parts)

    @property
    def task(self) -> str:
        """What is predicted, see `lgcn.Graph.task`."""
        return self.parts[0].spec.task

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Scores every node."""
        return self.of_graph(replace(graph, x=x, feature_scale=None))

    def of_graph(
        self,
        graph: Graph,
        *,
        layer: int | None = None,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Tensor:
        """The scores of every node of a graph, or embeddings by the best model that has some.

        Args:
            graph: The graph, as the user gives it.
            layer: The layer of the embeddings, see `lgcn.LGCN.embed`. (default: the scores)
            memory, on_progress: See `lgcn.nn.layerwise.layerwise`. (default: no limit)
        """
        if layer is not None:
            part = self.embedding_part
            return embed(part.model, part.spec.prepare(graph), layer)
        options: dict[str, Any] = {"memory": memory, "on_progress": on_progress}
        average = Average(self.task)
        for part in self.parts:
            prepared = part.spec.prepare(graph)
            if memory is not None and isinstance(part.model, RowModel):
                scores = layerwise(part.model, prepared, **options)
            else:
                scores = predict(part.model, prepared)
            average.add(scores, part.weight, part.temperature)
        return average.scores().to(graph.rowptr.device)

    @property
    def embedding_part(self) -> Part:
        """The model that embeddings come from: an LGCN if there is one, else any that has some."""
        able = [part for part in self.parts if hasattr(part.model, "embed")]
        if not able:
            raise UsageError("none of the models of this run has embeddings")
        return max(able, key=lambda part: (isinstance(part.model, LGCN), part.weight))


class Average:
    """Adds up predictions.

    Args:
        task: `"classification"`, `"multilabel"` or `"regression"`.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        self.total: Tensor | None = None
        self.weight = 0.0

    def add(self, scores: Tensor, weight: float, temperature: float = 1.0) -> None:
        """Adds the scores of a model."""
        part = weight * calibrated(scores, self.task, temperature)
        self.total = part if self.total is None else self.total + part
        self.weight += weight

    def scores(self) -> Tensor:
        """The average, as scores before softmax or sigmoid."""
        assert self.total is not None
        return as_scores(self.total / self.weight, self.task)


def calibrated(scores: Tensor, task: str, temperature: float) -> Tensor:
    """Calibrated probabilities; the scores themselves for a regression."""
    scores = scores.detach().float()
    if task == "regression":
        return scores
    return probabilities(scores, task == "multilabel", temperature)


def as_scores(predictions: Tensor, task: str) -> Tensor:
    """Scores whose softmax or sigmoid gives these probabilities."""
    if task == "regression":
        return predictions
    if task == "multilabel":
        return torch.logit(predictions, eps=TINY)
    return predictions.clamp_min(TINY).log()
