"""The page of a report: its sections in the order in which people want them."""

from __future__ import annotations

from typing import Any

from lgcn.report.detail_sections import calibration, classes, groups
from lgcn.report.facts import Facts
from lgcn.report.figures import Figures
from lgcn.report.html import Html
from lgcn.report.importance import importance_section
from lgcn.report.members import unexplained
from lgcn.report.names import shown_name
from lgcn.report.node_data import node_data
from lgcn.report.node_sections import drawer, node_map, node_tables
from lgcn.report.page import page
from lgcn.report.score_sections import curves, summary
from lgcn.report.settings_section import settings
from lgcn.utils.choices import Unit

# What draws the parts around a node, or a whole graph.
SCRIPTS: dict[Unit, tuple[str, ...]] = {
    "node": ("page.js", "items.js", "nodes.js", "search.js", "map.js", "start.js"),
    "graph": ("page.js", "items.js", "graphs.js", "search.js", "map.js", "start.js"),
}


def report_page(facts: Facts, scores: Any) -> str:
    """The report as HTML.

    Args:
        facts: What it shows.
        scores: The scores of all nodes.
    """
    figures = Figures()
    data = node_data(facts, scores)
    columns = _columns(facts, figures)
    sections = {
        "summary": ("Summary", summary(facts)),
        "curves": ("Learning curves", curves(facts, figures)),
        "classes": ("Labels" if facts.task == "multilabel" else "Classes", classes(facts, figures)),
        "calibration": ("Trust", calibration(facts, figures)),
        "groups": (f"Easy {facts.units}", groups(facts, figures)),
        "map": ("Map", node_map(facts)),
        "nodes": (f"{facts.units.capitalize()} to look at", node_tables(facts, data)),
        "columns": ("Columns", columns),
        "settings": ("Settings", settings(facts)),
    }
    present = {key: part for key, part in sections.items() if part[1] is not None}
    return page(
        kind="Report of a trained model",
        heading=f"{shown_name(facts.graph.name)}: {shown_name(facts.run.folder.resolve().name)}",
        contents={key: title for key, (title, _) in present.items()},
        sections=[*(part for _, part in present.values()), drawer()],
        data={**data, "charts": figures.specs},
        scripts=SCRIPTS[facts.unit],
        unit=facts.unit,
    )


def _columns(facts: Facts, figures: Figures) -> Html | None:
    """The columns that matter; whole graphs are not explained."""
    if facts.importance is None:
        return None
    return importance_section(facts.importance, facts.task, figures, unexplained(facts.run))
