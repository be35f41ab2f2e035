"""Labellings: what the nodes of a graph are ranked by."""

# mypy: disable-error-code="untyped-decorator"

import warnings
from typing import Any

import numpy as np

from lgcn.paper.baselines.patchy_san.ranking import rank
from lgcn.utils.jit import jit

Array = np.ndarray[Any, Any]

# Sums in another order differ in the last digits. Nodes whose betweenness differs by less than this
# share have the same label, so that the order of the nodes does not matter.
ROUNDING = 1e-9
# Betweenness takes a step per node and entry of the adjacency: so many take up to a minute.
MANY_STEPS = 5_000_000_000


def labels_of(rowptr: Array, col: Array, labelling: str) -> Array:
    """A whole number from 0 to below N per node, the larger the more central it is.

    Args:
        rowptr, col: A simple undirected graph in CSR form.
        labelling: `"betweenness"`, `"degree"`, or `"wl"`, the colours of
            `lgcn.paper.baselines.patchy_san.ranking.rank`, which begin with the degrees.
    """
    num_nodes = len(rowptr) - 1
    if labelling == "degree":
        return np.diff(rowptr)
    if labelling == "wl":
        zeros = np.zeros(num_nodes, np.int64)
        colours: Array = rank(rowptr, col, zeros, num_nodes, False)[1]
        return colours
    steps = num_nodes * len(col)
    if steps > MANY_STEPS:
        warnings.warn(
            f"labelling=betweenness takes up to {steps / MANY_STEPS:.0f} minutes for a graph of "
            f"{num_nodes} nodes and {len(col)} entries, as it grows with their product; "
            "labelling=degree and labelling=wl take seconds",
            stacklevel=2,
        )
    return _classes(betweenness(rowptr, col))


def _classes(values: Array) -> Array:
    """The rank of each value, where values that differ by rounding have the same one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    found = np.zeros(len(values), np.int64)
    found[order[1:]] = np.cumsum(np.diff(ranked) > ROUNDING * ranked[1:])
    return found


@jit
def betweenness(rowptr: Any, col: Any) -> Any:
    """The betweenness of each node: over all ordered pairs of other nodes, the sum of the share of
    their shortest paths that pass through it (Brandes, 2001).

    Args:
        rowptr, col: A simple undirected graph in CSR form.
    """
    num_nodes = rowptr.shape[0] - 1
    total = np.zeros(num_nodes)
    distance = np.full(num_nodes, -1, np.int64)
    paths = np.zeros(num_nodes)
    share = np.zeros(num_nodes)
    queue = np.empty(num_nodes, np.int64)
    for source in range(num_nodes):
        queue[0], used = source, 1
        distance[source], paths[source] = 0, 1.0
        at = 0
        while at < used:
            node = queue[at]
            at += 1
            for e in range(rowptr[node], rowptr[node + 1]):
                other = col[e]
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue[used] = other
                    used += 1
                if distance[other] == distance[node] + 1:
                    paths[other] += paths[node]
        for at in range(used - 1, 0, -1):  # the farthest first
            node = queue[at]
            passed = (1 + share[node]) / paths[node]
            for e in range(rowptr[node], rowptr[node + 1]):
                other = col[e]
                if distance[other] == distance[node] - 1:
                    share[other] += paths[other] * passed
            total[node] += share[node]
        for at in range(used):
            node = queue[at]
            distance[node], paths[node], share[node] = -1, 0.0, 0.0
    return total
