"""The charts of reports as Vega-Lite specifications, plain JSON.

Colours are CSS variables, which the page sets for light, dark and print; Vega writes them into its
SVG as they are. Numbers are formatted in Python where they stand in names of categories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lgcn.report.bins import Bin
from lgcn.training.metric_names import FACTS
from lgcn.utils.choices import Unit

Spec = dict[str, Any]
INK, SOFT, GRID, PAPER = "var(--ink)", "var(--soft)", "var(--line)", "var(--paper)"
SERIES = tuple(f"var(--c{place})" for place in range(8))
HEIGHT = 240
NUMBER = ",.4~r"  # four digits, no exponent
MAX_POINTS = 2000  # of a scatter plot
CONFIG: Spec = {
    "background": None,
    "font": "system-ui, sans-serif",
    # The figure has a label, and a table of its numbers.
    "aria": False,
    "mark": {"aria": False},
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 160,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": SOFT,
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "labelLimit": 240,
        "columns": 3,
    },
    "range": {"category": list(SERIES)},
}


def chart(height: int = HEIGHT, **parts: Any) -> Spec:
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": CONFIG,
        **parts,
    }


def _percent_axis(title: str, **more: Any) -> Spec:
    return {"title": title, "format": ".0%", **more}


def _is_share(metric: str) -> bool:
    return metric not in FACTS or FACTS[metric].is_share


def field(name: str, kind: str, **more: Any) -> Spec:
    return {"field": name, "type": kind, **more}


def learning_curves(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    value: str,
    title: str,
    *,
    share: bool,
    best: Mapping[str, int],
) -> Spec:
    """A value over the epochs, one line per run or series; a dashed line at the best epoch.

    Args:
        runs: Points `epoch` and `value` by name of the series.
        value: What the axis is called.
        title: Of the column in tooltips.
        share: Whether it is in per cent.
        best: The best epoch of each series that has one.
    """
    points = [
        {"series": name, "epoch": point["epoch"], "value": point["value"]}
        for name, line in runs.items()
        for point in line
    ]
    names = list(runs)
    legend: Spec | None = {"symbolType": "stroke"} if len(names) > 1 else None
    scale = {"domain": names, "range": list(SERIES[: len(names)])}
    colour = field("series", "nominal", scale=scale, legend=legend)
    form = ".1%" if share else NUMBER
    axis = _percent_axis(value, tickMinStep=0.01) if share else {"title": value}
    line = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": field(
                "epoch",
                "quantitative",
                axis={
                    "title": "epoch",
                    "grid": False,
                    "tickMinStep": 1,
                    "format": "d",
                    # Moved inwards, the last label would touch the one before it.
                    "labelFlush": False,
                    "labelOverlap": "parity",
                    "labelSeparation": 6,
                },
            ),
            "y": field("value", "quantitative", axis=axis, scale={"zero": False}),
            "color": colour,
            "strokeDash": field("series", "nominal", legend=legend, scale=_dashes(names)),
            "tooltip": [
                field("series", "nominal", title=" "),
                field("epoch", "quantitative"),
                field("value", "quantitative", format=form, title=title),
            ],
        },
    }
    marks = [{"series": name, "epoch": epoch} for name, epoch in best.items()]
    rule = {
        "data": {"values": marks},
        "mark": {"type": "rule", "strokeDash": [4, 4], "strokeWidth": 1.5},
        "encoding": {
            "x": field("epoch", "quantitative"),
            "color": {"value": SOFT} if len(marks) == 1 else colour,
        },
    }
    layers = [line, rule] if marks else [line]
    return chart(data={"values": points}, layer=layers)


def _dashes(names: Sequence[str]) -> Spec:
    """Lines differ in their dashes as well as in their colours."""
    patterns = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [1, 3], [4, 1], [10, 2, 2, 2]]
    return {"domain": list(names), "range": patterns[: len(names)]}


def label_expression(names: Sequence[str]) -> str:
    """A Vega expression that gives the name of a class by its number.

    Names are in it as JSON with all but plain characters escaped, so that none can end the string.
    """
    texts = ",".join(json.dumps(name) for name in names)
    return f"[{texts}][datum.value]"


def reliability(bins: Sequence[Bin]) -> Spec:
    """Share of right predictions by confidence, beside the diagonal; larger dots hold more."""
    diagonal = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "stroke": SOFT, "strokeWidth": 1},
        "encoding": {"x": field("x", "quantitative"), "y": field("y", "quantitative")},
    }
    x = field(
        "confidence",
        "quantitative",
        scale={"domain": [0, 1]},
        axis=_percent_axis("confidence", tickCount=6),
    )
    y = field(
        "accuracy",
        "quantitative",
        scale={"domain": [0, 1]},
        axis=_percent_axis("share right", tickCount=6),
    )
    ranges = {
        "mark": {"type": "rule", "strokeWidth": 1.5, "stroke": SERIES[0]},
        "encoding": {"x": x, "y": field("low", "quantitative"), "y2": {"field": "high"}},
    }
    dots = {
        "mark": {"type": "point", "filled": True, "fill": SERIES[0], "fillOpacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "size": field("predictions", "quantitative", legend=None, scale={"range": [30, 300]}),
            "tooltip": [
                field("bin", "nominal", title="confidence"),
                field("confidence", "quantitative", format=".1%", title="mean confidence"),
                field("accuracy", "quantitative", format=".1%", title="right"),
                field("predictions", "quantitative"),
            ],
        },
    }
    return chart(300, data={"values": list(bins)}, layer=[diagonal, ranges, dots])


def compact(number: int) -> str:
    """A count in at most four characters or so: 999, 12k, 3.4M."""
    if number < 1000:
        return str(number)
    if number < 999_500:
        return f"{number / 1000:.0f}k"
    return f"{number / 1e6:.1f}M" if number < 9.95e6 else f"{number / 1e6:.0f}M"


def counted(unit: Unit, **more: Any) -> Spec:
    """The number of nodes in tooltips; of graphs, it is called so."""
    if unit != "node":
        more["title"] = f"{unit}s"
    return field("nodes", "quantitative", **more)


def group_scores(
    bins: Sequence[Bin], title: str, metric: str, metric_name: str, unit: Unit = "node"
) -> Spec:
    """The score of groups of nodes as bars, with ranges of 95 % and the numbers of nodes."""
    share = _is_share(metric)
    # Without a grid, which would shine through the bars.
    axis = {"title": metric_name, "tickCount": 5, "grid": False}
    axis |= {"format": ".0%"} if share else {}
    scale = {"domain": [0, 1]} if share else {"zero": True}
    below: Spec = {"title": title, "labelAngle": 0, "labelOverlap": True}
    if unit == "graph":  # fractions are long: on a phone, the last name would be cut off
        below["labelExpr"] = "replace(datum.label, ' to ', '\u2013')"
    x = field("bin", "nominal", sort=None, axis=below)
    values = [{**row, "label": compact(row["nodes"])} for row in bins]
    bars = {
        "mark": {"type": "bar", "fill": SERIES[0], "fillOpacity": 0.55, "cornerRadiusEnd": 2},
        "encoding": {
            "x": x,
            "y": field("score", "quantitative", axis=axis, scale=scale),
            "tooltip": [
                field("bin", "nominal", title=title),
                field(
                    "score", "quantitative", format=".1%" if share else NUMBER, title=metric_name
                ),
                counted(unit, format=","),
            ],
        },
    }
    ranges = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "stroke": INK, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": field("low", "quantitative"), "y2": {"field": "high"}},
    }
    counts = {
        "mark": {"type": "text", "baseline": "bottom", "dy": -3, "fill": INK, "fontSize": 11},
        "encoding": {"x": x, "y": {"datum": 0}, "text": field("label", "nominal")},
    }
    return chart(220, data={"values": values}, layer=[bars, ranges, counts])


def predicted_against_true(points: Sequence[Mapping[str, float]], half_width: float | None) -> Spec:
    """A scatter plot of predictions with the diagonal, and the band of the interval."""
    values = list(points)[:MAX_POINTS]
    numbers = [number for point in values for number in (point["true"], point["predicted"])]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    ends = [
        {"x": end, "low": end - (half_width or 0), "high": end + (half_width or 0)}
        for end in (low, high)
    ]
    x = field("true", "quantitative", axis={"title": "true"}, scale={"zero": False, "nice": False})
    layers: list[Spec] = []
    if half_width:
        layers.append(
            {
                "data": {"values": ends},
                "mark": {"type": "area", "fill": SERIES[0], "fillOpacity": 0.15, "clip": True},
                "encoding": {
                    "x": field("x", "quantitative"),
                    "y": field("low", "quantitative"),
                    "y2": {"field": "high"},
                },
            }
        )
    layers += [
        {
            "data": {"values": ends},
            "mark": {"type": "line", "strokeDash": [4, 4], "stroke": SOFT, "strokeWidth": 1},
            "encoding": {"x": field("x", "quantitative"), "y": field("x", "quantitative")},
        },
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 18,
                "fill": SERIES[1],
                "fillOpacity": 0.6,
            },
            "encoding": {
                "x": x,
                "y": field(
                    "predicted",
                    "quantitative",
                    axis={"title": "predicted"},
                    scale={"zero": False, "nice": False},
                ),
                "tooltip": [
                    field("true", "quantitative", format=NUMBER),
                    field("predicted", "quantitative", format=NUMBER),
                ],
            },
        },
    ]
    return chart(300, data={"values": values}, layer=layers)


def histogram(bins: Sequence[Bin], title: str, unit: Unit = "node") -> Spec:
    """Numbers of nodes in ranges of a value."""
    return chart(
        200,
        data={"values": list(bins)},
        mark={"type": "bar", "fill": SERIES[0]},
        encoding={
            "x": field("from", "quantitative", bin="binned", axis={"title": title, "grid": False}),
            "x2": {"field": "to"},
            "y": field("nodes", "quantitative", axis={"title": f"{unit}s", "tickMinStep": 1}),
            "tooltip": [
                field("from", "quantitative", format=NUMBER),
                field("to", "quantitative", format=NUMBER),
                counted(unit),
            ],
        },
    )


def column_bars(rows: Sequence[tuple[str, float]], title: str) -> Spec:
    """Columns as bars, the largest first."""
    values = [{"place": place, "value": value} for place, (_, value) in enumerate(rows)]
    names = label_expression([name for name, _ in rows])
    return chart(
        max(60, 24 * len(values)),
        data={"values": values},
        mark={"type": "bar", "fill": SERIES[0], "cornerRadiusEnd": 2},
        encoding={
            "y": field(
                "place",
                "ordinal",
                sort=None,
                axis={
                    "title": None,
                    "labelExpr": names,
                    "labelLimit": 160,
                    "ticks": False,
                    "domain": False,
                },
            ),
            "x": field("value", "quantitative", axis={"title": title, "tickCount": 6}),
            "tooltip": [field("value", "quantitative", format=NUMBER, title=title)],
        },
    )


def class_scores(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], runs: Sequence[str]
) -> Spec:
    """F1 per class of several runs, as dots on a line per class."""
    values = [
        {"place": place, "run": run, "f1": row[run]}
        for place, row in enumerate(rows)
        for run in runs
        if row.get(run) is not None
    ]
    colour = field(
        "run", "nominal", scale={"domain": list(runs), "range": list(SERIES[: len(runs)])}
    )
    return chart(
        max(60, 26 * len(names)),
        data={"values": values},
        mark={"type": "point", "filled": True, "size": 80, "fillOpacity": 1},
        encoding={
            "y": field(
                "place",
                "ordinal",
                sort=None,
                axis={
                    "title": None,
                    "labelExpr": label_expression(names),
                    "grid": True,
                    "ticks": False,
                    "domain": False,
                },
            ),
            "x": field(
                "f1",
                "quantitative",
                axis=_percent_axis("F1", tickCount=6),
                scale={"domain": [0, 1]},
            ),
            "color": colour,
            "shape": field("run", "nominal", legend=None),
            "tooltip": [
                field("run", "nominal"),
                field("f1", "quantitative", format=".1%", title="F1"),
            ],
        },
    )
