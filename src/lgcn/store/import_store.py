"""Tables of any size into a store, within a memory limit that the user sets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import torch

from lgcn.errors import DataError, UsageError
from lgcn.graph.csr import row_sums
from lgcn.ops.reference import row_of_entry
from lgcn.store.edge_buckets import sorted_rows
from lgcn.store.edge_reader import EdgeReader
from lgcn.store.edge_spool import EdgeSpool
from lgcn.store.edge_stream import BadRows, EdgeArrays, open_edges
from lgcn.store.new_store_checks import FeatureKind, feature_kind
from lgcn.store.node_stream import write_nodes
from lgcn.store.numbering import KnownNodes, NewTexts
from lgcn.store.numpy_files import ArrayTable
from lgcn.store.write_store import write_ids
from lgcn.store.writer import StoreWriter
from lgcn.tables.early_checks import check_unknown_nodes
from lgcn.tables.from_tables import end_columns
from lgcn.tables.ids import NodeIndex
from lgcn.tables.nodes import NodeArguments, NodeOptions, column_names
from lgcn.tables.notes import grouped_notes
from lgcn.tables.open_table import open_table
from lgcn.tables.table_source import TableSource
from lgcn.utils.memory import PeakMemory, anonymous_memory, trim_memory
from lgcn.utils.numbers import whole_number
from lgcn.utils.progress import OnProgress
from lgcn.utils.sizes import format_memory, parse_memory

LEAST = 96 * 10**6  # bytes needed on top of Python and its libraries
_HASHING = 32 * 10**6  # bytes while checksums are computed, and of small things


def import_store(
    path: str | Path,
    edges: Any,
    nodes: Any = None,
    *,
    id_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    ignore_columns: str | Sequence[str] = (),
    directed: bool = False,
    keep_duplicates: bool = False,
    keep_self_loops: bool = False,
    unknown_nodes: str = "error",
    memory: str | int = "2GB",
    skip_bad_rows: int = 0,
    features: FeatureKind = "float32",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    name: str | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    **node_options: Unpack[NodeArguments],
) -> dict[str, Any]:
    """Writes a store from edges, and optionally a node table, that may be larger than memory.

    Duplicate edges are merged, and the largest weight wins. Self-loops are left out.

    Without a node table, the nodes are the ids that occur in the edges. Whole numbers are node
    numbers if at least half of the numbers from 0 to the largest occur; the others are nodes
    without edges. Otherwise ids are numbered in the order in which they first occur, row by row,
    the source before the target. The first block of rows of a text file decides whether ids are
    whole numbers. Other ids that come later are bad rows, unless a node table says that ids are
    strings.

    Args:
        path: Folder of the store.
        edges: One file or several (`.csv`, `.tsv`, `.txt`, also with `.gz`; `.parquet`; `.npz`;
            `.npy` of shape [E, 2] or [2, E]), a table in memory, or an iterable of
            `(source, target)` or `(source, target, weight)` arrays. `None` for a graph without
            edges.
        nodes: One row per node, a file or a table in memory. (default: the nodes of the edges,
            without features and labels)
        id_column, source_column, target_column, weight_column, ignore_columns, unknown_nodes,
            delimiter, encoding, name: See [`from_tables`][lgcn.from_tables].
        directed: Whether only an edge's target aggregates from its source. (default: `False`,
            every edge counts both ways)
        keep_duplicates: Whether to keep all duplicates of an edge. (default: `False`)
        keep_self_loops: Whether to keep edges from a node to itself. (default: `False`)
        memory: How much memory the process may use, including Python and its libraries, without
            mapped files. (default: `"2GB"`)
        skip_bad_rows: How many bad rows of edges to skip: rows with the wrong number of cells,
            without an id, with unknown nodes, or otherwise unreadable. (default: 0)
        features: How to store them: `"float32"`, `"float16"`, `"bfloat16"`, or `"uint8"`, which
            divides the range of each feature in the fitted rows into 255 steps; values outside
            are clipped. (default: `"float32"`)
        overwrite: Replace an existing store. (default: `False`)
        on_progress: Called with the name of a step, how much of it is done, and how much there is
            in all, 0 if unknown. (default: none)
        **node_options: Other arguments of [`from_tables`][lgcn.from_tables] about labels, splits,
            kinds of columns and a trained encoder. An encoder is fitted to as many of the allowed
            rows as fit into memory: all, or every second, fourth and so on.

    Returns:
        Counts: `nodes`; `rows` of the edge tables; `edges` in the store, and `entries` of its
        adjacency; `duplicates`, `unknown_endpoints` and `bad_rows` that were left out;
        `self_loops` that were found, and left out unless kept. Also `seconds`,
        `edges_per_second` (by rows), `peak_memory` in bytes, and `notes`, sentences for the user.
    """
    started = time.perf_counter()
    ceiling = parse_memory(memory)
    skip_bad_rows = whole_number("skip_bad_rows", skip_bad_rows, 0)
    feature_kind(features)
    check_unknown_nodes(unknown_nodes)
    options = NodeOptions.named(**node_options)
    if nodes is None and (options.label_columns or id_column is not None):
        raise UsageError("id_column and label_column name columns of a node table. Give nodes")
    if nodes is None and edges is None:
        raise UsageError("edges and nodes must not both be None: there is nothing to import")
    sources = [] if edges is None else open_edges(edges, delimiter=delimiter, encoding=encoding)
    tables = [_columns(s, source_column, target_column, weight_column) for s in sources]
    node_source = None if nodes is None else _open_nodes(nodes, delimiter, encoding)
    if len({weight is None for _, weight in tables}) > 1:
        raise DataError("edges: either all tables must have weights or none")
    weighted = bool(tables) and tables[0][1] is not None

    notes: list[str] = []
    with PeakMemory() as peak, StoreWriter(path, overwrite=overwrite) as writer:
        budget = _Budget(ceiling, writer.scratch, weighted)
        progress = on_progress or (lambda *_: None)
        header: dict[str, Any] = {}
        index: NodeIndex | None = None
        num_nodes = 0
        if node_source is not None:
            found = write_nodes(
                writer,
                node_source,
                id_column,
                options,
                column_names(ignore_columns),
                notes,
                memory=budget.left(),
                features=features,
                on_progress=progress,
            )
            index, num_nodes, header = found.index, found.num_nodes, found.header
            del found
        spool = EdgeSpool(writer.scratch, weighted=weighted)
        reading = EdgeReader(spool, budget.left, BadRows(skip_bad_rows), progress)
        if index is not None:
            reading.numbering = KnownNodes(
                index, node_source.name if node_source else "", unknown_nodes == "drop"
            )
            del index
        for source, (ends, weight) in zip(sources, tables, strict=True):
            reading.read(source, ends, weight, named=source_column is not None)
        counts = reading.finish(keep_self_loops)
        numbering = reading.numbering
        del reading
        if numbering is not None and not isinstance(numbering, KnownNodes):
            spool, num_nodes, ids = numbering.resolve(
                spool, writer.scratch, budget.left(), progress
            )
            if ids is not None:
                write_ids(writer, ids)
            del ids
        del numbering
        counts |= _write_rows(
            writer,
            spool,
            num_nodes,
            counts,
            memory=budget.left(),
            directed=directed,
            keep_self_loops=keep_self_loops,
            keep_duplicates=keep_duplicates,
            progress=progress,
        )
        spool.remove()
        progress("compute checksums", 0, 0)
        writer.finish(
            name=name or _graph_name(node_source, sources),
            directed=directed,
            source={
                "edges": [s.path.name if s.path else s.name for s in sources],
                "nodes": None
                if node_source is None
                else (node_source.path.name if node_source.path else node_source.name),
            },
            **header,
        )
    seconds = time.perf_counter() - started
    notes += counts.pop("notes")
    return {
        "nodes": num_nodes,
        **counts,
        "seconds": seconds,
        "edges_per_second": counts["rows"] / seconds,
        "peak_memory": peak.peak,
        "notes": grouped_notes(notes),
    }


def _columns(
    source: TableSource, start: str | None, end: str | None, weight: str | None
) -> tuple[tuple[str, str], str | None]:
    """The columns of the ends of edges and of their weights."""
    ends = end_columns(source, start, end)
    if isinstance(source, EdgeArrays) and weight is None:
        return ends, "weight" if "weight" in source.columns else None
    return ends, None if weight is None else source.column("weight_column", weight)


def _open_nodes(nodes: Any, delimiter: str | None, encoding: str) -> TableSource:
    if isinstance(nodes, str | Path) and Path(nodes).suffix.lower() == ".npz":
        path = Path(nodes).expanduser()
        if path.is_file():
            return ArrayTable(path, "nodes")
    return open_table(nodes, "nodes", delimiter=delimiter, encoding=encoding)


def _graph_name(nodes: TableSource | None, sources: list[TableSource]) -> str:
    named = [source for source in (nodes, *sources) if source is not None]
    path = named[0].path
    return path.name.split(".")[0] or "graph" if path is not None else "graph"


class _Budget:
    """How much of the memory that the user allows is left."""

    def __init__(self, ceiling: int, folder: Path, weighted: bool) -> None:
        self._ceiling = ceiling
        _load_kernels(folder, weighted)
        trim_memory()
        taken = anonymous_memory()
        if ceiling < taken + LEAST:
            raise UsageError(
                f"memory must be at least {format_memory(taken + LEAST)}, got "
                f"{format_memory(ceiling)}: Python and its libraries already take "
                f"{format_memory(taken)}. Raise memory"
            )

    def left(self) -> int:
        """Bytes that a step may use now, with a tenth to spare."""
        pa.default_memory_pool().release_unused()
        trim_memory()
        left = self._ceiling - anonymous_memory() - _HASHING
        return max(1 << 20, left * 9 // 10)


def _load_kernels(folder: Path, weighted: bool) -> None:
    """Compiles what is needed or reads it from Numba's cache, which takes memory too."""
    spool = EdgeSpool(folder, weighted=weighted, name="first")
    end = np.array([0, 1], np.int32)
    spool.add(end, end[::-1].copy(), np.ones(2, np.float32))
    for _ in sorted_rows(spool, 2, folder=folder, memory=1 << 20, directed=False):
        pass
    spool.remove()
    texts = NewTexts(1 << 20)
    for _ in range(2):
        texts.index.number(pa.array(["a", "b"]), pa.array(["b", "c"]))


def _write_rows(
    writer: StoreWriter,
    spool: EdgeSpool,
    num_nodes: int,
    counts: dict[str, Any],
    *,
    memory: int,
    directed: bool,
    keep_self_loops: bool,
    keep_duplicates: bool,
    progress: OnProgress,
) -> dict[str, int]:
    """Sorts the edges into the store; gives the numbers of edges, entries and duplicates."""
    rowptr, col = writer.append("rowptr", "int64"), writer.append("col", "int32")
    weight = writer.append("edge_weight", "float32") if spool.weighted else None
    degree = writer.append("degree", "float32")
    rowptr.write(np.zeros(1, np.int64))
    entries = loops = row = 0
    for rows in sorted_rows(
        spool,
        num_nodes,
        folder=writer.scratch,
        memory=memory,
        directed=directed,
        keep_self_loops=keep_self_loops,
        keep_duplicates=keep_duplicates,
        on_progress=progress,
    ):
        rowptr.write(rows.rowptr[1:].numpy().astype(np.int64) + entries)
        col.write(rows.col.numpy())
        if weight is not None and rows.weight is not None:
            weight.write(rows.weight.numpy())
        degree.write(row_sums(rows).to(torch.float32).numpy())
        if keep_self_loops:
            loops += int((row_of_entry(rows.rowptr) + row == rows.col).sum())
        entries += rows.col.numel()
        row += rows.rowptr.numel() - 1
    edges = loops + (entries - loops) // (1 if directed else 2)
    # As many as there were, less those that are left: with all duplicates kept, none is counted.
    before = spool.num_edges - (0 if keep_self_loops else counts["self_loops"])
    return {"edges": edges, "entries": entries, "duplicates": before - edges}
