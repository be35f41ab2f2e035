"""From the ids in edges to node numbers, with or without a node table."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError
from lgcn.store.edge_spool import EdgeSpool
from lgcn.store.edge_stream import BadRows, EdgeBatch
from lgcn.store.growing_index import GrowingIndex
from lgcn.tables.columns import quoted
from lgcn.tables.from_tables import refuse_edge_as_header
from lgcn.tables.ids import NodeIndex, as_integers
from lgcn.tables.table_source import TableSource
from lgcn.utils.jit import jit
from lgcn.utils.limits import MAX_NODES
from lgcn.utils.progress import OnProgress
from lgcn.utils.sizes import format_memory

CHUNK = 1 << 18  # edges that are numbered at a time


class KnownNodes:
    """Ids of a node table.

    Args:
        index: The table's ids.
        nodes: Its name, for messages.
        drop: Whether edges that name no node are left out, else they are bad rows.

    Attributes:
        integer: Whether ids are whole numbers, else strings.
        num_unknown: Edges so far that name an unknown node and are left out.
        num_refused: Edges so far that name an unknown node and count as bad rows.
    """

    def __init__(self, index: NodeIndex, nodes: str, drop: bool) -> None:
        self._index, self._nodes, self._drop = index, nodes, drop
        self.integer = index.integer
        self.num_unknown = self.num_refused = 0

    def number(self, batch: EdgeBatch, ends: tuple[str, str], bad: BadRows) -> tuple[Any, Any, Any]:
        """Sources and targets as integers, and a mask of the edges to keep, `None` for all."""
        source, target = (self._index.find(ids) for ids in (batch.source, batch.target))
        known = (source >= 0) & (target >= 0)
        rows = np.flatnonzero(~known)
        if len(rows) == 0:
            return source, target, None
        if self._drop:
            self.num_unknown += len(rows)
            return source, target, known

        def why(row: int) -> str:
            place = 0 if source[row] < 0 else 1
            id = quoted((batch.source, batch.target)[place][row].as_py())
            return (
                f"column {ends[place]!r} names {id}, which is not in {self._nodes} "
                "(unknown_nodes='drop' leaves such edges out)"
            )

        bad.add_rows(rows, batch.where, why)
        self.num_refused += len(rows)
        return source, target, known

    def check_header(self, source: TableSource, ends: tuple[str, str]) -> None:
        """Raises an error if the names of the columns are an edge."""
        refuse_edge_as_header(source, ends, self._index)


class NewTexts:
    """Strings, numbered in the order in which they first occur.

    Args:
        memory: Bytes that they may take.
    """

    integer = False
    num_unknown = num_refused = 0

    def __init__(self, memory: int) -> None:
        self.index = GrowingIndex(integer=False, memory=memory)

    def number(self, batch: EdgeBatch, ends: tuple[str, str], bad: BadRows) -> tuple[Any, Any, Any]:
        """As of `KnownNodes`; all edges are kept."""
        source, target = self.index.number(batch.source, batch.target)
        return source, target, None

    def check_header(self, source: TableSource, ends: tuple[str, str]) -> None:
        """As of `KnownNodes`; useful once all edges were read."""
        index: Any = self.index  # which can be searched as a NodeIndex can
        refuse_edge_as_header(source, ends, index)

    def resolve(
        self, spool: EdgeSpool, folder: Path, memory: int, progress: OnProgress
    ) -> tuple[EdgeSpool, int, Any]:
        """The edges in node numbers, the number of nodes, and their ids (`None`: 0, 1, ...)."""
        return spool, len(self.index), self.index.ids()


class NewIntegers:
    """Whole numbers, which are used as node numbers if at least half of them occur.

    That is known only at the end; until then the spool holds ids.
    """

    integer = True
    num_unknown = num_refused = 0

    def __init__(self) -> None:
        self._low, self._high = 2**63 - 1, -(2**63)

    def number(self, batch: EdgeBatch, ends: tuple[str, str], bad: BadRows) -> tuple[Any, Any, Any]:
        """As of `KnownNodes`; the integers are the ids."""
        source, target = as_integers(batch.source), as_integers(batch.target)
        for ids in (source, target):
            if len(ids):
                self._low = min(self._low, int(ids.min()))
                self._high = max(self._high, int(ids.max()))
        return source, target, None

    def resolve(
        self, spool: EdgeSpool, folder: Path, memory: int, progress: OnProgress
    ) -> tuple[EdgeSpool, int, Any]:
        """As of `NewTexts`."""
        num_nodes = self._high + 1
        # An edge has at most two ids: if more were needed, less than half of the numbers occur.
        if self._low >= 0 and num_nodes <= min(MAX_NODES, 4 * spool.num_edges):
            if num_nodes // 8 > memory:
                raise DataError(
                    f"{num_nodes} nodes need {format_memory(num_nodes // 8)} while their ids are "
                    f"counted; {format_memory(memory)} are left. Raise memory"
                )
            seen = np.zeros((num_nodes >> 3) + 1, np.uint8)
            for source, target, _ in spool.chunks(CHUNK):
                _mark(source, seen)
                _mark(target, seen)
            if 2 * _count_bits(seen) >= num_nodes:
                return spool, num_nodes, None
        index = GrowingIndex(integer=True, memory=memory * 2 // 3)
        numbers = EdgeSpool(folder, weighted=spool.weighted, name="numbers")
        for source, target, weight in spool.chunks(CHUNK):
            ends = (pa.array(end.astype(np.int64, copy=False)) for end in (source, target))
            source, target = index.number(*ends)
            numbers.add(source, target, weight)
            progress("number nodes", numbers.num_edges, spool.num_edges)
        spool.remove()
        return numbers, len(index), index.ids()


Numbering = KnownNodes | NewTexts | NewIntegers


@jit
def _mark(ids: Any, seen: Any) -> None:
    for id in ids:
        seen[id >> 3] |= np.uint8(1) << np.uint8(id & 7)


@jit
def _count_bits(seen: Any) -> Any:
    count = 0
    for byte in seen:
        while byte:
            byte &= byte - np.uint8(1)
            count += 1
    return count
