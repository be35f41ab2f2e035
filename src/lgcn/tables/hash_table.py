"""A hash table from strings to their numbers, with open addressing, as kernels over plain arrays.

String i is the bytes of `data` from `first[i]` to `first[i + 1]`. A slot is empty, or holds a
string's number and half of its hash. `lgcn.tables.ids.NodeIndex` fills a table once,
`lgcn.store.growing_index.GrowingIndex` adds to it.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.share import share
from lgcn.utils.splitmix import STEP, mix

EMPTY = -1
NUMBER = (1 << 32) - 1  # the half of a slot with the string's number; the other is of its hash
_BLOCK = 256


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
def _hash(data: Any, start: int, end: int) -> Any:
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
def _slot_of(h: int, data: Any, start: int, end: int, first: Any, known: Any, slots: Any) -> Any:
    """The slot of a string with hash h, or the empty slot where it belongs."""
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
def fill_slots(first: Any, data: Any, slots: Any) -> Any:
    """Puts all strings into empty slots; returns the first two that are equal, else -1 and -1."""
    for i in range(first.shape[0] - 1):
        h = _hash(data, first[i], first[i + 1])
        place = _slot_of(h, data, first[i], first[i + 1], first, data, slots)
        if slots[place] != EMPTY:
            return slots[place] & NUMBER, i
        slots[place] = (h & ~NUMBER) | i
    return -1, -1


@jit
def add_to_slots(
    wanted_first: Any,
    wanted: Any,
    new: Any,
    first: Any,
    data: Any,
    slots: Any,
    size: int,
    found: Any,
) -> Any:
    """Adds the strings numbered `new` to a table of `size` strings that has room for them.

    Writes their numbers to `found`, and gives the new size. Texts may be equal.
    """
    for i in new:
        start, end = wanted_first[i], wanted_first[i + 1]
        h = _hash(wanted, start, end)
        place = _slot_of(h, wanted, start, end, first, data, slots)
        if slots[place] == EMPTY:  # else it was added a moment ago
            slots[place] = (h & ~NUMBER) | size
            at = first[size]
            for e in range(start, end):
                data[at + e - start] = wanted[e]
            size += 1
            first[size] = at + end - start
        found[i] = slots[place] & NUMBER
    return size


@jit_parallel
def find_in_slots(
    wanted_first: Any, wanted: Any, first: Any, data: Any, slots: Any, found: Any, part: Any
) -> None:
    """Writes the number of each wanted string to `found`, -1 if it is not in the table.

    Most of the time is spent waiting for memory. So a block of texts goes step by step: the loads
    of a step do not depend on each other, and the processor waits for many of them at once.
    """
    last = slots.shape[0] - 1
    for block in share(-(-found.shape[0] // _BLOCK), part):
        start = block * _BLOCK
        size = min(_BLOCK, found.shape[0] - start)
        hashes = np.empty(_BLOCK, np.int64)
        loaded = np.empty(_BLOCK, np.int64)
        for i in range(size):
            hashes[i] = _hash(wanted, wanted_first[start + i], wanted_first[start + i + 1])
        for i in range(size):
            loaded[i] = slots[hashes[i] & last]
        for i in range(size):
            loaded[i] = first[loaded[i] & NUMBER if loaded[i] != EMPTY else 0]
        for i in range(size):
            begin, end = wanted_first[start + i], wanted_first[start + i + 1]
            place = _slot_of(hashes[i], wanted, begin, end, first, data, slots)
            found[start + i] = -1 if slots[place] == EMPTY else slots[place] & NUMBER
