"""Cutting a graph store into shards on disk, within a memory limit."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.errors import UsageError
from lgcn.partition.halo import BITS, Halos, place_nodes
from lgcn.partition.manifest import FORMAT, MANIFEST, PARTITION, part_folder
from lgcn.partition.methods import assign, choose_method
from lgcn.partition.new_partition_checks import check_new_partition
from lgcn.partition.shard_files import ShardFiles
from lgcn.partition.statistics import graph_statistics
from lgcn.store.checked_files import read_header
from lgcn.store.format import header_digest
from lgcn.store.new_folder import NewFolder, plain_errors
from lgcn.store.open_store import Store, open_store
from lgcn.store.writer import StoreWriter
from lgcn.utils.files import sync
from lgcn.utils.memory import PeakMemory, anonymous_memory, trim_memory
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks_within
from lgcn.utils.sizes import format_memory

LEAST = 96 * 10**6  # bytes needed on top of Python, its libraries and the arrays of nodes
_PER_NODE = 8  # bytes: its part, and its place there
_HALO_BITS = 12 * 8 / BITS  # per node and part: a bit, and 32 bits for each word of them
_AT_ONCE = 128  # parts, each with some open files
_LARGEST_BLOCK = 32 * 10**6


def write_partition(
    store: str | Path,
    out: str | Path,
    num_parts: int,
    *,
    method: str | None = None,
    seed: int = 0,
    memory: str | int = "2GB",
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Cuts a graph store into parts, each with its halo: see `lgcn.partition.Shard`.

    Args:
        store: Folder of the store.
        out: Folder of the partition, which appears when it is complete.
        num_parts: The number of parts.
        method: `"metis"`, few edges between parts, but the adjacency must fit in memory several
            times; `"ldg"`, a stream over the nodes; or `"hash"`, at random. (default: METIS if it
            is installed and fits in `memory`, else the stream)
        seed: The same seed gives the same parts. (default: 0)
        memory: How much memory the process may use, including Python and its libraries, without
            mapped files. (default: `"2GB"`)
        overwrite: Replace an existing partition. (default: `False`)
        on_progress: Called with the name of a step, how much of it is done, and how much there is
            in all, 0 if unknown. (default: none)

    Returns:
        The content of `partition.json`, and `seconds` and `peak_memory` in bytes.
    """
    started = time.perf_counter()
    num_parts, seed, ceiling = check_new_partition(
        store, out, num_parts, method=method, seed=seed, memory=memory, overwrite=overwrite
    )
    progress = on_progress or (lambda *_: None)
    with PeakMemory() as peak, NewFolder(out, overwrite=overwrite, kind=PARTITION) as place:
        budget = _Budget(ceiling, read_header(Path(store))[0]["num_nodes"])
        progress("check the store", 0, 0)
        opened = open_store(store)
        method = choose_method(opened, method, budget.left())
        block = min(_LARGEST_BLOCK, budget.left() // 8)
        with peak.in_one_call() if method == "metis" else contextlib.nullcontext():
            part = assign(opened, num_parts, method, seed, block=block, on_progress=progress)
        shards = _write_shards(place, opened, part, num_parts, budget, progress)
        progress("statistics", 0, 0)
        header = _header(opened, shards, part, method, seed)
        with plain_errors(place.shown):
            path = place.folder / MANIFEST
            path.write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
            sync(path)
            sync(place.folder)
            place.take_name()
    return {**header, "seconds": time.perf_counter() - started, "peak_memory": peak.peak}


class _Budget:
    """How much of the memory that the user allows is left."""

    def __init__(self, ceiling: int, num_nodes: int) -> None:
        self._ceiling = ceiling
        trim_memory()
        least = anonymous_memory() + int((_PER_NODE + _HALO_BITS) * num_nodes) + LEAST
        if ceiling < least:
            raise UsageError(
                f"memory must be at least {format_memory(least)} for {num_nodes} nodes, got "
                f"{format_memory(ceiling)}. Raise memory"
            )

    def left(self) -> int:
        """Bytes that a step may use now, with a tenth to spare."""
        trim_memory()
        return max(1 << 20, (self._ceiling - anonymous_memory()) * 9 // 10)


def _write_shards(
    place: NewFolder,
    store: Store,
    part: Any,
    num_parts: int,
    budget: _Budget,
    progress: OnProgress,
) -> list[dict[str, Any]]:
    """Writes all shards, as many at a time as memory allows; gives their lines of the header."""
    local = np.empty(len(part), np.int32)
    owned = np.zeros(num_parts, np.int64)
    place_nodes(part, local, owned)
    left = budget.left()
    per_part = max(1, int(_HALO_BITS * len(part)))
    at_once = int(min(num_parts, _AT_ONCE, max(1, left // 2 // per_part)))
    block = min(_LARGEST_BLOCK, left // 8)
    shards = []
    for first in range(0, num_parts, at_once):
        last = min(first + at_once, num_parts)
        halos = Halos(part, local, owned, first, last)
        arrays = store.arrays
        rowptr, col = arrays["rowptr"], arrays["col"]
        for start, stop in row_blocks_within(block, len(part), 1, rowptr, col.itemsize):
            offsets = np.array(rowptr[start : stop + 1])
            halos.mark(start, offsets, col[offsets[0] : offsets[-1]])
            progress("find the halos", stop, len(part))
        halos.number()
        with contextlib.ExitStack() as stack:
            writers = [
                stack.enter_context(
                    StoreWriter(part_folder(place.folder, number), shown=place.shown)
                )
                for number in range(first, last)
            ]
            files = ShardFiles(store, halos, writers, block, progress)
            files.write()
            for number, writer in enumerate(writers, first):
                progress("compute checksums", number, num_parts)
                header = writer.finish(
                    name=store.header["name"],
                    directed=store.header["directed"],
                    label_names=store.header["label_names"],
                    encoder=store.header["encoder"],
                    num_features=store.header["num_features"],
                    source={"part": number, "num_parts": num_parts},
                )
                index = number - first
                shards.append(
                    {
                        "owned": int(owned[number]),
                        "halo": int(halos.size[index]),
                        "entries": int(halos.entries[index]),
                        "cut": int(halos.cut[index]),
                        "train": int(files.train[index]),
                        "sha256": header["sha256"],
                    }
                )
    return shards


def _header(
    store: Store, shards: list[dict[str, Any]], part: Any, method: str, seed: int
) -> dict[str, Any]:
    def balance(key: str) -> float | None:
        counts = [shard[key] for shard in shards]
        return max(counts) * len(counts) / sum(counts) if sum(counts) else None

    header = {
        "format": FORMAT,
        "name": store.header["name"],
        "num_nodes": len(part),
        "num_edges": store.header["num_edges"],
        "num_parts": len(shards),
        "directed": store.header["directed"],
        "method": method,
        "seed": seed,
        "store": store.header["sha256"],
        "parts": shards,
        "cut": sum(shard["cut"] for shard in shards),
        "halo": sum(shard["halo"] for shard in shards),
        "balance": balance("owned"),
        "train_balance": balance("train"),
        "statistics": graph_statistics(store.graph),
    }
    return {**header, "sha256": header_digest(header)}
