"""Mini-batches for training: sub-graphs selected by Algorithm 1, or whole graphs."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.sampling.algorithm1 import select_subgraph
from lgcn.sampling.batches import BatchLoader
from lgcn.sampling.start_nodes import draw, expected_counts, start_weights
from lgcn.utils.choices import SCORED_NODES


class _Start(NamedTuple):
    places: Any  # positions of the start nodes in roots
    draws: int  # start nodes drawn for all sub-graphs of the batch


class SubgraphLoader(BatchLoader):
    r"""Yields mini-batches of sub-graphs that are selected by Algorithm 1 of the
    ["Large-Scale Learnable Graph Convolutional Networks"](https://arxiv.org/abs/1808.03965) paper.

    In each epoch, the start nodes are shuffled and dealt out, $N_{init}$ per sub-graph, so that
    each serves once. `lgcn.select_subgraph` then grows each sub-graph. What is drawn depends only
    on the seed, the epoch and the number of the sub-graph: any number of workers yields the same
    sequence, and an epoch can be repeated.

    Args:
        graph: The graph.
        roots: Node numbers, or a boolean mask, to start from. (default: the training nodes, or all
            nodes if there is no training mask)
        n_init: $N_{init}$, start nodes per sub-graph. (default: all, but at most a quarter of
            `max_nodes`, so that there is room to grow)
        max_nodes: $N_s$, maximum nodes per sub-graph; `None` for no limit. (default: 2000)
        max_expand: $N_m$, maximum nodes added per iteration, see `lgcn.select_subgraph`.
            (default: no limit)
        max_hops: Number of iterations. (default: no limit)
        batch_size: Sub-graphs per mini-batch, put side by side as one graph. (default: 1)
        resample: Select new sub-graphs in each epoch, rather than once. (default: `True`)
        max_subgraphs: Sub-graphs per epoch at most, rounded up to whole batches. Other start nodes
            wait for a later epoch. (default: no limit)
        keep_degree: Normalise with the degrees of the whole graph. (default: `True`)
        start_nodes: How often each root is drawn as a start node. `"uniform"`: once per epoch;
            the loss of a batch is the mean over all its training nodes. `"balanced"`: each class
            equally often. `"degree"`: in proportion to the number of neighbours plus one. For the
            latter two, the loss is taken on the start nodes only, and batches have a
            `node_weight` that makes the expected loss the mean over all roots.
            (default: `"uniform"`)
        scored_nodes: Which training nodes of a sub-graph keep their training mask. `"all"`;
            `"start"`, its start nodes, whose surroundings were grown on purpose; or `"complete"`,
            those that have all of their neighbours in the sub-graph. The others are computed, but
            not scored, because prediction sees neighbours that they lack. If no node is complete,
            the start nodes are scored. (default: `"all"`)
        seed: Random seed. (default: 0)
        num_workers: Threads that prepare batches ahead; 0 prepares each when it is asked for.
            (default: 1)

    Example:
        ```python
        loader = lgcn.SubgraphLoader(graph, n_init=100, max_nodes=2000)
        for epoch in range(10):
            for batch in loader:  # each is an lgcn.Graph
                scores = model(batch.x, batch)
        ```
    """

    def __init__(
        self,
        graph: Graph,
        *,
        roots: Tensor | Sequence[int] | None = None,
        n_init: int | None = None,
        max_nodes: int | None = 2000,
        max_expand: int | Sequence[int] | None = None,
        max_hops: int | None = None,
        batch_size: int = 1,
        resample: bool = True,
        max_subgraphs: int | None = None,
        keep_degree: bool = True,
        start_nodes: str = "uniform",
        scored_nodes: str = "all",
        seed: int = 0,
        num_workers: int = 1,
    ) -> None:
        super().__init__(
            graph,
            roots=roots,
            batch_size=batch_size,
            resample=resample,
            max_subgraphs=max_subgraphs,
            keep_degree=keep_degree,
            seed=seed,
            num_workers=num_workers,
        )
        if scored_nodes not in SCORED_NODES:
            raise ValueError(
                f"scored_nodes must be one of {', '.join(SCORED_NODES)}, got {scored_nodes!r}"
            )
        if n_init is None:
            room = self.roots.numel() if max_nodes is None else max(1, max_nodes // 4)
            n_init = min(self.roots.numel(), room)
        if n_init < 1:
            raise ValueError(f"n_init must be at least 1, got {n_init}")
        self.n_init = n_init
        self.max_nodes = max_nodes
        self.max_expand = max_expand
        self.max_hops = max_hops
        self.start_nodes = start_nodes
        self.scored_nodes = scored_nodes
        uniform = start_nodes == "uniform"
        self._counts = None if uniform else expected_counts(graph, self.roots, start_nodes)

    @property
    def most_nodes(self) -> int | None:
        return None if self.max_nodes is None else self.batch_size * self.max_nodes

    @property
    def _num_subgraphs(self) -> int:
        return -(-self.roots.numel() // self.n_init)

    def _plan(self, epoch: int) -> list[_Start]:
        rng = np.random.default_rng([self.seed, epoch])
        if self._counts is None:
            order = rng.permutation(self.roots.numel())
        else:
            order = draw(self._counts, rng)
        parts = np.array_split(order, self._num_subgraphs)
        starts = []
        for first in range(0, len(parts), self.batch_size):
            batch = parts[first : first + self.batch_size]
            draws = sum(map(len, batch))
            starts += [_Start(part, draws) for part in batch]
        return starts

    def _subgraph(self, start: _Start, epoch: int, number: int) -> Graph:
        roots = self.roots[torch.from_numpy(start.places)]
        nodes = select_subgraph(
            self.graph,
            roots=roots,
            max_nodes=self.max_nodes,
            max_expand=self.max_expand,
            max_hops=self.max_hops,
            seed=self._random_seed(epoch, number),
        )
        subgraph = self.graph.subgraph(nodes, keep_degree=self.keep_degree)
        if self._counts is None:
            return self._with_scored(subgraph, nodes, roots)
        weight = start_weights(nodes, roots.numpy(), self._counts[start.places], start.draws)
        return replace(subgraph, node_weight=weight)

    def _with_scored(self, subgraph: Graph, nodes: Tensor, roots: Tensor) -> Graph:
        """The sub-graph with the training mask that `scored_nodes` asks for."""
        if self.scored_nodes == "all":
            return subgraph
        mask = torch.from_numpy(np.isin(nodes.numpy(), roots.numpy()))
        if self.scored_nodes == "complete":
            rowptr = self.graph.rowptr
            complete = subgraph.rowptr.diff() == rowptr[nodes + 1] - rowptr[nodes]
            if subgraph.train_mask is not None:
                complete &= subgraph.train_mask
            mask = complete if bool(complete.any()) else mask
        return replace(subgraph, train_mask=mask)


class GraphLoader:
    """Yields whole graphs: the only one, or each separate graph that has training nodes.

    Args:
        graph: One graph, or several side by side (`graph.ptr`).
        seed: Random seed. With the epoch, it determines the order of separate graphs. (default: 0)
    """

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self.graphs = [
            part
            for part in graph.separate()
            if part.train_mask is None or bool(part.train_mask.any())
        ]
        self.seed = seed

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(self.graphs)

    def epoch(self, epoch: int) -> Generator[Graph]:
        """The batches of the given epoch."""
        for i in self._order(epoch):
            yield self.graphs[i]

    def batch(self, epoch: int, number: int) -> Graph:
        """One batch of an epoch."""
        return self.graphs[self._order(epoch)[number]]

    def _order(self, epoch: int) -> list[int]:
        rng = np.random.default_rng([self.seed, epoch])
        order: list[int] = rng.permutation(len(self.graphs)).tolist()
        return order
