"""What the reports of `lgcn data check` consist of: tables, bars, notes."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

BAR = 30  # characters of the longest bar
MOST_ROWS = 40  # of a table of columns or classes


def table(title: str, *heads: str) -> Table:
    """An empty table. Without `heads` two columns; with them the second holds numbers."""
    made = Table(
        title=Text(title, style="bold"), title_justify="left", show_header=bool(heads), box=None
    )
    for i, head in enumerate(heads or ("", "")):
        made.add_column(head, justify="right" if heads and i == 1 else "left")
    return made


def bars(title: str, head: str, rows: list[tuple[str, int]], what: str = "nodes") -> Table:
    """A bar for each row's number of nodes, or of `what`."""
    made = table(title, head, what, "")
    longest = max((number for _, number in rows), default=0)
    for name, number in rows:
        length = BAR * number / max(longest, 1)
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 or 0 < length < 1 else "")
        made.add_row(Text(name), f"{number:,}", Text(bar, style="cyan"))
    return made


def more(number: int) -> list[Text]:
    """The end of a table of which not all rows are shown."""
    return [Text(f"and {number - MOST_ROWS:,} more")] if number > MOST_ROWS else []


def feature_columns(columns: list[dict[str, Any]]) -> list[RenderableType]:
    """The columns that features were made from, if there are any."""
    if not columns:
        return []
    made = table("\nFeature columns", "column", "features", "kind")
    for column in columns[:MOST_ROWS]:
        made.add_row(Text(column["name"]), f"{column['width']:,}", column["kind"])
    return [made, *more(len(columns))]


def remarks(notes: list[str], warnings: list[str]) -> list[RenderableType]:
    """What a user should know, and what looks wrong."""
    parts: list[RenderableType] = []
    for title, lines, style in (("Notes", notes, ""), ("What looks wrong", warnings, "yellow")):
        if lines:
            parts.append(Text(f"\n{title}", style="bold"))
            parts += [Text(f"- {line}", style=style) for line in lines]
    if not warnings:
        text = "Nothing else looks wrong." if notes else "Nothing looks wrong."
        parts.append(Text(f"\n{text}", style="green"))
    return parts


def import_rows(imported: dict[str, Any]) -> list[tuple[str, str]]:
    """The counts of an import."""
    return [
        (f"import: {key.replace('_', ' ')}", f"{count:,}" if isinstance(count, int) else str(count))
        for key, count in imported.items()
    ]
