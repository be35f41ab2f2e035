"""The scores of a trained model on a graph, in detail."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.graph import SPLITS, Graph
from lgcn.nn.whole_graph import forward
from lgcn.training.evaluation import split_scores
from lgcn.training.run_metrics import graph_adds, never_predicted
from lgcn.training.split_reports import split_reports

if TYPE_CHECKING:
    from torch.nn import Module

    from lgcn.training.scoring import Scoring


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model on a graph.

    Args:
        graph: Name of the graph.
        metric: Name of the score.
        splits: For each split with labelled nodes: `nodes`, `score`, `loss`, and the parts of
            `lgcn.training.score_report.score_report`: `scores`, `per_class`, `confusion_matrix`
            and more.
        baselines: On the graph of the training, the scores of simple models, see
            `lgcn.training.simple_models.simple_models`. (default: none)
        summary: What the graph adds to the features alone, in one sentence. (default: none)
        warnings: What the user should know. (default: nothing)
    """

    graph: str
    metric: str
    splits: dict[str, dict[str, Any]]
    baselines: dict[str, Any] | None = None
    summary: str | None = None
    warnings: tuple[str, ...] = ()


def evaluate_graph(
    model: Module,
    graph: Graph,
    scoring: Scoring,
    interval: tuple[float, float | None] | None = None,
    baselines: dict[str, Any] | None = None,
) -> Evaluation:
    """Scores a model on the labelled nodes of a graph; warns of classes never predicted.

    Args:
        model: The model.
        graph: The graph, with labels and masks.
        scoring: How outputs become predictions.
        interval: For a regression, level and half width of the interval. (default: none)
        baselines: Scores of simple models on the same nodes. (default: none)
    """
    scored = [(part, forward(model, part)) for part in graph.separate()]
    scores = split_scores(scored, SPLITS, scoring)
    if not scores:
        raise UsageError(f"{graph.name} has no labelled nodes to score")
    reports = split_reports(scored, SPLITS, scoring, interval)
    warned = tuple(never_predicted(reports))
    for text in warned:
        warnings.warn(text, stacklevel=3)
    compared = {"splits": reports, "metric": scoring.metric, "baselines": baselines}
    splits = {split: {**reports[split], **part} for split, part in scores.items()}
    summary = graph_adds(compared)
    return Evaluation(graph.name, scoring.metric, splits, baselines, summary, warned)
