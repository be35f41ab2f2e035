"""Reading tables of edges into a spool, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lgcn.errors import DataError
from lgcn.store.edge_spool import EdgeSpool
from lgcn.store.edge_stream import BadRows, edge_batches, guess_integer
from lgcn.store.numbering import KnownNodes, NewIntegers, NewTexts, Numbering
from lgcn.tables.table_source import TableSource
from lgcn.utils.progress import OnProgress


class EdgeReader:
    """Reads edges into a spool, as node numbers or, where these are not known yet, as ids.

    Args:
        spool: Where edges go.
        left: Returns how many bytes of memory are left.
        bad: Counts bad rows, and knows how many are allowed.
        progress: Called with the number of rows read.

    Attributes:
        numbering: How ids become node numbers. (default: chosen by the first edges)
    """

    def __init__(
        self, spool: EdgeSpool, left: Callable[[], int], bad: BadRows, progress: OnProgress
    ) -> None:
        self._spool, self._left, self._bad, self._progress = spool, left, bad, progress
        self.numbering: Numbering | None = None
        self._rows = self._self_loops = 0
        self._names: list[str] = []

    def read(
        self, source: TableSource, ends: tuple[str, str], weight: str | None, *, named: bool
    ) -> None:
        """Reads a table.

        Args:
            source: The table.
            ends, weight: Its columns; no weights if that is `None`.
            named: Whether the user named the columns; else the first line may be an edge.
        """
        left = self._left()
        size = min(1 << 24, max(1 << 18, left // 32))
        integer = None if self.numbering is None else self.numbering.integer
        if integer is None:
            integer = guess_integer(source, ends, size)
        self._names.append(source.name)
        check = source.textual and not named
        if check and isinstance(self.numbering, KnownNodes):
            self.numbering.check_header(source, ends)
        for batch in edge_batches(source, ends, weight, integer, self._bad, size):
            if self.numbering is None:
                whole = pa.types.is_integer(batch.source.type)
                self.numbering = NewIntegers() if whole else NewTexts(left * 2 // 3)
            self._rows += len(batch.source)
            from_, to, known = self.numbering.number(batch, ends, self._bad)
            if not self._bad.too_many:  # else nothing is left to do but to count bad rows
                parts = [from_, to, batch.weight]
                if known is not None:
                    parts = [None if part is None else part[known] for part in parts]
                self._self_loops += int((parts[0] == parts[1]).sum())
                self._spool.add(*parts)
            self._progress("read edges", self._rows + self._bad.count, 0)
        if check and isinstance(self.numbering, NewTexts):
            self.numbering.check_header(source, ends)

    def finish(self, keep_self_loops: bool) -> dict[str, Any]:
        """The counts, if what was read makes sense."""
        bad, numbering = self._bad, self.numbering
        unknown = 0 if numbering is None else numbering.num_unknown
        # Rows with unknown nodes that count as bad are among those that were read.
        rows = self._rows + bad.count - (0 if numbering is None else numbering.num_refused)
        bad.check(
            "No edge fits: check that id_column, source_column and target_column name the right "
            "columns. "
            if numbering is not None and rows == numbering.num_refused > 0
            else ""
        )
        kept = self._spool.num_edges - (0 if keep_self_loops else self._self_loops)
        if self._names and kept == 0:
            raise DataError(
                f"{', '.join(self._names[:3])}: there are no edges ({rows} rows, of which "
                f"{self._self_loops} are self-loops, {unknown} name unknown nodes and {bad.count} "
                "cannot be read). Check the table; for a graph without edges on purpose, give "
                "edges=None"
            )
        notes = []
        if bad.count:
            examples = "; ".join(bad.examples)
            notes.append(f"{bad.count} bad rows of edges are skipped: {examples}")
        if unknown:
            notes.append(f"{unknown} edges that name unknown nodes are left out")
        return {
            "rows": rows,
            "self_loops": self._self_loops,
            "unknown_endpoints": unknown,
            "bad_rows": bad.count,
            "notes": notes,
        }
