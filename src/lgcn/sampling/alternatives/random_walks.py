# mypy: disable-error-code="untyped-decorator"
"""Uniform random walks from all nodes, in parallel: the sentences of DeepWalk."""

from collections.abc import Iterator
from operator import index
from typing import Any

import numba
import numpy as np

from lgcn.graph import Graph
from lgcn.sampling.algorithm1 import adjacency_arrays, random_below
from lgcn.utils.jit import jit_parallel
from lgcn.utils.splitmix import STEP

_BLOCK = 64  # walks that take their steps in turn, so that their cache misses overlap


def random_walks(graph: Graph, walks_per_node: int, length: int, seed: int = 0) -> Any:
    r"""Random walks from every node, as in the `"DeepWalk: Online Learning of Social
    Representations" <https://arxiv.org/abs/1403.6652>`_ paper.

    A walk goes on to a neighbour, all of them as likely; edge weights do not count, as in the
    paper. Where edges have a direction, the neighbours of a node are those it aggregates from. A
    walk ends early in a node that has none, and is then filled up with -1.

    The walks come in ``walks_per_node`` passes over the nodes, in each of which every node starts
    one, in a random order. They are the same for any number of threads.

    Args:
        graph: The graph.
        walks_per_node: Walks from each node.
        length: Nodes of a walk, the one where it starts among them.
        seed: Of the random numbers. (default: 0)

    Shapes:
        - **output:** node numbers, int32, :math:`(\mathrm{nodes} \cdot \mathrm{walks\_per\_node},
          \mathrm{length})`
    """
    passes = walk_passes(graph, walks_per_node, length, seed)
    walks = np.empty((walks_per_node, graph.num_nodes, length), np.int32)
    for number, walked in enumerate(passes):
        walks[number] = walked
    return walks.reshape(-1, length)


def walk_passes(graph: Graph, walks_per_node: int, length: int, seed: int = 0) -> Iterator[Any]:
    """The passes of :func:`random_walks` one by one, for graphs with more walks than memory."""
    for name, value in (("walks_per_node", walks_per_node), ("length", length)):
        if index(value) < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if index(seed) < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    return _passes(graph, walks_per_node, length, seed)


def _passes(graph: Graph, walks_per_node: int, length: int, seed: int) -> Iterator[Any]:
    """Apart from the above so that wrong arguments are named before the first pass is asked for."""
    rowptr, col = adjacency_arrays(graph)
    for number in range(walks_per_node):
        rng = np.random.default_rng([seed, number])
        starts = rng.permutation(graph.num_nodes).astype(np.int32)
        yield _walk(rowptr, col, starts, length, rng.integers(2**64, dtype=np.uint64))


@jit_parallel
def _walk(rowptr: Any, col: Any, starts: Any, length: int, key: Any) -> Any:
    """A walk from each start. The state of a step is its number, whichever thread takes it."""
    walks = np.full((starts.shape[0], length), -1, np.int32)
    for block in numba.prange(-(-starts.shape[0] // _BLOCK)):
        first, last = block * _BLOCK, min((block + 1) * _BLOCK, starts.shape[0])
        walks[first:last, 0] = starts[first:last]
        for step in range(1, length):
            for walk in range(first, last):
                if walks[walk, step - 1] < 0:
                    continue
                node = np.uint64(walks[walk, step - 1])
                start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
                if stop > start:
                    state = key + np.uint64(walk * length + step) * STEP
                    walks[walk, step] = col[start + random_below(state, stop - start)]
    return walks
