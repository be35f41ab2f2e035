"""The scores of a trained model on a graph, in detail."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.graph import SPLITS, Graph
from lgcn.nn.whole_graph import forward
from lgcn.training.evaluation import split_scores
from lgcn.training.run_metrics import graph_adds, never_predicted
from lgcn.training.scoring import Scoring
from lgcn.training.split_reports import split_reports

if TYPE_CHECKING:
    from torch.nn import Module

    from lgcn.inference.trained_run import TrainedRun
    from lgcn.training.evaluation import Scored


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
        unit: What has labels: `"node"` or `"graph"`. (default: `"node"`)
    """

    graph: str
    metric: str
    splits: dict[str, dict[str, Any]]
    baselines: dict[str, Any] | None = None
    summary: str | None = None
    warnings: tuple[str, ...] = ()
    unit: str = "node"


def scoring_of(run: TrainedRun) -> Scoring:
    """How the scores of a run are measured: the metric, with its temperature and threshold."""
    found = Scoring.of(run.settings, run.spec)
    return replace(found, threshold=run.threshold, temperature=run.temperature)


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
    return evaluate_scored(scored, graph.name, scoring, interval, baselines)


def evaluate_scored(
    scored: Scored,
    name: str,
    scoring: Scoring,
    interval: tuple[float, float | None] | None = None,
    baselines: dict[str, Any] | None = None,
) -> Evaluation:
    """The same, of graphs whose nodes have scores already.

    Args:
        scored: The graphs, with labels and masks, and their scores.
        name: The name of all of them together.
        scoring, interval, baselines: See `evaluate_graph`.
    """
    scores = split_scores(scored, SPLITS, scoring)
    if not scores:
        raise UsageError(f"{name} has no labelled {scoring.spec.unit}s to score")
    reports = split_reports(scored, SPLITS, scoring, interval)
    unit = scoring.spec.unit
    warned = tuple(never_predicted(reports, unit))
    for text in warned:
        warnings.warn(text, stacklevel=4)
    compared: dict[str, Any] = {"splits": reports, "metric": scoring.metric, "baselines": baselines}
    compared["unit"] = unit
    splits = {split: {**reports[split], **part} for split, part in scores.items()}
    summary = graph_adds(compared)
    return Evaluation(name, scoring.metric, splits, baselines, summary, warned, unit)
