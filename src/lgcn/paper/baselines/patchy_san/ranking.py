"""Nodes in an order that does not depend on their numbers, as far as refining colours goes."""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np

from lgcn.utils.jit import jit


@jit
def rank(rowptr: Any, col: Any, keys: Any, needed: int, break_ties: bool) -> Any:
    """Nodes in the order of their colours, and their colours.

    A node's first colour is the number of nodes with a smaller key. In each round, nodes of one
    colour are sorted by the colours of their neighbours, from the largest to the smallest, as
    words in a dictionary; a node's new colour is the number of nodes before those that equal it.
    This is colour refinement, the Weisfeiler-Lehman test in one dimension.

    When nothing changes any more, and ties are to be broken, the node with the smallest number in
    the largest colour of several nodes becomes larger than the others of its colour
    (individualisation), and the rounds go on.

    Only what changed is looked at. In a round, nodes of one colour differ in the neighbours whose
    colours were new after the round before. Compared from the largest colour on, these decide
    alone: the first group that a colour falls into keeps the colour, and if its numbers differ, so
    do those of a larger one. A round sorts by one new colour after the other, and those without a
    neighbour of that colour stay where they are.

    Args:
        rowptr, col: A simple undirected graph in CSR form.
        keys: A whole number per node.
        needed: So many nodes at the end must be told apart. Then it stops, as later rounds would
            not change their places.
        break_ties: Whether nodes that the rounds cannot tell apart are told apart by their
            numbers.

    Returns:
        The nodes, those with the largest colours last, and the colour of each node.
    """
    num_nodes = keys.shape[0]
    order = np.argsort(keys, kind="mergesort")
    place = np.empty(num_nodes, np.int64)
    colour = np.empty(num_nodes, np.int64)
    end = np.empty(num_nodes, np.int64)  # of the places of a colour, which begin at the colour
    first = 0
    for at in range(num_nodes):
        node = order[at]
        if keys[node] != keys[order[first]]:
            first = at
        place[node], colour[node] = at, first
        end[first] = at + 1
    count = np.zeros(num_nodes, np.int64)
    touched = np.empty(num_nodes, np.int64)
    changed = order[::-1].copy()
    apart = num_nodes  # the nodes from this place on have a colour of their own
    while True:
        while apart > 0 and colour[order[apart - 1]] == apart - 1:
            apart -= 1
        if num_nodes - apart >= needed or apart == 0:
            break
        if changed.shape[0] == 0:
            if not break_ties:
                break
            last = apart - 1
            first = colour[order[last]]
            best = first
            for at in range(first + 1, apart):
                if order[at] < order[best]:
                    best = at
            node = order[best]
            _move(order, place, node, last)
            colour[node] = last
            end[first], end[last] = last, apart
            changed = np.full(1, node)
        changed = _refine(rowptr, col, order, place, colour, end, changed, count, touched)
    return order, colour


@jit
def _refine(
    rowptr: Any,
    col: Any,
    order: Any,
    place: Any,
    colour: Any,
    end: Any,
    changed: Any,
    count: Any,
    touched: Any,
) -> Any:
    """One round; the nodes whose colours changed."""
    num_nodes = order.shape[0]
    # The colours before the round, which is about to change them.
    before = -colour[changed]
    by_colour = np.argsort(before, kind="mergesort")
    is_new = np.zeros(num_nodes, np.bool_)
    new = np.empty(num_nodes, np.int64)
    num_new = 0
    start = 0
    while start < changed.shape[0]:
        stop = start
        num_touched = 0
        while stop < changed.shape[0] and before[by_colour[stop]] == before[by_colour[start]]:
            node = changed[by_colour[stop]]
            for e in range(rowptr[node], rowptr[node + 1]):
                other = col[e]
                if count[other] == 0:
                    if end[colour[other]] - colour[other] == 1:
                        continue  # nothing to tell apart
                    touched[num_touched] = other
                    num_touched += 1
                count[other] += 1
            stop += 1
        start = stop
        keys = np.empty(num_touched, np.int64)
        for i in range(num_touched):
            keys[i] = colour[touched[i]] * (num_nodes + 1) + count[touched[i]]
            count[touched[i]] = 0
        by_key = np.argsort(keys, kind="mergesort")
        i = 0
        while i < num_touched:
            # Those of one colour go to the end of its places, by their counts.
            own = keys[by_key[i]] // (num_nodes + 1)
            j = i
            while j < num_touched and keys[by_key[j]] // (num_nodes + 1) == own:
                j += 1
            shift = end[own] - j
            if i + shift > own:
                end[own] = i + shift
            for k in range(j - 1, i - 1, -1):
                _move(order, place, touched[by_key[k]], k + shift)
            while i < j:
                k = i
                while k < j and keys[by_key[k]] == keys[by_key[i]]:
                    k += 1
                first = i + shift
                end[first] = k + shift
                for node in order[first : k + shift]:
                    if first != own:
                        colour[node] = first
                        if not is_new[node]:
                            is_new[node] = True
                            new[num_new] = node
                            num_new += 1
                i = k
    return new[:num_new].copy()


@jit
def _move(order: Any, place: Any, node: int, to: int) -> None:
    """Swaps a node with the one at a place."""
    other, at = order[to], place[node]
    order[at], order[to] = other, node
    place[other], place[node] = at, to
