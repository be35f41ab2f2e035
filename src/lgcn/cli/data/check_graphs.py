"""`lgcn data check` of a set of graphs: what was understood of it, and what looks wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from lgcn.cli.data.report_parts import (
    MOST_ROWS,
    bars,
    feature_columns,
    import_rows,
    more,
    remarks,
    table,
)
from lgcn.cli.output import out, print_json
from lgcn.cli.words import in_flags

if TYPE_CHECKING:
    from lgcn.datasets.graph_set_report import GraphSetReport
    from lgcn.datasets.graph_source import GraphSource


def check_graphs(source: GraphSource, *, as_json: bool) -> None:
    """Prints the report on a set of graphs."""
    from lgcn.datasets.graph_set_report import check_graph_source

    report = check_graph_source(source)
    report = replace(
        report,
        notes=list(map(in_flags, report.notes)),
        warnings=list(map(in_flags, report.warnings)),
    )
    if as_json:
        print_json(report.to_dict())
    else:
        out.print(render(report))


def render(report: GraphSetReport) -> RenderableType:
    """The report with tables and bars.

    Args:
        report: What `lgcn.datasets.graph_set_report.check_graph_set` returned.
    """
    sizes = table(report.name)
    for name, value in _sizes(report):
        sizes.add_row(name, Text(value))
    parts: list[RenderableType] = [sizes, *feature_columns(report.columns)]
    if report.classes:
        head = "class" if report.labels == "one per graph" else "label"
        classes = list(report.classes.items())[:MOST_ROWS]
        parts.append(bars(f"\nGraphs by {head}", head, classes, "graphs"))
        parts += more(len(report.classes))
    return Group(*parts, *remarks(report.notes, report.warnings))


def _sizes(report: GraphSetReport) -> list[tuple[str, str]]:
    kinds = [
        "directed" if report.directed else "undirected",
        "weighted" if report.weighted else "unweighted",
    ]
    labels = report.labels
    if report.classes:
        labels = f"{labels}, {len(report.classes)} in all"
    rows = [
        ("graphs", f"{report.graphs:,}"),
        ("nodes", f"{report.nodes:,}"),
        ("edges", f"{report.edges:,} ({', '.join(kinds)})"),
        ("nodes per graph", _spread(report.nodes_per_graph)),
        ("edges per graph", _spread(report.edges_per_graph)),
        ("graphs without nodes", f"{report.graphs_without_nodes:,}"),
        ("graphs without edges", f"{report.graphs_without_edges:,}"),
        ("isolated nodes", f"{report.isolated_nodes:,}"),
        ("features", f"{report.features:,}"),
        ("labels", labels),
        ("labelled graphs", f"{report.labelled_graphs:,}"),
    ]
    if report.target is not None:
        target = report.target
        spread = f"mean {target['mean']:.4g}, standard deviation {target['deviation']:.4g}"
        rows.append(("target", f"{target['smallest']:.4g} to {target['largest']:.4g}, {spread}"))
    rows += [(f"{split} graphs", f"{number:,}") for split, number in report.splits.items()]
    return [*rows, *import_rows(report.imported)]


def _spread(counts: dict[str, float]) -> str:
    return (
        f"{counts['smallest']:,} to {counts['largest']:,}, mean {counts['mean']:g}, median "
        f"{counts['median']:g}"
    )
