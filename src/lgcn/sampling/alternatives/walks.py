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

# Sub-graphs sampled in advance to count how often each training node is visited, and bounds on the
# number of epochs of them.
PRE_SAMPLED = 2000
PRE_SAMPLED_EPOCHS = (3, 50)


class RandomWalkLoader(BatchLoader):
    """Yields mini-batches of sub-graphs on the nodes that random walks visit, as in the
    ["GraphSAINT"](https://arxiv.org/abs/1907.04931) paper.

    In each epoch, the start nodes are shuffled and dealt out, so that each starts one walk. Nodes
    that many walks lead to are in more sub-graphs than others. Each training node therefore has the
    weight 1 / (number of sub-graphs of an epoch that it is in), which makes the expected loss the
    mean over all training nodes. These numbers are estimated in advance, on sub-graphs that are not
    trained on. Unlike in GraphSAINT, edges have no such weights: an LGCL ranks values and does not
    sum them, and sums are normalised by `keep_degree`.

    Args:
        graph: The graph.
        n_init: Walks per sub-graph. (default: as many as fit in `max_nodes`)
        max_nodes: Maximum nodes per sub-graph. (default: 2000)
        walk_length: Steps per walk. (default: 4)
        **options: `roots`, the nodes on which the loss is taken, and `batch_size`,
            `resample`, `keep_degree`, `seed`, `num_workers`: see `lgcn.SubgraphLoader`.
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
                f"max_nodes={max_nodes} has room for {room} walks of {walk_length} steps, got "
                f"n_init={n_init}: raise max_nodes, or choose another n_init or walk_length"
            )
        self.n_init = n_init
        self.max_nodes = max_nodes
        self.walk_length = walk_length
        self._weights: Any = None

    @property
    def _num_subgraphs(self) -> int:
        return -(-self.roots.numel() // self.n_init)

    def inclusion(self) -> Any:
        """The average number of sub-graphs per epoch that each root is in; at least 1."""
        roots = self.roots.numpy()
        low, high = PRE_SAMPLED_EPOCHS
        epochs = min(max(PRE_SAMPLED // self._num_subgraphs, low), high)
        met = np.zeros(roots.size)
        for epoch in range(epochs):
            # Four numbers, the last not zero: these streams differ from those of training.
            starts = self._deal(np.random.default_rng([self.seed, epoch, 0, 1]))
            for number, start in enumerate(starts):
                entropy = np.random.SeedSequence([self.seed, epoch, number, 2])
                nodes = self._walk(start, entropy.generate_state(1, np.uint64)[0])
                place = np.minimum(np.searchsorted(roots, nodes), roots.size - 1)
                met[place[roots[place] == nodes]] += 1
        return met / epochs

    def _plan(self, epoch: int) -> list[Any]:
        if self._weights is None:
            # The mean over an epoch's batches is 1 / (number of roots) for each root.
            self._weights = len(self) / self.roots.numel() / self.inclusion()
        return self._deal(np.random.default_rng([self.seed, epoch]))

    def _deal(self, rng: np.random.Generator) -> list[Any]:
        return np.array_split(rng.permutation(self.roots.numel()), self._num_subgraphs)

    def _walk(self, start: Any, seed: Any) -> Any:
        """The nodes, sorted, that walks from these positions in `roots` visit."""
        rowptr, col = adjacency_arrays(self.graph)
        roots = self.roots.numpy()[start]
        visited = _walk(rowptr, col, roots, self.walk_length, np.uint64(seed))
        visited.sort()  # faster than np.unique, which may hash
        return visited[np.diff(visited, prepend=-1) != 0]

    def _subgraph(self, start: Any, epoch: int, number: int) -> Graph:
        nodes = torch.from_numpy(self._walk(start, self._random_seed(epoch, number)))
        subgraph = self.graph.subgraph(nodes, keep_degree=self.keep_degree)
        weight = root_weights(nodes, self.roots.numpy(), self._weights)
        return replace(subgraph, node_weight=weight)


@jit
def _walk(rowptr: Any, col: Any, roots: Any, length: int, state: Any) -> Any:
    """The nodes that a walk from each root visits. At a node without neighbours it stays there."""
    count = roots.shape[0]
    visited = np.empty((length + 1) * count, np.int64)
    visited[:count] = roots
    # All walks take one step before any takes the next, so that their cache misses overlap.
    for at in range(count, visited.shape[0]):
        node = np.uint64(visited[at - count])
        start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
        if stop > start:
            state += STEP
            node = np.uint64(col[start + random_below(state, stop - start)])
        visited[at] = node
    return visited
