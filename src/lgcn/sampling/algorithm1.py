# mypy: disable-error-code="untyped-decorator"
"""Algorithm 1 of the paper: a sub-graph grown breadth first from random start nodes.

`lgcn.ops.reference.select_subgraph` is the algorithm as printed; this is the fast one. Its cost is
cache misses and mispredicted branches. Visited nodes are therefore marked with one bit per node
(100,000 nodes fit in a first-level cache, and reading the bits in order sorts the nodes), the
adjacency is read as 32-bit numbers, and rows are prefetched.
"""

import threading
from collections.abc import Sequence
from operator import index
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import checked_nodes
from lgcn.ops.induced_subgraph import fetch_ahead
from lgcn.ops.structure import check_range, structure
from lgcn.utils.jit import jit
from lgcn.utils.splitmix import STEP, mix

_NO_LIMIT = 2**31 - 1  # there cannot be more nodes
_UNLIMITED = np.array([_NO_LIMIT])
_BLOCK = 64  # rows prefetched: enough to overlap their cache misses, few enough to stay cached

# Arrays live as long as their graph. Scratch memory belongs to a thread, hence no lock.
_arrays: Any = WeakKeyDictionary()
_local = threading.local()


def select_subgraph(
    graph: Graph,
    *,
    roots: Tensor | Sequence[int] | None = None,
    n_init: int | None = None,
    max_nodes: int | None,
    max_expand: int | Sequence[int] | None = None,
    max_hops: int | None = None,
    seed: int,
) -> Tensor:
    r"""Selects the nodes of a sub-graph: Algorithm 1 of the
    ["Large-Scale Learnable Graph Convolutional Networks"](https://arxiv.org/abs/1808.03965) paper.

    Starts from $N_{init}$ nodes. Each iteration adds the neighbours of the nodes that the last
    iteration added, at most $N_m$ of them, and never more than $N_s$ nodes in total. If there are
    too many, a uniform sample is taken.

    The cost depends on the nodes and edges visited, not on the size of the graph. A 32-bit
    adjacency, such as that of a store, is read without a copy. For a 64-bit adjacency, the first
    call makes a 32-bit copy that lives as long as the graph.

    Args:
        graph: The graph.
        roots: Node numbers, or a boolean mask, from which the start nodes are taken.
            (default: all nodes)
        n_init: $N_{init}$, how many start nodes to draw. (default: all `roots`)
        max_nodes: $N_s$, the maximum number of nodes; `None` for no limit.
        max_expand: $N_m$, the maximum number of nodes added per iteration. A list gives one number
            per iteration, and growth ends after the last. (default: no limit)
        max_hops: Number of iterations. The authors' released program makes one.
            (default: no limit)
        seed: Random seed. The same seed selects the same nodes.

    Returns:
        Sorted, distinct node numbers (int64).

    Example:
        ```python
        nodes = lgcn.select_subgraph(graph, n_init=50, max_nodes=1000, seed=0)
        part = graph.subgraph(nodes)
        ```
    """
    rowptr, col = adjacency_arrays(graph)
    num_nodes = rowptr.shape[0] - 1
    marks, nodes = _scratch(num_nodes)

    num_roots = 0
    if roots is not None:
        start = _start_nodes(roots, num_nodes)
        num_roots = start.shape[0]
        nodes[:num_roots] = start
    elif n_init is None:
        raise ValueError("give n_init (how many start nodes to draw), roots, or both")
    available = num_roots or num_nodes
    n_init = available if n_init is None else index(n_init)
    if not 1 <= n_init <= available:
        raise ValueError(
            f"n_init must be between 1 and the {available} nodes to start from, got {n_init}"
        )
    if max_nodes is None:
        max_nodes = _NO_LIMIT
    elif max_nodes < n_init:
        raise ValueError(
            f"max_nodes must be at least the number of start nodes ({n_init}), got {max_nodes}"
        )
    if max_hops is None:
        max_hops = _NO_LIMIT
    elif max_hops < 0:
        raise ValueError(f"max_hops must not be negative, got {max_hops}")
    limits = _UNLIMITED
    if max_expand is not None:
        one_for_all = isinstance(max_expand, int | np.integer)
        given: Any = [max_expand] if one_for_all else max_expand
        limits = np.array([min(index(limit), _NO_LIMIT) for limit in given], np.int64)
        if limits.size == 0 or limits.min() < 1:
            raise ValueError(f"max_expand must be at least 1 in each iteration, got {max_expand}")
        if not one_for_all:
            max_hops = min(max_hops, limits.size)
    try:
        selected = _grow(
            rowptr,
            col,
            marks,
            nodes,
            limits,
            num_roots,
            n_init,
            min(index(max_nodes), _NO_LIMIT),
            min(index(max_hops), _NO_LIMIT),
            np.uint64(seed % 2**64),
        )
    except BaseException:  # such as out of memory: some marks may be set
        del _local.scratch
        raise
    return torch.from_numpy(selected)


def adjacency_arrays(graph: Graph) -> Any:
    """rowptr and a 32-bit col of the graph, checked again if its tensors have changed."""
    known = structure(graph.rowptr, graph.col)
    kept = _arrays.get(graph)
    if kept is None or kept[0] != known.states or not known.states:
        kept = _arrays[graph] = (known.states, _make_arrays(graph))
    return kept[1]


def _make_arrays(graph: Graph) -> Any:
    if graph.num_nodes > _NO_LIMIT:
        raise ValueError(f"graph must have at most {_NO_LIMIT} nodes, got {graph.num_nodes}")
    check_range(graph.rowptr, graph.col, graph.num_nodes)
    rowptr, col = graph.rowptr.cpu().contiguous(), graph.col.cpu().contiguous()
    if col.dtype == torch.int64:  # 32-bit arrays, as in a store, are used without a copy
        col = col.int()
        rowptr = rowptr.int() if col.numel() <= _NO_LIMIT else rowptr
    return rowptr.detach().numpy(), col.detach().numpy()


def _scratch(num_nodes: int) -> Any:
    """This thread's marks, none of them set, and room for all nodes and one more.

    There is one mark (bit) per node, followed by one per 64 of these, see `_ascending`. The system
    provides only memory that is written to, which is little of it.
    """
    kept = getattr(_local, "scratch", None)
    if kept is None or kept[1].shape[0] <= num_nodes:
        words = -(-num_nodes // 64)
        marks = np.zeros(words + -(-words // 64), np.uint64)
        kept = _local.scratch = (marks, np.empty(num_nodes + 1, np.int32))
    return kept


def _start_nodes(roots: Tensor | Sequence[int], num_nodes: int) -> Any:
    nodes = checked_nodes(torch.as_tensor(roots).cpu(), num_nodes, "roots")
    if nodes.numel() == 0:
        raise ValueError("roots must name at least one node, got none")
    ordered = np.sort(nodes.numpy())
    repeated = ordered[1:] == ordered[:-1]
    return np.unique(ordered) if repeated.any() else ordered


@intrinsic
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    """The position of the lowest set bit in a word, which must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@jit
def random_below(state: Any, bound: int) -> Any:
    """A number in range(bound) from SplitMix64; the bias, below bound / 2**32, is negligible."""
    return ((mix(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)


@jit
def _sample_front(values: Any, count: int, state: Any) -> Any:
    """Moves a uniform sample of `count` values to the front. Draws the smaller part."""
    size = values.shape[0]
    if count <= size // 2:
        for i in range(count):
            state += STEP
            j = np.uint64(i) + random_below(state, size - i)
            values[i], values[j] = values[j], values[i]
    else:
        for i in range(size - 1, count - 1, -1):
            state += STEP
            j = random_below(state, i + 1)
            values[i], values[j] = values[j], values[i]
    return state


@jit
def _mark(marks: Any, nodes: Any) -> None:
    for i in range(nodes.shape[0]):
        node = np.uint64(nodes[i])
        marks[node >> np.uint64(6)] |= np.uint64(1) << (node & np.uint64(63))


@jit
def _append_new(
    rowptr: Any, col: Any, marks: Any, nodes: Any, first: int, size: int, rows: Any
) -> Any:
    """Marks the neighbours of nodes[first:size], and appends those that had no mark to `nodes`.

    Indices are unsigned because Numba checks whether signed ones are negative.
    """
    end = np.uint64(size)
    while first < size:
        count = min(_BLOCK, size - first)
        for i in range(count):
            node = np.uint64(nodes[first + i])
            start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
            rows[i, 0], rows[i, 1] = start, stop
            fetch_ahead(col, start)
            fetch_ahead(col, (start + stop) // np.uint64(2))
            fetch_ahead(col, stop)
        first += count
        i = 0
        e, stop = rows[0, 0], rows[0, 1]
        # One loop over rows and entries. The inner of two loops would be unrolled, which costs
        # short rows more in mispredicted branches than it saves.
        while True:
            if e == stop:
                i += 1
                if i == count:
                    break
                e, stop = rows[i, 0], rows[i, 1]
                continue
            node = np.uint64(col[e])
            e += np.uint64(1)
            word, bit = node >> np.uint64(6), np.uint64(1) << (node & np.uint64(63))
            before = marks[word]
            nodes[end] = node  # no branch: whether a node is new cannot be predicted
            end += np.uint64(before & bit == 0)
            marks[word] = before | bit
    return np.int64(end)


@jit
def _take_bits(marks: Any, word: Any, result: Any, at: Any) -> Any:
    bits = marks[word]
    marks[word] = 0
    while bits != 0:
        result[at] = np.uint64(64) * word + _lowest_bit(bits)
        at += np.uint64(1)
        bits &= bits - np.uint64(1)
    return at


@jit
def _ascending(marks: Any, words: int, nodes: Any) -> Any:
    """Returns the marked nodes, which are `nodes`, in ascending order, and clears the marks.

    If few of many words have a bit set, a second level of marks says which, so that the cost grows
    with the number of nodes, not with the size of the graph.
    """
    result = np.empty(nodes.shape[0], np.int64)
    at = np.uint64(0)
    if 2 * words <= nodes.shape[0]:
        for i in range(words):
            at = _take_bits(marks, np.uint64(i), result, at)
        return result
    upper = marks[words : words + (words + 63) // 64]
    for i in range(nodes.shape[0]):
        word = np.uint64(nodes[i]) >> np.uint64(6)
        upper[word >> np.uint64(6)] |= np.uint64(1) << (word & np.uint64(63))
    for i in range(upper.shape[0]):
        left = upper[i]
        upper[i] = 0
        while left != 0:
            word = np.uint64(64 * i) + _lowest_bit(left)
            at = _take_bits(marks, word, result, at)
            left &= left - np.uint64(1)
    return result


@jit
def _grow(
    rowptr: Any,
    col: Any,
    marks: Any,
    nodes: Any,
    max_expand: Any,
    num_roots: int,
    n_init: int,
    max_nodes: int,
    max_hops: int,
    state: Any,
) -> Any:
    """Draws start nodes from nodes[:num_roots], or from all nodes if num_roots is zero; grows."""
    num_nodes = rowptr.shape[0] - 1
    words = (num_nodes + 63) // 64
    if num_roots > 0:
        state = _sample_front(nodes[:num_roots], n_init, state)
        _mark(marks, nodes[:n_init])
    else:  # Floyd's algorithm: a sample of range(N) in n_init steps
        for i in range(n_init):
            top = np.uint64(num_nodes - n_init + i)
            state += STEP
            node = random_below(state, top + np.uint64(1))
            if (marks[node >> np.uint64(6)] >> (node & np.uint64(63))) & np.uint64(1) != 0:
                node = top
            nodes[i] = node
            _mark(marks, nodes[i : i + 1])

    rows = np.empty((_BLOCK, 2), np.uint64)
    size = n_init
    # newAddNodes is nodes[first_new:size]. A plain 0 would compile another _append_new.
    first_new: Any = np.int64(0)
    hop = 0
    while size < max_nodes and first_new < size and hop < max_hops:
        end = _append_new(rowptr, col, marks, nodes, first_new, size, rows)
        found = end - size  # candidateNodes \\ S
        limit = max_expand[min(hop, max_expand.shape[0] - 1)]
        taken = min(found, limit, max_nodes - size)
        first_new = size
        size += taken
        hop += 1
        if taken < found:
            state = _sample_front(nodes[first_new:end], taken, state)
            # Nodes that were not taken lose their mark: a later iteration may find them again.
            if end - size > words + size:
                marks[:words] = 0
                _mark(marks, nodes[:size])
            else:
                for i in range(size, end):
                    node = np.uint64(nodes[i])
                    marks[node >> np.uint64(6)] &= ~(np.uint64(1) << (node & np.uint64(63)))
    return _ascending(marks, words, nodes[:size])
