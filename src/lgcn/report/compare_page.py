"""The page that compares runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lgcn.report import charts
from lgcn.report.compare_facts import ComparedRun, Comparison
from lgcn.report.figures import Figures, absent, percent, section
from lgcn.report.html import Html, name, table, tag
from lgcn.report.members import used_settings
from lgcn.report.names import count_of, plain_number, shown_ids, shown_name
from lgcn.report.node_data import label_text
from lgcn.report.page import page
from lgcn.report.repeat_command import shown_settings
from lgcn.report.score_sections import (
    SPLIT_NAMES,
    curve_lines,
    curve_rows,
    metric_name,
    score_text,
    shown_text,
)
from lgcn.training.metric_names import FACTS
from lgcn.training.score_report import score_of

SCRIPTS = ("page.js", "start.js")
MAX_CLASSES = 30


class WrittenComparison(NamedTuple):
    """A comparison that was written: its file, its size in bytes, and what it shows."""

    path: Path
    size: int
    facts: Comparison


def comparison_page(facts: Comparison) -> str:
    """The comparison as HTML."""
    figures = Figures()
    sections = {
        "scores": ("Scores", _scores(facts)),
        "curves": ("Learning curves", _curves(facts, figures)),
        "classes": ("Classes", _classes(facts, figures)),
        "settings": ("Settings that differ", _settings(facts)),
        "nodes": ("Where they disagree", _nodes(facts)),
    }
    present = {key: part for key, part in sections.items() if part[1] is not None}
    names = ", ".join(run.name for run in facts.runs)
    return page(
        kind=f"Comparison of {len(facts.runs)} trained models",
        heading=names
        if len(names) <= 120
        else f"{facts.runs[0].name} and {len(facts.runs) - 1} others",
        contents={key: title for key, (title, _) in present.items()},
        sections=[part for _, part in present.values()],
        data={"charts": figures.specs},
        scripts=SCRIPTS,
    )


def _scores(facts: Comparison) -> Html:
    first = facts.runs[0]
    metric, main = first.metric, first.main
    if main is None:
        return section("scores", "Scores", absent(f"The first run has no labelled {facts.units}."))
    base = _score(first, metric, main)
    rows = []
    for run, found in zip(facts.runs, facts.differences, strict=True):
        score = _score(run, metric, main)
        change: Any = "-"
        if run is first:
            change = "first run"
        elif score is not None and base is not None:
            change = _change(metric, score - base)
            if metric == "accuracy" and found is not None:
                change += f" ± {100 * found.error:.1f}"
        nodes = run.reports.get(main, {}).get("nodes")
        result = run.run.result()
        rows.append(
            [
                name(run.name),
                (score_text(metric, score), -1 if score is None else score),
                change,
                *(
                    score_text(other, _score(run, other, main))
                    for other in _others(first, metric, main)
                ),
                "-" if nodes is None else f"{nodes:,}",
                (f"{result['parameters']:,}", result["parameters"]),
                (f"{result['seconds']:.1f}", result["seconds"]),
            ]
        )
    task = facts.task
    heads = [
        "run",
        metric_name(metric, task),
        "difference",
        *(metric_name(other, task) for other in _others(first, metric, main)),
        facts.units,
        "parameters",
        "seconds",
    ]
    split = SPLIT_NAMES[main]
    caption = f"Scores on {split} {facts.units}; differences from the first run"
    if any(found is not None for found in facts.differences) and metric == "accuracy":
        caption += ", ± one standard error of the paired difference"
    content = table(heads, rows, caption=f"{caption}.", numbers=range(1, len(heads)), sortable=True)
    return section(
        "scores", "Scores", _same(facts, split), content, _paired(facts), _problems(facts)
    )


def _others(first: ComparedRun, metric: str, main: str) -> list[str]:
    return [other for other in first.reports[main]["scores"] if other != metric][:4]


def _score(run: ComparedRun, metric: str, split: str) -> float | None:
    report = run.reports.get(split)
    return None if report is None else score_of(report["scores"], metric)


def _change(metric: str, value: float) -> str:
    return (
        f"{100 * value:+.1f} points" if FACTS[metric].is_share else plain_number(value, sign=True)
    )


def _same(facts: Comparison, split: str) -> Html:
    if facts.same_split:
        return tag(
            "p",
            f"All runs were scored on the same {split} {facts.units} of the same {facts.whole}.",
        )
    unread = [run.name for run in facts.runs if run.problem is not None]
    if unread:
        text = (
            f"The data of {' and '.join(unread)} could not be read, so it is not known whether all "
            f"runs were scored on the same {facts.units}."
        )
    elif facts.same_graph:
        text = (
            f"The runs share a {facts.whole}, but their {split} {facts.units} differ: differences "
        )
        text += "are rough."
    else:
        text = f"The runs do not share a {facts.whole}: their scores are about different "
        text += f"{facts.units}."
    return tag("p", tag("strong", "Note: "), text, class_="warning")


def _paired(facts: Comparison) -> list[Html]:
    first = facts.runs[0]
    texts = []
    for run, found in zip(facts.runs, facts.differences, strict=True):
        if found is not None:
            texts.append(
                tag(
                    "p",
                    name(run.name),
                    f" alone is right on {count_of(found.only_other, facts.unit)}, ",
                    name(first.name),
                    f" alone on {found.only_first:,}.",
                )
            )
    return texts


def _problems(facts: Comparison) -> list[Html]:
    return [
        absent(
            f"{run.name}: the {facts.whole} could not be read, so these are the scores of its "
            f"training. {shown_text(run.problem)}."
        )
        for run in facts.runs
        if run.problem is not None
    ]


def _curves(facts: Comparison, figures: Figures) -> Html:
    metric = facts.runs[0].metric
    lines, best = {}, {}
    for run in facts.runs:
        result = run.run.result()
        line = curve_lines(result, "val_score")
        if len(line) > 1 and run.metric == metric:
            lines[run.name] = line
            if isinstance(result.get("best_epoch"), int):
                best[run.name] = result["best_epoch"]
    if not lines:
        return section("curves", "Learning curves", absent("No run has a history of epochs."))
    what = metric_name(metric, facts.task)
    share = FACTS[metric].is_share
    figure = figures.figure(
        "curves-chart",
        charts.learning_curves(lines, f"validation {what}", what, share=share, best=best),
        label=f"Validation {what} over the epochs of {len(lines)} runs",
        heads=["epoch", *map(name, lines)],
        rows=curve_rows(lines, share),
        caption=f"Validation {what}. Dashed: best epochs.",
    )
    left = [run.name for run in facts.runs if run.name not in lines]
    note = absent(f"Without a curve of this metric: {', '.join(left)}.") if left else None
    return section("curves", "Learning curves", figure, note)


def _classes(facts: Comparison, figures: Figures) -> Html | None:
    if facts.task == "regression":
        return None
    title = "Labels" if facts.task == "multilabel" else "Classes"
    main = facts.runs[0].main
    if main is None:
        return None
    tables: dict[str, Mapping[str, Any]] = {
        run.name: {
            row["class"]: row["f1"] for row in run.reports.get(main, {}).get("per_class") or []
        }
        for run in facts.runs
    }
    every = list(dict.fromkeys(key for part in tables.values() for key in part))
    rows = [{run: tables[run].get(key) for run in tables} for key in every]

    def spread(row: Mapping[str, Any]) -> float:
        known = [value for value in row.values() if value is not None]
        return max(known) - min(known) if known else 0.0

    order = range(len(every))
    note = ""
    if len(every) > MAX_CLASSES:
        order = sorted(sorted(order, key=lambda place: -spread(rows[place]))[:MAX_CLASSES])  # type: ignore[assignment]
        note = f" The {MAX_CLASSES} of {len(every)} that differ most."
    shown = [shown_name(every[place]) for place in order]
    part = [rows[place] for place in order]
    figure = figures.figure(
        "classes-chart",
        charts.class_scores(part, shown, list(tables)),
        label=f"F1 of {len(shown)} classes for {len(tables)} runs",
        heads=["class", *map(name, tables)],
        rows=[
            [name(text), *(percent(row[run]) for run in tables)]
            for text, row in zip(shown, part, strict=True)
        ],
        caption=f"F1 on {SPLIT_NAMES[main]} {facts.units}.{note}",
    )
    return section("classes", title, figure)


def _nodes(facts: Comparison) -> Html:
    title = "Where they disagree"
    if not facts.same_graph:
        why = f"The runs do not share a {facts.whole}."
        if any(run.problem is not None for run in facts.runs):
            why = "The data of some runs could not be read."
        return section("nodes", title, absent(why))
    parts: list[Any] = []
    names = [run.name for run in facts.runs]
    if facts.pairs.size and len(names) > 1:
        rows = [
            [name(text), *(percent(share) for share in row)]
            for text, row in zip(names, facts.pairs, strict=True)
        ]
        caption = f"Share of all {facts.units} on which two runs predict the same."
        parts.append(
            table(["", *map(name, names)], rows, caption=caption, numbers=range(1, len(names) + 1))
        )
    if not len(facts.differing):
        return section(
            "nodes", title, parts, absent(f"They predict the same for all {facts.units}.")
        )
    first = facts.runs[0]
    assert first.scored is not None
    assert first.results is not None
    order = facts.differing.argsort()
    ids = dict(
        zip(
            facts.differing[order].tolist(),
            shown_ids(first.scored.node_ids, facts.differing[order]),
            strict=True,
        )
    )
    rows = [
        [
            name(ids[node]),
            name(_truth(first, node)),
            *(name(_prediction(run, node)) for run in facts.runs),
        ]
        for node in facts.differing.tolist()
    ]
    shown = len(rows)
    caption = (
        f"1 {facts.unit} gets different predictions."
        if facts.num_differing == 1
        else f"{facts.num_differing:,} {facts.units} get different predictions."
    )
    caption += " A ✓ marks those that are right." if facts.task == "classification" else ""
    if shown < facts.num_differing:
        split = SPLIT_NAMES.get(first.main or "")
        first_ones = f"; {split} {facts.units} come first" if split else ""
        caption += f" The table shows {shown} of them{first_ones}."
    parts.append(
        table([facts.unit, "true", *map(name, names)], rows, caption=caption, sortable=True)
    )
    return section("nodes", title, parts)


def _truth(run: ComparedRun, node: int) -> str:
    assert run.scored is not None
    assert run.results is not None
    y = run.scored.graph.y
    if y is None or not run.results.known[node]:
        return "unknown"
    if run.results.task == "regression":
        return plain_number(float(y[node]), 5)
    if run.results.task == "multilabel":
        return _label_names(run, y[node] > 0.5)
    return shown_name(run.run.class_names[int(y[node])])


def _prediction(run: ComparedRun, node: int) -> str:
    assert run.scored is not None
    assert run.results is not None
    if run.results.task == "regression":
        return plain_number(float(run.results.predicted[node]), 5)
    if run.results.task == "multilabel":
        return _label_names(run, run.scored.scores[node] > 0)
    sure, right = float(run.results.confidence[node]), run.results.wrong[node] == 0
    text = shown_name(run.run.class_names[int(run.results.predicted[node])])
    return f"{text} ({percent(sure, 0)}){' ✓' if right else ''}"


def _label_names(run: ComparedRun, marked: Any) -> str:
    places = marked.nonzero().reshape(-1).tolist()
    return label_text(places, "multilabel", [shown_name(text) for text in run.run.class_names])


def _settings(facts: Comparison) -> Html:
    """The settings that differ; of an ensemble, those of the member that counts most."""
    used = [used_settings(run.run) for run in facts.runs]
    every = [
        {
            f"{group}.{key}": value
            for group, part in shown_settings(settings).items()
            for key, value in part.items()
        }
        for _, settings in used
    ]
    title = "Settings that differ"
    notes = [
        tag("p", name(run.name), " ", text)
        for run, (text, _) in zip(facts.runs, used, strict=True)
        if text is not None
    ]
    keys = list(dict.fromkeys(key for part in every for key in part))
    rows = [
        [name(key), *(name(shown_name(part.get(key, "-"))) for part in every)]
        for key in keys
        if len({part.get(key) for part in every}) > 1
    ]
    if not rows:
        return section("settings", title, notes, absent("All settings are the same."))
    heads = ["setting", *(name(run.name) for run in facts.runs)]
    content = table(heads, rows, caption=title, hide_caption=True)
    return section("settings", title, notes, content)
