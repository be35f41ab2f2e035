"""The kind of feature that a column is: as the user says, or guessed from type and values."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow.compute as pc

from lgcn.errors import UsageError
from lgcn.tables.columns import EMPTY_WORDS, is_single, parses, quoted, storage, texts

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"
_NAMED = {
    "numeric_columns": ("number", "numbers, dates or lists of numbers"),
    "categorical_columns": ("category", "one value per cell"),
    "text_columns": ("text", "strings"),
    "list_columns": ("list", "lists, or strings such as a;b;c"),
}


class Kind(NamedTuple):
    """number, date, vector, list, long, category or text; `None`, with the reason, if left out."""

    kind: str | None
    reason: str = ""


def named_kind(column: Any, rows: Any, name: str, argument: str) -> Kind:
    """The kind of a column that the user named in `argument`, which it must fit."""
    kind, wanted = _NAMED[argument]
    if kind == "number":
        if storage(column) == "category":
            column = column.cast(column.type.value_type)
        found = infer(column, rows)
        if found.kind in ("number", "date", "vector"):
            return found
    if kind == "list" and storage(column) in ("list", "vector"):  # of words, or of ids
        return Kind("list")
    if not is_single(column):
        raise UsageError(f"{argument} names {name!r}, which holds {column.type}; want {wanted}")
    return Kind(kind)


def infer(column: Any, rows: Any) -> Kind:
    """The kind of feature that a column is, guessed from the training rows and unlabelled rows.

    Numbers, dates and lists of numbers are what they are, and a dictionary column is a category.
    Texts are numbers or dates if all of them can be read as such (not numbers with leading zeros,
    which are codes). Else they are

    * left out if all are numbers, but some with a comma, which would be taken for words;
    * a category if values repeat: at most half as many distinct ones as rows, or ten if there are
      few rows; a tenth as many if they have four words or more on average;
    * text if half of the distinct values have several words (separated by blanks, commas,
      semicolons or bars);
    * an id otherwise, which is left out.

    Args:
        column: The column, no string views.
        rows: Arrow array of booleans.
    """
    stored = storage(column)
    if stored in ("number", "date", "vector", "list", "long", "category"):
        return Kind(stored)
    if stored == "null":
        return Kind(None, "is empty")
    if stored == "other":
        return Kind(None, f"has the type {column.type}, which cannot be a feature")
    cells = texts(column.filter(rows)).drop_null()
    if not len(cells):
        return Kind(None, "is empty in the rows used for fitting")
    distinct = pc.unique(cells)
    if parses(distinct, "date"):
        return Kind("date")
    numeric = pc.or_(
        pc.is_in(distinct, value_set=EMPTY_WORDS),
        pc.match_substring_regex(distinct, f"^{_NUMBER}$"),
    )
    if pc.all(numeric).as_py():
        if not pc.any(pc.match_substring_regex(distinct, r"^[-+]?0\d")).as_py():
            return Kind("number")
    else:
        comma = pc.match_substring_regex(distinct, f"^([-+]?\\d+,\\d+|{_THOUSANDS})$")
        if pc.all(pc.or_(numeric, comma)).as_py():
            grouped = pc.match_substring_regex(distinct.filter(comma), f"^{_THOUSANDS}$")
            right = "without the comma" if pc.all(grouped).as_py() else "with a point"
            return Kind(
                None,
                f"holds numbers with a comma such as {quoted(_first(distinct, comma))}: write them "
                f"{right}, or name the column in categorical_columns or text_columns",
            )
    breaks = pc.count_substring_regex(distinct, r"[\s,;|]+")
    words = 1 + pc.mean(breaks).as_py()
    limit = len(cells) / 10 if words >= 4 else max(len(cells) / 2, min(10, len(cells) - 1))
    if len(distinct) <= limit:
        return Kind("category")
    if pc.mean(pc.greater(breaks, 0)).as_py() >= 0.5:
        return Kind("text")
    if 0.5 < pc.mean(numeric).as_py() < 1:
        return Kind(
            None,
            f"holds numbers in most rows, but also {quoted(_first(distinct, pc.invert(numeric)))}: "
            "correct or empty such cells, or name the column in categorical_columns",
        )
    return Kind(
        None,
        f"has {len(distinct)} different values in {len(cells)} rows, like an id: name it in "
        "text_columns or categorical_columns to use it",
    )


def _first(values: Any, where: Any) -> Any:
    return values.filter(where)[0].as_py()
