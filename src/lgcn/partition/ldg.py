"""A streaming partitioner: linear deterministic greedy, in several passes.

Stanton and Kliot, [Streaming Graph Partitioning for Large Distributed
Graphs](https://doi.org/10.1145/2339530.2339722), 2012: a node goes to the part with most of its
neighbours, times the share of the part that is still free. Nishimura and Ugander, [Restreaming
Graph Partitioning](https://doi.org/10.1145/2487575.2487696), 2013: further passes, which know where
all neighbours are, cut much less.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np

from lgcn.store.open_store import Store
from lgcn.utils.jit import jit
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks_within

# Measured with `benchmarks/partition.py`: the tenth pass still cuts some percent fewer edges than
# the fifth, and a pass takes a few seconds per 100 million edges.
PASSES = 10
SLACK = 1.1  # the largest part, over the average
TRAIN_SLACK = 1.2  # the same of training nodes, so that all parts have work
STILL = 0.01  # a pass that moves a smaller share of the nodes is the last


def ldg(
    store: Store, num_parts: int, *, block: int, passes: int = PASSES, on_progress: OnProgress
) -> Any:
    """The part of each node, int32. A part may be empty if there are few nodes.

    Args:
        store: The graph. Rows are read in their order, once per pass.
        num_parts: The number of parts.
        block: Bytes to read at a time.
        passes: The number of passes, at most.
        on_progress: Called with the progress.
    """
    arrays, num_nodes = store.arrays, store.graph.num_nodes
    rowptr, col = arrays["rowptr"], arrays["col"]
    train = arrays.get("train_mask")
    part = np.full(num_nodes, -1, np.int32)
    sizes, train_sizes = np.zeros((2, num_parts), np.int64)
    num_train = 0 if train is None else int(np.count_nonzero(train))
    room = max(1.0, SLACK * num_nodes / num_parts)
    train_room = max(1.0, TRAIN_SLACK * num_train / num_parts)
    for number in range(passes):
        moved = 0
        for start, stop in row_blocks_within(block, num_nodes, 1, rowptr, col.itemsize):
            offsets = np.array(rowptr[start : stop + 1])
            moved += _stream(
                start,
                offsets,
                col[offsets[0] : offsets[-1]],
                np.zeros(stop - start, np.bool_) if train is None else train[start:stop],
                part,
                sizes,
                train_sizes,
                room,
                train_room,
            )
            on_progress("assign nodes", number * num_nodes + stop, passes * num_nodes)
        if moved <= STILL * num_nodes:
            break
    return part


@jit
def _stream(
    row: int,
    rowptr: Any,
    col: Any,
    train: Any,
    part: Any,
    sizes: Any,
    train_sizes: Any,
    room: float,
    train_room: float,
) -> int:
    """Assigns the nodes from `row` on, in place; gives how many changed their part."""
    num_parts = sizes.shape[0]
    counts = np.zeros(num_parts, np.int64)
    touched = np.empty(num_parts, np.int64)
    base, moved = rowptr[0], 0
    least, asked = 0, num_parts
    for i in range(rowptr.shape[0] - 1):
        node = row + i
        own = part[node]
        if own >= 0:
            sizes[own] -= 1
            train_sizes[own] -= train[i]
        found = 0
        for e in range(rowptr[i] - base, rowptr[i + 1] - base):
            p = part[col[e]]
            if p < 0 or col[e] == node:
                continue
            if counts[p] == 0:
                touched[found] = p
                found += 1
            counts[p] += 1
        best, highest = -1, 0.0
        for t in range(found):
            p = touched[t]
            left = 1 - sizes[p] / room
            if train[i]:
                left = min(left, 1 - train_sizes[p] / train_room)
            score = counts[p] * left
            counts[p] = 0
            better = score > highest
            if score == highest and best >= 0:  # stays where it is, or goes where there is room
                better = p == own or (best != own and sizes[p] < sizes[best])
            if better:
                best, highest = p, score
        if best < 0 and found == 0 and own >= 0:
            best = own
        elif best < 0 and train[i]:
            best = int(np.argmin(train_sizes / train_room + sizes / room))
        elif best < 0:
            # Finding the smallest part takes a step per part, so it is not done for each node.
            if 8 * asked >= num_parts or sizes[least] >= room:
                least, asked = int(np.argmin(sizes)), 0
            asked += 1
            best = least
        part[node] = best
        sizes[best] += 1
        train_sizes[best] += train[i]
        moved += best != own
    return moved
