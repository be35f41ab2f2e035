# mypy: disable-error-code="untyped-decorator"
"""Algorithm 1 of the paper: a sub-graph grown breadth first from random start nodes.

`lgcn.ops.reference.select_subgraph` is the algorithm as printed; this is the fast one. Its cost is
cache misses and mispredicted branches. The adjacency is therefore read as 32-bit numbers, rows are
prefetched and copied together, nodes are marked as seen with one byte each, or with one bit in
large graphs, and the result is sorted by its digits.
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
from lgcn.ops.structure import check_range, state_of
from lgcn.utils.jit import jit
from lgcn.utils.splitmix import STEP, mix

_NO_LIMIT = 2**31 - 1  # there cannot be more nodes
_UNLIMITED = np.array([_NO_LIMIT])
_BLOCK = 64  # rows prefetched: enough to overlap their cache misses, few enough to stay cached
_RUN = 32  # entries of a row that are copied at a time: more than most rows have
_LONG = 128  # entries from which on a row is not copied, as its end is a small part of its cost
_DRAWN = 256  # random numbers drawn at a time
_BYTES = 1 << 18  # nodes up to which each has a byte: these fit in a second-level cache
_DIGIT = 11  # bits of a digit: the counts of all digits fit in a first-level cache

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
    seen, nodes = _scratch(num_nodes)

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
            seen,
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
    rowptr, col = graph.rowptr, graph.col
    states = (*state_of(rowptr), *state_of(col))
    kept = _arrays.get(graph)
    if kept is None or kept[0] != states or rowptr.is_inference() or col.is_inference():
        # A state tells storages apart as long as none of them is freed.
        storages = (rowptr.untyped_storage(), col.untyped_storage())
        kept = _arrays[graph] = (states, _make_arrays(graph), storages)
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
    """This thread's arrays: which nodes were seen, which is none, and room for all and one more.

    The system provides only memory that is written to, which is little of it.
    """
    kept = getattr(_local, "scratch", None)
    if kept is None or kept[1].shape[0] <= num_nodes:
        seen = np.zeros(max(min(num_nodes, _BYTES), num_nodes // 8) + 1, np.uint8)
        kept = _local.scratch = (seen, np.empty(num_nodes + 1, np.int32))
    return kept


def _start_nodes(roots: Tensor | Sequence[int], num_nodes: int) -> Any:
    nodes = checked_nodes(torch.as_tensor(roots).cpu(), num_nodes, "roots")
    if nodes.numel() == 0:
        raise ValueError("roots must name at least one node, got none")
    ordered = np.sort(nodes.numpy())
    repeated = ordered[1:] == ordered[:-1]
    return np.unique(ordered) if repeated.any() else ordered


@jit
def random_below(state: Any, bound: int) -> Any:
    """A number in range(bound) from SplitMix64; the bias, below bound / 2**32, is negligible."""
    return ((mix(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)


@jit
def _draw(numbers: Any, bound: int, step: int, state: Any) -> Any:
    """Fills `numbers` with random numbers below bound, bound + step, ... as SIMD code."""
    for i in range(numbers.shape[0]):
        numbers[i] = random_below(state + np.uint64(i + 1) * STEP, bound + step * i)
    return state + np.uint64(numbers.shape[0]) * STEP


@jit
def _sample_front(values: Any, count: int, state: Any) -> Any:
    """Moves a uniform sample of `count` values to the front. Draws the smaller part."""
    size = values.shape[0]
    few = count <= size // 2
    draws = count if few else size - count
    numbers = np.empty(min(_DRAWN, draws), np.uint64)
    for first in range(0, draws, _DRAWN):
        part = numbers[: min(_DRAWN, draws - first)]
        state = _draw(part, size - first, -1, state)
        for n in range(part.shape[0]):
            done = np.uint64(first + n)
            i = done if few else np.uint64(size - 1) - done
            j = part[n] + done if few else part[n]
            values[i], values[j] = values[j], values[i]
    return state


@jit
def _place(node: Any, shift: Any) -> Any:
    """Where `seen` says whether a node was seen: a byte, and a bit in it.

    `shift` is 0 if each node has a byte, and 3 if eight nodes share one.
    """
    bit = np.uint64(1) << (node & ((np.uint64(1) << shift) - np.uint64(1)))
    return node >> shift, bit


@jit
def _forget(seen: Any, shift: Any, nodes: Any) -> None:
    """Takes back that these nodes were seen."""
    for i in range(nodes.shape[0]):
        byte, bit = _place(np.uint64(nodes[i]), shift)
        seen[byte] &= ~bit


@intrinsic
def _copy_run(typing_context: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
    """Copies `_RUN` entries, of which the first are wanted, as one or two vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, at, source, start = arguments
        run = ir.VectorType(ir.IntType(32), _RUN).as_pointer()

        def place(array: Any, kind: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [index]), run)

        entries = builder.load(place(source, signature.args[2], start), align=4)
        builder.store(entries, place(to, signature.args[0], at), align=4)
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64), generate


@jit
def _append_new(
    rowptr: Any,
    col: Any,
    seen: Any,
    shift: Any,
    nodes: Any,
    first: int,
    size: int,
    rows: Any,
    copied: Any,
) -> Any:
    """Appends the neighbours of nodes[first:size] that were not seen to `nodes`.

    Where one short row ends and the next begins cannot be predicted. So rows are copied together
    first, in runs that are longer than most of them.
    """
    end = np.uint64(size)
    run, longest = np.uint64(_RUN), np.uint64(_LONG)
    while first < size:
        count = min(_BLOCK, size - first)
        for i in range(count):
            node = np.uint64(nodes[first + i])
            start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
            rows[i, 0], rows[i, 1] = start, stop
            fetch_ahead(col, start)
            fetch_ahead(col, stop)
        first += count
        filled = np.uint64(0)
        for i in range(count):
            start, stop = rows[i, 0], rows[i, 1]
            # A run must not reach beyond the array.
            if stop - start > longest or start + longest + run > np.uint64(col.shape[0]):
                end = _append(copied, np.uint64(0), filled, seen, shift, nodes, end)
                filled = np.uint64(0)
                end = _append(col, start, stop, seen, shift, nodes, end)
                continue
            _copy_run(copied, filled, col, start)
            for further in range(_RUN, stop - start, _RUN):
                skip = np.uint64(further)
                _copy_run(copied, filled + skip, col, start + skip)
            filled += stop - start
        end = _append(copied, np.uint64(0), filled, seen, shift, nodes, end)
    return np.int64(end)


@jit
def _append(source: Any, start: Any, stop: Any, seen: Any, shift: Any, nodes: Any, end: Any) -> Any:
    """Appends those of source[start:stop] that were not seen.

    Without branches, as whether a node is new cannot be predicted. Indices are unsigned because
    Numba checks whether signed ones are negative.
    """
    if shift == 0:
        for e in range(start, stop):
            node = np.uint64(source[e])
            nodes[end] = node
            end += np.uint64(seen[node] == 0)
            seen[node] = 1
        return end
    for e in range(start, stop):
        node = np.uint64(source[e])
        byte, bit = _place(node, shift)
        before = seen[byte]
        nodes[end] = node
        end += np.uint64(before & bit == 0)
        seen[byte] = before | bit
    return end


@jit
def _ascending(nodes: Any, num_nodes: int) -> Any:
    """The nodes in ascending order, and with 64 bits: sorted by one digit after the other."""
    bits = 1
    while num_nodes >> bits > 0:
        bits += 1
    passes = (bits + _DIGIT - 1) // _DIGIT
    width = np.uint64((bits + passes - 1) // passes)
    mask = (np.uint64(1) << width) - np.uint64(1)
    places = np.empty(mask + np.uint64(1), np.int32)
    source, target = nodes, np.empty(nodes.shape[0], np.int32)
    for number in range(passes):
        shift = width * np.uint64(number)
        places[:] = 0
        for i in range(source.shape[0]):
            places[(np.uint64(source[i]) >> shift) & mask] += 1
        free = np.int32(0)
        for place in range(places.shape[0]):
            count = places[place]
            places[place] = free
            free += count
        for i in range(source.shape[0]):
            digit = (np.uint64(source[i]) >> shift) & mask
            target[np.uint64(places[digit])] = source[i]
            places[digit] += 1
        source, target = target, source
    return source.astype(np.int64)


@jit
def _grow(
    rowptr: Any,
    col: Any,
    seen: Any,
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
    shift = np.uint64(0 if num_nodes <= _BYTES else 3)
    if num_roots > 0:
        state = _sample_front(nodes[:num_roots], n_init, state)
        for i in range(n_init):
            byte, bit = _place(np.uint64(nodes[i]), shift)
            seen[byte] |= bit
    else:  # Floyd's algorithm: a sample of range(N) in n_init steps
        numbers = np.empty(n_init, np.uint64)
        state = _draw(numbers, num_nodes - n_init + 1, 1, state)
        for i in range(n_init):
            node = numbers[i]
            byte, bit = _place(node, shift)
            if seen[byte] & bit != 0:
                node = np.uint64(num_nodes - n_init + i)
                byte, bit = _place(node, shift)
            nodes[i] = node
            seen[byte] |= bit

    rows = np.empty((_BLOCK, 2), np.uint64)
    copied = np.empty(_BLOCK * _LONG + _RUN, np.int32)  # the last run may reach beyond its row
    size = end = n_init
    # newAddNodes is nodes[first_new:size]. A plain 0 would compile another _append_new.
    first_new: Any = np.int64(0)
    hop = 0
    while size < max_nodes and first_new < size and hop < max_hops:
        _forget(seen, shift, nodes[size:end])  # not taken before: they may be found again
        end = _append_new(rowptr, col, seen, shift, nodes, first_new, size, rows, copied)
        found = end - size  # candidateNodes \\ S
        limit = max_expand[min(hop, max_expand.shape[0] - 1)]
        taken = min(found, limit, max_nodes - size)
        if taken < found:
            state = _sample_front(nodes[size:end], taken, state)
        first_new = size
        size += taken
        hop += 1
    num_bytes = (np.uint64(num_nodes) >> shift) + np.uint64(1)
    if num_bytes <= np.uint64(64 * end):
        for i in range(num_bytes):
            seen[i] = 0
    else:
        _forget(seen, shift, nodes[:end])
    return _ascending(nodes[:size], num_nodes)
