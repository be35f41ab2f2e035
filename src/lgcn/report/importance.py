"""Which features and columns matter: the explanations of a sample of nodes, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lgcn.errors import LGCNError, one_line
from lgcn.inference.explanations import RunExplainer
from lgcn.report import charts
from lgcn.report.figures import Figures, absent, section
from lgcn.report.html import Html, name, tag
from lgcn.report.names import plain_number, shown_name
from lgcn.report.node_results import NodeResults
from lgcn.report.sample import SEED, Sample

if TYPE_CHECKING:
    from lgcn.utils.progress import OnProgress

EXPLAINED = 60  # nodes, unless their neighbourhoods are large
LEAST_EXPLAINED = 5
READ_NODES = 100_000  # in the neighbourhoods of all explained nodes, about
LISTED = 20  # columns


@dataclass(frozen=True)
class Importance:
    """How much columns matter.

    Args:
        columns: Names and mean absolute contributions, the largest first.
        nodes: Number of explained nodes.
        others: Number of columns that are not listed.
        rest: Their share of all contributions.
    """

    columns: list[tuple[str, float]]
    nodes: int
    others: int
    rest: float


def importance(
    explainer: RunExplainer,
    results: NodeResults,
    sample: Sample,
    on_progress: OnProgress | None = None,
) -> Importance | str:
    """Explains some nodes, and adds up the absolute contributions of each column.

    Nodes of the main split are taken first. Fewer nodes are explained if their neighbourhoods are
    large.

    Args:
        explainer: That of the run.
        results: What is known of the nodes.
        sample: The nodes to choose from.
        on_progress: Called after each node. (default: none)
    """
    order = np.random.default_rng(SEED).permutation(sample.nodes)
    scored = results.scored[order]
    chosen = np.concatenate([order[scored], order[~scored]])[:EXPLAINED]
    totals: dict[str, float] = {}
    done = read = 0
    try:
        for node in chosen.tolist():
            columns, size = explainer.column_contributions(node)
            for column, added in columns.items():
                totals[column] = totals.get(column, 0.0) + abs(added)
            done, read = done + 1, read + size
            if on_progress is not None:
                on_progress("columns that matter", done, len(chosen))
            if read > READ_NODES and done >= LEAST_EXPLAINED:
                break
    except LGCNError as error:
        return f"The model cannot be explained: {one_line(error)}."
    if not totals:
        return "The nodes have no columns to explain."
    ranked = sorted(totals, key=lambda key: (-totals[key], key))
    every = sum(totals.values())
    rest = sum(totals[key] for key in ranked[LISTED:])
    return Importance(
        [(shown_name(key), totals[key] / done) for key in ranked[:LISTED]],
        done,
        max(0, len(ranked) - LISTED),
        rest / every if every else 0.0,
    )


def importance_section(
    found: Importance | str, task: str, figures: Figures, left_out: str | None = None
) -> Html:
    """The part of a report about columns.

    Args:
        found: Which columns matter.
        task: What is predicted.
        figures: Takes the chart.
        left_out: The members of an ensemble that are not explained. (default: none)
    """
    title = "Which columns matter?"
    if isinstance(found, str):
        return section("columns", title, absent(found))
    rows = found.columns
    units = {
        "classification": "log odds of the predicted class",
        "multilabel": "log odds of the likeliest label",
        "regression": "units of the target",
    }
    unit = units[task]
    caption = f"Mean absolute contribution to the prediction ({unit}), over {found.nodes:,} nodes."
    if found.others:
        caption += f" {found.others:,} other columns together: {100 * found.rest:.0f} % of all."
    figure = figures.figure(
        "importance",
        charts.column_bars(rows, "mean absolute contribution"),
        label=f"Mean absolute contribution of {len(rows)} columns",
        heads=["column", "contribution"],
        rows=[[name(text), plain_number(value)] for text, value in rows],
        caption=caption,
    )
    intro = (
        "Explanations say how much each column of a node and of its neighbours adds to a "
        "prediction; here they are averaged over nodes."
    )
    note = tag("p", tag("strong", "Note: "), left_out, class_="warning") if left_out else None
    return section("columns", title, note, figure, intro=intro)
