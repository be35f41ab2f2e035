"""The ids that users give to nodes, and the numbers of the nodes by them."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from lgcn.errors import DataError
from lgcn.tables.columns import quoted, without_halves, without_views
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.splitmix import STEP, mix

EMPTY = -1
_BLOCK = 256
NUMBER = (1 << 32) - 1  # the half of a slot with the node's number; the other is of its hash

_MAX_INT64 = pa.scalar(2**63 - 1, pa.uint64())


def to_ids(column: Any, where: Callable[[int], str], *, integer: bool | None = None) -> Any:
    """A column of ids as one Arrow array of int64, string or large_string.

    Whole numbers may be stored as floats, as pandas does where a cell is missing. Missing entries
    stay missing.

    Args:
        column: An Arrow array or chunked array.
        where: Says where an entry is, for messages.
        integer: Which of the two kinds to return, ``False`` for texts. (default: the column's)
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
            f"{where(0)}: ids must be whole numbers or texts, got {kind}. Change the column, or "
            "name another one"
        )
    too_large = pc.greater(column, _MAX_INT64) if column.type == pa.uint64() else None
    if integer is None:
        fits = too_large is None or not pc.any(too_large).as_py()
        integer = pa.types.is_integer(column.type) and fits
    if integer and is_text(column.type):
        wrong = pc.invert(pc.match_substring_regex(column, r"^-?\d{1,18}$"))
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

    Integers from a range that is not much larger than their number are looked up in a table over
    that range, all else in a hash table, integers as texts of eight bytes.

    Args:
        ids: The ids of nodes 0, 1, ...: an Arrow array of int64, string or large_string that has
            no missing entry.

    Attributes:
        repeated: The places of the first two entries that are the same, ``None`` where all differ.
        example: One of the ids, ``None`` where there are none.
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
            repeated = _fill_slots(*self._texts, slots)
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
    # Copies and views as they are here have one type each for Numba, which would compile others.
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
def _find_in_table(ids: Any, low: int, table: Any, found: Any) -> None:
    high = low + (table.shape[0] - 1)  # the largest id, so that it fits into 64 bits
    for i in numba.prange(ids.shape[0]):
        # Not by the difference, which may not fit.
        if low <= ids[i] <= high:
            found[i] = table[ids[i] - low]
        else:
            found[i] = -1


@intrinsic
def _word(typing_context: Any, data: Any, place: Any) -> Any:
    """Eight bytes from data[place] on, as one integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


@jit
def _short_word(data: Any, start: int, end: int) -> Any:
    """The same of at most eight bytes, zeros behind them."""
    word = np.uint64(0)
    for at in range(end - 1, start - 1, -1):
        word = (word << np.uint64(8)) | np.uint64(data[at])
    return word


@jit
def hash_bytes(data: Any, start: int, end: int) -> Any:
    size = end - start
    if size < 8:
        return np.int64(mix(_short_word(data, start, end) ^ (np.uint64(size) * STEP)))
    h = np.uint64(size) * STEP
    for at in range(start, end - 8, 8):
        h = mix(h ^ _word(data, at)) + STEP
    return np.int64(mix(h ^ _word(data, end - 8)))  # which may overlap the one before


@jit
def _same(a: Any, a_start: int, b: Any, b_start: int, size: int) -> Any:
    if size < 8:
        return _short_word(a, a_start, a_start + size) == _short_word(b, b_start, b_start + size)
    for i in range(0, size - 8, 8):
        if _word(a, a_start + i) != _word(b, b_start + i):
            return False
    return _word(a, a_start + size - 8) == _word(b, b_start + size - 8)


@jit
def slot_of(h: int, data: Any, start: int, end: int, first: Any, known: Any, slots: Any) -> Any:
    """The slot of a text with hash h, an empty one where it is not there."""
    last = slots.shape[0] - 1
    place = h & last
    while slots[place] != EMPTY:
        if (slots[place] ^ h) >> 32 == 0:
            number = slots[place] & NUMBER
            other = first[number]
            size = first[number + 1] - other
            if size == end - start and _same(known, other, data, start, size):
                break
        place = (place + 1) & last
    return place


@jit
def _fill_slots(first: Any, data: Any, slots: Any) -> Any:
    for i in range(first.shape[0] - 1):
        h = hash_bytes(data, first[i], first[i + 1])
        place = slot_of(h, data, first[i], first[i + 1], first, data, slots)
        if slots[place] != EMPTY:
            return slots[place] & NUMBER, i
        slots[place] = (h & ~NUMBER) | i
    return -1, -1


@jit_parallel
def find_in_slots(
    wanted_first: Any, wanted: Any, first: Any, data: Any, slots: Any, found: Any
) -> None:
    """Most of the time goes by waiting for memory. So a block of ids goes step by step: the loads
    of a step do not depend on each other, and the processor waits for many of them at once.
    """
    last = slots.shape[0] - 1
    for block in numba.prange(-(-found.shape[0] // _BLOCK)):
        start = block * _BLOCK
        size = min(_BLOCK, found.shape[0] - start)
        hashes = np.empty(_BLOCK, np.int64)
        loaded = np.empty(_BLOCK, np.int64)
        for i in range(size):
            hashes[i] = hash_bytes(wanted, wanted_first[start + i], wanted_first[start + i + 1])
        for i in range(size):
            loaded[i] = slots[hashes[i] & last]
        for i in range(size):
            loaded[i] = first[loaded[i] & NUMBER if loaded[i] != EMPTY else 0]
        for i in range(size):
            begin, end = wanted_first[start + i], wanted_first[start + i + 1]
            place = slot_of(hashes[i], wanted, begin, end, first, data, slots)
            found[start + i] = -1 if slots[place] == EMPTY else slots[place] & NUMBER
