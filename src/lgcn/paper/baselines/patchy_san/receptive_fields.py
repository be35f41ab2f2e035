"""Receptive fields of one graph: which nodes its convolution reads, and in which order."""

# mypy: disable-error-code="untyped-decorator"

from typing import Any, NamedTuple

import numpy as np

from lgcn.paper.baselines.patchy_san.labellings import labels_of
from lgcn.paper.baselines.patchy_san.ranking import rank
from lgcn.utils.jit import jit

Array = np.ndarray[Any, Any]


class Shape(NamedTuple):
    """What fields a graph has, see `lgcn.paper.baselines.patchy_san.network.PatchySan`."""

    width: int
    stride: int
    field: int
    labelling: str


def receptive_fields(rowptr: Array, col: Array, shape: Shape) -> Array:
    """The nodes of each receptive field of a graph, nearest to its root first; -1 for none.

    Args:
        rowptr, col: A simple undirected graph in CSR form, in int64.
        shape: The number and size of the fields.

    Shapes:
        - **output:** $(w', k)$, where $w'$ is `width`, or less if there are fewer nodes
    """
    labels = labels_of(rowptr, col, shape.labelling)
    colours = rank(rowptr, col, labels, len(labels), False)[1]
    needed = min((shape.width - 1) * shape.stride + 1, len(labels))
    order = rank(rowptr, col, colours, needed, True)[0]
    roots = order[::-1][: needed : shape.stride].copy()
    # Nodes that look the same in a neighbourhood may differ in the graph.
    by_turn = np.argsort(-colours, kind="stable")
    found: Array = _fields(rowptr, col, labels, roots, by_turn, shape.field)
    return found


@jit
def _fields(rowptr: Any, col: Any, labels: Any, roots: Any, by_turn: Any, field: int) -> Any:
    """The fields. Ties that refining colours leaves go to the node that is earlier in `by_turn`."""
    num_nodes = rowptr.shape[0] - 1
    turn = np.empty(num_nodes, np.int64)
    turn[by_turn] = np.arange(num_nodes)
    out = np.full((roots.shape[0], field), -1, np.int32)
    distance = np.full(num_nodes, -1, np.int64)
    number = np.full(num_nodes, -1, np.int64)
    queue = np.empty(num_nodes, np.int64)
    for row in range(roots.shape[0]):
        used = _grow(rowptr, col, roots[row], field, distance, queue)
        nodes = by_turn[np.sort(turn[queue[:used]])]  # `rank` gives ties to the first
        keys = (num_nodes - distance[nodes]) * num_nodes + labels[nodes]
        needed = min(field, used)
        order = np.argsort(keys)
        if _ties(keys[order], needed):
            number[nodes] = np.arange(used)
            order = rank(*_among(rowptr, col, nodes, number), keys, needed, True)[0]
            number[nodes] = -1
        out[row, :needed] = nodes[order[::-1][:needed]]
        distance[nodes] = -1
    return out


@jit
def _grow(rowptr: Any, col: Any, root: int, field: int, distance: Any, queue: Any) -> int:
    """Breadth-first search until there are enough nodes, with all those of the last distance."""
    queue[0], used, first = root, 1, 0
    distance[root] = 0
    while first < used < field:
        last = used
        for at in range(first, last):
            node = queue[at]
            for e in range(rowptr[node], rowptr[node + 1]):
                other = col[e]
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue[used] = other
                    used += 1
        first = last
    return used


@jit
def _ties(keys: Any, needed: int) -> bool:
    """Whether one of the last, or the one before them, equals the next."""
    for at in range(keys.shape[0] - 1, max(keys.shape[0] - needed, 1) - 1, -1):
        if keys[at] == keys[at - 1]:
            return True
    return False


@jit
def _among(rowptr: Any, col: Any, nodes: Any, number: Any) -> Any:
    """The edges among some nodes, in their new numbers."""
    new_rowptr = np.zeros(nodes.shape[0] + 1, np.int64)
    for at in range(nodes.shape[0]):
        new_rowptr[at + 1] = new_rowptr[at]
        for e in range(rowptr[nodes[at]], rowptr[nodes[at] + 1]):
            new_rowptr[at + 1] += number[col[e]] >= 0
    new_col = np.empty(new_rowptr[-1], np.int64)
    used = 0
    for node in nodes:
        for e in range(rowptr[node], rowptr[node + 1]):
            if number[col[e]] >= 0:
                new_col[used] = number[col[e]]
                used += 1
    return new_rowptr, new_col
