"""The trained members of a portfolio, with what they predict for validation and test nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.graph import Graph
from lgcn.nn.whole_graph import predict
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Part, as_scores, calibrated
from lgcn.training.portfolio.entries import Entry
from lgcn.training.portfolio.selection import Rank
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings


@dataclass(frozen=True)
class Candidate:
    """A trained member.

    Args:
        entry: Its row of the leaderboard.
        settings: Its settings.
        model: The model, on the CPU.
        spec: What it was built for.
        record: The record of its training.
        scores: Its scores of the nodes of `HeldOut.graph`.
        history: The losses and scores of its epochs.
    """

    entry: Entry
    settings: Settings
    model: Module
    spec: ModelSpec
    record: dict[str, Any]
    scores: Tensor
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def temperature(self) -> float:
        found: float = self.record.get("temperature", 1.0)
        return found

    def part(self, weight: float, graph: Graph) -> Part:
        """The member of an ensemble, with the settings that it has on the graph."""
        settings = self.settings.resolve(graph)
        name, temperature = self.entry.name, self.temperature
        return Part(name, self.model, self.spec, weight, temperature, settings, self.record)


class HeldOut:
    """The validation and test nodes of a graph, on which members are compared.

    Args:
        graph: The graph of the training.
        settings: Those of the portfolio, with the metric.
    """

    def __init__(self, graph: Graph, settings: Settings) -> None:
        assert graph.y is not None
        assert graph.val_mask is not None
        masks = [mask for mask in (graph.val_mask, graph.test_mask) if mask is not None]
        self.nodes = torch.stack([mask.cpu() for mask in masks]).any(0).nonzero().squeeze(1)
        self.whole = graph
        rows = self.nodes
        self.graph = Graph(  # without edges: only labels and masks are read
            torch.zeros(len(rows) + 1, dtype=torch.long),
            torch.zeros(0, dtype=torch.long),
            y=graph.y.cpu()[rows],
            val_mask=graph.val_mask.cpu()[rows],
            test_mask=None if graph.test_mask is None else graph.test_mask.cpu()[rows],
            label_names=graph.label_names,
            name=graph.name,
        )
        self.spec = ModelSpec.of(graph)
        self.task = self.spec.task
        self.scoring = Scoring.of(settings, self.spec)

    @property
    def greater_is_better(self) -> bool:
        """The direction of the metric."""
        return self.scoring.greater_is_better

    def scores(self, model: Module, spec: ModelSpec) -> Tensor:
        """What a model gives these nodes."""
        return predict(model, spec.prepare(self.whole))[self.nodes].detach().float().cpu()

    def validation(self, candidate: Candidate) -> Tensor:
        """The calibrated probabilities, or values, of the validation nodes."""
        assert self.graph.val_mask is not None
        scores = candidate.scores[self.graph.val_mask]
        return calibrated(scores, self.task, candidate.temperature)

    @property
    def y(self) -> Tensor:
        """The labels of the validation nodes."""
        assert self.graph.y is not None
        assert self.graph.val_mask is not None
        return self.graph.y[self.graph.val_mask]

    def judge(self, predictions: Tensor, y: Tensor) -> Rank:
        """Ranks predictions by the metric, then by the loss."""
        scores = as_scores(predictions, self.task)
        score = self.scoring.tuned(scores, y).score(scores, y)
        if score is None:
            return None
        sign = 1 if self.greater_is_better else -1
        return sign * score, -self.scoring.loss(scores, y)
