"""Brings batches to a GPU while the step before is computed."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

import torch

Source = TypeVar("Source")
Made = TypeVar("Made")
DEPTH = 2  # batches on the way


class _Arrived(NamedTuple):
    source: Any
    made: Any
    event: Any


class Prefetch(Generic[Source, Made]):
    """Makes batches in a thread, with copies from pinned memory on a stream of their own.

    Args:
        make: Makes a batch on the device from its source.
        device: The GPU.
    """

    def __init__(self, make: Callable[[Source], Made], device: torch.device) -> None:
        self.make = make
        self.device = device
        self.stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._arrived: _Arrived | None = None

    def ahead(self, sources: Iterator[Source]) -> Generator[Source]:
        """The same sources, each when its batch is on the way to the device."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="lgcn-prefetch")
        pending: deque[Future[_Arrived | None]] = deque()
        try:
            pending.extend(pool.submit(self._next, sources) for _ in range(DEPTH))
            while (found := pending.popleft().result()) is not None:
                pending.append(pool.submit(self._next, sources))
                self._arrived = found
                yield found.source
        finally:  # also when the caller stops early
            pool.shutdown(wait=True, cancel_futures=True)
            self._arrived = None

    def take(self, source: Source) -> Made | None:
        """The batch of the source that `ahead` gave last; later work on the device waits for it."""
        found = self._arrived
        if found is None or found.source is not source:
            return None
        torch.cuda.current_stream(self.device).wait_event(found.event)
        made: Made = found.made
        return made

    def _next(self, sources: Iterator[Source]) -> _Arrived | None:
        source = next(sources, None)
        if source is None:
            return None
        with torch.cuda.stream(self.stream):
            made = self.make(source)
            return _Arrived(source, made, self.stream.record_event())
