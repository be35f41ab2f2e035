"""Tables as Markdown, CSV and text on a terminal, and a page that joins them."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from lgcn.paper.tables import Table, title_of
from lgcn.utils.files import atomic

if TYPE_CHECKING:
    from rich.table import Table as RichTable

HEADING = """# The paper's experiments

Made by `lgcn reproduce`. Each table has the paper's number, ours under the honest rule, which is
the one that counts, and ours under the rule of the authors' released program. All numbers of a
table are in a CSV file beside it; each run has a record in `runs/`, with the command that repeats
it.
"""


def markdown(table: Table, options: str, picture: bool) -> str:
    """The table with its picture, notes and commands.

    Args:
        table: The table.
        options: Those of the command line that makes it.
        picture: Whether there is one beside it.
    """
    lines = [f"## {table.title}", ""]
    lines += _long(table) if table.target == "table5" else wide(table)
    lines += [""]
    if picture:
        lines += [f"![{table.title}]({table.target}.svg)", ""]
    lines += [f"- {note}" for note in table.notes]
    made_by = f"lgcn reproduce {table.target} {options}".strip()
    lines += ["", f"Made by `{made_by}`. A run of each row:", "", "```"]
    width = max(len(label) for label in table.commands)
    lines += [f"{label:{width}}  {text}" for label, text in table.commands.items()]
    return "\n".join([*lines, "```", ""])


def wide(table: Table) -> list[str]:
    """A row for each system; the columns of all data sets side by side."""
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


def _long(table: Table) -> list[str]:
    """A row for each data set and system."""
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
    """The number in bold, not the seeds behind it."""
    number, bracket, rest = text.partition(" (")
    return text if number in ("", "-") else f"**{number}**{bracket}{rest}"


def csv_text(table: Table) -> str:
    """All numbers, unrounded, a line for each row and data set."""
    file = io.StringIO()
    names = dict.fromkeys(name for entry in table.entries for name in entry)
    writer = csv.DictWriter(file, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.entries)
    return file.getvalue()


def terminal(table: Table) -> "RichTable":
    """The table for a terminal: narrow, a section for each data set."""
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


def write_index(folder: Path, targets: list[str]) -> Path:
    """README.md: all tables of these that the folder has."""
    pages = (folder / f"{target}.md" for target in targets)
    texts = [page.read_text("utf-8") for page in pages if page.is_file()]
    path = folder / "README.md"
    write_text(path, "\n".join([HEADING, *texts]))
    return path
