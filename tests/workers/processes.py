"""Starts groups of real processes for tests, in tenths of a second.

A fork server imports torch and lgcn once; each worker is a fork of it, with the environment
variables that torchrun sets. `run_workers` is all that most tests need:

    def total(workers: Workers, first: int) -> float:
        return float(workers.sum(torch.tensor([first + workers.rank]), "numbers"))

    assert run_workers(total, 3, 10) == [33, 33, 33]
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import multiprocessing.forkserver
import os
import pickle
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numba
import pytest
import torch
import torch.distributed as dist

from lgcn.workers import connected

# What the server imports. It must not start threads, which a fork would not have.
PRELOADED = [
    "tests.workers.warm",
    "torch.nn.parallel",
    "lgcn.__main__",
    "lgcn.inference.trained_run",
    "lgcn.partition",
    "lgcn.store.open_store",
    "lgcn.training.loop",
]
ROOT = Path(__file__).parents[2]
WAIT = 20.0  # seconds that one wait of a worker may take
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ended:
    """How a worker ended.

    Attributes:
        rank: Its rank.
        result: What its function returned.
        error: What its function raised, without its traceback.
        status: The exit code, or minus the signal; 0 after a result, 1 after an error.
        output: What it printed, and the traceback.
        seconds: The time from the start of the group to its end.
    """

    rank: int
    result: Any
    error: BaseException | None
    status: int
    output: str
    seconds: float


def run_workers(
    function: Callable[..., Any], size: int, *arguments: Any, timeout: float = 60
) -> list[Any]:
    """Runs `function(workers, *arguments)` in `size` processes that are connected.

    Args:
        function: A function of a module. Its arguments and its result must allow pickling.
        size: The number of processes.
        *arguments: Its further arguments.
        timeout: Seconds after which all are killed and the test fails. (default: 60)

    Returns:
        The results, in the order of the ranks. If one fails, an AssertionError shows what all
        printed.
    """
    ended = run_processes(in_group, size, function, WAIT, *arguments, timeout=timeout)
    if any(one.status for one in ended):
        raise AssertionError(f"of {size} workers some failed\n{texts(ended)}")
    return [one.result for one in ended]


def run_processes(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    timeout: float = 60,
    environment: Mapping[str, str | None] | None = None,
) -> list[Ended]:
    """Runs `function(*arguments)` in `size` processes, and says how each ended.

    Args:
        function, size, arguments, timeout: See `run_workers`. The function connects by itself.
        environment: Variables to set, or to unset (`None`), besides those of torchrun.
            (default: none)
    """
    with Group(function, size, arguments, environment or {}) as group:
        running = set(range(size))
        while running:
            left = group.started + timeout - time.monotonic()
            ready = group.wait(running, left)
            if not ready:
                group.end(signal.SIGKILL)
                ended = [group.ended(rank) for rank in range(size)]
                raise AssertionError(
                    f"after {timeout:g} s, ranks {sorted(running)} of {size} were still running\n"
                    f"{texts(ended)}"
                )
            running -= ready
        return [group.ended(rank) for rank in range(size)]


def in_group(function: Callable[..., Any], limit: float, *arguments: Any) -> Any:
    """Connects, with a time limit for each wait, and calls `function(workers, *arguments)`."""
    with connected(limit) as workers:
        return function(workers, *arguments)


def texts(ended: Sequence[Ended]) -> str:
    """How workers ended and what they printed, for an error."""
    return "\n".join(
        f"--- rank {one.rank}: status {one.status} after {one.seconds:.1f} s\n{one.output}"
        for one in ended
    )


def new_store() -> Any:
    """A store for a group, which lives in this process as torchrun's lives in torchrun's."""
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Group:
    """The processes of one start. Use it in a `with` statement, which kills those that still run.

    Args:
        function: What each runs.
        size: Their number.
        arguments: The arguments of the function.
        environment: Variables to set or to unset, besides those of torchrun.
        store: The store of an earlier group, which torchrun uses again. (default: a new one)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        size: int,
        arguments: Sequence[Any],
        environment: Mapping[str, str | None],
        store: Any = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lgcn-workers-")
        folder = Path(self._folder.name)
        self._store = store or new_store()
        shared = {
            **os.environ,
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "OMP_NUM_THREADS": "1",
        }
        self.started = time.monotonic()
        self._seconds: dict[int, float] = {}
        self._processes: list[BaseProcess] = []
        for rank in range(size):
            own: dict[str, str | None] = {
                **shared,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                **environment,
            }
            given = {name: value for name, value in own.items() if value is not None}
            process = _context().Process(
                target=_worker, args=(str(folder / str(rank)), given, function, arguments)
            )
            process.start()
            self._processes.append(process)

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)
        for process in self._processes:
            process.close()
        self._folder.cleanup()

    def wait(self, ranks: set[int], seconds: float) -> set[int]:
        """Waits until one of these ranks has ended; none if that takes longer."""
        sentinels = {self._processes[rank].sentinel: rank for rank in ranks}
        ready = {sentinels[one] for one in wait(list(sentinels), max(0.0, seconds))}  # type: ignore[index]
        for rank in ready:
            self._processes[rank].join()
            self._seconds.setdefault(rank, time.monotonic() - self.started)
        return ready

    def end(self, number: int, grace: float = 30.0) -> None:
        """Sends a signal to those that run; after some seconds, kills them."""
        running = set(range(len(self._processes))) - set(self._seconds)
        for rank in running:
            self.kill(rank, number)
        stop = time.monotonic() + grace
        while running:
            ready = self.wait(running, stop - time.monotonic())
            running -= ready
            if not ready:
                for rank in running:
                    self.kill(rank, signal.SIGKILL)
                stop = time.monotonic() + grace

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        """Sends a signal to a rank, if it still runs."""
        process = self._processes[rank]
        if process.exitcode is None and process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def status(self, rank: int) -> int | None:
        """The exit code of a rank, or minus the signal; `None` while it runs."""
        found: int | None = self._processes[rank].exitcode
        return found

    def ended(self, rank: int) -> Ended:
        """How a rank that has ended did so."""
        base = Path(self._folder.name) / str(rank)
        result, error = None, None
        if (found := base.with_suffix(".result")).exists():
            result, error = pickle.loads(found.read_bytes())
        output = base.with_suffix(".output")
        text = output.read_text(errors="replace") if output.exists() else ""
        status = self._processes[rank].exitcode
        assert status is not None
        return Ended(rank, result, error, status, text, self._seconds[rank])


def _context() -> Any:
    """The fork server's context. It is started with the first process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    # The layer of Numba that survives a fork.
    os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")
    # The server imports what it preloads by its environment, not by pytest's sys.path.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, str(ROOT)]))
    # Importing kernels starts Numba's threads, and those of OpenMP do not work in a fork.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_THREADING_LAYER", "workqueue")
        multiprocessing.forkserver.ensure_running()
    return context


def _worker(
    base: str,
    environment: dict[str, str],
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    """Runs in the new process."""
    if sys.platform == "linux":  # ends with the fork server, and so with the tests
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(f"{base}.output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for number in (1, 2):
        os.dup2(output, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    result, error, status = None, None, 0
    try:
        result = function(*arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as found:
        traceback.print_exc()
        error, status = found.with_traceback(None), 1
    try:
        data = pickle.dumps((result, error))
    except Exception as cause:
        data = pickle.dumps((None, RuntimeError(f"cannot be pickled: {cause}; {error or result}")))
    Path(f"{base}.result").write_bytes(data)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # as a new process ends, without the fork server's handlers
