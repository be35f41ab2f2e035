"""What all loaders of sub-graphs share: epochs, batches, and threads that work ahead."""

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypedDict, TypeVar

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import checked_nodes

Made = TypeVar("Made")


class BatchOptions(TypedDict, total=False):
    """Options that all loaders have, see `BatchLoader`."""

    roots: Tensor | Sequence[int] | None
    batch_size: int
    resample: bool
    max_subgraphs: int | None
    keep_degree: bool
    seed: int
    num_workers: int


class BatchLoader(ABC):
    """Yields mini-batches of one or several sub-graphs.

    What is drawn depends only on the seed, the epoch and the number of the sub-graph: any number of
    workers yields the same sequence, and an epoch can be repeated.

    Args:
        graph: The graph.
        roots: Node numbers, or a boolean mask, of the nodes to train on. (default: the training
            nodes, or all nodes if there is no training mask)
        batch_size: Sub-graphs per mini-batch, put side by side as one graph. (default: 1)
        resample: Select new sub-graphs in each epoch, rather than once. (default: `True`)
        max_subgraphs: Sub-graphs per epoch at most, rounded up to whole batches. Others wait for a
            later epoch. (default: no limit)
        keep_degree: Normalise with the degrees of the whole graph. (default: `True`)
        seed: Random seed. (default: 0)
        num_workers: Threads that prepare batches ahead; 0 prepares each when it is asked for.
            (default: 1)
    """

    def __init__(
        self,
        graph: Graph,
        *,
        roots: Tensor | Sequence[int] | None = None,
        batch_size: int = 1,
        resample: bool = True,
        max_subgraphs: int | None = None,
        keep_degree: bool = True,
        seed: int = 0,
        num_workers: int = 1,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if max_subgraphs is not None and max_subgraphs < 1:
            raise ValueError(f"max_subgraphs must be at least 1, got {max_subgraphs}")
        if num_workers < 0:
            raise ValueError(f"num_workers must not be negative, got {num_workers}")
        if roots is None:
            roots = graph.train_mask
        nodes = torch.arange(graph.num_nodes) if roots is None else torch.as_tensor(roots).cpu()
        self.roots = checked_nodes(nodes, graph.num_nodes, "roots")
        if self.roots.numel() == 0:
            raise ValueError("roots must name at least one node, got none")
        self.graph = graph
        self.batch_size = batch_size
        self.resample = resample
        self.max_subgraphs = max_subgraphs
        self.keep_degree = keep_degree
        self.seed = seed
        self.num_workers = num_workers
        self._next_epoch = 0
        self._fixed: dict[int, Graph] = {}
        self._planned: tuple[int, list[Any]] | None = None  # the last epoch and its plan
        self._lock = threading.Lock()
        self._made = 0
        self._seconds = 0.0

    @property
    @abstractmethod
    def _num_subgraphs(self) -> int:
        """Sub-graphs per epoch."""

    @property
    def most_nodes(self) -> int | None:
        """The nodes of a batch, at most; `None` if that is not known."""
        return None

    @abstractmethod
    def _plan(self, epoch: int) -> list[Any]:
        """What each sub-graph of the epoch starts from, one entry per sub-graph."""

    @abstractmethod
    def _subgraph(self, start: Any, epoch: int, number: int) -> Graph:
        """Makes the sub-graph with this number from its entry in the plan."""

    def __len__(self) -> int:
        """Batches per epoch."""
        subgraphs = self._num_subgraphs
        if self.max_subgraphs is not None:
            subgraphs = min(subgraphs, self.max_subgraphs)
        return -(-subgraphs // self.batch_size)

    def __iter__(self) -> Iterator[Graph]:
        """The batches of the next epoch."""
        epoch, self._next_epoch = self._next_epoch, self._next_epoch + 1
        return self.epoch(epoch)

    def epoch(self, epoch: int) -> Generator[Graph]:
        """The batches of the given epoch."""
        yield from ahead(lambda number: self.batch(epoch, number), len(self), self.num_workers)

    def epochs(self, first: int, prepare: Callable[[Graph], Made]) -> Generator[Made]:
        """The batches of this epoch and of all that follow, without end.

        The threads then also work ahead from one epoch to the next.

        Args:
            first: The number of the first epoch.
            prepare: Is called with each batch in the threads; what it returns is yielded.
        """

        def make(number: int) -> Made:
            after, place = divmod(number, len(self))
            return prepare(self.batch(first + after, place))

        yield from ahead(make, None, self.num_workers)

    def batch(self, epoch: int, number: int) -> Graph:
        """One batch of an epoch, whichever were made before."""
        if self.resample:
            return self._make(epoch, number)
        made = self._fixed.get(number) or self._make(0, number)
        return self._fixed.setdefault(number, made)  # another thread may have been first

    @property
    def subgraphs_per_second(self) -> float | None:
        """Sub-graphs that the workers make per second of work; `None` before the first."""
        if self._made == 0 or self._seconds == 0:
            return None
        return self._made / self._seconds * max(self.num_workers, 1)

    def _make(self, epoch: int, number: int) -> Graph:
        plan = self._plan_of(epoch)
        started = time.perf_counter()
        first = number * self.batch_size
        places = range(first, min(first + self.batch_size, len(plan)))
        made = Graph.concat([self._subgraph(plan[i], epoch, i) for i in places])
        with self._lock:
            self._made += len(places)
            self._seconds += time.perf_counter() - started
        return made

    def _plan_of(self, epoch: int) -> list[Any]:
        with self._lock:
            if self._planned is None or self._planned[0] != epoch:
                self._planned = epoch, self._plan(epoch)[: len(self) * self.batch_size]
            return self._planned[1]

    def _random_seed(self, epoch: int, number: int) -> int:
        """The seed of the sub-graph with this number."""
        entropy = [self.seed, epoch, number]
        return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def ahead(make: Callable[[int], Made], count: int | None, num_workers: int) -> Iterator[Made]:
    """Yields make(0), make(1), ... in order. Threads make them ahead of the caller.

    Args:
        make: Makes one.
        count: How many; `None` for no end.
        num_workers: Threads; 0 to make each when it is asked for.
    """
    numbers = itertools.count() if count is None else range(count)
    if num_workers == 0:
        yield from map(make, numbers)
        return
    pool = ThreadPoolExecutor(num_workers, "lgcn-loader", initializer=_stay_alone)
    pending: deque[Future[Made]] = deque()
    try:
        for number in numbers:
            pending.append(pool.submit(make, number))
            if len(pending) > 2 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:  # also when the caller stops early
        pool.shutdown(wait=True, cancel_futures=True)


def _stay_alone() -> None:
    """Keeps torch from splitting what this thread does among further threads.

    Each thread that uses torch has OpenMP threads of its own. Those of a loader take the cores of
    those of the training step, which then wait for each other.
    """
    torch.get_num_threads()  # the first call in a thread sets the number, so it has to come first
    _openmp().limit(limits=1, user_api="openmp")  # for this thread alone


@cache
def _openmp() -> Any:
    """The OpenMP libraries that are loaded; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
