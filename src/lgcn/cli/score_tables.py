"""Tables of scores on the screen, for `lgcn train` and `lgcn evaluate`."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from lgcn.cli.output import out, percent, print_line
from lgcn.training.metric_names import metric_text

MAX_CLASSES = 20  # of more, those with the lowest F1 are shown
MAX_MATRIX = 12
CONFUSIONS = 5
NAME_WIDTH = 24
TITLES = {"train": "training", "val": "validation", "test": "test"}
# Their columns, which are about the test nodes if there are any.
BASELINES = {"features": "without the graph", "majority": "majority"}
SIMPLE = "sizes and mean features"  # of whole graphs
EXACT_MATCH = "accuracy (exact match)"


def print_scores(
    splits: Mapping[str, Mapping[str, Any]],
    baselines: Mapping[str, Any] | None,
    summary: str | None,
    unit: str = "node",
) -> None:
    """Prints all scores per split beside the baselines, then the classes of the main split.

    Args:
        splits: The reports, see `lgcn.training.score_report`.
        baselines: See `lgcn.training.simple_models`; `None` if there are none.
        summary: What the graph adds; `None` if it is not known.
        unit: What has labels: `"node"` or `"graph"`. (default: `"node"`)
    """
    if not splits:
        return
    _print_overview(splits, baselines, unit)
    main = next(name for name in ("test", "val", "train") if name in splits)
    report = splits[main]
    if report.get("per_class"):
        _print_classes(report, f"{TITLES[main]} {unit}s", unit)
        _print_confusions(report, f"{TITLES[main]} {unit}s")
    if report.get("coverage"):
        found = report["coverage"]
        print_line(
            f"{percent(found['share'])} of the {TITLES[main]} {unit}s lie in their "
            f"{percent(found['level'])} interval"
        )
    notes: dict[str, str] = report.get("notes", {})
    for text in dict.fromkeys(notes.values()):
        names = ", ".join(name for name in notes if notes[name] == text)
        print_line(f"{names} on {TITLES[main]} {unit}s: {text}")
    if baselines is not None and baselines["limits"]:
        print_line(f"limits of the baselines: {'; '.join(baselines['limits'])}")
    if summary is not None:
        print_line(summary)


def _print_overview(
    splits: Mapping[str, Mapping[str, Any]], baselines: Mapping[str, Any] | None, unit: str
) -> None:
    """One row per metric; one column per split, and per baseline on the main split."""
    main = next(name for name in ("test", "val", "train") if name in splits)
    columns = [(TITLES[name], report["scores"]) for name, report in splits.items()]
    for key in BASELINES:
        found = (baselines or {}).get(key)
        if found and found.get(main):
            title = SIMPLE if (key, unit) == ("features", "graph") else BASELINES[key]
            columns.append((title, found[main]))
    task = splits[main]["task"]
    if task == "regression":
        columns = [("mean" if title == "majority" else title, part) for title, part in columns]
    several = task == "multilabel"
    table = Table(title="Scores", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for title, _ in columns:  # where it is narrow, only titles of several words take more lines
        table.add_column(title, justify="right", no_wrap=" " not in title)
    table.add_row(f"{unit}s", *(str(report["nodes"]) for report in splits.values()))
    for metric in splits[main]["scores"]:
        name = EXACT_MATCH if several and metric == "accuracy" else metric
        cells = [_text(metric, scores.get(metric)) for _, scores in columns]
        table.add_row(escape(name), *cells)
    out.print(table)


def _text(metric: str, value: float | None) -> str:
    if metric == "median_absolute_error":
        metric = "mae"  # shown alike
    return metric_text(metric, value)


def _print_classes(report: Mapping[str, Any], title: str, unit: str) -> None:
    rows = [row for row in report["per_class"] if row["support"] or row["predicted"]]
    what = "label" if report["task"] == "multilabel" else "class"
    plural = "labels" if what == "label" else "classes"
    heading = f"Per {what}, {title}"
    if len(rows) > MAX_CLASSES:
        heading += f": the {MAX_CLASSES} of {len(rows)} {plural} with the lowest F1"
        rows = sorted(rows, key=lambda row: row["f1"] or 0.0)[:MAX_CLASSES]
    table = Table(title=heading, title_justify="left")
    table.add_column(what, max_width=NAME_WIDTH)
    for column in (f"{unit}s", "predicted", "precision", "recall", "F1"):
        table.add_column(column, justify="right")
    for row in rows:
        counts = str(row["support"]), str(row["predicted"])
        if row["support"] and not row["predicted"]:
            counts = counts[0], "[yellow]never[/yellow]"
        cells = (percent(row[key]) for key in ("precision", "recall", "f1"))
        table.add_row(escape(row["class"]), *counts, *cells)
    out.print(table)


def _print_confusions(report: Mapping[str, Any], title: str) -> None:
    """The confusion matrix if it is small, else its largest entries off the diagonal."""
    matrix = report.get("confusion_matrix")
    names = [row["class"] for row in report["per_class"]]
    if matrix is not None and len(matrix) <= MAX_MATRIX:
        print_line(f"Confusion matrix, {title} (rows: true, columns: predicted)")
        table = Table()
        table.add_column("")
        for name in names:
            table.add_column(escape(name), justify="right", max_width=NAME_WIDTH)
        for place, (name, row) in enumerate(zip(names, matrix, strict=True)):
            cells = [str(number) for number in row]
            cells[place] = f"[bold]{cells[place]}[/bold]"
            table.add_row(escape(name), *cells)
        out.print(table)
    elif report.get("confusions"):
        listed = [
            f"{entry['true']} as {entry['predicted']} ({entry['nodes']})"
            for entry in report["confusions"][:CONFUSIONS]
        ]
        print_line(f"most frequent confusions, {title}: {', '.join(listed)}")
