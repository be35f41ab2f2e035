"""The ids that users give to nodes, and the node numbers they stand for."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.errors import DataError
from lgcn.tables.columns import quoted, without_halves, without_views
from lgcn.tables.hash_table import EMPTY, fill_slots, find_in_slots
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.share import share

_MAX_INT64 = pa.scalar(2**63 - 1, pa.uint64())
_LARGEST_TEXT = str(2**63 - 1)  # of 19 digits, which sort as strings


def to_ids(column: Any, where: Callable[[int], str], *, integer: bool | None = None) -> Any:
    """A column of ids as one Arrow array of int64, string or large_string.

    Whole numbers may be stored as floats, as pandas does if a cell is missing. Missing entries
    stay missing.

    Args:
        column: An Arrow array or chunked array.
        where: Says where an entry is, for messages.
        integer: Whether to return integers, else strings. (default: as the column is)
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = without_views(without_halves(column))
    kind = column.type
    if pa.types.is_floating(kind) and integer is not False:
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        _refuse(column, pc.not_equal(column, pc.floor(column)), "a whole number or text", where)
        _refuse(column, pc.greater(pc.abs(column), 2.0**53), "at most 2**53 as a float", where)
        column = column.cast(pa.int64())
    elif pa.types.is_null(kind):
        column = column.cast(pa.int64() if integer else pa.string())
    elif not pa.types.is_integer(kind) and not is_text(kind):
        raise DataError(
            f"{where(0)}: ids must be whole numbers or strings, got {kind}. Change the column, or "
            "name another one"
        )
    too_large = pc.greater(column, _MAX_INT64) if column.type == pa.uint64() else None
    if integer is None:
        fits = too_large is None or not pc.any(too_large).as_py()
        integer = pa.types.is_integer(column.type) and fits
    if integer and is_text(column.type):
        digits = pc.utf8_ltrim(column, "-")
        too_long = pc.and_(pc.equal(pc.utf8_length(digits), 19), pc.greater(digits, _LARGEST_TEXT))
        whole = pc.match_substring_regex(column, r"^-?\d{1,19}$")
        wrong = pc.or_(pc.invert(whole), too_long)
        _refuse(column, wrong, "a whole number as the ids of the node table are", where)
    if integer:
        if too_large is not None:
            _refuse(column, too_large, "below 2**63", where)
        column = column.cast(pa.int64())
    elif not pa.types.is_string(column.type):
        column = column.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks > 1 and pa.types.is_string(column.type):
            column = column.cast(pa.large_string())  # together they may have more than 2 GB
        column = column.combine_chunks()
    return column


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _refuse(column: Any, wrong: Any, wanted: str, where: Callable[[int], str]) -> None:
    place = pc.index(wrong, True).as_py()
    if place >= 0:
        raise DataError(
            f"{where(place)}: an id must be {wanted}, got {quoted(column[place].as_py())}. "
            "Write the ids of both tables alike, all as whole numbers or all as text, or name "
            "another column"
        )


class NodeIndex:
    """The numbers of nodes by their ids.

    Integers from a range that is not much larger than their count are looked up in an array over
    that range. All else is looked up in a hash table, integers as strings of eight bytes.

    Args:
        ids: The ids of nodes 0, 1, ...: an Arrow array of int64, string or large_string that has
            no missing entry.

    Attributes:
        repeated: The positions of the first two equal entries, `None` if all differ.
        example: One of the ids, `None` if there are none.
    """

    def __init__(self, ids: Any) -> None:
        self.integer = pa.types.is_integer(ids.type)
        self.example = ids[0].as_py() if len(ids) else None
        self._low = 0
        self._table: Any = None
        self._texts: Any = None
        repeated = (-1, -1)
        if self.integer and len(ids):
            numbers = as_integers(ids)
            low, high = int(numbers.min()), int(numbers.max())
            if high - low < 4 * len(ids) + 1024:
                self._low, self._table = low, np.full(high - low + 1, -1, np.int32)
                repeated = _fill_table(numbers, low, self._table)
        if self._table is None:
            self._texts = bytes_of(ids)
            slots = np.full(1 << max(4, (2 * len(ids)).bit_length()), EMPTY, np.int64)
            repeated = fill_slots(*self._texts, slots)
            self._slots = slots
        self.repeated: tuple[int, int] | None = repeated if repeated[0] >= 0 else None

    def find(self, ids: Any) -> Any:
        """Node numbers (int32) of an array of the same kind, -1 for ids that no node has."""
        found = np.empty(len(ids), np.int32)
        if self._table is not None:
            _find_in_table(as_integers(ids), self._low, self._table, found)
        else:
            find_in_slots(*bytes_of(ids), *self._texts, self._slots, found)
        return found


def as_integers(ids: Any) -> Any:
    """A view of an Arrow array of int64."""
    return np.frombuffer(ids.buffers()[1] or b"", np.int64)[ids.offset : ids.offset + len(ids)]


def bytes_of(ids: Any) -> tuple[Any, Any]:
    """Entry i of an Arrow array are the bytes of the second from first[i] to first[i + 1]."""
    if pa.types.is_integer(ids.type):
        return np.arange(len(ids) + 1, dtype=np.int64) * 8, as_integers(ids).view(np.uint8)
    # These copies and views have one type each, so that Numba compiles one version.
    width = np.int32 if pa.types.is_string(ids.type) else np.int64
    _, first, data = ids.buffers()
    view = np.frombuffer(data or b"", np.uint8)
    if len(ids) == 0:  # Arrow may then leave out the zero
        return np.zeros(1, np.int64), view
    first = np.frombuffer(first, width)[ids.offset : ids.offset + len(ids) + 1]
    return first.astype(np.int64), view


@jit
def _fill_table(ids: Any, low: int, table: Any) -> Any:
    for i in range(ids.shape[0]):
        other = table[ids[i] - low]
        if other >= 0:
            return other, i
        table[ids[i] - low] = i
    return -1, -1


@jit_parallel
def _find_in_table(ids: Any, low: int, table: Any, found: Any, part: Any) -> None:
    high = low + (table.shape[0] - 1)  # the largest id, so that it fits into 64 bits
    for i in share(ids.shape[0], part):
        # Not by the difference, which may not fit.
        if low <= ids[i] <= high:
            found[i] = table[ids[i] - low]
        else:
            found[i] = -1
