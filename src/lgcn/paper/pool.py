"""Tasks in worker processes. A task that fails, or whose process is killed, stops no other.

The pools of the standard library give up all tasks when a worker is killed, for example because
memory runs out.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from lgcn.errors import LGCNError
from lgcn.utils.machine import THREAD_VARIABLES

Task = TypeVar("Task")

GRACE = 2.0  # seconds that a worker has to exit


@dataclass(frozen=True)
class Failure:
    """Why a task has no result."""

    message: str


def run_tasks(
    tasks: Sequence[Task],
    function: Callable[[Task], Any],
    on_result: Callable[[Task, Any], None],
    *,
    processes: int = 1,
    threads: int | None = 1,
    address: str | None = None,
) -> None:
    """Calls a function with every task in worker processes, in the order of the tasks.

    Args:
        tasks: The tasks; they are pickled.
        function: Called with a task; a new process must be able to import it.
        on_result: Called in this process with each task and its result, or a :class:`Failure`.
        processes: Number of workers. (default: 1)
        threads: Threads of torch and Numba per worker; ``None`` uses their defaults.
            (default: 1)
        address: Of a Ray cluster, whose nodes run the tasks instead, as many at a time as they have
            cores. See `lgcn.paper.ray_pool`. (default: none)
    """
    if address is not None:
        from lgcn.paper.ray_pool import run_tasks_on_ray

        run_tasks_on_ray(tasks, function, on_result, address=address, threads=threads or 1)
        return
    waiting = deque(tasks)
    idle: list[_Worker] = []
    busy: dict[Any, tuple[_Worker, Task]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                worker = idle.pop() if idle else _Worker(function, threads)
                busy[worker.connection] = (worker, waiting[0])
                if worker.give(waiting[0]):
                    waiting.popleft()
                else:  # it was killed while idle
                    busy.pop(worker.connection)[0].end()
            for ready in connection.wait(list(busy)):
                worker, task = busy.pop(ready)
                try:
                    result = worker.connection.recv()
                except (EOFError, OSError):
                    result = Failure(worker.reason())
                else:
                    idle.append(worker)
                on_result(task, result)
    finally:
        left = [*idle, *(worker for worker, _ in busy.values())]
        for worker in left:
            worker.process.terminate()
        for worker in left:
            worker.end()


class _Worker:
    """A process that waits for tasks."""

    process: SpawnProcess

    def __init__(self, function: Callable[[Any], Any], threads: int | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, function), daemon=True)
        with _environment(threads), _no_interrupts():
            self.process.start()
        other.close()  # so that the connection closes when the process ends

    def give(self, task: Any) -> bool:
        try:
            self.connection.send(task)
        except OSError:
            return False
        return True

    def reason(self) -> str:
        """Why the process ended."""
        self.process.join()
        code = self.process.exitcode or 0
        if code >= 0:
            return f"its process ended with exit code {code}"
        name = signal.Signals(-code).name
        memory = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{memory}"

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(tasks: Any, function: Callable[[Any], Any]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent has ended
        while True:
            task = tasks.recv()
            try:
                result = function(task)
            except LGCNError as error:
                result = Failure(str(error))
            except Exception as error:
                result = Failure(f"{type(error).__name__}: {error}")
            tasks.send(result)


def _end_with_parent() -> None:
    """Ends a worker when its parent process was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _environment(threads: int | None) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    if threads is not None:
        os.environ |= {name: str(threads) for name in THREAD_VARIABLES}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Processes that start in this context ignore Ctrl-C, which a terminal sends to all of them.

    The parent ends them; otherwise each would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # because it unblocks signals when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
