"""The kind of feature that a column is: as the user says, or guessed from type and values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.errors import DataError, UsageError
from lgcn.tables.cell_options import CellOptions, Reading
from lgcn.tables.columns import is_single, listed, quoted, storage, texts
from lgcn.tables.conventions import Convention, date_convention, number_convention
from lgcn.tables.missing_words import missing_numbers, missing_words
from lgcn.tables.written_numbers import has_leading_zero

MOSTLY = 0.8  # share of the cells that must be numbers, or dates, for the column to be of that kind
_NAMED = {
    "numeric_columns": ("number", "numbers, dates or lists of numbers"),
    "categorical_columns": ("category", "one value per cell"),
    "text_columns": ("text", "strings"),
    "list_columns": ("list", "lists, or strings such as a;b;c"),
}


class Kind(NamedTuple):
    """number, date, vector, list, long, category or text; `None`, with the reason, if left out.

    Attributes:
        kind: The kind.
        reason: Why it is left out.
        reading: How its cells are read.
        notes: What a user should know.
        decided: Whether strings of the column show which decimal separator they have.
        is_open: Whether they do not, and it makes a difference.
    """

    kind: str | None
    reason: str = ""
    reading: Reading = Reading()
    notes: tuple[str, ...] = ()
    decided: bool = False
    is_open: bool = False


class _Cells(NamedTuple):
    """The distinct strings of a column, and how often each occurs."""

    values: Any
    counts: Any

    def without(self, words: frozenset[str]) -> _Cells:
        kept = pc.invert(
            pc.is_in(self.values, value_set=pa.array(sorted(words), pa.large_string()))
        )
        return _Cells(self.values.filter(kept), self.counts[np.asarray(kept)])


def named_kind(
    column: Any, name: str, argument: str, options: CellOptions, usual: str | None = None
) -> Kind:
    """The kind of a column that the user named in `argument`, which it must fit."""
    kind, wanted = _NAMED[argument]
    reading = options.reading()
    if kind == "list" and storage(column) in ("list", "vector"):  # of words, or of ids
        return Kind("list", reading=reading)
    if not is_single(column) and not (kind == "number" and storage(column) == "vector"):
        raise UsageError(f"{argument} names {name!r}, which holds {column.type}; want {wanted}")
    if kind != "number":
        return Kind(kind, reading=reading)
    if storage(column) == "category":
        column = column.cast(column.type.value_type)
    stored = storage(column)
    if stored != "string":
        return Kind("number" if stored == "null" else stored, reading=reading)
    every = _distinct(column)
    every = every.without(words_for_nothing(every.values, options))
    cells = every.without(missing_numbers(options.na_values))
    if not len(cells.values):
        return Kind(kind, reading=reading)
    found = number_convention(*cells, options, usual)
    if not found.parsed.all():
        dates = date_convention(*cells, options)
        if cells.counts[dates.parsed].sum() > cells.counts[found.parsed].sum():
            found, kind = dates, "date"
    if not found.parsed.any():
        raise DataError(
            f"numeric_columns names {name!r}, but its cells are no numbers or dates, such as "
            f"{quoted(cells.values[0].as_py())}. Name it in categorical_columns or text_columns"
        )
    return _read_as(kind, found, cells, every)


def infer(column: Any, options: CellOptions, usual: str | None = None) -> Kind:
    """The kind of feature that a column is, guessed from the type and cells of all rows.

    Numbers, dates and lists of numbers are what they are, and a dictionary column is a category.
    Strings are numbers if at least 80 % of the cells that are not missing can be read as such, and
    dates likewise; the other cells are missing values. Numbers with leading zeros are codes, and
    not numbers. Other strings are

    * left out if they are numbers, but in two conventions;
    * a category if values repeat: at most half as many distinct ones as rows, or ten if there are
      few rows; a tenth as many if they have four words or more on average;
    * text if half of the distinct values have several words (separated by blanks, commas,
      semicolons or bars);
    * an id otherwise, which is left out.

    Validation and test rows count here, so that the outcome does not depend on the split. That
    leaks nothing that helps to predict: it says how cells are written, not which values they have
    or which label goes with them. Means, categories and words come from the allowed rows only.

    Args:
        column: The column, no string views.
        options: How cells are read.
        usual: The decimal separator of other columns, which counts if no cell of this one decides.
            (default: not known)
    """
    reading = options.reading()
    stored = storage(column)
    if stored in ("number", "date", "vector", "list", "long", "category"):
        return Kind(stored, reading=reading)
    if stored == "null":
        return Kind(None, "is empty")
    if stored == "other":
        return Kind(None, f"has the type {column.type}, which cannot be a feature")
    every = _distinct(column)
    cells = every.without(words_for_nothing(every.values, options))
    if not len(cells.values):
        return Kind(None, "is empty")
    numeric = np.zeros(len(cells.values), bool)
    present = cells.without(missing_numbers(options.na_values))
    if len(present.values):
        found = number_convention(*present, options, usual)
        codes = np.asarray(has_leading_zero(present.values)) & found.parsed
        if not _are_most(found.parsed, present, cells):
            dates = date_convention(*present, options)
            if _are_most(dates.parsed, present, cells):
                return _read_as("date", dates, present, cells)
            for mixed in (found, dates):
                if mixed.clash and _are_most(mixed.either, present, cells):
                    return Kind(
                        None,
                        f"{mixed.clash}: write all alike, or name it in numeric_columns or "
                        "categorical_columns",
                    )
        elif not codes.any():
            return _read_as("number", found, present, cells)
        numbers = present.values.filter(pa.array(found.parsed))
        numeric = np.asarray(pc.is_in(cells.values, value_set=numbers))
    return _words_kind(cells, numeric, reading)


def words_for_nothing(values: Any, options: CellOptions) -> frozenset[str]:
    """The words that are missing values in a column of categories or text with these values."""
    signs = bool(pc.any(pc.equal(values, "+")).as_py())
    return missing_words(options.na_values, signs=signs)


def _distinct(column: Any) -> _Cells:
    counts = pc.value_counts(texts(column).drop_null())
    values, number = counts.flatten()
    return _Cells(values, number.to_numpy())


def _are_most(these: Any, present: _Cells, cells: _Cells) -> bool:
    """Whether most cells are `these`; words such as "unknown" may be up to half of all cells."""
    number = present.counts[these].sum()
    return bool(number >= MOSTLY * present.counts.sum() and 2 * number >= cells.counts.sum())


def _read_as(kind: str, found: Convention, present: _Cells, cells: _Cells) -> Kind:
    """A column of numbers or dates, with a note on the cells that are none."""
    notes = list(found.notes)
    total, parsed = int(cells.counts.sum()), int(present.counts[found.parsed].sum())
    if parsed < total:
        read = present.values.filter(pa.array(found.parsed))
        others = cells.values.filter(pc.invert(pc.is_in(cells.values, value_set=read)))
        notes.append(unread_note(kind, total - parsed, total, others.slice(0, 3).to_pylist()))
    return Kind(kind, "", found.reading, tuple(notes), found.decided, found.is_open)


def unread_note(kind: str, unread: int, total: int, examples: list[str]) -> str:
    """What to say of cells that are no number or date."""
    return (
        f"has {unread} of {total} cells that are no {kind} and count as missing, such as "
        f"{listed(examples)}"
    )


def _words_kind(cells: _Cells, numeric: Any, reading: Reading) -> Kind:
    """The kind of strings that are neither numbers nor dates; `numeric`: the numbers among them."""
    number, total = len(cells.values), int(cells.counts.sum())
    breaks = pc.count_substring_regex(cells.values, r"[\s,;|]+")
    words = 1 + pc.mean(breaks).as_py()
    limit = total / 10 if words >= 4 else max(total / 2, min(10, total - 1))
    if number <= limit:
        return Kind("category", reading=reading)
    if pc.mean(pc.greater(breaks, 0)).as_py() >= 0.5:
        return Kind("text", reading=reading)
    if 0.5 < numeric.mean() < 1:
        other = cells.values.filter(pa.array(~numeric))[0].as_py()
        return Kind(
            None,
            f"holds numbers in most rows, but also {quoted(other)}: correct or empty such cells, "
            "or name the column in numeric_columns or categorical_columns",
        )
    return Kind(
        None,
        f"has {number} different values in {total} rows, like an id: name it in text_columns or "
        "categorical_columns to use it",
    )
