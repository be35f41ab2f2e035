"""Mini-batches of whole graphs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import GraphSet
from lgcn.graph.csr import checked_nodes
from lgcn.sampling.batches import ahead


class GraphSetLoader:
    """Yields mini-batches of whole graphs, in a new random order in each epoch.

    A batch holds graphs side by side, without padding. Graphs are dealt out evenly, so that no
    batch is much smaller than the others.

    Args:
        graphs: The graphs.
        numbers: Numbers of the graphs to use, or a boolean mask. (default: the training graphs, or
            all if there is no training mask)
        batch_size: Graphs per batch, at most. (default: 32)
        max_nodes: Nodes per batch, at most. A larger graph is a batch of its own.
            (default: no limit)
        seed: Random seed. With the epoch, it determines the order. (default: 0)
        num_workers: Threads that prepare batches ahead; 0 prepares each when it is asked for.
            (default: 1)

    Example:
        ```python
        for batch in lgcn.GraphSetLoader(graphs, batch_size=64):  # each is an lgcn.GraphSet
            scores = model(batch.graph.x, batch.graph)
        ```
    """

    def __init__(
        self,
        graphs: GraphSet,
        *,
        numbers: Tensor | Sequence[int] | None = None,
        batch_size: int = 32,
        max_nodes: int | None = None,
        seed: int = 0,
        num_workers: int = 1,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_nodes", max_nodes)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if numbers is None:
            numbers = graphs.mask("train")
        every = torch.arange(graphs.num_graphs) if numbers is None else torch.as_tensor(numbers)
        self.numbers = checked_nodes(every.cpu(), graphs.num_graphs, "numbers")
        if self.numbers.numel() == 0:
            raise ValueError("numbers must name at least one graph, got none")
        self.graphs = graphs
        self.batch_size = batch_size
        self.max_nodes = max_nodes
        self.seed = seed
        self.num_workers = num_workers
        self._sizes = graphs.sizes.cpu().numpy()
        self._next_epoch = 0

    def __len__(self) -> int:
        """Batches of the first epoch. With `max_nodes`, epochs can differ by a few."""
        return len(self.plan(1))

    def __iter__(self) -> Iterator[GraphSet]:
        """The batches of the next epoch."""
        epoch, self._next_epoch = self._next_epoch, self._next_epoch + 1
        return self.epoch(epoch)

    def plan(self, epoch: int) -> list[Any]:
        """The numbers of the graphs of each batch of an epoch."""
        order = np.random.default_rng([self.seed, epoch]).permutation(self.numbers.numpy())
        return cut(order, self._sizes, self.batch_size, self.max_nodes)

    def epoch(self, epoch: int) -> Generator[GraphSet]:
        """The batches of the given epoch."""
        plan = self.plan(epoch)
        yield from ahead(
            lambda number: self.graphs.select(torch.from_numpy(plan[number])),
            len(plan),
            self.num_workers,
        )


def batches_in_order(
    graphs: GraphSet, batch_size: int, max_nodes: int | None = None
) -> Iterator[GraphSet]:
    """The graphs in batches, in their order."""
    sizes = graphs.sizes.cpu().numpy()
    for numbers in cut(np.arange(graphs.num_graphs), sizes, batch_size, max_nodes):
        yield graphs.select(torch.from_numpy(numbers))


def cut(numbers: Any, sizes: Any, batch_size: int, max_nodes: int | None) -> list[Any]:
    """Cuts a sequence of graphs into batches within both limits.

    Args:
        numbers: Numbers of graphs.
        sizes: Nodes of each graph.
        batch_size: Graphs per batch, at most.
        max_nodes: Nodes per batch, at most; `None` for no limit. A larger graph stands alone.
    """
    found: list[Any] = []
    if len(numbers) == 0:
        return found
    for part in np.array_split(numbers, -(-len(numbers) // batch_size)):
        if max_nodes is None or sizes[part].sum() <= max_nodes:
            found.append(part)
            continue
        first = nodes = 0
        for place, number in enumerate(part):
            if place > first and nodes + sizes[number] > max_nodes:
                found.append(part[first:place])
                first, nodes = place, 0
            nodes += sizes[number]
        found.append(part[first:])
    return found
