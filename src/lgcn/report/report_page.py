"""The page of a report: its sections in the order in which people want them."""

from __future__ import annotations

from typing import Any

from lgcn.report.detail_sections import calibration, classes, groups
from lgcn.report.facts import Facts
from lgcn.report.figures import Figures
from lgcn.report.importance import importance_section
from lgcn.report.members import unexplained
from lgcn.report.names import shown_name
from lgcn.report.node_data import node_data
from lgcn.report.node_sections import drawer, node_map, node_tables
from lgcn.report.page import page
from lgcn.report.score_sections import curves, summary
from lgcn.report.settings_section import settings

SCRIPTS = ("page.js", "nodes.js", "map.js", "start.js")


def report_page(facts: Facts, scores: Any) -> str:
    """The report as HTML.

    Args:
        facts: What it shows.
        scores: The scores of all nodes.
    """
    figures = Figures()
    data = node_data(facts, scores)
    left_out = unexplained(facts.run)
    columns = importance_section(facts.importance, facts.task, figures, left_out)
    sections = {
        "summary": ("Summary", summary(facts)),
        "curves": ("Learning curves", curves(facts, figures)),
        "classes": ("Labels" if facts.task == "multilabel" else "Classes", classes(facts, figures)),
        "calibration": ("Trust", calibration(facts, figures)),
        "groups": ("Easy nodes", groups(facts, figures)),
        "map": ("Map", node_map(facts)),
        "nodes": ("Nodes to look at", node_tables(facts, data)),
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
        scripts=SCRIPTS,
    )
