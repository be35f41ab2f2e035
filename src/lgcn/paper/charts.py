"""Charts of the tables, as SVG. Needs matplotlib."""

import textwrap
from pathlib import Path
from typing import Any

import matplotlib

from lgcn.paper.layout import DEVICES
from lgcn.paper.plans import ABLATION_BASE
from lgcn.paper.tables import Table, title_of
from lgcn.utils.files import atomic

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator

# The salt makes the file depend on the numbers only.
STYLE = {
    "svg.hashsalt": "lgcn",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "figure.facecolor": "white",
    "savefig.bbox": "tight",
}
ACROSS = 6  # panels side by side, at most
LETTERS = 17  # of a note per inch
# The colours of Okabe and Ito, which colour-blind readers can tell apart; the markers differ too.
SERIES = {
    "honest": ("honest", "#0072B2", "o"),
    "released": ("released rule", "#E69F00", "s"),
    "paper": ("paper", "black", "D"),
    "label_accuracy": ("label cells", "#009E73", "x"),
}
TIMES = {
    "paper": ("paper, TITAN Xp", "black", "D"),
    "cpu": (f"ours, {DEVICES['cpu']}", "#0072B2", "o"),
    "cuda": (f"ours, {DEVICES['cuda']}", "#D55E00", "s"),
}
LOWEST_DIFFERENCE = -12.0  # shown to scale


def draw(table: Table, folder: Path) -> Path:
    """Writes TARGET.svg."""
    kinds = {"table5": _times, "figure5": _lines, "ablation": _differences}
    path = folder / f"{table.target}.svg"
    with plt.rc_context(STYLE), atomic(path) as temporary:
        figure = kinds.get(table.target, _scores)(table)
        figure.savefig(temporary, format="svg", metadata={"Date": None})
        plt.close(figure)
    return path


def _panels(table: Table, lines: int) -> tuple[Any, list[Any]]:
    """One panel per data set, with the rows of the table from top to bottom."""
    number = len(table.datasets)
    down = -(-number // ACROSS)
    across = -(-number // down)
    size = (2.2 + 2.9 * across, (1.3 + 0.12 * lines * len(table.labels)) * down)
    figure, grid = plt.subplots(down, across, figsize=size, sharey=True, squeeze=False)
    for panel in grid.flat[number:]:
        panel.set_visible(False)
    panels = list(grid.flat[:number])
    for panel, dataset in zip(panels, table.datasets, strict=True):
        panel.set_title(title_of(dataset))
        panel.set_yticks(range(len(table.labels)), table.labels)
        panel.grid(visible=False, axis="y")
        panel.tick_params(axis="y", length=0)
        for place in range(1, len(table.labels)):
            panel.axhline(place - 0.5, color="0.93", linewidth=0.8, zorder=0)
    panels[0].set_ylim(len(table.labels) - 0.5, -0.5)
    return figure, panels


def _points(panel: Any, table: Table, dataset: str, key: str, error: str, **style: Any) -> bool:
    """Draws one value per row; returns whether there are any."""
    offset = style.pop("offset", 0.0)
    found = [
        (place + offset, entry[key], entry.get(error) or 0.0)
        for place, label in enumerate(table.labels)
        if (entry := table.entry(label, dataset)) is not None and entry.get(key) is not None
    ]
    if found:
        places, values, errors = zip(*found, strict=True)
        panel.errorbar(
            values,
            places,
            xerr=errors,
            linestyle="",
            capsize=2,
            elinewidth=1,
            markersize=5,
            **style,
        )
    return bool(found)


def _finish(figure: Any, table: Table, note: str = "") -> Any:
    """Adds the title above, and the legend and notes below all panels."""
    handles: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    width, height = figure.get_size_inches()
    figure.suptitle(table.title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    figure.tight_layout()
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.3}
    figure.legend(handles.values(), handles.keys(), ncols=len(handles), frameon=False, **place)
    kept = [n for n in table.notes if n.startswith(("Made by --quick", "ppi-rederived has"))]
    lines = [line for n in (note, *kept) for line in textwrap.wrap(n, int(width * LETTERS))]
    figure.text(0.01, -0.3 / height, "\n".join(lines), fontsize=7, color="0.35", va="top")
    return figure


def _scores(table: Table) -> Any:
    keys = [key for key in SERIES if any(entry.get(key) is not None for entry in table.entries)]
    figure, panels = _panels(table, 1 + len(keys))
    for panel, dataset in zip(panels, table.datasets, strict=True):
        for number, key in enumerate(keys):
            label, colour, mark = SERIES[key]
            offset = 0.2 * (number - (len(keys) - 1) / 2)
            filled = {} if key != "paper" else {"markerfacecolor": "white"}
            _points(
                panel, table, dataset, key, f"{key}_std",
                label=label, color=colour, marker=mark, offset=offset, **filled,
            )  # fmt: skip
        panel.set_xlabel(_metric(table, dataset))
    return _finish(figure, table)


def _metric(table: Table, dataset: str) -> str:
    return str(next(e["metric"] for e in table.entries if e["dataset"] == dataset))


def _differences(table: Table) -> Any:
    figure, panels = _panels(table, 2)
    for panel, dataset in zip(panels, table.datasets, strict=True):
        panel.axvline(0, color="black", linewidth=0.8)
        _points(
            panel, table, dataset, "difference", "difference_error",
            label="difference of the mean ± standard error", color="#0072B2", marker="o",
        )  # fmt: skip
        _cut_off(panel, table, dataset)
        panel.set_xlabel("accuracy, percentage points")
    return _finish(figure, table, f"Difference to the row '{ABLATION_BASE}' under the honest rule.")


def _cut_off(panel: Any, table: Table, dataset: str) -> None:
    """Writes large differences as text at the left edge, so that the others stay readable."""
    for place, label in enumerate(table.labels):
        entry = table.entry(label, dataset)
        shift = None if entry is None else entry["difference"]
        if shift is not None and shift < LOWEST_DIFFERENCE:
            panel.text(LOWEST_DIFFERENCE, place, f" ◂ {shift:.0f}", va="center", color="#0072B2")
            panel.set_xlim(left=LOWEST_DIFFERENCE)


def _times(table: Table) -> Any:
    figure, panels = _panels(table, 3)
    for panel, dataset in zip(panels, table.datasets, strict=True):
        panel.axvline(1, color="black", linewidth=0.8)
        for number, (where, (label, colour, mark)) in enumerate(TIMES.items()):
            filled = {} if where != "paper" else {"markerfacecolor": "white"}
            _points(
                panel, table, dataset, f"times_gcn_{where}", "",
                label=label, color=colour, marker=mark, offset=0.2 * (number - 1), **filled,
            )  # fmt: skip
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_xlabel("training time, GCN = 1")
    return _finish(figure, table)


def _lines(table: Table) -> Any:
    number = len(table.datasets)
    across = 2 if number == 4 else min(number, 3)
    down = -(-number // across)
    size = (0.6 + 2.9 * across, 0.4 + 2.5 * down)
    figure, panels = plt.subplots(down, across, figsize=size, squeeze=False)
    for panel in panels.flat[number:]:
        panel.set_visible(False)
    for panel, dataset in zip(panels.flat, table.datasets, strict=False):
        own = [entry for entry in table.entries if entry["dataset"] == dataset]
        sizes = [int(entry["row"].removeprefix("k = ")) for entry in own]
        for key in ("honest", "released"):
            label, colour, mark = SERIES[key]
            points = [
                (k, e[key], e[f"{key}_std"] or 0.0)
                for k, e in zip(sizes, own, strict=True)
                if e[key] is not None
            ]
            if points:
                places, values, errors = zip(*points, strict=True)
                panel.errorbar(
                    places, values, yerr=errors, label=label, color=colour, marker=mark, capsize=3
                )
        printed = [
            (k, e["paper"]) for k, e in zip(sizes, own, strict=True) if e["paper"] is not None
        ]
        label, colour, mark = SERIES["paper"]
        for k, value in printed:
            panel.plot(k, value, mark, color=colour, markerfacecolor="white", label=label)
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, [str(k) for k in sizes])
        panel.minorticks_off()
        panel.set_xlabel("k")
        panel.set_ylabel(_metric(table, dataset))
        panel.set_title(title_of(dataset))
    return _finish(figure, table)
