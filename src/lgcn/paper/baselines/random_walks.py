# mypy: disable-error-code="untyped-decorator"
"""Uniform random walks from all nodes, computed in parallel, for DeepWalk."""

from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np

from lgcn.graph import Graph
from lgcn.sampling.algorithm1 import adjacency_arrays, random_below
from lgcn.utils.jit import jit_parallel
from lgcn.utils.share import share
from lgcn.utils.splitmix import STEP

_BLOCK = 64  # walks that take turns, so that their cache misses overlap


def walk_passes(graph: Graph, walks_per_node: int, length: int, seed: int = 0) -> Iterator[Any]:
    r"""Random walks from every node, as in the ["DeepWalk: Online Learning of Social
    Representations"](https://arxiv.org/abs/1403.6652) paper.

    Each step of a walk goes to one of the node's neighbours, all equally likely. Edge weights do
    not count, as in the paper. In a directed graph, the neighbours of a node are those that it
    aggregates from. A walk that reaches a node without neighbours ends there and is padded with -1.

    The walks come in passes over the nodes, so that not all of them are in memory at a time. In
    each pass, every node starts one walk, in random order. The number of threads does not matter.

    Args:
        graph: The graph.
        walks_per_node: Walks per node, which is the number of passes.
        length: Nodes per walk, including the first.
        seed: Seed of the random numbers. (default: 0)

    Returns:
        An iterator over the passes. Each is an int32 array of node numbers, [nodes, length].
    """
    for name, value in (("walks_per_node", walks_per_node), ("length", length)):
        if index(value) < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if index(seed) < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    return _passes(graph, walks_per_node, length, seed)


def _passes(graph: Graph, walks_per_node: int, length: int, seed: int) -> Iterator[Any]:
    """A function of its own, so that wrong arguments are reported before the first pass."""
    rowptr, col = adjacency_arrays(graph)
    for number in range(walks_per_node):
        rng = np.random.default_rng([seed, number])
        starts = rng.permutation(graph.num_nodes).astype(np.int32)
        walks = np.full((len(starts), length), -1, np.int32)
        _walk(rowptr, col, starts, length, rng.integers(2**64, dtype=np.uint64), walks)
        yield walks


@jit_parallel
def _walk(rowptr: Any, col: Any, starts: Any, length: int, key: Any, walks: Any, part: Any) -> None:
    """Writes one walk per start. Random numbers depend on the step's number, not on the thread."""
    for block in share(-(-starts.shape[0] // _BLOCK), part):
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
