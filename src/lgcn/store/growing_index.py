"""Node numbers for ids in the order in which they first occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError
from lgcn.tables.hash_table import EMPTY, add_to_slots, fill_slots, find_in_slots
from lgcn.tables.ids import bytes_of
from lgcn.utils.limits import MAX_NODES
from lgcn.utils.sizes import format_memory


class GrowingIndex:
    """Gives ids the numbers 0, 1, ... in the order in which they first occur.

    It is the hash table of `lgcn.tables.ids.NodeIndex`, with arrays that grow in place.

    Args:
        integer: Whether ids are whole numbers, else strings.
        memory: Bytes that it may use.
    """

    def __init__(self, *, integer: bool, memory: int) -> None:
        self.integer = integer
        self._memory = memory
        self._size = 0
        self._first = np.zeros(1, np.int64)
        self._data = np.empty(0, np.uint8)
        self._slots = np.full(16, EMPTY, np.int64)

    def __len__(self) -> int:
        return self._size

    def number(self, *columns: Any) -> Any:
        """Node numbers (int32) of Arrow arrays of one length, [columns, length].

        New ids are added row by row, so that their numbers do not depend on the batch size.

        Args:
            *columns: All of int64, or all of string and large_string; without missing entries.
        """
        if len({column.type for column in columns}) > 1:
            columns = tuple(column.cast(pa.large_string()) for column in columns)
        first, data = bytes_of(pa.concat_arrays(columns))
        found = self._find(first, data)
        table = found.reshape(len(columns), -1)
        if (found < 0).any():
            rows, column = np.nonzero(table.T < 0)
            new = column * table.shape[1] + rows
            self._reserve(len(new), int((first[new + 1] - first[new]).sum()))
            self._size = add_to_slots(
                first, data, new, self._first, self._data, self._slots, self._size, found
            )
        return table

    def find(self, ids: Any) -> Any:
        """Node numbers (int32) of an array of the same kind, -1 for ids that no node has."""
        return self._find(*bytes_of(ids))

    def _find(self, first: Any, data: Any) -> Any:
        found = np.full(len(first) - 1, -1, np.int32)
        if self._size:
            known = self._first[: self._size + 1]
            find_in_slots(first, data, known, self._data, self._slots, found)
        return found

    def _reserve(self, count: int, num_bytes: int) -> None:
        """Makes room for up to `count` more ids of `num_bytes` in total."""
        size = self._size + count
        end = int(self._first[self._size]) + num_bytes
        slots = max(16, 1 << (2 * size - 1).bit_length())
        first_size, data_size = len(self._first), len(self._data)
        if size + 1 > first_size:
            first_size = max(size + 1, min(2 * first_size, first_size + (1 << 22)))
        if end > data_size:
            data_size = max(end, min(2 * data_size, data_size + (1 << 25)))
        needed = 8 * first_size + data_size + 8 * max(slots, len(self._slots))
        if needed > self._memory or size > MAX_NODES:
            self._refuse(size, needed)
        # Not copied: realloc moves pages of large arrays to another address.
        self._first.resize(first_size, refcheck=False)
        self._data.resize(data_size, refcheck=False)
        if slots > len(self._slots):
            self._slots = np.empty(0, np.int64)  # before the new ones are there
            self._slots = np.full(slots, EMPTY, np.int64)
            fill_slots(self._first[: self._size + 1], self._data, self._slots)

    def _refuse(self, size: int, needed: int) -> None:
        if size > MAX_NODES:
            raise DataError(f"there must be at most {MAX_NODES} different ids of nodes, got more")
        raise DataError(
            f"the ids of the nodes do not fit into the allowed memory: {size} ids need "
            f"{format_memory(needed)}, and there may be more; {format_memory(self._memory)} are "
            "left for them. Raise memory, or number the nodes 0, 1, ..., which needs "
            "no table of ids"
        )

    def ids(self) -> Any:
        """The ids by number: an Arrow array of int64 or large_string, a view."""
        if self.integer:
            data = self._data[: 8 * self._size].view(np.int64)
            return pa.Array.from_buffers(pa.int64(), self._size, [None, pa.py_buffer(data)])
        buffers = [None, pa.py_buffer(self._first), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.large_string(), self._size, buffers)
