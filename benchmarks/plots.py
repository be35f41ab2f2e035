"""The figures of docs/evidence/performance.md, as PNG and SVG."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
# The same record gives the same file.
matplotlib.rcParams |= {"svg.hashsalt": "lgcn", "font.size": 9, "axes.spines.top": False}
matplotlib.rcParams |= {"axes.spines.right": False, "figure.facecolor": "white"}

from matplotlib import pyplot as plt  # noqa: E402

AXES = {"nodes": "nodes N", "degree": "degree E / N", "channels": "features C", "k": "k"}


def scaling(record: dict[str, Any]) -> Any:
    figure, panels = plt.subplots(1, len(AXES), figsize=(11, 3), sharey=True)
    for panel, (name, label) in zip(panels, AXES.items(), strict=True):
        result = record["results"][name]
        sizes = np.array([point[name] for point in result["points"]], dtype=float)
        for colour, (what, fit) in enumerate(result["fits"].items()):
            seconds = [point["seconds"][what] for point in result["points"]]
            legend = f"{what.replace('_', ' ')}: {fit['exponent']:.2f}"
            panel.loglog(sizes, seconds, "o", color=f"C{colour}", label=legend)
            panel.loglog(sizes, fit["factor"] * sizes ** fit["exponent"], color=f"C{colour}")
        panel.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
        panel.minorticks_off()
        panel.set_xlabel(label)
        panel.legend(title="exponent", frameon=False)
    panels[0].set_ylabel("seconds")
    return figure


def k_largest(record: dict[str, Any]) -> Any:
    results = [result for result in record["results"] if result["input"] == "normal"]
    baselines = list(dict.fromkeys(name for result in results for name in result["ratio_forward"]))
    figure, panel = plt.subplots(figsize=(11, 0.5 + 0.7 * len(results)))
    height = 0.8 / len(baselines)
    for i, name in enumerate(baselines):
        places = [j for j, result in enumerate(results) if name in result["ratio_forward"]]
        ratios = [results[j]["ratio_forward"][name] for j in places]
        label = name.replace("_", " ")
        panel.barh([j + (i + 0.5) * height - 0.4 for j in places], ratios, height, label=label)
    names = [
        f"{r['degrees']}\n{r['nodes']:,} nodes, {r['edges']:,} edges\nC = {r['channels']}, "
        f"k = {r['k']}"
        for r in results
    ]
    panel.set_yticks(range(len(results)), names)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.axvline(1, color="black", linewidth=0.8)
    panel.set_xlabel("forward: time of the baseline / time of k_largest_values")
    panel.legend(frameon=False)
    return figure


def draw(name: str, record: dict[str, Any], path: Path) -> None:
    """Writes the figure of a benchmark to path.svg."""
    figure = {"scaling": scaling, "k_largest": k_largest}[name](record)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
