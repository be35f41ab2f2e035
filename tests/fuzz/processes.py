"""Processes that run cases with limited memory and time. A case beyond a limit ends its process."""

import contextlib
import faulthandler
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .found import Failure
from .source import MAX_LENGTH

CASES, REFUSED, FAILED, SECONDS = range(4)
_HEADER = 16  # bytes: when the case began, its target, its length


class Slot:
    """Memory shared with the parent, which reads it after the worker was killed."""

    def __init__(self, num_targets: int) -> None:
        counts = num_targets * 4 * 8
        self._map = mmap.mmap(-1, _HEADER + counts + MAX_LENGTH)
        self._began = np.ndarray(1, np.float64, self._map, 0)
        self._numbers = np.ndarray(2, np.int32, self._map, 8)
        self._numbers[0] = -1  # no case yet
        self.counts = np.ndarray((num_targets, 4), np.float64, self._map, _HEADER)
        self._bytes = _HEADER + counts

    def begin(self, target: int, buffer: bytes) -> None:
        self._map[self._bytes : self._bytes + len(buffer)] = buffer
        self._numbers[0], self._numbers[1] = target, len(buffer)
        self._began[0] = time.monotonic()

    def end(self) -> None:
        self._began[0] = 0.0

    @property
    def running(self) -> float:
        """Seconds since the case began, 0 between cases."""
        began = float(self._began[0])
        return time.monotonic() - began if began else 0.0

    @property
    def case(self) -> tuple[int, bytes]:
        """Target and bytes of the last case; the target is -1 if there was none."""
        length = int(self._numbers[1])
        return int(self._numbers[0]), self._map[self._bytes : self._bytes + length]


class Limits(NamedTuple):
    """Limits of a process: bytes beyond those in use after its imports, and seconds per case."""

    memory: int = 2 << 30
    seconds: float = 20.0


def status_of(pid: int | str, field: str) -> int:
    """A number of bytes in /proc/PID/status, 0 if it is missing."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


class Process:
    """A forked process that runs ``work`` under limits.

    Args:
        work: What it does; the process ends with status 0 when it returns.
        slot: Where it says which case it runs.
        limits: Of memory and time.
        trace: A file for the stacks of all threads, should it crash.
    """

    def __init__(self, work: Callable[[], None], slot: Slot, limits: Limits, trace: Path) -> None:
        self.slot, self._limits, self._trace = slot, limits, trace
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
                with trace.open("w") as file:
                    faulthandler.enable(file)
                    _limit_memory(limits.memory)
                    work()
                    code = 0
            except BaseException:  # errors of a case are caught elsewhere
                traceback.print_exc()
            finally:
                os._exit(code)
        self._most = 0

    def poll(self) -> tuple[str, str] | None:
        """None while all is well; else ("done" | "crash" | "time" | "memory", what happened)."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return self._ended(status)
        if self.slot.running > self._limits.seconds:
            stack = self._kill(signal.SIGABRT)
            return "time", f"no result after {self._limits.seconds:g} s. {stack}"
        # Where the limit below is not enforced: memory in use, not memory requested.
        used = status_of(self.pid, "RssAnon")
        self._most = self._most or used
        if used > self._most + 2 * self._limits.memory:
            stack = self._kill(signal.SIGABRT)
            return "memory", f"{used >> 20} MiB. {stack}"
        return None

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _ended(self, status: int) -> tuple[str, str]:
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return "done", ""
        what = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return "crash", f"{what}. {self._stack()}"

    def _kill(self, number: int) -> str:
        """Ends the process with a signal on which it writes its stacks first."""
        os.kill(self.pid, number)
        for _ in range(50):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return self._stack()
            time.sleep(0.1)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self._stack()

    def _stack(self) -> str:
        """The innermost lines of the thread that ran the case."""
        try:
            lines = self._trace.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        frames = [line.strip() for line in lines if line.strip().startswith("File ")]
        ours = [frame for frame in frames if "/lgcn/" in frame or "/fuzz/" in frame]
        return "; ".join([*frames[:1], *ours[:2]])


def _limit_memory(limit: int) -> None:
    """Limits the memory that the process may request; mapped files do not count."""
    used = status_of("self", "VmData")
    if used:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (used + limit, hard))


def run_isolated(
    work: Callable[[], Any], limits: Limits, trace: Path, buffer: bytes = b""
) -> tuple[str, str]:
    """Runs ``work`` in its own process; returns what :meth:`Process.poll` returns."""
    slot = Slot(1)
    slot.begin(0, buffer)
    process = Process(lambda: _ignore(work()), slot, limits, trace)
    while True:
        ended = process.poll()
        if ended is not None:
            return ended
        time.sleep(0.01)


def _ignore(value: Any) -> None: ...


def killed(target: str, buffer: bytes, kind: str, details: str) -> Failure:
    """The failure of a process that its case ended."""
    where = details.partition(". ")[0] if kind == "crash" else kind
    return Failure(target, buffer, kind, where, f"{kind}: {details}")
