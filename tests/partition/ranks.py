"""Ranks as threads of one process, of which one computes at a time."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from lgcn.workers import Workers

Result = TypeVar("Result")


class _Meeting:
    def __init__(self, size: int) -> None:
        self.computes = threading.Lock()
        self.barrier = threading.Barrier(size, timeout=30)
        self.parts: list[Sequence[Tensor]] = [()] * size
        self.labels: list[str] = [""] * size


class ThreadWorkers(Workers):
    """A rank that meets the others in memory. It keeps what it sent, and under which label."""

    def __init__(self, rank: int, meeting: _Meeting) -> None:
        super().__init__(rank, len(meeting.parts))
        self.meeting = meeting
        self.sent: list[tuple[str, int]] = []

    def exchange(self, parts: Sequence[Tensor], what: str) -> list[Tensor]:
        self.sent.append((what, sum(part.nbytes for part in parts)))
        meeting = self.meeting
        meeting.parts[self.rank], meeting.labels[self.rank] = parts, what
        self._meet()
        assert len(set(meeting.labels)) == 1, meeting.labels  # all ranks do the same
        found = [meeting.parts[rank][self.rank].clone() for rank in range(self.size)]
        self._meet()
        return found

    def sum(self, tensor: Tensor, what: str) -> Tensor:
        return torch.stack(self.exchange([tensor] * self.size, what)).sum(0)

    def _meet(self) -> None:
        self.meeting.computes.release()
        try:
            self.meeting.barrier.wait()
        finally:
            self.meeting.computes.acquire()


def on_ranks(size: int, work: Callable[[Workers], Result]) -> list[Result]:
    """What each rank returns. An error of any rank is raised, that of the lowest first."""
    meeting = _Meeting(size)
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def run(rank: int) -> None:
        with meeting.computes:
            try:
                results[rank] = work(ThreadWorkers(rank, meeting))
            except BaseException as error:
                errors[rank] = error
                meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A rank that only lost the others says nothing of the cause.
    causes = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    for error in (*causes, *errors):
        if error is not None:
            raise error
    return results
