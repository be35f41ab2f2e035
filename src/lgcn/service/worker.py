"""The one thread that computes, its bounded queue, and requests that are computed together.

The event loop only reads and writes bytes. A request that needs the model waits in the queue; when
the thread is free, it takes all that wait, up to `max_batch`, and answers them with one forward
pass. So nobody waits for a batch to fill up, and batches grow with the load. They shrink where one
takes long, so that nobody waits long for the requests of others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numba
import torch

from lgcn.errors import ran_out_of_memory
from lgcn.service.problems import RequestError
from lgcn.utils.memory import trim_memory

if TYPE_CHECKING:
    from lgcn.service.schemas import PredictRequest
    from lgcn.service.served_run import Answer, ServedRun

log = logging.getLogger("lgcn.service")
TARGET = 0.2  # seconds of a batch; after a longer one, the next has half as many requests
TRIM = 10.0  # seconds after which memory that is free again goes back to the system
BUSY = "the service has too many requests; try again"


class Worker:
    """Computes answers in a thread of its own.

    Args:
        served: The run.
        on_batch: Called with the number of requests of each batch. (default: none)
    """

    def __init__(self, served: ServedRun, on_batch: Callable[[int], None] | None = None) -> None:
        self.served = served
        self._on_batch = on_batch
        self._waiting: deque[tuple[Any, Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._most = served.limits.max_batch  # requests of the next batch
        self._thread = threading.Thread(target=self._work, name="lgcn-worker", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, seconds: float = 1.0) -> None:
        """Ends the thread after the batch that it computes; those that wait are not answered.

        Args:
            seconds: How long to wait for it. (default: 1)
        """
        with self._changed:
            self._stopped = True
            for _, future in self._waiting:
                future.cancel()
            self._waiting.clear()
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def length(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def predict(self, request: PredictRequest) -> Future[Answer]:
        """Puts a request in the queue.

        Args:
            request: The request.
        """
        return self._put(request)

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Puts other work with the model in the queue, such as an explanation.

        Args:
            function: Does the work.
        """
        return self._put(function)

    def _put(self, job: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            if self._stopped:
                raise RequestError("the service is stopping", status=503, retry_after=1)
            self._forget_cancelled()
            if len(self._waiting) >= self.served.limits.queue:
                raise RequestError(BUSY, status=429, retry_after=1)
            self._waiting.append((job, future))
            self._changed.notify()
        return future

    def _forget_cancelled(self) -> None:
        """Requests that ran out of time make room, wherever they stand in the queue."""
        if len(self._waiting) >= self.served.limits.queue:
            self._waiting = deque(one for one in self._waiting if not one[1].cancelled())

    def _work(self) -> None:
        # Both are settings of this thread.
        torch.set_num_threads(self.served.limits.threads)
        numba.set_num_threads(min(self.served.limits.threads, numba.config.NUMBA_NUM_THREADS))
        trimmed = time.perf_counter()
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                batch = self._next_batch()
            if batch:
                start = time.perf_counter()
                self._answer(batch)
                self._adapt(len(batch), time.perf_counter() - start)
                if start > trimmed + TRIM:
                    trim_memory()
                    trimmed = start

    def _next_batch(self) -> list[tuple[Any, Future[Any]]]:
        """Predictions that wait in a row, or one piece of other work."""
        batch: list[tuple[Any, Future[Any]]] = []
        while self._waiting and len(batch) < self._most:
            if callable(self._waiting[0][0]) and batch:
                break
            job, future = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():  # its time ran out
                continue
            batch.append((job, future))
            if callable(job):
                break
        return batch

    def _adapt(self, size: int, seconds: float) -> None:
        """Chooses the size of the next batch by the time that this one took."""
        if seconds > TARGET:
            self._most = max(1, size // 2)
        elif size == self._most:
            self._most = min(self.served.limits.max_batch, 2 * size)

    def _answer(self, batch: list[tuple[Any, Future[Any]]]) -> None:
        if self._on_batch is not None:
            self._on_batch(len(batch))
        try:
            if callable(batch[0][0]):
                answers: list[Any] = [batch[0][0]()]
            else:
                answers = list(self.served.predict([job for job, _ in batch]))
        except BaseException as error:
            if not isinstance(error, RequestError):
                log.error("%s", f"{type(error).__name__}: {error}", exc_info=error)
            answers = [_as_problem(error)] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


def _as_problem(error: BaseException) -> RequestError:
    """What a client learns about a failure: nothing about paths or code."""
    if isinstance(error, RequestError):
        return error
    if ran_out_of_memory(error):
        return RequestError("not enough memory for this request", status=503, retry_after=5)
    return RequestError("internal error; the log of the service has the details", status=500)
