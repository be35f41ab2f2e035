"""Which nodes are in the halo of which part, and the rows of a shard: the kernels.

A halo is a set of bits with the number of bits before each word, so that the place of a node in it
is found at once: three bits per node and part in all. Kernels take a block of rows of the whole
graph: `rowptr` is a piece of its offsets, `col` are the block's entries.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lgcn.utils.jit import jit

BITS = 64  # of a word
_ONE = np.uint64(1)
_LAST = np.uint64(63)
_SHIFT = np.uint64(6)


class Halos:
    """The halos of some neighbouring parts.

    Args:
        part: The part of each node, int32.
        first, last: The parts, `last` exclusive.

    Attributes:
        local: The place of each node among those of its part.
        owned: The number of nodes of each part.
        size: The number of nodes of each halo, once all rows are marked.
        entries, cut: For each part, entries of its rows, and those that lead to its halo.
    """

    def __init__(self, part: Any, local: Any, owned: Any, first: int, last: int) -> None:
        self.part, self.local, self.first, self.last = part, local, first, last
        self.owned = owned[first:last]
        count, words = last - first, -(-len(part) // BITS)
        self.bits = np.zeros((count, words), np.uint64)
        self.before = np.zeros((count, words), np.int32)
        self.size = np.zeros(count, np.int64)
        self.entries = np.zeros(count, np.int64)
        self.cut = np.zeros(count, np.int64)

    def mark(self, row: int, rowptr: Any, col: Any) -> None:
        """Takes in the rows from `row` on."""
        _mark(row, rowptr, col, self.part, self.first, self.bits, self.entries, self.cut)

    def number(self) -> None:
        """Counts the nodes, once all rows are marked."""
        _number(self.bits, self.before, self.size)

    def nodes(self, number: int, start: int, stop: int) -> Any:
        """The nodes from `start` up to `stop` in the halo of a part, less `start`."""
        low = start // BITS
        words = self.bits[number - self.first, low : -(-stop // BITS)]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[start - low * BITS : stop - low * BITS])

    def rows(
        self, row: int, rowptr: Any, col: Any, weight: Any, *, owned: bool
    ) -> list[tuple[Any, Any, Any]]:
        """The rows from `row` on as the shards have them: (entries per row, col, weight) of each.

        Args:
            row: The first row.
            rowptr, col, weight: The rows; without weights, an empty array.
            owned: Those of the nodes of each part, in full; else those of the nodes in its halo,
                with their entries to the part and to themselves.
        """
        sizes = np.zeros((self.last - self.first, 2), np.int64)
        rest = (self.part, self.first, self.local, self.owned, self.bits, self.before)
        count, fill = (_count_owned, _fill_owned) if owned else (_count_halo, _fill_halo)
        count(row, rowptr, col, *rest, sizes)
        starts = np.zeros((len(sizes) + 1, 2), np.int64)
        np.cumsum(sizes, axis=0, out=starts[1:])
        lengths = np.empty(starts[-1, 0], np.int64)
        new_col = np.empty(starts[-1, 1], col.dtype)
        new_weight = np.empty(starts[-1, 1] if len(weight) else 0, np.float32)
        fill(row, rowptr, col, weight, *rest, starts[:-1].copy(), lengths, new_col, new_weight)
        return [
            (
                lengths[first[0] : last[0]],
                new_col[first[1] : last[1]],
                new_weight[first[1] : last[1]] if len(weight) else new_weight,
            )
            for first, last in itertools.pairwise(starts)
        ]


@jit
def place_nodes(part: Any, local: Any, owned: Any) -> None:
    """Numbers the nodes of each part in their order, and counts them."""
    for node in range(part.shape[0]):
        p = part[node]
        local[node] = owned[p]
        owned[p] += 1


@jit
def _mark(
    row: int, rowptr: Any, col: Any, part: Any, first: int, bits: Any, entries: Any, cut: Any
) -> None:
    base = rowptr[0]
    for i in range(rowptr.shape[0] - 1):
        own = part[row + i]
        p = own - first
        if p < 0 or p >= bits.shape[0]:
            continue
        entries[p] += rowptr[i + 1] - rowptr[i]
        for e in range(rowptr[i] - base, rowptr[i + 1] - base):
            c = np.uint64(col[e])
            if part[c] != own:
                cut[p] += 1
                bits[p, c >> _SHIFT] |= _ONE << (c & _LAST)


@jit
def _ones(word: Any) -> Any:
    """The number of bits that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@jit
def _number(bits: Any, before: Any, size: Any) -> None:
    for p in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            before[p, word] = size[p]
            size[p] += _ones(bits[p, word])


@jit
def _inside(bits: Any, p: int, node: Any) -> Any:
    """Whether a node is in the halo of a part."""
    node = np.uint64(node)
    return (bits[p, node >> _SHIFT] >> (node & _LAST)) & _ONE != 0


@jit
def _place(bits: Any, before: Any, p: int, node: Any) -> Any:
    """The place of a node in the halo of a part."""
    node = np.uint64(node)
    word = node >> _SHIFT
    lower = bits[p, word] & ((_ONE << (node & _LAST)) - _ONE)
    return before[p, word] + _ones(lower)


@jit
def _count_owned(
    row: int,
    rowptr: Any,
    col: Any,
    part: Any,
    first: int,
    local: Any,
    owned: Any,
    bits: Any,
    before: Any,
    sizes: Any,
) -> None:
    for i in range(rowptr.shape[0] - 1):
        p = part[row + i] - first
        if 0 <= p < sizes.shape[0]:
            sizes[p, 0] += 1
            sizes[p, 1] += rowptr[i + 1] - rowptr[i]


@jit
def _fill_owned(
    row: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    part: Any,
    first: int,
    local: Any,
    owned: Any,
    bits: Any,
    before: Any,
    at: Any,
    lengths: Any,
    new_col: Any,
    new_weight: Any,
) -> None:
    base = rowptr[0]
    for i in range(rowptr.shape[0] - 1):
        own = part[row + i]
        p = own - first
        if p < 0 or p >= at.shape[0]:
            continue
        lengths[at[p, 0]] = rowptr[i + 1] - rowptr[i]
        at[p, 0] += 1
        to = at[p, 1]
        for e in range(rowptr[i] - base, rowptr[i + 1] - base):
            c = col[e]
            if part[c] == own:
                new_col[to] = local[c]
            else:
                new_col[to] = owned[p] + _place(bits, before, p, c)
            if weight.shape[0]:
                new_weight[to] = weight[e]
            to += 1
        at[p, 1] = to


@jit
def _count_halo(
    row: int,
    rowptr: Any,
    col: Any,
    part: Any,
    first: int,
    local: Any,
    owned: Any,
    bits: Any,
    before: Any,
    sizes: Any,
) -> None:
    base = rowptr[0]
    for i in range(rowptr.shape[0] - 1):
        node = row + i
        halos = 0
        for p in range(sizes.shape[0]):
            if _inside(bits, p, node):
                sizes[p, 0] += 1
                halos += 1
        if halos == 0:
            continue
        for e in range(rowptr[i] - base, rowptr[i + 1] - base):
            c = col[e]
            if c == node:
                for p in range(sizes.shape[0]):
                    sizes[p, 1] += _inside(bits, p, node)
                continue
            p = part[c] - first
            if 0 <= p < sizes.shape[0] and _inside(bits, p, node):
                sizes[p, 1] += 1


@jit
def _fill_halo(
    row: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    part: Any,
    first: int,
    local: Any,
    owned: Any,
    bits: Any,
    before: Any,
    at: Any,
    lengths: Any,
    new_col: Any,
    new_weight: Any,
) -> None:
    base = rowptr[0]
    weighted = weight.shape[0] > 0
    start = np.empty(at.shape[0], np.int64)  # of the row in each part
    for i in range(rowptr.shape[0] - 1):
        node = row + i
        halos = 0
        for p in range(at.shape[0]):
            start[p] = at[p, 1]
            halos += _inside(bits, p, node)
        if halos == 0:
            continue
        for e in range(rowptr[i] - base, rowptr[i + 1] - base):
            c = col[e]
            if c == node:
                for p in range(at.shape[0]):
                    if _inside(bits, p, node):
                        new_col[at[p, 1]] = owned[p] + _place(bits, before, p, node)
                        if weighted:
                            new_weight[at[p, 1]] = weight[e]
                        at[p, 1] += 1
                continue
            p = part[c] - first
            if 0 <= p < at.shape[0] and _inside(bits, p, node):
                new_col[at[p, 1]] = local[c]
                if weighted:
                    new_weight[at[p, 1]] = weight[e]
                at[p, 1] += 1
        for p in range(at.shape[0]):
            if _inside(bits, p, node):
                lengths[at[p, 0]] = at[p, 1] - start[p]
                at[p, 0] += 1
