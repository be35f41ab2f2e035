# mypy: disable-error-code="untyped-decorator"
"""Algorithm 1 of the paper: a sub-graph grown breadth first from random start nodes."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.ops.subgraph import marker

_jit = numba.njit(nogil=True, cache=True)
_NO_LIMIT = -1


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
    r"""Selects the nodes of a sub-graph: Algorithm 1 of the `"Large-Scale Learnable Graph
    Convolutional Networks" <https://arxiv.org/abs/1808.03965>`_ paper.

    Starting from :math:`N_{init}` nodes, each iteration adds the first-order neighbours of the
    nodes that the iteration before added, at most :math:`N_m` of them and never more than
    :math:`N_s` nodes in all; where there are too many, a uniform sample is taken.

    The cost is that of the nodes and edges looked at; it does not grow with the graph.

    Args:
        graph: The graph.
        roots: Node numbers, or a boolean mask, from which to take the start nodes.
            (default: all nodes)
        n_init: :math:`N_{init}`, how many start nodes to draw. (default: all ``roots``)
        max_nodes: :math:`N_s`; ``None`` for no limit.
        max_expand: :math:`N_m`, one number for all iterations, or a list with one for each
            iteration, after which growth ends. (default: no limit)
        max_hops: Number of iterations. The released program makes one. (default: no limit)
        seed: The same seed selects the same nodes.

    Returns:
        Sorted, distinct node numbers (int64).
    """
    num_nodes = graph.num_nodes
    start = None if roots is None else _start_nodes(roots, num_nodes)
    available = num_nodes if start is None else start.shape[0]
    if n_init is None:
        if start is None:
            raise ValueError("give n_init (how many start nodes to draw), roots, or both")
        n_init = available
    if not 1 <= n_init <= available:
        raise ValueError(
            f"n_init must be between 1 and the {available} nodes to start from, got {n_init}"
        )
    if max_nodes is not None and max_nodes < n_init:
        raise ValueError(
            f"max_nodes must be at least the number of start nodes ({n_init}), got {max_nodes}"
        )
    if max_hops is not None and max_hops < 0:
        raise ValueError(f"max_hops must not be negative, got {max_hops}")
    if max_expand is None:
        limits = [_NO_LIMIT]
    elif isinstance(max_expand, int | np.integer):
        limits = [int(max_expand)]
    else:
        limits = list(max_expand)
        max_hops = len(limits) if max_hops is None else min(max_hops, len(limits))
    if max_expand is not None and (not limits or min(limits) < 1):
        raise ValueError(f"max_expand must be at least 1 in each iteration, got {max_expand}")

    marks, stamp = marker(num_nodes)
    nodes = _grow(
        graph.rowptr.cpu().numpy(),
        graph.col.cpu().numpy(),
        np.empty(0, np.int64) if start is None else start,
        start is None,
        n_init,
        _NO_LIMIT if max_nodes is None else max_nodes,
        np.array(limits, np.int64),
        _NO_LIMIT if max_hops is None else max_hops,
        np.uint64(seed % 2**64),
        marks,
        stamp,
    )
    nodes.sort()
    return torch.from_numpy(nodes)


def _start_nodes(roots: Tensor | Sequence[int], num_nodes: int) -> Any:
    nodes = torch.as_tensor(roots).cpu()
    if nodes.dtype == torch.bool:
        if nodes.shape != (num_nodes,):
            raise ValueError(f"roots as a mask must have {num_nodes} entries, got {nodes.numel()}")
        nodes = nodes.nonzero().squeeze(1)
    if nodes.numel() == 0:
        raise ValueError("roots must name at least one node, got none")
    if nodes.dim() != 1 or nodes.is_floating_point():
        raise ValueError(f"roots must be a list of node numbers, got {nodes.dtype} {nodes.shape}")
    nodes = torch.unique(nodes.long())
    if not 0 <= int(nodes[0]) <= int(nodes[-1]) < num_nodes:
        raise ValueError(
            f"roots must lie between 0 and {num_nodes - 1}, got {int(nodes[0])} to {int(nodes[-1])}"
        )
    return nodes.numpy()


@_jit
def _random_below(state: Any, bound: int) -> Any:
    """A number in range(bound) from SplitMix64; the bias, below bound / 2**32, is immaterial."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@_jit
def _sample_front(values: Any, size: int, count: int, state: Any) -> None:
    """Moves a uniform sample of ``count`` of the first ``size`` values to the front."""
    for i in range(count):
        j = i + _random_below(state, size - i)
        values[i], values[j] = values[j], values[i]


@_jit
def _grow(
    rowptr: Any,
    col: Any,
    roots: Any,
    any_node: bool,
    n_init: int,
    max_nodes: int,
    max_expand: Any,
    max_hops: int,
    seed: Any,
    marks: Any,
    stamp: int,
) -> Any:
    mark = stamp << 32
    num_nodes = rowptr.shape[0] - 1
    state = np.empty(1, np.uint64)
    state[0] = seed
    chosen = np.empty(max(4 * n_init, 1024), np.int64)
    size = 0
    if any_node:  # Floyd's algorithm: a sample of range(N) in n_init steps
        for top in range(num_nodes - n_init, num_nodes):
            node = _random_below(state, top + 1)
            if marks[node] == mark:
                node = top
            marks[node] = mark
            chosen[size] = node
            size += 1
    else:
        candidates = roots.copy()
        _sample_front(candidates, candidates.shape[0], n_init, state)
        for i in range(n_init):
            marks[candidates[i]] = mark
            chosen[i] = candidates[i]
        size = n_init

    first_new = 0  # newAddNodes is chosen[first_new:size]
    hop = 0
    while (max_nodes < 0 or size < max_nodes) and first_new < size:
        if max_hops >= 0 and hop >= max_hops:
            break
        limit = max_expand[min(hop, max_expand.shape[0] - 1)]
        # candidateNodes \ S, appended behind S
        end = size
        for i in range(first_new, size):
            node = chosen[i]
            start, stop = rowptr[node], rowptr[node + 1]
            if end + (stop - start) > chosen.shape[0]:
                larger = np.empty(2 * (end + stop - start), np.int64)
                larger[:end] = chosen[:end]
                chosen = larger
            for e in range(start, stop):  # no branch: whether a node is new cannot be foreseen
                neighbor = col[e]
                chosen[end] = neighbor
                end += marks[neighbor] != mark
                marks[neighbor] = mark
        found = end - size
        taken = found
        if limit >= 0:
            taken = min(taken, limit)
        if max_nodes >= 0:
            taken = min(taken, max_nodes - size)
        if taken < found:
            _sample_front(chosen[size:end], found, taken, state)
            for i in range(size + taken, end):  # not taken: a later iteration may find them again
                marks[chosen[i]] = 0
        first_new = size
        size += taken
        hop += 1
    return chosen[:size].copy()
