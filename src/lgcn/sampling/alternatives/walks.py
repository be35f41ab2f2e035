# mypy: disable-error-code="untyped-decorator"
"""Mini-batches of the nodes that random walks visit, as in GraphSAINT."""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.sampling.algorithm1 import adjacency_arrays, random_below
from lgcn.sampling.batches import BatchLoader, BatchOptions
from lgcn.sampling.start_nodes import root_weights
from lgcn.utils.jit import jit
from lgcn.utils.splitmix import STEP

# Sub-graphs walked beforehand to count how often each training node is met, and bounds on the
# epochs that these are.
PRE_SAMPLED = 2000
PRE_SAMPLED_EPOCHS = (3, 50)


class RandomWalkLoader(BatchLoader):
    r"""Yields mini-batches of sub-graphs on the nodes that random walks visit, as in the
    `"GraphSAINT" <https://arxiv.org/abs/1907.04931>`_ paper.

    In each epoch the start nodes are shuffled and dealt out, so that each starts one walk. A node
    that many walks lead to is met in more sub-graphs than others. So each training node has the
    weight 1 / (how many sub-graphs of an epoch it is in), which makes the expected loss the mean
    over all training nodes. These numbers are counted beforehand, in sub-graphs that are not
    trained on. Unlike GraphSAINT, edges are not weighted by how often they are met: an LGCL ranks
    values and does not sum them, and the sums have the normalisation of ``keep_degree``.

    Args:
        graph: The graph.
        n_init: Walks of a sub-graph. (default: as many as ``max_nodes`` leaves room for)
        max_nodes: Nodes of a sub-graph. (default: 2000)
        walk_length: Steps of a walk. (default: 4)
        **options: ``roots``, the nodes that the loss is taken in, and ``batch_size``, ``resample``,
            ``keep_degree``, ``seed``, ``num_workers``: see :class:`lgcn.SubgraphLoader`.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        n_init: int | None = None,
        max_nodes: int = 2000,
        walk_length: int = 4,
        **options: Unpack[BatchOptions],
    ) -> None:
        super().__init__(graph, **options)
        if walk_length < 0:
            raise ValueError(f"walk_length must not be negative, got {walk_length}")
        self.roots = torch.from_numpy(np.unique(self.roots.numpy()))
        room = max_nodes // (walk_length + 1)
        if n_init is None:
            n_init = min(self.roots.numel(), max(room, 1))
        if not 1 <= n_init <= room:
            raise UsageError(
                f"n_init walks of {walk_length} steps must fit in max_nodes ({max_nodes}), which "
                f"has room for {room}, got n_init {n_init}"
            )
        self.n_init = n_init
        self.max_nodes = max_nodes
        self.walk_length = walk_length
        self._weights: Any = None

    @property
    def _num_subgraphs(self) -> int:
        return -(-self.roots.numel() // self.n_init)

    def inclusion(self) -> Any:
        """How many sub-graphs of an epoch each root is in, on average; at least 1."""
        roots = self.roots.numpy()
        low, high = PRE_SAMPLED_EPOCHS
        epochs = min(max(PRE_SAMPLED // self._num_subgraphs, low), high)
        met = np.zeros(roots.size)
        for epoch in range(epochs):
            # Four numbers, the last of them not zero: other streams than those of the training.
            starts = self._deal(np.random.default_rng([self.seed, epoch, 0, 1]))
            for number, start in enumerate(starts):
                entropy = np.random.SeedSequence([self.seed, epoch, number, 2])
                nodes = self._walk(start, entropy.generate_state(1, np.uint64)[0])
                place = np.minimum(np.searchsorted(roots, nodes), roots.size - 1)
                met[place[roots[place] == nodes]] += 1
        return met / epochs

    def _plan(self, epoch: int) -> list[Any]:
        if self._weights is None:
            # Over all batches of an epoch the mean weight of a training node is one of so many.
            self._weights = len(self) / self.roots.numel() / self.inclusion()
        return self._deal(np.random.default_rng([self.seed, epoch]))

    def _deal(self, rng: np.random.Generator) -> list[Any]:
        return np.array_split(rng.permutation(self.roots.numel()), self._num_subgraphs)

    def _walk(self, start: Any, seed: Any) -> Any:
        """The nodes, sorted, that walks from these places in ``roots`` visit."""
        rowptr, col = adjacency_arrays(self.graph)
        roots = self.roots.numpy()[start]
        visited = _walk(rowptr, col, roots, self.walk_length, np.uint64(seed))
        visited.sort()  # as np.unique, which may hash and is slower then
        return visited[np.diff(visited, prepend=-1) != 0]

    def _subgraph(self, start: Any, epoch: int, number: int) -> Graph:
        nodes = torch.from_numpy(self._walk(start, self._random_seed(epoch, number)))
        subgraph = self.graph.subgraph(nodes, keep_degree=self.keep_degree)
        weight = root_weights(nodes, self.roots.numpy(), self._weights)
        return replace(subgraph, node_weight=weight)


@jit
def _walk(rowptr: Any, col: Any, roots: Any, length: int, state: Any) -> Any:
    """The nodes that a walk from each root visits; one without neighbours is where it stays."""
    count = roots.shape[0]
    visited = np.empty((length + 1) * count, np.int64)
    visited[:count] = roots
    # All walks take a step before any takes the next: their cache misses overlap.
    for at in range(count, visited.shape[0]):
        node = np.uint64(visited[at - count])
        start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
        if stop > start:
            state += STEP
            node = np.uint64(col[start + random_below(state, stop - start)])
        visited[at] = node
    return visited
