"""Which features and columns matter: the explanations of a sample of nodes, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lgcn.report import charts
from lgcn.report.figures import Figures, absent, section
from lgcn.report.html import Html, name

if TYPE_CHECKING:
    from lgcn.inference.trained_run import ScoredGraph, TrainedRun
    from lgcn.report.node_results import NodeResults
    from lgcn.report.sample import Sample


@dataclass(frozen=True)
class Importance:
    """How much columns matter.

    Args:
        columns: Names and mean absolute contributions, the largest first.
        nodes: Number of explained nodes.
        others: Number of columns that are not listed.
    """

    columns: list[tuple[str, float]]
    nodes: int
    others: int


def importance(
    run: TrainedRun, scored: ScoredGraph, results: NodeResults, sample: Sample
) -> Importance | str:
    return "(not yet)"


def importance_section(found: Importance | str, figures: Figures) -> Html:
    """The part of a report about columns."""
    title = "Which columns matter?"
    if isinstance(found, str):
        return section("columns", title, absent(found))
    rows = found.columns
    figure = figures.figure(
        "importance",
        charts.column_bars(rows, "mean absolute contribution"),
        label=f"Mean absolute contribution of {len(rows)} columns",
        heads=["column", "contribution"],
        rows=[[name(text), f"{value:.4g}"] for text, value in rows],
        caption=f"Mean over {found.nodes:,} explained nodes.",
    )
    return section("columns", title, figure)
