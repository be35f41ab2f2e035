"""Writes the tables and figures of the documentation from the records.

python -m benchmarks.report

A table stands between <!-- begin NAME --> and <!-- end NAME -->. A table without a record stays
empty. Figures need matplotlib; without it only the tables are written.
"""

import importlib.util
import re
import shutil
from pathlib import Path

from benchmarks import report_tables, scale_tables, training_cost_tables
from benchmarks.aggregators_table import aggregators
from benchmarks.changing_subgraphs_table import changing_subgraphs
from benchmarks.explain_table import explanations
from benchmarks.k_largest_sweep_table import k_largest_sweep
from benchmarks.own_best_table import own_best
from benchmarks.paper_tables import PAPER, paper_table, summary
from benchmarks.partition_table import partition
from benchmarks.report_tables import ATTACKS, attack_table, load, machine_line, targets
from benchmarks.speed_table import speed
from benchmarks.store_accuracy_table import store_accuracy
from benchmarks.whole_graphs_table import whole_graphs

TABLES = {
    **report_tables.TABLES,
    **scale_tables.TABLES,
    **training_cost_tables.TABLES,
    "changing_subgraphs": changing_subgraphs,
    "k_largest_sweep": k_largest_sweep,
    "partition": partition,
    "whole_graphs": whole_graphs,
    "speed": speed,
}
EVIDENCE = Path("docs/evidence")
DOCUMENTS = (
    Path("README.md"),
    *(
        EVIDENCE / f"{name}.md"
        for name in (
            *("index", "accuracy", "fidelity", "performance", "scaling", "defaults"),
            *("guarantees", "robustness", "own-data", "explanations", "service"),
            *("whole-graphs", "where-lgcls-pay"),
        )
    ),
)
IMAGES = Path("docs/images")
FIGURES = {
    "k_largest": "Speed-up over each baseline",
    "scaling": "Time against size in log-log, with the fitted lines",
}
# Figures of `lgcn reproduce` that the pages show. Pages link only to files below docs.
PAPER_FIGURES = ("figure5", "ablation")


def block(name: str) -> str:
    """The text between the markers of that name, empty if there is no record."""
    if name == "paper-summary":
        return summary()
    if name.startswith("paper-"):
        return paper_table(name.removeprefix("paper-"))
    if name in ATTACKS:
        return attack_table(name)
    if name.startswith("aggregators-"):
        return aggregators(name.removeprefix("aggregators-"))
    if name == "own_best":
        return own_best()
    if name == "store_accuracy":
        return store_accuracy()
    if name == "explanations":
        return explanations()
    benchmark, _, run = name.partition("-")
    if benchmark == "targets":
        return targets(run)
    record = load(benchmark, run)
    if record is None:
        return ""
    title = "On the CPU" if run.endswith("cpu") else f"On the {record['machine']['gpu']}"
    if benchmark == "variants":  # one page has the tables of several data sets
        title = f"{record['base']['dataset'].capitalize()}, {title[0].lower()}{title[1:]}"
    parts = [f"**{title}**", TABLES[benchmark](record)]
    if "note" in record:
        parts.append(record["note"])
    if benchmark in FIGURES:
        parts.append(f"![{FIGURES[benchmark]}](../images/{name}.svg)")
    return "\n\n".join([*parts, machine_line(benchmark, record)])


def fill(text: str) -> str:
    """The document with all its tables written from the records."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        content = block(name)
        body = f"\n{content}\n\n" if content else ""
        return f"<!-- begin {name} -->\n{body}<!-- end {name} -->"

    pattern = r"<!-- begin (?P<name>\S+) -->\n.*?<!-- end (?P=name) -->"
    return re.sub(pattern, replace, text, flags=re.DOTALL)


def main() -> None:
    for document in DOCUMENTS:
        document.write_text(fill(document.read_text()))
    for name in PAPER_FIGURES:
        shutil.copyfile(PAPER / f"{name}.svg", IMAGES / f"paper-{name}.svg")
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is missing: the tables are written, the figures are not")
        return
    from benchmarks import plots

    for device in ("cpu", "cuda"):
        for name in FIGURES:
            record = load(name, device)
            if record is not None:
                plots.draw(name, record, IMAGES / f"{name}-{device}")


if __name__ == "__main__":
    main()
