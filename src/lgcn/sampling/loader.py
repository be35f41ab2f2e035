"""Mini-batches for training: sub-graphs selected by Algorithm 1, or whole graphs."""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.sampling.subgraph import select_subgraph


class SubgraphLoader:
    r"""Yields mini-batches of one or several sub-graphs, selected by Algorithm 1.

    In each epoch the start nodes are shuffled and dealt out, :math:`N_{init}` to a sub-graph, so
    that each serves once. What is drawn depends on the seed, the epoch and the number of the batch
    alone: any number of workers yields the same sequence, and an epoch can be repeated.

    Args:
        graph: The graph.
        roots: Nodes (numbers or mask) to start from. (default: the training nodes, or all nodes
            where there is no training mask)
        n_init: :math:`N_{init}`, start nodes of a sub-graph. (default: all, but at most a quarter
            of ``max_nodes``, so that there is room to grow)
        max_nodes: :math:`N_s`, nodes of a sub-graph; ``None`` for no limit. (default: 2000)
        max_expand: :math:`N_m`, see :func:`lgcn.select_subgraph`. (default: no limit)
        max_hops: Iterations of growth. (default: no limit)
        batch_size: Sub-graphs in a mini-batch, put side by side. (default: 1)
        resample: Select anew in each epoch; otherwise once for all. (default: ``True``)
        keep_degree: Normalise with the degrees of the whole graph. (default: ``True``)
        seed: (default: 0)
        num_workers: Threads that prepare batches ahead; 0 prepares them when asked. (default: 1)
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
        keep_degree: bool = True,
        seed: int = 0,
        num_workers: int = 1,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if num_workers < 0:
            raise ValueError(f"num_workers must not be negative, got {num_workers}")
        if roots is None:
            roots = graph.train_mask
        nodes = torch.arange(graph.num_nodes) if roots is None else torch.as_tensor(roots).cpu()
        self.roots = nodes.nonzero().squeeze(1) if nodes.dtype == torch.bool else nodes
        if self.roots.numel() == 0:
            raise ValueError("roots must name at least one node, got none")
        if n_init is None:
            room = self.roots.numel() if max_nodes is None else max(1, max_nodes // 4)
            n_init = min(self.roots.numel(), room)
        if n_init < 1:
            raise ValueError(f"n_init must be at least 1, got {n_init}")
        self.graph = graph
        self.n_init = n_init
        self.max_nodes = max_nodes
        self.max_expand = max_expand
        self.max_hops = max_hops
        self.batch_size = batch_size
        self.resample = resample
        self.keep_degree = keep_degree
        self.seed = seed
        self.num_workers = num_workers
        self._next_epoch = 0
        self._fixed: list[Graph] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-self._num_subgraphs // self.batch_size)

    @property
    def _num_subgraphs(self) -> int:
        return -(-self.roots.numel() // self.n_init)

    def __iter__(self) -> Iterator[Graph]:
        """The batches of the next epoch."""
        epoch, self._next_epoch = self._next_epoch, self._next_epoch + 1
        return self.epoch(epoch)

    def epoch(self, epoch: int) -> Iterator[Graph]:
        """The batches of the given epoch."""
        if self.resample:
            yield from self._prepare(epoch)
            return
        if self._fixed is None:
            self._fixed = list(self._prepare(0))
        yield from self._fixed

    def _prepare(self, epoch: int) -> Iterator[Graph]:
        order = np.random.default_rng([self.seed, epoch]).permutation(self.roots.numel())
        starts = [
            self.roots[torch.from_numpy(part)]
            for part in np.array_split(order, self._num_subgraphs)
        ]

        def batch(number: int) -> Graph:
            first = number * self.batch_size
            return Graph.concat(
                [
                    self._subgraph(starts[i], epoch, i)
                    for i in range(first, min(first + self.batch_size, len(starts)))
                ]
            )

        return _ahead(batch, len(self), self.num_workers)

    def _subgraph(self, start: Tensor, epoch: int, number: int) -> Graph:
        seed = np.random.SeedSequence([self.seed, epoch, number]).generate_state(1, np.uint64)[0]
        nodes = select_subgraph(
            self.graph,
            roots=start,
            max_nodes=self.max_nodes,
            max_expand=self.max_expand,
            max_hops=self.max_hops,
            seed=int(seed),
        )
        return self.graph.subgraph(nodes, keep_degree=self.keep_degree)


class GraphLoader:
    """Yields whole graphs: the one there is, or each separate graph that has training nodes.

    Args:
        graph: One graph, or several side by side (``graph.ptr``).
        seed: Separate graphs come in an order that depends on it and the epoch. (default: 0)
    """

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self.graphs = [
            part
            for part in separate(graph)
            if part.train_mask is None or bool(part.train_mask.any())
        ]
        self.seed = seed

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.graphs)

    def epoch(self, epoch: int) -> Iterator[Graph]:
        """The batches of the given epoch."""
        for i in np.random.default_rng([self.seed, epoch]).permutation(len(self.graphs)):
            yield self.graphs[i]


def separate(graph: Graph) -> list[Graph]:
    """The separate graphs that a block-diagonal graph consists of."""
    if graph.ptr is None:
        return [graph]
    bounds = graph.ptr.tolist()
    return [graph.subgraph(torch.arange(first, last)) for first, last in itertools.pairwise(bounds)]


def _ahead(make: Callable[[int], Graph], count: int, num_workers: int) -> Iterator[Graph]:
    """make(0), make(1), ... in order, made by threads while the caller works on earlier ones."""
    if num_workers == 0:
        yield from map(make, range(count))
        return
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="lgcn-loader")
    pending: deque[Future[Graph]] = deque()
    try:
        for number in range(count):
            pending.append(pool.submit(make, number))
            if len(pending) > 2 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:  # also when the caller stops early
        pool.shutdown(wait=True, cancel_futures=True)
