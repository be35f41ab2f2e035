"""Finds the nodes within some hops of others, at the cost of the rows that are read."""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np

from lgcn.ops.induced_subgraph import longer, node_hash
from lgcn.utils.jit import jit

# Why a search stops: there are too many entries, or the adjacency is not valid.
FOUND, TOO_MANY, INVALID = 0, 1, 2
_BITS = 8  # of the smallest hash table


@jit
def _search(table: Any, nodes: Any, node: int) -> Any:
    """Where the table has a node, or the empty place where it would be."""
    bits = 0
    while (1 << bits) < table.shape[0]:
        bits += 1
    mask = np.uint64(table.shape[0] - 1)
    at = node_hash(node, np.uint64(64 - bits))
    while table[at] >= 0 and nodes[table[at]] != node:
        at = (at + np.uint64(1)) & mask
    return at


@jit
def _make_table(nodes: Any, used: int) -> Any:
    """An open hash table of places in `nodes`, of which the first `used` are known."""
    bits = _BITS
    while (1 << bits) < 4 * used:
        bits += 1
    table = np.full(1 << bits, -1, np.int64)
    for place in range(used):
        table[_search(table, nodes, nodes[place])] = place
    return table


@jit
def within_hops(rowptr: Any, col: Any, roots: Any, hops: int, most: int) -> Any:
    """The nodes within some hops, nearest first, and how far the search came.

    Args:
        rowptr, col: The adjacency.
        roots: Distinct node numbers, in range.
        hops: The number of hops.
        most: The number of entries to read at most.

    Returns:
        The nodes, those of one distance in rising order; the number of nodes within 0, 1, 2, ...
        hops; the hash table of places in the nodes; and why it stopped, with the hop.
    """
    nodes, used = roots.copy(), roots.shape[0]
    reach = np.full(hops + 1, used, np.int64)
    table = _make_table(nodes, used)
    first = read = 0
    for hop in range(hops):
        last = used
        for place in range(first, last):
            start, stop = rowptr[nodes[place]], rowptr[nodes[place] + 1]
            if start < 0 or stop < start or stop > col.shape[0]:
                return nodes, reach, table, INVALID, hop
            read += stop - start
            if read > most:
                return nodes, reach, table, TOO_MANY, hop
            for e in range(start, stop):
                node = np.int64(col[e])
                if node < 0 or node >= rowptr.shape[0] - 1:
                    return nodes, reach, table, INVALID, hop
                at = _search(table, nodes, node)
                if table[at] < 0:
                    if used == nodes.shape[0]:
                        nodes = longer(nodes, used, 2 * used + 8)
                    nodes[used], table[at] = node, used
                    used += 1
                    if 2 * used > table.shape[0]:
                        table = _make_table(nodes, used)
        nodes[last:used].sort()
        table = _make_table(nodes, used)
        first = last
        reach[hop + 1 :] = used
    return nodes[:used], reach, table, FOUND, hops


@jit
def entries_between(rowptr: Any, col: Any, nodes: Any, reach: Any, table: Any) -> Any:
    """The rows of the nodes, with local numbers; of the outermost nodes, only self-loops.

    Args:
        rowptr, col: The adjacency.
        nodes, reach, table: As `within_hops` gives them.

    Returns:
        Row offsets, local columns, where the entries are in the whole adjacency, and the number of
        entries that the rows have there.
    """
    inner = reach[-2] if reach.shape[0] > 1 else 0
    counts = np.empty(nodes.shape[0], np.int64)
    total = 0
    for place in range(nodes.shape[0]):
        counts[place] = rowptr[nodes[place] + 1] - rowptr[nodes[place]]
        total += counts[place] if place < inner else 0
    offsets = np.zeros(nodes.shape[0] + 1, np.int64)
    local, entry = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for place in range(nodes.shape[0]):
        node = nodes[place]
        for e in range(rowptr[node], rowptr[node + 1]):
            if place >= inner and col[e] != node:
                continue
            if at == local.shape[0]:
                local, entry = longer(local, at, 2 * at + 8), longer(entry, at, 2 * at + 8)
            local[at] = table[_search(table, nodes, np.int64(col[e]))]
            entry[at] = e
            at += 1
        offsets[place + 1] = at
    return offsets, local[:at], entry[:at], counts
