"""Notes about a user's tables: many that differ in the column only become one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lgcn.graph import GraphSet

MOST_NAMED = 5  # columns that a note names

_QUOTED = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_COLUMN = re.compile(rf"\bcolumn {_QUOTED}")
_PLACE = "\0"  # where the column is named
# The one value that a column has in all rows: it differs from column to column.
_VALUE = re.compile(rf"it is (constant \([^)]*\)|{_QUOTED}) in (all|the) rows")


def grouped_notes(notes: Iterable[str]) -> list[str]:
    """The notes, each said once; one note for all columns of which the same is said.

    Args:
        notes: One sentence each. Those about a column name it as `column 'x'`.
    """
    groups: dict[str, dict[str, str]] = {}  # the notes of each kind, by column
    for note in notes:
        found = _COLUMN.search(note)
        kind = _VALUE.sub("it is constant in the rows", _COLUMN.sub(_PLACE, note, count=1))
        groups.setdefault(kind, {}).setdefault(found[1] if found else "", note)
    return [_joined(kind, list(columns), *columns.values()) for kind, columns in groups.items()]


def _joined(kind: str, columns: list[str], first: str, *others: str) -> str:
    if not others:
        return first
    shown = ", ".join(columns[:MOST_NAMED]) + (", ..." if len(columns) > MOST_NAMED else "")
    return kind.replace(_PLACE, f"{len(columns):,} columns ({shown}), each")


def notes_on_graphs(graphs: GraphSet) -> list[str]:
    """How many graphs of a set have no nodes or no edges; these are kept."""
    sizes, counts = graphs.sizes, graphs.edge_ptr.diff()
    found = []
    for what, lacks in (("nodes", sizes == 0), ("edges", (counts == 0) & (sizes > 0))):
        number = int(lacks.sum())
        if number:
            has, kept = ("has", "it is") if number == 1 else ("have", "they are")
            of_all = f"{number} of {len(graphs)} graphs"
            found.append(f"{graphs.name}: {of_all} {has} no {what}; {kept} kept")
    return found
