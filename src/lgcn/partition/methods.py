"""Which part each node is in: by METIS, by a stream, or at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcn.store.open_store import Store
from lgcn.utils.jit import jit
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.splitmix import STEP, mix

_BLOCK = 1 << 22  # nodes at a time


def assign(
    store: Store,
    num_parts: int,
    method: str,
    seed: int,
    *,
    memory: int,
    on_progress: OnProgress,
) -> Any:
    """The part of each node, int32. No part is empty.

    Args:
        store: The graph.
        num_parts: The number of parts, at most that of nodes.
        method: `"hash"`.
        seed: Of the random choices.
        memory: Bytes that may be used.
        on_progress: Called with the progress.
    """
    part = _by_hash(store.graph.num_nodes, num_parts, seed)
    fill_empty(part, num_parts)
    return part


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
