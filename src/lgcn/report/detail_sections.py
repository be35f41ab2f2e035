"""The parts of a report about where the model is right: classes, calibration, groups of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lgcn.report import charts
from lgcn.report.bins import GROUP_SCORE
from lgcn.report.confusion_chart import confusion_matrix
from lgcn.report.facts import Facts
from lgcn.report.figures import Figures, absent, percent, section, side_by_side
from lgcn.report.html import Html, join, name, table, tag
from lgcn.report.names import plain_number, shown_name
from lgcn.report.score_sections import SPLIT_NAMES, metric_name, score_text

MAX_MATRIX = 20  # classes; of more, those with the most wrong nodes are drawn
DRAWN_CLASSES = 12
MAX_CLASS_ROWS = 200
CONFUSIONS = 8


def classes(facts: Facts, figures: Figures) -> Html | None:
    """The table per class and the confusion matrix; nothing for a regression."""
    if facts.task == "regression":
        return None
    kind = "label" if facts.task == "multilabel" else "class"
    title = "Labels" if kind == "label" else "Classes"
    if facts.main is None:
        return section("classes", title, absent(f"There are no labelled {facts.units}."))
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
    heads = [kind, facts.units, "predicted", "precision", "recall", "F1"]
    caption = f"Scores per {kind}, {SPLIT_NAMES[facts.main]} {facts.units}."
    caption += " Click a column heading to sort."
    if len(shown) < len(rows):
        caption += f" The {len(shown)} of {len(rows)} with the lowest F1."
    per_class = table(heads, cells, caption=caption, numbers=range(1, 6), sortable=True)
    matrix, largest = _confusions(facts, figures, report)
    content = side_by_side(tag("div", per_class, largest), matrix) if matrix else per_class
    return section("classes", title, content, None if matrix else largest)


def _confusions(
    facts: Facts, figures: Figures, report: Mapping[str, Any]
) -> tuple[Html | None, Html | None]:
    """The confusion matrix, and its largest entries off the diagonal."""
    matrix = report.get("confusion_matrix")
    names = [shown_name(row["class"]) for row in report.get("per_class") or []]
    drawn = largest = None
    split = SPLIT_NAMES[facts.main or "test"]
    if matrix is not None:
        caption = (
            f"Confusion matrix, {split} {facts.units}: rows are true classes, columns predicted "
            "ones. Colour is the share of the row."
        )
        places = list(range(len(names)))
        if len(names) > MAX_MATRIX:
            counts = np.array(matrix)
            wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
            places = sorted(np.argsort(-wrong, kind="stable")[:DRAWN_CLASSES].tolist())
            caption += f" The {len(places)} of {len(names)} classes with the most confusions."
        part = [[matrix[a][b] for b in places] for a in places]
        titles = [names[place] for place in places]
        drawn = figures.figure(
            "confusion",
            confusion_matrix(part, titles, facts.unit),
            label=f"Confusion matrix of {len(places)} classes",
            heads=["true / predicted", *map(name, titles)],
            rows=[[name(title), *row] for title, row in zip(titles, part, strict=True)],
            caption=caption,
            width=160 + 90 * len(places),
        )
    if report.get("confusions") and len(names) > 2:
        entries = [
            [
                name(shown_name(entry["true"])),
                name(shown_name(entry["predicted"])),
                f"{entry['nodes']:,}",
            ]
            for entry in report["confusions"][:CONFUSIONS]
        ]
        heads = ["true", "predicted as", facts.units]
        largest = table(heads, entries, caption="The most frequent confusions", numbers=(2,))
    return drawn, largest


def calibration(facts: Facts, figures: Figures) -> Html:
    """How far confidences can be trusted; for a regression, its errors and intervals."""
    if facts.main is None:
        return section(
            "calibration",
            "Can the predictions be trusted?",
            absent(f"There are no labelled {facts.units}."),
        )
    split = SPLIT_NAMES[facts.main]
    if facts.task == "regression":
        return _errors(facts, figures, split)
    error = facts.results.calibration.error if facts.results.calibration is not None else 0.0
    each = f"{split} {facts.units}"
    if facts.task == "multilabel":
        each = f"each pair of {facts.unit} and label counts"
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
        caption="On the dashed line, confidence equals the share of right predictions. Below it, "
        "the model is too sure. Lines are 95 % ranges; larger dots hold more predictions.",
        width=640,
    )
    intro = join(
        "Expected calibration error: ",
        tag("strong", percent(error)),
        f" ({each}). {_scaled(facts.run.temperature, facts.units)}",
    )
    return section("calibration", "Can the confidence be trusted?", figure, intro=intro)


def _scaled(temperature: float, units: str) -> str:
    """What the training did to the confidences, in plain words."""
    if abs(temperature - 1) < 0.005:
        return "Confidences are as the model gives them."
    was, become = ("high", "lowered") if temperature > 1 else ("low", "raised")
    return (
        f"After the training, confidences were {become}, as they were too {was} on validation "
        f"{units} (temperature {temperature:.3g})."
    )


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
        else f" A sample of {len(chosen):,} of {len(inside):,} {facts.units}."
    )
    scatter = figures.figure(
        "scatter",
        charts.predicted_against_true(points, half),
        label=f"Predicted against true values of {len(points)} {split} {facts.units}",
        heads=["true", "predicted"],
        rows=[[plain_number(p["true"]), plain_number(p["predicted"])] for p in points[:50]],
        caption=f"Predicted against true values. The band is the interval.{sampled}",
    )
    residuals = figures.figure(
        "residuals",
        charts.histogram(facts.residuals, "predicted minus true", facts.unit),
        label="Histogram of predicted minus true values",
        heads=["from", "to", facts.units],
        rows=[
            [plain_number(b["from"]), plain_number(b["to"]), b["nodes"]] for b in facts.residuals
        ],
        caption="Errors: predicted minus true. The outermost bars hold what lies beyond them.",
    )
    found = facts.reports[facts.main or "test"].get("coverage")
    if found:
        intro = (
            f"{percent(found['share'])} of the {split} {facts.units} lie in their interval, "
            f"prediction ± {plain_number(found['half_width'])}, which is meant for "
            f"{percent(found['level'], 0)}."
        )
    else:
        intro = (
            f"There is no interval: the training had too few validation {facts.units} to find its "
            "width."
        )
    return section(
        "calibration", "How large are the errors?", side_by_side(scatter, residuals), intro=intro
    )


def groups(facts: Facts, figures: Figures) -> Html:
    """Scores by degree and by the agreement of neighbours; of graphs, by their sizes."""
    metric, title = GROUP_SCORE[facts.task], f"Which {facts.units} are easy?"
    what = metric_name(metric, facts.task) if metric != "accuracy" else "accuracy"
    lower = " Lower is better." if facts.task == "regression" else ""
    if facts.main is None:
        return section("groups", title, absent(f"There are no labelled {facts.units}."))
    parts = []
    for number, found in enumerate(facts.groups):
        if isinstance(found.bins, str):
            parts.append(absent(found.bins))
            continue
        rows = [
            [row["bin"], score_text(metric, row["score"]), f"{row['nodes']:,}"]
            for row in found.bins
        ]
        part = figures.figure(
            found.key,
            charts.group_scores(found.bins, found.title, metric, what, facts.unit),
            label=f"{what} by {found.title}",
            heads=[found.title, what, facts.units],
            rows=rows,
            caption=found.about if number else f"{found.about}{lower}",
        )
        parts.append(part)
    ranges = "" if facts.task == "multilabel" else "; lines are 95 % ranges"
    intro = (
        f"{what[:1].upper()}{what[1:]} of {SPLIT_NAMES[facts.main]} {facts.units} in groups. "
        f"Numbers in the bars count {facts.units}{ranges}."
    )
    return section("groups", title, side_by_side(*parts), intro=intro)
