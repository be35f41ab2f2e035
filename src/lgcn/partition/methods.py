"""Which part each node is in: by METIS, by a stream, or at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcn.errors import UsageError
from lgcn.graph.metis import has_metis, metis_memory, metis_parts
from lgcn.partition.ldg import ldg
from lgcn.store.open_store import Store
from lgcn.utils.jit import jit
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import format_memory
from lgcn.utils.splitmix import STEP, mix

_BLOCK = 1 << 22  # nodes at a time


def choose_method(store: Store, method: str | None, memory: int) -> str:
    """The method to use; refuses METIS if it does not fit.

    Args:
        store: The graph.
        method: What the user asked for; `None` for METIS if it fits, else the stream.
        memory: Bytes that may be used.
    """
    header = store.header
    needed = metis_memory(header["num_nodes"], header["num_edges"], directed=header["directed"])
    if method is None:
        return "metis" if has_metis() and needed <= memory else "ldg"
    if method == "metis" and needed > memory:
        raise UsageError(
            f"method=metis would need up to {format_memory(needed)} for "
            f"{header['num_edges']:,} entries, and {format_memory(memory)} of the memory are left. "
            "Use method=ldg, or raise memory"
        )
    return method


def assign(
    store: Store,
    num_parts: int,
    method: str,
    seed: int,
    *,
    block: int,
    on_progress: OnProgress,
) -> Any:
    """The part of each node, int32. No part is empty.

    Args:
        store: The graph.
        num_parts: The number of parts, at most that of nodes.
        method: `"metis"`, `"ldg"` or `"hash"`.
        seed: Of the random choices; the stream makes none.
        block: Bytes to read at a time.
        on_progress: Called with the progress.
    """
    on_progress("assign nodes", 0, 0)
    if method == "metis":
        part = metis_parts(store.graph, num_parts, seed, "method=metis", isolated=False)
        part = part.astype(np.int32)
        _spread(part, num_parts)
    elif method == "ldg":
        part = ldg(store, num_parts, block=block, on_progress=on_progress)
    else:
        part = _by_hash(store.graph.num_nodes, num_parts, seed)
    fill_empty(part, num_parts)
    return part


def _spread(part: Any, num_parts: int) -> None:
    """Puts nodes without a part, -1, into the smallest parts, in place."""
    rest = np.flatnonzero(part < 0)
    sizes = np.bincount(part[part >= 0], minlength=num_parts)
    order = np.argsort(sizes, kind="stable")
    # The parts are filled to one level, the smallest first.
    levels = np.maximum(-(-len(part) // num_parts) - sizes[order], 0)
    part[rest] = np.repeat(order, levels)[: len(rest)]


def _by_hash(num_nodes: int, num_parts: int, seed: int) -> Any:
    part = np.empty(num_nodes, np.int32)
    for start, stop in row_blocks(num_nodes, _BLOCK):
        _hash(start, num_parts, np.uint64(seed % 2**64), part[start:stop])
    return part


@jit
def _hash(start: int, num_parts: int, seed: Any, part: Any) -> None:
    key = mix(seed + STEP)
    for i in range(part.shape[0]):
        part[i] = mix(key + np.uint64(start + i + 1) * STEP) % np.uint64(num_parts)


def fill_empty(part: Any, num_parts: int) -> None:
    """Moves nodes of the largest parts into those without any, in place."""
    sizes = np.bincount(part, minlength=num_parts)
    for empty in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        part[int((part == largest).argmax())] = empty
        sizes[largest] -= 1
        sizes[empty] = 1
