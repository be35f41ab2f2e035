"""The parts of a report about scores: summary, learning curves, classes, calibration, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lgcn.report import charts
from lgcn.report.bins import GROUP_SCORE, Bin
from lgcn.report.facts import Facts
from lgcn.report.figures import Figures, absent, cards, percent, section, side_by_side
from lgcn.report.html import Html, join, name, table, tag
from lgcn.report.names import shown_name
from lgcn.training.metric_names import FACTS, metric_text
from lgcn.training.score_report import score_of

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
MAX_MATRIX = 20  # classes; of more, those with the most wrong nodes are drawn
DRAWN_CLASSES = 12
MAX_CLASS_ROWS = 200


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
        reason = absent("The graph has no labelled nodes, so nothing can be scored.")
        return section("summary", "Summary", tag("p", _predicts(facts)), reason)
    report = facts.reports[main]
    ours = score_of(report["scores"], facts.metric)
    what = metric_name(facts.metric, facts.task)
    items: list[tuple[Any, Any, Any]] = [
        (
            f"{what}, {SPLIT_NAMES[main]} nodes",
            score_text(facts.metric, ours),
            f"{report['nodes']:,} nodes",
        )
    ]
    if not isinstance(facts.baselines, str):
        for key, title in (("features", "without the graph"), ("majority", _simplest(facts))):
            found = facts.baselines.get(key)
            if found and found.get(main):
                theirs = score_of(found[main], facts.metric)
                items.append((title, score_text(facts.metric, theirs), shown_name(found["name"])))
    return section(
        "summary",
        "Summary",
        tag("p", _predicts(facts)),
        cards(items),
        tag("p", facts.summary, class_="adds") if facts.summary is not None else None,
        [
            tag("p", tag("strong", "Warning: "), shown_text(text), class_="warning")
            for text in facts.warnings
        ],
        absent(facts.baselines) if isinstance(facts.baselines, str) else None,
        _all_scores(facts),
        _notes(report),
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
        "The model predicts for each node of ",
        tag("strong", name(shown_name(graph.name))),
        f" {kind}. The graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} adjacency "
        f"entries (an undirected edge is two). Labelled nodes: {splits or 'none'}.",
    )


def _simplest(facts: Facts) -> str:
    return "mean value" if facts.task == "regression" else "majority class"


def _all_scores(facts: Facts) -> Html:
    main = facts.main
    assert main is not None
    columns: list[tuple[str, Mapping[str, Any]]] = [
        (SPLIT_NAMES[split], report["scores"]) for split, report in facts.reports.items()
    ]
    if not isinstance(facts.baselines, str):
        for key, title in (("features", "without the graph"), ("majority", _simplest(facts))):
            found = facts.baselines.get(key)
            if found and found.get(main):
                columns.append((f"{title} ({SPLIT_NAMES[main]})", found[main]))
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
            why = "The model averages several networks, each with a history of its own (members/NAME/result.json)."
        return section("curves", "Learning curves", absent(why), leaderboard(facts))
    best = facts.result.get("best_epoch")
    marks = {"validation": int(best)} if isinstance(best, int) else {}
    parts = []
    for key, title, names in (
        ("score", metric_name(facts.metric, facts.task), {"val_score": "validation"}),
        ("loss", "loss", {"val_loss": "validation", "train_loss": "training"}),
    ):
        lines = {title_: _line(history, field) for field, title_ in names.items()}
        lines = {title_: line for title_, line in lines.items() if line}
        if not lines:
            continue
        share = key == "score" and FACTS[facts.metric].is_share
        spec = charts.learning_curves(lines, title, title, share=share, best=marks)
        rows = _curve_rows(lines, share)
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
    intro = f"Epoch {best} was chosen on validation nodes, of {len(history)} epochs."
    return section(
        "curves", "Learning curves", side_by_side(*parts), leaderboard(facts), intro=intro
    )


def _line(history: Sequence[Mapping[str, Any]], field: str) -> list[dict[str, float]]:
    points = []
    for row in history:
        epoch, value = row.get("epoch"), row.get(field)
        if isinstance(epoch, int) and isinstance(value, int | float) and np.isfinite(value):
            points.append({"epoch": epoch, "value": round(float(value), 6)})
    step = -(-len(points) // 1000)
    return points[:: max(1, step)]


def _curve_rows(lines: Mapping[str, list[dict[str, float]]], share: bool) -> list[list[Any]]:
    """At most 50 rows of the table behind the curves."""
    by_epoch: dict[float, dict[str, float]] = {}
    for title, line in lines.items():
        for point in line:
            by_epoch.setdefault(point["epoch"], {})[title] = point["value"]
    epochs = sorted(by_epoch)
    epochs = epochs[:: max(1, -(-len(epochs) // 50))]

    def text(value: float | None) -> str:
        return "-" if value is None else percent(value) if share else f"{value:.4g}"

    return [[int(e), *(text(by_epoch[e].get(title)) for title in lines)] for e in epochs]


def leaderboard(facts: Facts) -> Html | None:
    """The members of a portfolio."""
    members = facts.result.get("leaderboard")
    if not isinstance(members, list):
        return None
    rows = [
        [
            name(shown_name(row.get("name", ""))),
            score_text(facts.metric, row.get("val_score")),
            f"{row.get('weight') or 0:.2f}",
            f"{row.get('seconds') or 0:.1f}",
        ]
        for row in members
        if isinstance(row, Mapping)
    ]
    heads = ["member", f"validation {metric_name(facts.metric, facts.task)}", "weight", "seconds"]
    return table(heads, rows, caption="Members of the ensemble", numbers=(1, 2, 3))


def classes(facts: Facts, figures: Figures) -> Html | None:
    """The table per class and the confusion matrix; nothing for a regression."""
    if facts.task == "regression":
        return None
    kind = "label" if facts.task == "multilabel" else "class"
    title = "Labels" if kind == "label" else "Classes"
    if facts.main is None:
        return section("classes", title, absent("There are no labelled nodes."))
    report = facts.reports[facts.main]
    every = report.get("per_class") or []
    rows = [row for row in every if row["support"] or row["predicted"]]
    shown = (
        sorted(rows, key=lambda row: row["f1"] or 0.0)[:MAX_CLASS_ROWS]
        if len(rows) > MAX_CLASS_ROWS
        else rows
    )
    cells = [
        [
            name(shown_name(row["class"])),
            (f"{row['support']:,}", row["support"]),
            (f"{row['predicted']:,}", row["predicted"]),
            *(
                (percent(row[key]), -1 if row[key] is None else row[key])
                for key in ("precision", "recall", "f1")
            ),
        ]
        for row in shown
    ]
    heads = [kind, "nodes", "predicted", "precision", "recall", "F1"]
    caption = f"Scores per {kind}, {SPLIT_NAMES[facts.main]} nodes. A click on a head sorts."
    if len(shown) < len(rows):
        caption += f" The {len(shown)} of {len(rows)} with the lowest F1."
    per_class = table(heads, cells, caption=caption, numbers=range(1, 6), sortable=True)
    return section("classes", title, per_class, _confusions(facts, figures, report))


def _confusions(facts: Facts, figures: Figures, report: Mapping[str, Any]) -> list[Html]:
    matrix = report.get("confusion_matrix")
    names = [shown_name(row["class"]) for row in report.get("per_class") or []]
    found = []
    split = SPLIT_NAMES[facts.main or "test"]
    if matrix is not None:
        caption = f"Confusion matrix, {split} nodes: rows are true classes, columns predicted ones. Colour is the share of the row."
        places = list(range(len(names)))
        if len(names) > MAX_MATRIX:
            counts = np.array(matrix)
            wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
            places = sorted(np.argsort(-wrong, kind="stable")[:DRAWN_CLASSES].tolist())
            caption += f" The {len(places)} of {len(names)} classes with the most confusions."
        part = [[matrix[a][b] for b in places] for a in places]
        titles = [names[place] for place in places]
        rows = [[name(title), *row] for title, row in zip(titles, part, strict=True)]
        label = f"Confusion matrix of {len(places)} classes"
        heads = ["true / predicted", *map(name, titles)]
        found.append(
            figures.figure(
                "confusion",
                charts.confusion_matrix(part, titles),
                label=label,
                heads=heads,
                rows=rows,
                caption=caption,
            )
        )
    if report.get("confusions") and len(names) > 2:
        rows = [
            [
                name(shown_name(entry["true"])),
                name(shown_name(entry["predicted"])),
                f"{entry['nodes']:,}",
            ]
            for entry in report["confusions"][:10]
        ]
        found.append(
            table(
                ["true", "predicted as", "nodes"],
                rows,
                caption="The most frequent confusions",
                numbers=(2,),
            )
        )
    return found


def calibration(facts: Facts, figures: Figures) -> Html:
    """How far confidences can be trusted; for a regression, its errors and intervals."""
    if facts.main is None:
        return section(
            "calibration", "Can the predictions be trusted?", absent("There are no labelled nodes.")
        )
    split = SPLIT_NAMES[facts.main]
    if facts.task == "regression":
        return _errors(facts, figures, split)
    error = facts.results.calibration.error if facts.results.calibration is not None else 0.0
    each = "each pair of node and label counts" if facts.task == "multilabel" else f"{split} nodes"
    rows = [
        [
            row["bin"],
            percent(row["confidence"]),
            percent(row["accuracy"]),
            f"{row['predictions']:,}",
        ]
        for row in facts.calibration
    ]
    figure = figures.figure(
        "reliability",
        charts.reliability(facts.calibration),
        label=f"Share of right predictions by confidence; calibration error {percent(error)}",
        heads=["confidence", "mean confidence", "right", "predictions"],
        rows=rows,
        caption="On the dashed line, confidence equals the share of right predictions. Below it, the model is too sure. Bars are 95 % ranges; larger dots hold more predictions.",
    )
    intro = join(
        "Expected calibration error: ",
        tag("strong", percent(error)),
        f" ({each}). Confidences are scaled by the temperature {facts.run.temperature:.3g}.",
    )
    return section("calibration", "Can the confidence be trusted?", figure, intro=intro)


def _errors(facts: Facts, figures: Figures, split: str) -> Html:
    results, interval = facts.results, facts.run.interval
    inside = np.flatnonzero(results.scored)
    chosen = inside
    if len(inside) > charts.MAX_POINTS:
        chosen = np.random.default_rng(0).choice(inside, charts.MAX_POINTS, replace=False)
    points = [
        {"true": float(value - wrong), "predicted": float(value)}
        for value, wrong in zip(results.predicted[chosen], results.wrong[chosen], strict=True)
        if np.isfinite(value) and np.isfinite(wrong)
    ]
    half = None if interval is None else interval[1]
    sampled = (
        ""
        if len(chosen) == len(inside)
        else f" A sample of {len(chosen):,} of {len(inside):,} nodes."
    )
    scatter = figures.figure(
        "scatter",
        charts.predicted_against_true(points, half),
        label=f"Predicted against true values of {len(points)} {split} nodes",
        heads=["true", "predicted"],
        rows=[[f"{p['true']:.4g}", f"{p['predicted']:.4g}"] for p in points[:50]],
        caption=f"Predicted against true values. The band is the interval.{sampled}",
    )
    residuals = figures.figure(
        "residuals",
        charts.histogram(facts.residuals, "predicted minus true"),
        label="Histogram of predicted minus true values",
        heads=["from", "to", "nodes"],
        rows=[[f"{b['from']:.4g}", f"{b['to']:.4g}", b["nodes"]] for b in facts.residuals],
        caption="Errors: predicted minus true. The outermost bars hold what lies beyond them.",
    )
    found = facts.reports[facts.main or "test"].get("coverage")
    if found:
        intro = (
            f"{percent(found['share'])} of the {split} nodes lie in their interval, prediction "
            f"± {found['half_width']:.4g}, which is meant for {percent(found['level'], 0)}."
        )
    else:
        intro = "There is no interval: the training had too few validation nodes to find its width."
    return section(
        "calibration", "How large are the errors?", side_by_side(scatter, residuals), intro=intro
    )


def groups(facts: Facts, figures: Figures) -> Html:
    """Scores by degree and by the agreement of neighbours."""
    metric = GROUP_SCORE[facts.task]
    what = metric_name(metric, facts.task) if metric != "accuracy" else "accuracy"
    lower = " Lower is better." if facts.task == "regression" else ""
    if not facts.degrees:
        return section("groups", "Which nodes are easy?", absent("There are no labelled nodes."))
    by_degree = _group(
        figures,
        "degrees",
        facts.degrees,
        "neighbours",
        metric,
        what,
        f"By the number of neighbours.{lower}",
    )
    if isinstance(facts.agreements, str):
        by_agreement = absent(facts.agreements)
    else:
        titles = {
            "classification": (
                "neighbours of the same class",
                "By the share of labelled neighbours that have the node's own true class.",
            ),
            "multilabel": (
                "overlap with the neighbours' labels",
                "By the mean overlap of a node's labels with those of its labelled neighbours.",
            ),
            "regression": (
                "distance from the neighbours' mean",
                "By the distance of the true value from the mean of the labelled neighbours.",
            ),
        }
        title, caption = titles[facts.task]
        by_agreement = _group(figures, "agreements", facts.agreements, title, metric, what, caption)
    intro = f"{what[:1].upper()}{what[1:]} of {SPLIT_NAMES[facts.main or 'test']} nodes in groups. Numbers in the bars count nodes; lines are 95 % ranges."
    if facts.task == "multilabel":
        intro = intro.replace("; lines are 95 % ranges", "")
    return section(
        "groups", "Which nodes are easy?", side_by_side(by_degree, by_agreement), intro=intro
    )


def _group(
    figures: Figures,
    key: str,
    bins: Sequence[Bin],
    title: str,
    metric: str,
    what: str,
    caption: str,
) -> Html:
    rows = [[row["bin"], score_text(metric, row["score"]), f"{row['nodes']:,}"] for row in bins]
    return figures.figure(
        key,
        charts.group_scores(bins, title, metric, what),
        label=f"{what} by {title}",
        heads=[title, what, "nodes"],
        rows=rows,
        caption=caption,
    )
