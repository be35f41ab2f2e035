"""What the first lines of a text file say: comments, delimiter, names of the columns."""

from __future__ import annotations

import csv
import io
import re
from typing import NamedTuple

from lgcn.errors import DataError, UsageError
from lgcn.tables.columns import listed, quoted

DELIMITERS = (",", ";", "\t", "|")
WHITESPACE = "whitespace"  # the delimiter of files whose cells are separated by runs of blanks
COMMENTS = ("#", "%")  # as in SNAP's files and in Matrix Market's
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")

_PADDED = re.compile(r" \t|\t |\t\t")
_SAMPLE = 20  # lines that a delimiter is guessed from
# Tables that often have no line of names, and how many cells of numbers tell: the ids.
_WITHOUT_NAMES = {"edges": 2, "features": 1}


class Layout(NamedTuple):
    """How to read the rows of a text file.

    Attributes:
        delimiter: Between cells; a blank if `blanks`.
        blanks: Whether any run of blanks and tabs separates cells.
        columns: Their names; `1`, `2`, ... if the file has none.
        skip: Lines before the first row: comments, empty lines, names.
        has_names: Whether a line has the names of the columns.
        note: What the user should know, empty if nothing.
    """

    delimiter: str
    blanks: bool
    columns: list[str]
    skip: int
    has_names: bool
    note: str = ""


def layout(
    head: str,
    whole: bool,
    *,
    name: str,
    role: str,
    kind: str,
    delimiter: str | None,
    header: bool | None,
) -> Layout:
    """How to read a text file, as the user says or as its first lines look.

    Args:
        head: The beginning of the file.
        whole: Whether that is all of it.
        name: The file, for messages.
        role: What the table is: "edges" and "features" often have no line of names.
        kind: The ending of the file's name, without `.gz`.
        delimiter: As the user gave it; `None` to guess.
        header: Whether there is a line of names; `None` to guess.
    """
    lines = io.StringIO(head, newline="").readlines()
    first = 0
    while first < len(lines) and _is_aside(lines[first]):
        first += 1
    rest = lines[first:]
    if not rest and not whole:
        raise DataError(
            f"{name}: the first {len(head)} characters are comments and empty lines. Remove them"
        )
    if not rest:
        raise DataError(
            f"{name} is empty. It must have a line of column names, then one line per row"
        )
    guessed = delimiter is None
    sample = (rest if whole else rest[:-1])[:_SAMPLE] or rest
    delimiter = _delimiter(delimiter, sample, kind, role)
    blanks = delimiter == WHITESPACE
    delimiter = " " if blanks else delimiter
    if blanks:
        rest = [" ".join(line.split()) + "\n" for line in rest]
    rows = csv.reader(rest, delimiter=delimiter)
    try:
        cells = next((row for row in rows if row), [])
    except csv.Error as error:
        raise DataError(f"{name}, line {first + 1}: cannot read column names: {error}") from error
    line = first + rows.line_num
    if len(cells) == 1 and not blanks:
        _refuse_one_column(cells[0], delimiter, guessed, f"{name}, line {line}")
    by_position = [str(i + 1) for i in range(len(cells))]
    if header is False:
        return Layout(delimiter, blanks, by_position, first, False)
    if header is None:
        names = _commented_names(lines[:first], cells, delimiter, blanks)
        if names:
            return Layout(delimiter, blanks, names, first, True)
        told_by = cells[: _WITHOUT_NAMES.get(role, len(cells))]
        if all(NUMBER.fullmatch(cell) for cell in told_by):
            if role not in _WITHOUT_NAMES or len(cells) < 2:
                raise DataError(
                    f"{name}, line {line}: column names must come first, got numbers "
                    f"({listed(cells, 4)}). Put a line of names above the rows"
                    + (", or give node_header=False" if role == "nodes" else "")
                )
            # In other files, "0 1" is a usual first edge.
            if kind == ".csv" and cells == [str(i) for i in range(len(cells))]:
                names_or_row = "names of columns as pandas writes them, or the first row"
                raise DataError(
                    f"{name}, line {line}: {listed(cells, 4)} may be the {names_or_row}. "
                    + (
                        "Give header=True or header=False"
                        if role == "edges"
                        else "Put a line of names above the rows"
                    )
                )
            note = (
                f"{name} has no line of column names: line {line} is its first row, and its "
                f"columns are called {', '.join(by_position[:3])}"
                + (", ..." if len(cells) > 3 else "")
            )
            return Layout(delimiter, blanks, by_position, first, False, note)
    return Layout(delimiter, blanks, cells, line, True)


def _is_aside(line: str) -> bool:
    """Whether a line at the beginning is empty or a comment."""
    return not line.strip("\r\n") or line.startswith(COMMENTS)


def _split(line: str, delimiter: str, blanks: bool) -> list[str]:
    if blanks:
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [])


def _commented_names(
    comments: list[str], cells: list[str], delimiter: str, blanks: bool
) -> list[str]:
    """The names in the last comment, if it has as many cells as the first row; else none.

    "#id,age" has names. "# FromNodeId ToNodeId" has names if the next line has a number in it;
    otherwise that line is more likely to have them.
    """
    if not comments or len(cells) < 2:
        return []
    last = comments[-1].rstrip("\r\n")
    glued = last[1:2].strip() and last[1:2] not in COMMENTS
    if not last.startswith(COMMENTS):
        return []
    try:
        names = _split(last if glued else last.lstrip("#% \t"), delimiter, blanks)
    except csv.Error:
        return []
    numbers = any(NUMBER.fullmatch(cell) for cell in cells)
    return names if len(names) == len(cells) and (glued or numbers) else []


def _delimiter(given: str | None, lines: list[str], kind: str, role: str) -> str:
    if given is None:
        return "\t" if kind == ".tsv" else _guess_delimiter(lines, kind, role)
    delimiter = "\t" if given == "\\t" else given
    if delimiter == WHITESPACE:
        return delimiter
    if not delimiter.isascii():  # Arrow wants one byte
        raise UsageError(
            f"delimiter must be one character of ASCII, such as ';', got {given!r}. Write the "
            "file with another one"
        )
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise UsageError(f"delimiter must be one character or {WHITESPACE!r}, got {given!r}")
    return delimiter


def _guess_delimiter(lines: list[str], kind: str, role: str) -> str:
    """The one that splits the first line, and the others into as many cells as that.

    A line of names has the delimiter, and rarely another one. Where it has several, the one counts
    that fits the other lines.
    """
    lines = [line for line in lines if line.strip()]

    def fit(delimiter: str) -> tuple[float, int]:
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:
            return 0.0, 1
        if not counts or counts[0] < 2:
            return 0.0, 1
        return counts.count(counts[0]) / len(counts), counts[0]

    best = max(DELIMITERS, key=fit)  # the first of the best
    share, width = fit(best)
    if kind == ".txt" or role == "edges":
        counts = {len(line.split()) for line in lines}
        # Also of tabs with blanks beside them, which would become part of the ids.
        padded = best == "\t" and counts == {width} and any(_PADDED.search(x) for x in lines)
        found = width > 1 and (share == 1 or kind != ".txt")
        if padded or (not found and len(counts) == 1 and counts.pop() > 1):
            return WHITESPACE
    return best


def _refuse_one_column(cell: str, delimiter: str, guessed: bool, place: str) -> None:
    others = [other for other in DELIMITERS if other != delimiter and other in cell]
    if others:
        raise DataError(
            f"{place}: {delimiter!r} separates no columns, but the line has {others[0]!r}. "
            + (
                f"Give delimiter={others[0]!r}"
                if guessed
                else "Omit delimiter, which is for all tables: it is then detected"
            )
        )


def short(cell: str) -> str:
    """A cell in a message."""
    return quoted(cell if len(cell) <= 60 else cell[:57] + "...")
