"""Writes the tables of the documents, and their pictures, from the records.

python -m benchmarks.report

A table stands between <!-- begin NAME --> and <!-- end NAME -->. What was not measured leaves its
place empty. Pictures need matplotlib; without it only the tables are written.
"""

import importlib.util
import re
from pathlib import Path

from benchmarks.attack_tables import ATTACKS, attack_table
from benchmarks.paper_tables import paper_table, summary
from benchmarks.report_tables import TABLES, aims, load, machine_line

DOCUMENTS = (
    Path("README.md"),
    *(
        Path("docs") / f"{n}.md"
        for n in ("performance", "own-data", "scaling", "fidelity", "accuracy", "robustness")
    ),
)
IMAGES = Path("docs/images")
PICTURES = {
    "k_largest": "How many times as fast as each rival",
    "scaling": "Time against size in log-log, with the fitted lines",
}


def block(name: str) -> str:
    """What stands between the markers of that name, empty where there is no record."""
    if name == "paper-summary":
        return summary()
    if name.startswith("paper-"):
        return paper_table(name.removeprefix("paper-"))
    if name in ATTACKS:
        return attack_table(name)
    benchmark, _, device = name.rpartition("-")
    if benchmark == "aims":
        return aims(device)
    record = load(benchmark, device)
    if record is None:
        return ""
    title = "On the CPU" if device == "cpu" else f"On the {record['machine']['gpu']}"
    if benchmark.startswith("variants"):  # tables of several data sets stand in one document
        title = f"{record['base']['dataset'].capitalize()}, {title[0].lower()}{title[1:]}"
    parts = [f"### {title}", TABLES[benchmark](record)]
    if "note" in record:
        parts.append(record["note"])
    if benchmark in PICTURES:
        parts.append(f"![{PICTURES[benchmark]}](images/{name}.svg)")
    return "\n\n".join([*parts, machine_line(record)])


def fill(text: str) -> str:
    """The document with all its tables written anew."""

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
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is missing: the tables are written, the pictures are not")
        return
    from benchmarks import plots

    for device in ("cpu", "cuda"):
        for name in PICTURES:
            record = load(name, device)
            if record is not None:
                plots.draw(name, record, IMAGES / f"{name}-{device}")


if __name__ == "__main__":
    main()
