"""Deals the sub-graphs of an epoch to steps and workers."""

from collections.abc import Generator, Mapping
from typing import NamedTuple

from lgcn.sampling import GraphLoader
from lgcn.sampling.batches import BatchLoader, ahead
from lgcn.training.shared_step import Unit


class _Job(NamedTuple):
    step: int
    number: int  # among all sub-graphs of the epoch
    loader: BatchLoader | GraphLoader
    place: int  # in the loader's epoch


class Dealer:
    """The sub-graphs of an epoch, step by step, as far as this process computes them.

    A step takes `width` sub-graphs. Of a partitioned graph, these are one of every part; else, they
    follow each other in the one sequence that all processes draw alike. Which of them this process
    computes does not change what they are.

    Args:
        loaders: By part, those of this process; of a graph that is not partitioned, one loader for
            part 0.
        width: Sub-graphs per step.
        steps: Steps per epoch.
        mine: Which of a step's sub-graphs this process computes.
    """

    def __init__(
        self,
        loaders: Mapping[int, BatchLoader | GraphLoader],
        width: int,
        steps: int,
        mine: range,
        *,
        partitioned: bool,
        num_workers: int = 1,
    ) -> None:
        self.loaders = loaders
        self.width = width
        self.steps = steps
        self.mine = mine
        self.partitioned = partitioned
        self.num_workers = num_workers

    def __len__(self) -> int:
        """Steps per epoch."""
        return self.steps

    def epoch(self, epoch: int) -> Generator[list[Unit]]:
        """The sub-graphs of this process, a list per step."""
        jobs = self._jobs()
        made = ahead(lambda i: jobs[i].loader.batch(epoch, jobs[i].place), len(jobs), self._threads)
        place = 0
        for step in range(self.steps):
            units = []
            while place < len(jobs) and jobs[place].step == step:
                units.append(Unit(jobs[place].number, next(made)))
                place += 1
            yield units

    @property
    def _threads(self) -> int:
        return self.num_workers

    def _jobs(self) -> list[_Job]:
        jobs = []
        for step in range(self.steps):
            for j in self.mine:
                number = step * self.width + j
                loader = self.loaders.get(j if self.partitioned else 0)
                place = step if self.partitioned else number
                if loader is not None and place < len(loader):
                    jobs.append(_Job(step, number, loader, place))
        return jobs
