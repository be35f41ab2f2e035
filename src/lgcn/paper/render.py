"""Tables as Markdown, CSV and text on a terminal, and the page with all tables of a folder."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lgcn.paper.tables import Table, title_of
from lgcn.utils.files import atomic

if TYPE_CHECKING:
    from rich.table import Table as RichTable

HEADING = """# The paper's experiments

Made by `lgcn reproduce`. Each table shows the number in the paper, our number under the honest
rule, which is the one that counts, and our number under the rule of the authors' released program.

- The command also writes `TABLE.csv`, which has all numbers of a table, unrounded.
- `records/TABLE.jsonl` has one line per run: its settings, result and machine, and the command that
  repeats it. `lgcn.paper.records.read_records("records")` reads them in Python. A run that several
  tables need is in the file of the first of them.
- `times.jsonl` has the training times of Table 5.
"""
# Tables with too many columns to stand side by side for all data sets.
LONG = ("table5", "graphs")
SECTION = re.compile(r"<!-- begin (?P<target>\S+) -->\n(?P<text>.*?)<!-- end (?P=target) -->", re.S)


def markdown(table: Table, options: str, chart: bool) -> str:
    """The table with its chart, notes and commands.

    Args:
        table: The table.
        options: Options of the command that makes the table.
        chart: Whether the folder has a chart of it.
    """
    lines = [f"## {table.title}", ""]
    lines += long(table) if table.target in LONG else wide(table)
    lines += [""]
    if chart:
        lines += [f"![{table.title}]({table.target}.svg)", ""]
    lines += [f"- {note}" for note in table.notes]
    made_by = f"lgcn reproduce {table.target} {options}".strip()
    lines += ["", f"Made by `{made_by}`. The command of a run, by row:", "", "```"]
    width = max(len(label) for label in table.commands)
    lines += [f"{label:{width}}  {text}" for label, text in table.commands.items()]
    return "\n".join([*lines, "```", ""])


def wide(table: Table) -> list[str]:
    """One row per system, with the columns of all data sets side by side."""
    header = [table.rows]
    for dataset in table.datasets:
        header += [f"{title_of(dataset)}: {column.title}" for column in table.columns]
    rows = []
    for label in table.labels:
        cells = [label]
        for dataset in table.datasets:
            entry = table.entry(label, dataset)
            for column in table.columns:
                text = "" if entry is None else column.text(entry)
                cells.append(_bold(text) if column.bold else text)
        rows.append(cells)
    return _lines(header, rows)


def long(table: Table) -> list[str]:
    """One row per data set and system."""
    header = ["data set", table.rows, *(column.title for column in table.columns)]
    rows = [
        [title_of(entry["dataset"]), entry["row"]]
        + [_bold(c.text(entry)) if c.bold else c.text(entry) for c in table.columns]
        for entry in table.entries
    ]
    return _lines(header, rows)


def _lines(header: list[str], rows: list[list[str]]) -> list[str]:
    marks = ["---" if i == 0 else "---:" for i in range(len(header))]
    return ["| " + " | ".join(cells) + " |" for cells in (header, marks, *rows)]


def _bold(text: str) -> str:
    """Makes the number bold, but not the number of seeds after it."""
    number, bracket, rest = text.partition(" (")
    return text if number in ("", "-") else f"**{number}**{bracket}{rest}"


def csv_text(table: Table) -> str:
    """All numbers, unrounded, one line per row and data set."""
    file = io.StringIO()
    names = dict.fromkeys(name for entry in table.entries for name in entry)
    writer = csv.DictWriter(file, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.entries)
    return file.getvalue()


def terminal(table: Table) -> "RichTable":
    """The table for a terminal: narrow, with one section per data set."""
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = RichTable(title=escape(table.title), title_justify="left")
    shown.add_column(table.rows)
    for column in table.columns:
        title = column.title.replace(", ", "\n")
        style = "bold" if column.bold else None
        shown.add_column(title, justify="right", style=style, overflow="fold")
    for dataset in table.datasets:
        shown.add_section()
        shown.add_row(f"[italic]{escape(title_of(dataset))}[/italic]")
        for entry in (e for e in table.entries if e["dataset"] == dataset):
            shown.add_row(escape(entry["row"]), *(c.text(entry) for c in table.columns))
    return shown


def write_text(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_page(folder: Path, sections: Mapping[str, str], order: Sequence[str]) -> Path:
    """Writes README.md with these sections and those of other tables that it had before.

    Args:
        folder: The output folder.
        sections: Text of each table that was made, by target.
        order: All targets, in the order of the page.
    """
    path = folder / "README.md"
    before = path.read_text("utf-8") if path.is_file() else ""
    found = {match["target"]: match["text"] for match in SECTION.finditer(before)} | dict(sections)
    texts = [
        f"<!-- begin {target} -->\n{found[target]}<!-- end {target} -->\n"
        for target in order
        if target in found
    ]
    write_text(path, "\n".join([HEADING, *texts]))
    return path
