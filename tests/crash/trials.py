"""Runs one trial: a command that is killed, or whose n-th write fails.

Importing torch takes seconds, so a server (:mod:`server`) imports everything once, with the shim
loaded, and forks one process per trial, in a tenth of a second.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
# In the order of the shim's.
MODES = ("count", "kill before", "kill after", "kill torn", "fail", "full", "short")
KILLS = ("kill before", "kill after", "kill torn")
SECONDS = 60  # after that, a trial counts as hanging
# `lgcn`, with a checkpoint after each epoch.
NEW_PROCESS = """
from lgcn.training import loop
loop.CHECKPOINT_SECONDS = -1.0
from lgcn.__main__ import main
main()
"""


class Unavailable(Exception):
    """This machine cannot run trials; the message says why."""


@dataclass(frozen=True)
class Disturbance:
    """What happens at the n-th call that changes a file; nothing by default."""

    n: int = 0
    mode: str = "count"
    error: int = errno.ENOSPC

    def __str__(self) -> str:
        if self.mode == "fail":
            return f"{errno.errorcode[self.error]} at call {self.n}"
        return f"{self.mode} at call {self.n}"


@dataclass(frozen=True)
class Call:
    """A call that changes a file below the folder, as the shim logged it."""

    n: int
    name: str
    size: int
    path: str
    before: str = ""  # the old name of a renamed file

    @property
    def kind(self) -> str:
        """The call without its suffix: ``open64`` is ``open``."""
        return re.sub(r"64|at2?$", "", self.name)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int  # exit code, or minus the signal
    out: str
    err: str
    calls: list[Call] = field(repr=False)

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL


@dataclass(frozen=True)
class Command:
    """A command line of ``lgcn``, or the name of a function in :mod:`server` and its arguments."""

    arguments: tuple[str, ...]
    function: str | None = None

    def plus(self, *more: str) -> Command:
        return Command((*self.arguments, *more), self.function)

    def __str__(self) -> str:
        return " ".join((self.function or "lgcn", *self.arguments))


def build_shim(folder: Path) -> Path:
    """Compiles the shim; raises :class:`Unavailable` if that is impossible."""
    if not sys.platform.startswith("linux"):
        raise Unavailable("it needs Linux")
    compiler = shutil.which("cc")
    if compiler is None:
        raise Unavailable("it needs a C compiler (cc)")
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        raise Unavailable("it needs glibc")
    path = folder / "shim.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(path), str(HERE / "shim.c"), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"the C compiler failed: {done.stderr.splitlines()[:1]}")
    return path


class Machine:
    """Runs commands in separate processes, disturbed or not.

    Use it in a ``with`` statement.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lgcn-crash-"))
        try:
            self._shim = build_shim(self._folder)
        except Unavailable:
            shutil.rmtree(self._folder)
            raise
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            try:
                self._server.communicate(timeout=5)  # it ends with its standard input
            except subprocess.TimeoutExpired:  # a trial hangs
                self._server.kill()
                self._server.communicate()
        shutil.rmtree(self._folder)

    def run(self, command: Command, folder: Path, disturbance: Disturbance | None = None) -> Ended:
        """Runs a command in a folder; calls that change files below it count."""
        disturbance = disturbance or Disturbance()
        request = {
            "arguments": command.arguments,
            "function": command.function,
            "folder": str(folder.resolve()),
            "n": disturbance.n,
            "mode": MODES.index(disturbance.mode),
            "error": disturbance.error,
            "seconds": SECONDS,
            **{name: str(self._file(name)) for name in ("out", "err", "log")},
        }
        server = self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server of trials ended with {server.wait()}")
        return self._ended(json.loads(answer)["status"])

    def run_in_new_process(
        self, command: Command, folder: Path, disturbance: Disturbance | None = None
    ) -> Ended:
        """The same in a new Python process, as a user starts it, which takes seconds."""
        assert command.function is None
        disturbance = disturbance or Disturbance()
        armed = {
            "LD_PRELOAD": str(self._shim),
            "CRASH_FOLDER": str(folder.resolve()),
            "CRASH_N": str(disturbance.n),
            "CRASH_MODE": str(MODES.index(disturbance.mode)),
            "CRASH_ERRNO": str(disturbance.error),
            "CRASH_LOG": str(self._file("log")),
        }
        with self._file("out").open("wb") as out, self._file("err").open("wb") as err:
            done = subprocess.run(
                [sys.executable, "-c", NEW_PROCESS, *command.arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=_environment() | armed,
                timeout=SECONDS,
                check=False,
            )
        return self._ended(done.returncode)

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            path = os.pathsep.join(
                [str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.server", str(self._shim)],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=_environment() | {"LD_PRELOAD": str(self._shim), "PYTHONPATH": path},
            )
        return self._server

    def _file(self, name: str) -> Path:
        path = self._folder / name
        path.unlink(missing_ok=True)
        return path

    def _ended(self, status: int) -> Ended:
        texts: dict[str, Any] = {}
        for name in ("out", "err", "log"):
            path = self._folder / name
            texts[name] = path.read_text() if path.exists() else ""
        calls = []
        for line in texts["log"].splitlines():
            n, name, size, path, before = line.split("\t")
            calls.append(Call(int(n), name, int(size), path, before))
        return Ended(status, texts["out"], texts["err"], calls)


def _environment() -> dict[str, str]:
    """One thread each: a fork keeps only the calling thread, and the order of calls is fixed."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_IO_THREADS"), "1")
    # The threading layer of Numba that survives a fork.
    more = {"NUMBA_THREADING_LAYER": "workqueue", "LGCN_OFFLINE": "", "COLUMNS": "200"}
    return {**os.environ, **threads, **more}
