"""What ``metrics.json`` of a run folder holds: how good the model is, and what the graph adds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lgcn.errors import one_line
from lgcn.training.metric_names import FACTS, metric_text
from lgcn.training.score_report import score_of

if TYPE_CHECKING:
    from lgcn.graph import Graph
    from lgcn.training.evaluation import Scored
    from lgcn.training.scoring import Scoring
    from lgcn.training.settings import Settings

FORMAT = 1
NAMES_LISTED = 5
SPLIT_NAMES = {"train": "training", "val": "validation", "test": "test"}


def run_metrics(
    graph: Graph | None,
    settings: Settings,
    scored: Scored,
    scoring: Scoring,
    interval: tuple[float, float | None] | None = None,
) -> dict[str, Any]:
    """The metrics of a trained model on validation and test nodes, beside simple models.

    Warns of classes that are never predicted, and of a model that is no better than the majority
    class.

    ==============  ==============================================================================
    ``metric``      name of the metric that was chosen
    ``unit``        what has labels: ``"node"`` or ``"graph"``
    ``splits``      the report of each split, see `lgcn.training.score_report`
    ``baselines``   see `lgcn.training.simple_models`; ``None`` if they were not computed
    ``summary``     what the graph adds, in one sentence; ``None`` without baselines
    ``warnings``    what the user should know
    ==============  ==============================================================================

    Args:
        graph: The graph of the training, without structural features; `None` if no process has
            the whole graph, and so no baselines.
        settings: The settings. ``baselines`` says whether to train the simple models.
        scored: The outputs of all nodes that are scored.
        scoring: How outputs become predictions: temperature and threshold are numbers.
        interval: For a regression, level and half width of the interval. (default: none)
    """
    from lgcn.training.split_reports import split_reports

    splits = split_reports(scored, ("val", "test"), scoring, interval)
    baselines = None
    if graph is not None and settings.evaluation.baselines:
        baselines = _baselines(graph, settings, scoring)
    found: dict[str, Any] = {
        "format": FORMAT,
        "metric": scoring.metric,
        "unit": scoring.spec.unit,
        "splits": splits,
        "baselines": baselines,
    }
    found["summary"] = graph_adds(found)
    found["warnings"] = [*never_predicted(splits, scoring.spec.unit), *_no_better(found)]
    for text in found["warnings"]:
        warnings.warn(text, stacklevel=3)
    return found


def _baselines(graph: Graph, settings: Settings, scoring: Scoring) -> dict[str, Any] | None:
    """The simple models. The run is kept even if they fail, or if the user stops them."""
    from lgcn.training.scoring import Scoring
    from lgcn.training.simple_models import simple_models
    from lgcn.training.weights import loss_weight

    try:
        return simple_models(
            graph,
            scoring.metric,
            seed=settings.seed,
            weight=loss_weight(graph, settings.optimisation.class_weight),
            tune=Scoring.of(settings, scoring.spec).threshold == "tuned",
            unit=scoring.spec.unit,
        )
    except KeyboardInterrupt:
        warnings.warn("stopped before the baselines were complete; the run is saved", stacklevel=4)
    except Exception as error:  # whatever goes wrong, the trained model must not get lost
        warnings.warn(f"the baselines could not be computed: {one_line(error)}", stacklevel=4)
    return None


def never_predicted(splits: Mapping[str, Any], unit: str = "node") -> list[str]:
    """A warning for the classes that have nodes, but are never predicted.

    It looks at the test nodes if there are any, else at the validation nodes.

    Args:
        splits: The reports of the splits.
        unit: What has labels. (default: ``"node"``)
    """
    split = main_split(splits)
    if split is None or not splits[split].get("never_predicted"):
        return []
    names = splits[split]["never_predicted"]
    shown = ", ".join(repr(name) for name in names[:NAMES_LISTED])
    more = f" and {len(names) - NAMES_LISTED} more" if len(names) > NAMES_LISTED else ""
    kind = "label" if splits[split]["task"] == "multilabel" else "class"
    kind = kind if len(names) == 1 else {"label": "labels", "class": "classes"}[kind]
    nodes = sum(row["support"] for row in splits[split]["per_class"] if row["class"] in set(names))
    return [
        f"the {kind} {shown}{more} {'is' if len(names) == 1 else 'are'} never predicted, but "
        f"{nodes} {SPLIT_NAMES[split]} {unit}s have {'it' if len(names) == 1 else 'them'}"
    ]


def main_split(splits: Mapping[str, Any]) -> str | None:
    """The split that counts: test nodes if there are any, else validation nodes."""
    return next((name for name in ("test", "val", "train") if name in splits), None)


def graph_adds(metrics: Mapping[str, Any]) -> str | None:
    """What the graph adds to the features alone, in one sentence."""
    compared = _compared(metrics, "features") or _compared(metrics, "majority")
    if compared is None:
        return None
    ours, theirs, other, split = compared
    metric = metrics["metric"]
    facts = FACTS[metric]
    alone = bool(metrics["baselines"]["features"])
    unit = metrics.get("unit", "node")  # metrics of earlier versions have none
    subject, what = "The model", "the baseline"
    if alone and unit == "graph":
        what = "sizes and mean features"
    elif alone:
        subject, what = "The graph", "the features alone"
    if facts.is_share:
        size = f"{100 * abs(ours - theirs):.1f} points of {metric}"
        shown = f"{100 * ours:.1f} against {100 * theirs:.1f}"
    else:
        size = f"{metric_text(metric, abs(ours - theirs))} of {metric}"
        shown = f"{metric_text(metric, ours)} against {metric_text(metric, theirs)}"
    details = f"({shown}, {other}; {SPLIT_NAMES[split]} {unit}s)"
    if size.startswith(("0.0 ", "0.000 ")):
        return f"{subject} adds nothing in {metric} to {what} {details}."
    if (ours > theirs) == facts.greater_is_better:
        text = f"{subject} {'adds' if facts.greater_is_better else 'saves'} {size} over {what}"
    else:
        text = f"{subject} costs {size} against {what}"
    return f"{text} {details}{_noise(metrics, ours, theirs, split)}."


def _noise(metrics: Mapping[str, Any], ours: float, theirs: float, split: str) -> str:
    """Says if a difference in accuracy is within the standard error."""
    if metrics["metric"] != "accuracy":
        return ""
    nodes = metrics["splits"][split]["nodes"]
    error = math.sqrt((ours * (1 - ours) + theirs * (1 - theirs)) / nodes)
    unit = metrics.get("unit", "node")
    return f", within the standard error of {nodes} {unit}s" if abs(ours - theirs) < error else ""


def _no_better(metrics: Mapping[str, Any]) -> list[str]:
    """A warning if the model is no better than the majority class or the mean."""
    compared = _compared(metrics, "majority")
    if compared is None:
        return []
    ours, theirs, other, split = compared
    metric = metrics["metric"]
    if ours > theirs if FACTS[metric].greater_is_better else ours < theirs:
        return []
    return [
        f"the model is no better than the {other}: {metric} is {metric_text(metric, ours)} against "
        f"{metric_text(metric, theirs)} on {SPLIT_NAMES[split]} {metrics.get('unit', 'node')}s"
    ]


def _compared(metrics: Mapping[str, Any], name: str) -> tuple[float, float, str, str] | None:
    """The scores of the model and of a baseline, the baseline's name, and the split."""
    baseline = (metrics["baselines"] or {}).get(name)
    split = main_split(metrics["splits"])
    if baseline is None or split is None or not baseline.get(split):
        return None
    ours = score_of(metrics["splits"][split]["scores"], metrics["metric"])
    theirs = score_of(baseline[split], metrics["metric"])
    if ours is None or theirs is None:
        return None
    return ours, theirs, baseline["name"], split
