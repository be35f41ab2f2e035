"""Cutting the rows of a matrix, or of a table, into blocks that are worked on one at a time."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any


def row_blocks(
    num_rows: int, size: int, *, at_least_one: bool = False
) -> Iterator[tuple[int, int]]:
    """Cuts rows into blocks [start, stop) of `size` rows; the last one may be shorter.

    Args:
        num_rows: Number of rows.
        size: Rows per block. Anything below 1 counts as 1.
        at_least_one: Yields one empty block if there are no rows, for callers that write the same
            file header with and without rows. (default: `False`)
    """
    size = max(1, size)
    for start in range(0, max(num_rows, int(at_least_one)), size):
        yield start, min(start + size, num_rows)


def row_blocks_within(
    limit: int, num_rows: int, row_cost: int, rowptr: Any = None, entry_cost: int = 0
) -> Iterator[tuple[int, int]]:
    """Cuts rows into blocks [start, stop) that cost at most `limit`, each as large as possible.

    A block of one row may cost more. `rowptr` is read by bisection, in few places, so that a
    memory-mapped one stays on disk.

    Args:
        limit: What a block may cost, for example in bytes.
        num_rows: Number of rows.
        row_cost: What each row costs.
        rowptr: Row offsets of a sparse matrix, whose entries cost something as well.
            (default: none)
        entry_cost: What each of these entries costs. (default: 0)
    """
    largest = limit // max(1, row_cost)
    if rowptr is None:
        yield from row_blocks(num_rows, largest)
        return
    start = 0
    while start < num_rows:
        first, first_entry = start, int(rowptr[start])

        def cost(stop: int, first: int = first, first_entry: int = first_entry) -> int:
            return (stop - first) * row_cost + entry_cost * (int(rowptr[stop]) - first_entry)

        stop = min(num_rows, start + max(1, largest))
        stop = start + max(1, bisect_right(range(start + 1, stop + 1), limit, key=cost))
        yield start, stop
        start = stop
