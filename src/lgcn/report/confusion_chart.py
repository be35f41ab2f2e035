"""The confusion matrix as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Sequence

from lgcn.report.charts import INK, PAPER, SERIES, Spec, chart, counted, field, label_expression
from lgcn.utils.choices import Unit


def confusion_matrix(
    matrix: Sequence[Sequence[int]], names: Sequence[str], unit: Unit = "node"
) -> Spec:
    """A heat map, coloured by the share of the true class, with the numbers of nodes."""
    cells = []
    for true, row in enumerate(matrix):
        total = sum(row)
        for guessed, count in enumerate(row):
            share = count / total if total else 0.0
            cell = {"t": true, "p": guessed, "nodes": count, "share": share}
            cells.append({**cell, "true": names[true], "predicted": names[guessed]})
    labels = label_expression(names)
    size = len(names)
    axis: Spec = {"labelExpr": labels, "grid": False, "ticks": False, "domain": False}
    place = {"sort": None, "type": "ordinal"}
    x = {
        "field": "p",
        **place,
        "axis": {
            **axis,
            "title": "predicted",
            "orient": "top",
            "labelAngle": 0 if size <= 8 else -60,
            "labelLimit": 90,
        },
    }
    y = {"field": "t", **place, "axis": {**axis, "title": "true", "labelLimit": 110}}
    tooltip = [
        field("true", "nominal"),
        field("predicted", "nominal"),
        counted(unit),
        field("share", "quantitative", format=".1%", title="of the true class"),
    ]
    heat = {
        "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 1},
        "encoding": {
            "x": x,
            "y": y,
            # Opacity stands for colour, so that one variable serves light and dark pages.
            "fillOpacity": field(
                "share", "quantitative", legend=None, scale={"domain": [0, 1], "range": [0.03, 1]}
            ),
            "fill": {"value": SERIES[0]},
            "tooltip": tooltip,
        },
    }
    text = {
        "mark": {"type": "text", "fontSize": 12 if size <= 12 else 9},
        "encoding": {
            "x": x,
            "y": y,
            "text": field("nodes", "quantitative"),
            "fill": {
                "condition": {"test": "datum.share > 0.55", "value": PAPER},
                "value": INK,
            },
        },
    }
    return chart(
        max(160, min(34, 900 // max(1, size)) * size), data={"values": cells}, layer=[heat, text]
    )
