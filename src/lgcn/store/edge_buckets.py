"""Edge lists that do not fit into memory, sorted into rows on disk.

Edges are written down as they come (`lgcn.store.edge_spool.EdgeSpool`). Once all are there, the
number of entries of each row is known, and with it the runs of rows that fit into memory, the
buckets. A second reading writes each entry to the bucket of its row. Then each bucket is sorted in
memory, one after the other, which gives the rows in their order (`sorted_rows`). Every step is
linear in the number of edges.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
import torch

from lgcn.errors import DataError
from lgcn.graph.csr import CSR
from lgcn.tables.edges import to_adjacency
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.progress import OnProgress
from lgcn.utils.share import share
from lgcn.utils.sizes import format_memory

CHUNK = 1 << 22  # edges that are partitioned at a time, at most: buckets are then written in MBs
BUCKET = 1 << 22  # entries that are sorted at a time, at most: their keys nearly fit into the cache
MAX_BUCKETS = 4096  # so that what a chunk writes to a bucket is not too little
# Bytes that are needed at a time, of an edge while it is partitioned and of an entry and its row
# while they are sorted, and how many more of each if edges have weights.
_PARTITION, _PARTITION_WEIGHT = 32, 12
_SORT, _SORT_WEIGHT = 48, 20
_PLACE = 20  # of a column while a row is sorted that is longer than all this
_CELLS = 1 << 16  # of the table by which the bucket of a row is found


class EdgeSource(Protocol):
    """Edges that can be read several times, in parts."""

    @property
    def num_edges(self) -> int:
        """Number of edges, at most."""
        ...

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        ...

    def chunks(self, size: int) -> Iterator[tuple[Any, Any, Any]]:
        """(sources, targets, weights) of at most `size` edges at a time; `None` for no weights."""
        ...


class _Buckets(NamedTuple):
    """Rows bounds[b] to bounds[b + 1] are bucket b, entries first[b] to first[b + 1] are theirs."""

    bounds: Any
    first: Any


def sorted_rows(
    edges: EdgeSource,
    num_nodes: int,
    *,
    folder: Path,
    memory: int,
    directed: bool,
    keep_self_loops: bool = False,
    keep_duplicates: bool = False,
    on_progress: OnProgress | None = None,
) -> Iterator[CSR]:
    """Sorts edges into the rows of a graph, as `lgcn.tables.edges.to_adjacency` does.

    Gives the rows in runs, from row 0 on; columns are int32, and ascend in each row.

    Args:
        edges: The edges, in node numbers.
        num_nodes: Number of rows; at most 2**31 - 1.
        folder: For scratch files of 8 bytes per entry, 12 with weights; they are deleted when the
            iteration ends or is closed.
        memory: Bytes that may be in use at a time.
        directed: Whether an edge makes an entry in its target's row only, not in both ends'.
        keep_self_loops: Whether a self-loop makes an entry, one in either case.
            (default: `False`)
        keep_duplicates: Whether to keep all duplicate entries. (default: only the heaviest)
        on_progress: Called after every part of the work. (default: none)
    """
    plan = _Plan(edges.weighted, memory, num_nodes, edges.num_edges)
    total = 4 * edges.num_edges  # counting, partitioning and two of sorting, of about equal cost
    done = 0

    def step(work: float) -> None:
        nonlocal done
        done += int(work)
        if on_progress is not None:
            on_progress("sort edges", min(done, total), total)

    def chunks() -> Iterator[tuple[Any, Any, Any]]:
        for source, target, weight in edges.chunks(plan.chunk):
            yield target, source, weight
            step(len(source))

    counts = np.zeros(num_nodes, plan.counter)
    for rows, cols, _ in chunks():
        _count_rows(rows, cols, not directed, keep_self_loops, counts)
    buckets = plan.buckets(counts)
    del counts
    entries = int(buckets.first[-1])
    width = 12 if edges.weighted else 8
    _check_disk(folder, entries * (width + 4 + (4 if edges.weighted else 0)))
    paths = [folder / f"bucket-{part}" for part in ("row", "col", "weight")[: width // 4]]
    try:
        _partition(chunks(), buckets, paths, not directed, keep_self_loops)
        for b in range(len(buckets.bounds) - 1):
            low, high = int(buckets.bounds[b]), int(buckets.bounds[b + 1])
            start, stop = int(buckets.first[b]), int(buckets.first[b + 1])
            if stop - start > plan.sortable:  # a single row
                yield _long_row(paths, start, stop, num_nodes, plan, keep_duplicates)
            else:
                parts = _load(paths, start, stop)
                weights = [parts.pop().view(np.float32)] if edges.weighted else None
                cols, rows = [parts.pop()], [parts.pop()]
                yield to_adjacency(
                    cols, rows, weights, high - low, directed=True, keep_duplicates=keep_duplicates
                ).rows
            step(2 * edges.num_edges * (stop - start) / max(entries, 1))
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


class _Plan:
    """How much to do at a time with the memory there is."""

    def __init__(self, weighted: bool, memory: int, num_nodes: int, num_edges: int) -> None:
        self.counter = np.uint32 if num_edges < 2**31 else np.int64
        self.memory = memory
        self._counts = num_nodes * np.dtype(self.counter).itemsize
        partition = _PARTITION + (_PARTITION_WEIGHT if weighted else 0)
        self.sort = _SORT + (_SORT_WEIGHT if weighted else 0)
        if self._counts > memory // 2:
            raise _too_small(f"the {num_nodes} nodes", 2 * self._counts - memory)
        self.chunk = min(CHUNK, max(1, (memory - self._counts) // partition // 2))
        self.sortable = max(1, memory // self.sort)

    def buckets(self, counts: Any) -> _Buckets:
        entries = int(counts.sum(dtype=np.int64))
        least = -(-2 * max(entries, len(counts)) // MAX_BUCKETS)  # a run may be half full
        size = max(min(BUCKET, self.sortable), least)
        if size > self.sortable:
            raise _too_small(f"the {entries} entries", size * self.sort - self.memory)
        bounds, first = _runs(counts, size)
        return _Buckets(bounds, first)


def _too_small(what: str, missing: int) -> DataError:
    return DataError(
        f"too little memory to sort {what} into rows: {format_memory(missing)} more are needed. "
        "Raise memory"
    )


def _check_disk(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(
            f"too little space on the disk of {folder} to sort the edges: "
            f"{format_memory(needed)} are needed, {format_memory(free)} are free"
        )


def _partition(
    chunks: Iterator[tuple[Any, Any, Any]],
    buckets: _Buckets,
    paths: list[Path],
    both: bool,
    loops: bool,
) -> None:
    """Writes entries, grouped by bucket, to files of rows (counted in the bucket) and so on."""
    num_buckets = len(buckets.bounds) - 1
    free = buckets.first[:-1] * 4  # where the next entry of each goes, in bytes
    shift = max(0, int(buckets.bounds[-1]).bit_length() - _CELLS.bit_length() + 1)
    cells = np.arange((int(buckets.bounds[-1]) >> shift) + 1) << shift
    cells = (np.searchsorted(buckets.bounds, cells, side="right") - 1).astype(np.int32)
    files = [os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666) for path in paths]
    try:
        for rows, cols, weight in chunks:
            bits = np.empty(0, np.int32) if weight is None else weight.view(np.int32)
            pieces = numba.get_num_threads()
            sizes = np.zeros((pieces, num_buckets), np.int64)
            where = buckets.bounds, cells, shift
            _count_buckets(rows, cols, both, loops, *where, sizes)
            # Of a bucket, the part of the first thread comes first.
            ends = sizes.T.cumsum().reshape(num_buckets, pieces).T
            starts = np.ascontiguousarray(ends - sizes)
            parts = np.empty((len(paths), int(ends[-1, -1]) if num_buckets else 0), np.int32)
            _group(rows, cols, bits, both, loops, *where, starts, parts)
            offsets = [0, *ends[-1].tolist()]
            for b in np.flatnonzero(sizes.sum(axis=0)).tolist():
                for file, part in zip(files, parts, strict=True):
                    _write_at(file, part[offsets[b] : offsets[b + 1]], int(free[b]))
                free[b] += 4 * (offsets[b + 1] - offsets[b])
    finally:
        for file in files:
            os.close(file)


def _write_at(file: int, part: Any, offset: int) -> None:
    view = memoryview(part).cast("B")
    while len(view):
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _load(paths: list[Path], start: int, stop: int) -> list[Any]:
    return [np.fromfile(path, np.int32, stop - start, offset=4 * start) for path in paths]


def _long_row(
    paths: list[Path], start: int, stop: int, num_nodes: int, plan: _Plan, keep_duplicates: bool
) -> CSR:
    """A row that is too long to be sorted: each column of the graph has its place in memory."""
    count = stop - start
    if keep_duplicates:
        raise _too_small(f"a row of {count} entries", count * plan.sort - plan.memory)
    if num_nodes * _PLACE > plan.memory:
        raise _too_small(f"a row of {count} entries", num_nodes * _PLACE - plan.memory)
    held = np.full(num_nodes, -1, np.int32)
    step = max(1, plan.memory // 32)
    for at in range(start, stop, step):
        parts = _load(paths[1:], at, min(at + step, stop))
        _keep_largest(parts[0], parts[-1], held)
    there = held >= 0
    col = np.flatnonzero(there).astype(np.int32)
    weight = torch.from_numpy(held[there].view(np.float32)) if len(paths) == 3 else None
    return CSR(torch.tensor([0, len(col)], dtype=torch.int32), torch.from_numpy(col), weight)


@jit
def _keep_largest(cols: Any, values: Any, held: Any) -> None:
    for e in range(cols.shape[0]):
        held[cols[e]] = max(held[cols[e]], values[e])


@jit
def _ways(row: Any, col: Any, both: bool, loops: bool) -> Any:
    """How many entries an edge makes."""
    if row == col:
        return 1 if loops else 0
    return 2 if both else 1


@jit
def _count_rows(rows: Any, cols: Any, both: bool, loops: bool, counts: Any) -> None:
    for e in range(rows.shape[0]):
        ways = _ways(rows[e], cols[e], both, loops)
        if ways > 0:
            counts[rows[e]] += 1
        if ways > 1:
            counts[cols[e]] += 1


@jit
def _runs(counts: Any, size: int) -> Any:
    """Bounds of runs of at most `size` rows and entries, or of one longer row; their entries."""
    bounds, first = [np.int64(0)], [np.int64(0)]
    before = np.int64(0)  # entries of all rows before row i
    for i in range(counts.shape[0]):
        start = bounds[-1]
        if i > start and (before + counts[i] - first[-1] > size or i - start >= size):
            bounds.append(np.int64(i))
            first.append(before)
        before += np.int64(counts[i])
    if counts.shape[0]:
        bounds.append(np.int64(counts.shape[0]))
        first.append(before)
    return np.array(bounds), np.array(first)


@jit
def _bucket(row: Any, bounds: Any, cells: Any, shift: int) -> Any:
    bucket = cells[row >> shift]
    while row >= bounds[bucket + 1]:
        bucket += 1
    return bucket


@jit_parallel
def _count_buckets(
    rows: Any,
    cols: Any,
    both: bool,
    loops: bool,
    bounds: Any,
    cells: Any,
    shift: int,
    sizes: Any,
    part: Any,
) -> None:
    """Counts the entries that each thread's part of the edges has in each bucket."""
    pieces = sizes.shape[0]
    for piece in share(pieces, part):
        start, stop = _part(rows.shape[0], piece, pieces)
        for e in range(start, stop):
            ways = _ways(rows[e], cols[e], both, loops)
            if ways > 0:
                sizes[piece, _bucket(rows[e], bounds, cells, shift)] += 1
            if ways > 1:
                sizes[piece, _bucket(cols[e], bounds, cells, shift)] += 1


@jit_parallel
def _group(
    rows: Any,
    cols: Any,
    bits: Any,
    both: bool,
    loops: bool,
    bounds: Any,
    cells: Any,
    shift: int,
    free: Any,
    parts: Any,
    part: Any,
) -> None:
    """Writes rows (counted in their bucket), columns and weights to where `free` says."""
    pieces = free.shape[0]
    for piece in share(pieces, part):
        start, stop = _part(rows.shape[0], piece, pieces)
        for e in range(start, stop):
            for way in range(_ways(rows[e], cols[e], both, loops)):
                row, col = (rows[e], cols[e]) if way == 0 else (cols[e], rows[e])
                bucket = _bucket(row, bounds, cells, shift)
                place = free[piece, bucket]
                free[piece, bucket] += 1
                parts[0, place] = row - bounds[bucket]
                parts[1, place] = col
                if bits.shape[0]:
                    parts[2, place] = bits[e]


@jit
def _part(size: int, piece: int, pieces: int) -> Any:
    return size * piece // pieces, size * (piece + 1) // pieces
