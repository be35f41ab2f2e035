"""Columns of an Arrow table as numbers or as strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lgcn.errors import DataError, UsageError, did_you_mean
from lgcn.tables.cell_options import Reading
from lgcn.tables.cells import Tally, read_cells, without_marks

MOST_LISTED = 20  # values in a message
LARGEST = 1e100  # squares of larger numbers leave float64 when deviations are computed

# What the cell of a missing id is called: the words of Arrow's CSV reader, and those that Python
# and pandas write. For features and labels see lgcn.tables.missing_words.
EMPTY_WORDS = pa.array(
    [*pyarrow.csv.ConvertOptions().null_values, "<NA>", "NaT", "None"], pa.large_string()
)
_BY_DEFAULT = Reading()
_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class CellError(DataError):
    """A cell that does not fit its column.

    Attributes:
        remedy: The message without the advice to read the column as another kind, which cannot be
            followed with an encoder that is fitted already.
    """

    def __init__(self, remedy: str, arguments: str) -> None:
        super().__init__(f"{remedy}, or name the column in {arguments}")
        self.remedy = remedy


def row_name(row: int, first_line: int | None = None) -> str:
    """How messages call a row: by its line in a text file, else by its position from 0."""
    return f"row {row}" if first_line is None else f"line {row + first_line}"


def quoted(value: Any) -> str:
    """A value in a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def listed(values: Sequence[Any], most: int = MOST_LISTED) -> str:
    """Values in a message, the first ones if there are many."""
    return ", ".join(map(quoted, values[:most])) + (", ..." if len(values) > most else "")


def column_hint(name: Any, columns: Iterable[str]) -> str:
    """The end of a message about a column that does not exist: the closest one, or the first ones.

    A name of a stranger's column may be long, or have line breaks in it.
    """
    known = [quoted(column)[1:-1] for column in columns] or ["none"]
    hint = did_you_mean(name, known)
    if len(known) <= MOST_LISTED or not hint.startswith("known"):
        return hint
    return did_you_mean(name, [*known[:MOST_LISTED], "..."])


def one_column(table: Any, name: str, argument: str) -> Any:
    """The column of that name; `argument` is where the user named it."""
    count = table.column_names.count(name)
    if count == 0:
        raise UsageError(
            f"{argument} names column {quoted(name)}, which is not in the table; "
            f"{column_hint(name, table.column_names)}"
        )
    if count > 1:
        raise DataError(f"the table has {count} columns {name!r}; rename all but one")
    return table.column(name)


def storage(column: Any) -> str:
    """How Arrow stores a column: number, date, vector, list, long, category, string, null, other.

    A list holds strings, and `long` features with values, see `lgcn.tables.list_encoder`.
    """
    kind = column.type
    types = pa.types
    if types.is_null(kind):
        return "null"
    if types.is_dictionary(kind):
        inner = kind.value_type
        plain = _is_string(inner) or _is_number(inner) or _is_date(inner)
        return "category" if plain and not _is_view(inner) else "other"
    if _is_string(kind):
        return "string"
    if _is_number(kind):
        return "number"
    if _is_date(kind):
        return "date"
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if lists and _is_number(kind.value_type):
        return "vector"
    if lists and _is_string(kind.value_type) and not _is_view(kind.value_type):
        return "list"
    if lists and types.is_struct(kind.value_type):
        names = [kind.value_type.field(i).name for i in range(kind.value_type.num_fields)]
        return "long" if names == ["feature", "value"] else "other"
    return "other"


def is_single(column: Any) -> bool:
    """Whether a cell is one value, which `texts` can read."""
    return storage(column) not in ("vector", "list", "long", "other")


def _is_string(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind)) or _is_view(kind)


def _is_view(kind: Any) -> bool:
    check = getattr(pa.types, "is_string_view", None)  # pyarrow 16 and later
    return check is not None and bool(check(kind))


def holds_texts(kind: Any) -> bool:
    """Whether a column of that type has strings in its cells, or lists of them."""
    if pa.types.is_nested(kind):
        return any(holds_texts(kind.field(i).type) for i in range(kind.num_fields))
    return _is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


def decoded(column: Any) -> Any:
    """Dictionaries of string views, which Arrow cannot decode, as strings; others as they are."""
    if not (pa.types.is_dictionary(column.type) and _is_view(column.type.value_type)):
        return column
    chunks = [c.dictionary.cast(pa.large_string()).take(c.indices) for c in column.chunks]
    return pa.chunked_array(chunks, pa.large_string())


def without_views(column: Any) -> Any:
    """String views, for which Arrow has few functions, as `large_string`; others as they are."""
    return column.cast(pa.large_string()) if _is_view(column.type) else column


def without_halves(column: Any) -> Any:
    """Floats of 16 bits, which older releases of Arrow do not cast, as float32; missing ones NaN.

    Others as they are.
    """
    if not pa.types.is_float16(column.type):
        return column
    return pa.chunked_array([pa.array(column.to_numpy(zero_copy_only=False).astype(np.float32))])


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _is_date(kind: Any) -> bool:
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def texts(column: Any) -> Any:
    """A column of single values as `large_string`; missing, NaN and blank cells are null.

    A number has one form, whatever the column's type: 1, 1.0 and "1" are all "1", since an integer
    column turns into floats when a cell is missing.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_float16(kind):
        column = without_halves(column)
    if pa.types.is_floating(column.type):
        nan = pc.is_nan(column)
        zero = pc.equal(column, pa.scalar(0, column.type))  # -0.0 would be "-0"
        column = pc.if_else(zero, pa.scalar(0, column.type), column)
        column = pc.if_else(nan, pa.scalar(None, column.type), column)
    column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.large_string()), column)


def numbers(
    column: Any,
    kind: str,
    name: str,
    width: int,
    where: Callable[[int], str],
    reading: Reading = _BY_DEFAULT,
    unread: Tally | None = None,
) -> Any:
    """A column as float64 in shape [rows, width], NaN if a value is missing.

    Args:
        column: The column, or some rows of it.
        kind: number, date (seconds since 1970) or vector.
        name: The column's name, for messages.
        width: Numbers in a row.
        where: How messages call a row of `column`.
        reading: How numbers and dates in strings are written. (default: as a program does)
        unread: Counts strings that are no number or date, which are missing values then.
            (default: they are an error)
    """
    stored = storage(column)
    if stored == "category":
        column = column.cast(column.type.value_type)
        stored = storage(column)
    if stored == "null":
        return np.full((len(column), width), np.nan)
    if stored == "string" and kind in ("number", "date"):
        cells = texts(column)
        values, wrong = read_cells(cells, kind, reading)
        if len(wrong) and unread is None:
            row = int(wrong[0])
            raise CellError(
                f"column {name!r}, {where(row)}: want "
                f"{'a number' if kind == 'number' else 'a date such as 2024-12-31'}, got "
                f"{quoted(cells[row].as_py())}. Correct or empty the cell",
                "categorical_columns, text_columns or ignore_columns",
            )
        if unread is not None:
            unread.add(cells.take(pa.array(wrong)))
    elif stored != kind:
        raise DataError(
            f"column {name!r} must hold {_WANTED[kind]}, got {column.type}; "
            "give it the type it had in training"
        )
    elif kind == "vector":
        return _vectors(column, name, width, where, reading)
    elif kind == "date":
        values = without_marks(_seconds(column), kind, reading)
    else:
        values = _floats(column)
        if not pa.types.is_boolean(column.type):
            values = without_marks(values, kind, reading)
    _check_finite(values[:, None], name, where)
    return values[:, None]


_WANTED = {
    "number": "numbers",
    "date": "dates or times",
    "vector": "lists of numbers",
}


def _floats(column: Any) -> Any:
    if pa.types.is_float16(column.type):  # older releases of Arrow do not cast it
        return column.to_numpy().astype(np.float64)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    column = column.cast(pa.float64(), safe=False)
    if column.null_count:
        column = pc.fill_null(column, np.nan)
    return column.to_numpy()


def _seconds(column: Any) -> Any:
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
        kind = column.type
    if pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    return _floats(column.cast(pa.int64())) / _SECONDS[kind.unit]


def _vectors(
    column: Any, name: str, width: int, where: Callable[[int], str], reading: Reading
) -> Any:
    values = np.full((len(column), width), np.nan)
    lengths = pc.list_value_length(column)
    present = pc.is_valid(column).to_numpy()
    wrong = pc.fill_null(pc.not_equal(lengths, width), False).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise CellError(
            f"column {name!r}, {where(row)}: want a list of {width} numbers "
            f"as in the rows before or in training, got {lengths[row].as_py()}. Correct the row",
            "list_columns or ignore_columns",
        )
    if width:
        flat = [_floats(pa.chunked_array([chunk.flatten()])) for chunk in column.chunks]
        if flat:
            values[present] = np.concatenate(flat).reshape(-1, width)
            values = without_marks(values, "number", reading)
    _check_finite(values, name, where)
    return values


def _check_finite(values: Any, name: str, where: Callable[[int], str]) -> None:
    wrong = np.abs(values) > LARGEST  # also true of infinity, not of NaN
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise CellError(
            f"column {name!r}, {where(int(row))}: want a finite number of at "
            f"most {LARGEST:g}, got {values[row, place]}. Correct or empty the cell",
            "ignore_columns",
        )
