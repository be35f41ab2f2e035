"""The first parts of a report: the summary with all scores, and the learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lgcn.graph import Graph
from lgcn.graph.structural import is_symmetric
from lgcn.report import charts
from lgcn.report.facts import Facts
from lgcn.report.figures import Figures, absent, cards, percent, section, side_by_side
from lgcn.report.html import Html, join, name, table, tag
from lgcn.report.members import listed, members, tried
from lgcn.report.names import count_of, plain_number, shown_name
from lgcn.training.metric_names import FACTS, metric_text
from lgcn.training.score_report import score_of

MAX_COUNTED = 20_000_000  # entries of an adjacency that is checked for being undirected
SPLIT_NAMES = {"train": "training", "val": "validation", "test": "test"}
METRIC_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "median_absolute_error": "median absolute error",
}


def metric_name(metric: str, task: str = "classification") -> str:
    if metric == "accuracy" and task == "multilabel":
        return "exact match"
    return METRIC_NAMES.get(metric, metric)


def score_text(metric: str, value: float | None) -> str:
    return metric_text("mae" if metric == "median_absolute_error" else metric, value)


def summary(facts: Facts) -> Html:
    """What was predicted, how well, and what the graph adds."""
    main = facts.main
    if main is None:
        what = "graph has" if facts.graphs is None else "set has"
        reason = absent(f"The {what} no labelled {facts.units}, so nothing can be scored.")
        return section("summary", "Summary", tag("p", _predicts(facts)), reason)
    report = facts.reports[main]
    ours = score_of(report["scores"], facts.metric)
    what = metric_name(facts.metric, facts.task)
    items: list[tuple[Any, Any, Any]] = [
        (
            f"{what}, {SPLIT_NAMES[main]} {facts.units}",
            score_text(facts.metric, ours),
            f"{report['nodes']:,} {facts.units}",
        )
    ]
    for title, kind, scores in _baseline_scores(facts):
        theirs = score_of(scores, facts.metric)
        if facts.task == "regression":
            title = f"{title} ({what})"
        items.append((title, score_text(facts.metric, theirs), shown_name(kind)))
    return section(
        "summary",
        "Summary",
        tag("p", _predicts(facts)),
        cards(items),
        tag("p", shown_text(facts.summary), class_="adds") if facts.summary is not None else None,
        [
            tag("p", tag("strong", "Warning: "), shown_text(text), class_="warning")
            for text in facts.warnings
        ],
        absent(facts.baselines) if isinstance(facts.baselines, str) else None,
        _all_scores(facts),
        _notes(report),
        _limits(facts),
    )


def shown_text(text: str) -> str:
    """A sentence of a run folder, which anyone may have written."""
    from lgcn.utils.visible_text import visible

    return visible(text)


def _predicts(facts: Facts) -> Html:
    graph, count = facts.graph, len(facts.run.class_names)
    kind = {
        "classification": f"one of {count} classes",
        "multilabel": f"which of {count} labels it has",
        "regression": "a number",
    }[facts.task]
    splits = ", ".join(
        f"{report['nodes']:,} {SPLIT_NAMES[split]}" for split, report in facts.reports.items()
    )
    return join(
        f"The model predicts for each {facts.unit} of ",
        tag("strong", name(shown_name(graph.name))),
        f" {kind}. {_size(facts)} Labelled {facts.units}: {splits or 'none'}.",
    )


def _size(facts: Facts) -> str:
    """How large the graph is, or the set of graphs."""
    if facts.graphs is None:
        graph = facts.graph
        return f"The graph has {graph.num_nodes:,} nodes and {edges_text(graph)}."
    sizes = facts.graphs.sizes
    mean = float(sizes.double().mean()) if len(sizes) else 0.0
    return (
        f"The set has {count_of(len(sizes), 'graph')} of {mean:,.1f} nodes on average, "
        f"{int(sizes.max()) if len(sizes) else 0:,} at most, and "
        f"{edges_text(facts.graphs.graph)} in all."
    )


def edges_text(graph: Graph) -> str:
    """How many edges a graph has."""
    if graph.num_edges > MAX_COUNTED:
        return f"{graph.num_edges:,} adjacency entries (an undirected edge is two)"
    if not is_symmetric(graph):
        return count_of(graph.num_edges, "directed edge")
    row = np.repeat(np.arange(graph.num_nodes), graph.rowptr.diff().numpy())
    loops = int((graph.col.numpy() == row).sum())
    return count_of((graph.num_edges - loops) // 2 + loops, "edge")


def _simplest(facts: Facts) -> str:
    return "predicting the mean" if facts.task == "regression" else "majority class"


def _baseline_scores(facts: Facts) -> list[tuple[str, str, Mapping[str, Any]]]:
    """What each baseline is called, its model, and its scores on the main split."""
    if isinstance(facts.baselines, str) or facts.main is None:
        return []
    found = []
    alone = "without the graph" if facts.graphs is None else "sizes and mean features"
    for key, title in (("features", alone), ("majority", _simplest(facts))):
        baseline = facts.baselines.get(key)
        if baseline and isinstance(baseline.get(facts.main), Mapping):
            found.append((title, baseline["name"], baseline[facts.main]))
    return found


def _limits(facts: Facts) -> Html | None:
    if isinstance(facts.baselines, str) or not facts.baselines["limits"]:
        return None
    return absent(f"Limits of the baselines: {shown_text('; '.join(facts.baselines['limits']))}.")


def _all_scores(facts: Facts) -> Html:
    main = facts.main
    assert main is not None
    columns: list[tuple[str, Mapping[str, Any]]] = [
        (SPLIT_NAMES[split], report["scores"]) for split, report in facts.reports.items()
    ]
    columns += [
        (f"{title} ({SPLIT_NAMES[main]})", scores) for title, _, scores in _baseline_scores(facts)
    ]
    rows = [
        [
            metric_name(metric, facts.task),
            *(score_text(metric, part.get(metric)) for _, part in columns),
        ]
        for metric in facts.reports[main]["scores"]
    ]
    content = table(
        ["metric", *(title for title, _ in columns)],
        rows,
        caption="All scores by split, and of the baselines",
        numbers=range(1, len(columns) + 1),
        hide_caption=True,
    )
    return tag("details", tag("summary", "All scores"), content)


def _notes(report: Mapping[str, Any]) -> list[Html]:
    notes: Mapping[str, str] = report.get("notes", {})
    return [absent(f"{metric_name(metric)}: {shown_text(text)}.") for metric, text in notes.items()]


def curves(facts: Facts, figures: Figures) -> Html:
    """The learning curves."""
    history = [row for row in facts.result.get("history") or [] if isinstance(row, Mapping)]
    if len(history) < 2:
        why = "The run has no history of epochs."
        if "leaderboard" in facts.result:
            why = _averages(facts)
        return section("curves", "Learning curves", absent(why), leaderboard(facts))
    best = facts.result.get("best_epoch")
    marks = {"validation": int(best)} if isinstance(best, int) else {}
    parts = []
    for key, title, names in (
        ("score", metric_name(facts.metric, facts.task), {"val_score": "validation"}),
        ("loss", "loss", {"val_loss": "validation", "train_loss": "training"}),
    ):
        lines = {title_: curve_lines(facts.result, field) for field, title_ in names.items()}
        lines = {title_: line for title_, line in lines.items() if line}
        if not lines:
            continue
        share = key == "score" and FACTS[facts.metric].is_share
        spec = charts.learning_curves(lines, title, title, share=share, best=marks)
        rows = curve_rows(lines, share)
        label = f"{title} over {len(history)} epochs"
        parts.append(
            figures.figure(
                f"curve-{key}",
                spec,
                label=label,
                heads=["epoch", *lines],
                rows=rows,
                caption=f"{title[:1].upper()}{title[1:]}. Dashed: the best epoch, {best}."
                if marks
                else title,
            )
        )
    intro = f"Epoch {best} was chosen on validation {facts.units}, of {len(history)} epochs."
    return section(
        "curves", "Learning curves", side_by_side(*parts), leaderboard(facts), intro=intro
    )


def _averages(facts: Facts) -> str:
    """What the model of a portfolio is."""
    found = members(facts.run)
    count = tried(facts.result)
    if len(found) > 1:
        return (
            f"The model averages {len(found)} of the {count} members that were tried: "
            f"{listed(found)}. Each has a history of its own, in members/NAME/result.json."
        )
    only = found[0][0] if found else "unknown"
    return (
        f"The model is the member {only} alone, of the {count} that were tried. Its history is "
        f"in members/{only}/result.json."
    )


def curve_lines(result: Mapping[str, Any], field: str) -> list[dict[str, float]]:
    """The points of a learning curve, at most a thousand."""
    points = []
    for row in result.get("history") or []:
        if not isinstance(row, Mapping):
            continue
        epoch, value = row.get("epoch"), row.get(field)
        if isinstance(epoch, int) and isinstance(value, int | float) and np.isfinite(value):
            points.append({"epoch": epoch, "value": round(float(value), 6)})
    step = -(-len(points) // 1000)
    return points[:: max(1, step)]


def curve_rows(lines: Mapping[str, list[dict[str, float]]], share: bool) -> list[list[Any]]:
    """At most 50 rows of the table behind the curves."""
    by_epoch: dict[float, dict[str, float]] = {}
    for title, line in lines.items():
        for point in line:
            by_epoch.setdefault(point["epoch"], {})[title] = point["value"]
    epochs = sorted(by_epoch)
    epochs = epochs[:: max(1, -(-len(epochs) // 50))]

    def text(value: float | None) -> str:
        return "-" if value is None else percent(value) if share else plain_number(value)

    return [[int(e), *(text(by_epoch[e].get(title)) for title in lines)] for e in epochs]


def leaderboard(facts: Facts) -> Html | None:
    """The members of a portfolio."""
    members = facts.result.get("leaderboard")
    if not isinstance(members, list):
        return None
    rows = [
        [
            name(shown_name(row.get("name", ""))),
            score_text(facts.metric, _number(row.get("val_score"))),
            f"{_number(row.get('weight')) or 0:.2f}",
            f"{_number(row.get('seconds')) or 0:.1f}",
        ]
        for row in members
        if isinstance(row, Mapping)
    ]
    heads = ["member", f"validation {metric_name(facts.metric, facts.task)}", "weight", "seconds"]
    return table(heads, rows, caption="Members of the ensemble", numbers=(1, 2, 3))


def _number(value: Any) -> float | None:
    """A number of a run folder, which anyone may have written; `None` if it is none."""
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None
