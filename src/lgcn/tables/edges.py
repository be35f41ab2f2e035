"""From the ids of a user's edge list to the rows of a graph.

Edges come in batches, and a batch is turned into node numbers before the next is read. Memory holds
at most these numbers and the rows they become, four bytes per number.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import torch

from lgcn.errors import DataError
from lgcn.graph.csr import CSR
from lgcn.tables.columns import quoted
from lgcn.tables.ids import NodeIndex, to_ids
from lgcn.tables.table_source import TableSource
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.share import share

EXAMPLES = 3  # of edges that name unknown nodes

_SHORT_ROW = 32
_PIECES = 64  # of the rows, so that no thread waits long for another


@dataclass
class EdgeList:
    """Edges in node numbers, in parts: no self-loops, no unknown nodes; these are counted.

    `weights` is `None` if all are one.
    """

    sources: list[Any] = field(default_factory=list)
    targets: list[Any] = field(default_factory=list)
    weights: list[Any] | None = None
    kept: list[Any] = field(default_factory=list)  # masks of the rows that are in it
    num_rows: int = 0
    num_unknown: int = 0
    num_self_loops: int = 0


class SortedEdges(NamedTuple):
    """The rows of a graph, and the number of duplicate edges that were left out."""

    rows: CSR
    duplicates: int


def read_edges(
    table: TableSource,
    source_column: str,
    target_column: str,
    weight_column: str | None,
    index: NodeIndex,
    *,
    nodes: str,
    drop_unknown: bool,
) -> EdgeList:
    """Reads an edge table batch by batch, and looks up the nodes of each edge.

    Args:
        table: The edge table.
        source_column, target_column, weight_column: Its columns; no weights if that is `None`.
        index: The nodes.
        nodes: The node table's name, for messages.
        drop_unknown: Leave out edges that name no node, instead of refusing the table.
    """
    columns = [source_column, target_column]
    types = dict.fromkeys(columns, pa.int64() if index.integer else pa.string())
    edges = EdgeList()
    if weight_column is not None:
        columns.append(weight_column)
        types[weight_column] = pa.float64()
        edges.weights = []
    why = f"The ids of {nodes} are whole numbers" if index.integer else ""
    unknown: list[tuple[int, Any, Any]] = []
    for batch in table.batches(columns, types, why):
        first = edges.num_rows
        source, target = (find_ids(table, batch, name, index, first) for name in columns[:2])
        kept = source != target
        known = (source >= 0) & (target >= 0)
        num_unknown = len(known) - int(known.sum())
        if num_unknown:
            for row in np.flatnonzero(~known)[: EXAMPLES - len(unknown)].tolist():
                missing = 0 if source[row] < 0 else 1
                unknown.append((first + row, columns[missing], batch.column(missing)[row].as_py()))
            kept &= known
        num_kept = int(kept.sum())
        edges.kept.append(kept)
        edges.num_rows += len(kept)
        edges.num_unknown += num_unknown
        edges.num_self_loops += len(kept) - num_kept - num_unknown
        parts = {"sources": source, "targets": target}
        if weight_column is not None:
            parts["weights"] = read_weights(table, batch, weight_column, first)
        for name, part in parts.items():
            getattr(edges, name).append(part if num_kept == len(part) else part[kept])
    if unknown and not drop_unknown:
        raise _unknown_nodes(table, edges, unknown, nodes, index.example)
    return edges


def find_ids(table: TableSource, batch: Any, name: str, index: NodeIndex, first: int) -> Any:
    """The numbers of the ids in a column of a batch, -1 for others; `first` is its first row."""

    def where(row: int) -> str:
        return f"{table.name}, {table.where([first + row])[0]}, column {name!r}"

    ids = to_ids(batch.column(name), where, integer=index.integer)
    found = index.find(ids)
    if ids.null_count:
        found[ids.is_null().to_numpy(zero_copy_only=False)] = -1
    return found


def read_weights(table: TableSource, batch: Any, name: str, first: int) -> Any:
    """The weights in a column of a batch in float32, checked; `first` is its first row."""
    column = batch.column(name)
    if not holds_weights(column):
        raise DataError(
            f"{table.name}: weight_column must name a column of numbers, got {name!r}, "
            f"which holds {column.type}"
        )
    column = column.cast(pa.float64(), safe=False)
    weights, wrong = edge_weights(column.to_numpy(zero_copy_only=False))
    if wrong.any():
        row = int(wrong.argmax())
        got = column[row].as_py()
        raise DataError(
            f"{table.name}, {table.where([first + row])[0]}, column {name!r}: a weight must be a "
            f"finite number of at least 0 in float32, got {'none' if got is None else got}. "
            "Correct the cell, or omit weight_column"
        )
    return weights


def holds_weights(column: Any) -> bool:
    """Whether a column holds numbers, or nothing at all."""
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or pa.types.is_null(kind))


def edge_weights(values: Any) -> tuple[Any, Any]:
    """Weights in float32, and a mask of those that are not finite numbers of at least 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Zero is added since -0.0 sorts before all other weights.
        weights = values.astype(np.float32) + np.float32(0)
        return weights, ~((weights >= 0) & (weights < np.inf))  # also true of NaN


def _unknown_nodes(
    table: TableSource,
    edges: EdgeList,
    unknown: list[tuple[int, Any, Any]],
    nodes: str,
    example: Any,
) -> DataError:
    places = table.where([row for row, _, _ in unknown])
    examples = ", ".join(
        f"{place} ({column} {'is empty' if id in (None, '') else quoted(id)})"
        for place, (_, column, id) in zip(places, unknown, strict=True)
    )
    hint = ""
    if edges.num_unknown == edges.num_rows:
        hint = (
            f"No edge fits: the ids of {nodes} look like {quoted(example)}. Check that id_column, "
            "source_column and target_column name the right columns, and that both tables write "
            "ids alike. "
        )
    elif not table.has_names and table.textual and unknown[0][0] == 0 == edges.num_unknown - 1:
        hint = "If the first line holds column names, give header=True. "
    return DataError(
        f"{table.name}: {edges.num_unknown} of {edges.num_rows} edges name nodes that are not in "
        f"{nodes}: {examples}{', ...' if edges.num_unknown > len(unknown) else ''}. {hint}"
        "Add these nodes, correct the ids, or leave these edges out by unknown_nodes='drop'"
    )


def to_adjacency(
    sources: list[Any],
    targets: list[Any],
    weights: list[Any] | None,
    num_nodes: int,
    *,
    directed: bool,
    keep_duplicates: bool = False,
) -> SortedEdges:
    """Sorts edges into ascending rows; of duplicate edges the heaviest stays.

    Row i lists the sources of the edges to node i, and with `directed=False` the targets of the
    edges from it, too. The lists are emptied on the way, so that their memory is free.

    Args:
        sources, targets: Node numbers (int32), in any number of parts; no self-loops.
        weights: Finite float32 of at least zero, in the same parts; `None` if all are one.
        num_nodes: Number of rows.
        directed: Whether only an edge's target aggregates from its source.
        keep_duplicates: Whether duplicate edges all stay, the lighter first.
            (default: `False`)
    """
    source, target = _join(sources), _join(targets)
    bits = np.empty(0, np.int32) if weights is None else _join(weights).view(np.int32)
    num_edges = len(source)
    rowptr = np.zeros(num_nodes + 1, np.int64)
    _count(source, target, directed, rowptr)
    np.cumsum(rowptr, out=rowptr)
    # The bits of non-negative floats sort like the floats. So a neighbour, followed by the bits of
    # its weight, sorts as one integer.
    shift = 0 if weights is None else 32
    keys = np.empty(rowptr[-1], np.int32 if weights is None else np.int64)
    free = rowptr[:-1].copy()
    _place(source, target, bits, directed, free, keys, _cut(rowptr, numba.get_num_threads()))
    del source, target, bits, free
    counts = np.zeros(num_nodes + 1, np.int64)
    _sort_rows(keys, rowptr, shift, keep_duplicates, _cut(rowptr, _PIECES), counts)
    np.cumsum(counts, out=counts)
    num_entries = int(counts[-1])
    if num_entries < len(keys):
        _close_gaps(keys, rowptr, counts)
        keys.resize(num_entries, refcheck=False)
    index = np.int32 if num_entries <= MAX_INT32 else np.int64
    if weights is None:
        col, weight = keys.astype(index, copy=False), None
    else:
        col, weight = np.empty(num_entries, index), np.empty(num_entries, np.float32)
        _take_apart(keys, col, weight.view(np.int32))
    rows = CSR(
        torch.from_numpy(counts.astype(index, copy=False)),
        torch.from_numpy(col),
        None if weight is None else torch.from_numpy(weight),
    )
    return SortedEdges(rows, num_edges - num_entries // (1 if directed else 2))


def _join(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts.pop()
    joined = np.concatenate(parts) if parts else np.empty(0, np.int32)
    parts.clear()
    return joined


def _cut(rowptr: Any, pieces: int) -> Any:
    """Bounds of `pieces` groups of rows that have about as many entries each."""
    cuts = np.searchsorted(rowptr, np.arange(1, pieces) * (rowptr[-1] / pieces))
    return np.concatenate([[0], cuts, [len(rowptr) - 1]]).clip(0, len(rowptr) - 1)


@jit
def _count(source: Any, target: Any, directed: bool, rowptr: Any) -> None:
    """Counts row i in rowptr[i + 1]."""
    for e in range(source.shape[0]):
        rowptr[target[e] + 1] += 1
        if not directed:
            rowptr[source[e] + 1] += 1


@jit
def _key(node: Any, bits: Any, e: int) -> Any:
    return node if bits.shape[0] == 0 else (np.int64(node) << 32) | bits[e]


@jit_parallel
def _place(
    source: Any,
    target: Any,
    bits: Any,
    directed: bool,
    free: Any,
    keys: Any,
    bounds: Any,
    part: Any,
) -> None:
    """Writes each edge into its rows. Each thread reads all edges and takes those of its rows."""
    for piece in share(bounds.shape[0] - 1, part):
        low = np.uint32(bounds[piece])
        size = np.uint32(bounds[piece + 1]) - low
        for e in range(source.shape[0]):
            i, j = target[e], source[e]
            # Unsigned numbers below the range wrap around to large ones: one comparison, not two.
            row_i = np.uint32(i) - low < size
            row_j = (np.uint32(j) - low < size) & (not directed)
            if row_i | row_j:  # most edges are another thread's: one jump for both
                if row_i:
                    keys[free[i]] = _key(j, bits, e)
                    free[i] += 1
                if row_j:
                    keys[free[j]] = _key(i, bits, e)
                    free[j] += 1


@jit
def _insertion_sort(row: Any) -> None:
    """Half the time of `sort` on the usual short rows."""
    for e in range(1, row.shape[0]):
        key = row[e]
        place = e
        while place > 0 and row[place - 1] > key:
            row[place] = row[place - 1]
            place -= 1
        row[place] = key


@jit_parallel
def _sort_rows(
    keys: Any, rowptr: Any, shift: int, keep_duplicates: bool, bounds: Any, counts: Any, part: Any
) -> None:
    """Sorts each row, moves one key per neighbour to its front, counts them in counts[i + 1]."""
    for piece in share(bounds.shape[0] - 1, part):
        for i in range(bounds[piece], bounds[piece + 1]):
            row = keys[rowptr[i] : rowptr[i + 1]]
            if row.shape[0] > _SHORT_ROW:
                row.sort()
            else:
                _insertion_sort(row)
            if keep_duplicates:
                counts[i + 1] = row.shape[0]
                continue
            kept = 0
            for e in range(row.shape[0]):
                if kept > 0 and row[kept - 1] >> shift == row[e] >> shift:
                    kept -= 1  # the later is the heavier
                row[kept] = row[e]
                kept += 1
            counts[i + 1] = kept


@jit
def _close_gaps(keys: Any, rowptr: Any, new_rowptr: Any) -> None:
    for i in range(rowptr.shape[0] - 1):
        gap = rowptr[i] - new_rowptr[i]
        if gap > 0:
            for e in range(new_rowptr[i], new_rowptr[i + 1]):
                keys[e] = keys[e + gap]


@jit_parallel
def _take_apart(keys: Any, col: Any, bits: Any, part: Any) -> None:
    for e in share(keys.shape[0], part):
        col[e] = keys[e] >> 32
        bits[e] = np.int32(keys[e] & 0x7FFFFFFF)
