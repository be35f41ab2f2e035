"""A process that compiles kernels while this one imports libraries and reads data.

Within one process, Numba compiles one kernel at a time, and imports keep Python's lock. Another
process uses another core, and Numba's cache folder brings the result here.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple


class _Helper(NamedTuple):
    process: "subprocess.Popen[bytes]"
    package: str


_helper: _Helper | None = None


@contextlib.contextmanager
def compiling(module: str, *arguments: str, package: str) -> Iterator[None]:
    """Runs ``python -m module``, until the block ends, to compile kernels of a package."""
    global _helper
    nothing: Any = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
    with contextlib.suppress(OSError):  # without another process, this one compiles
        # -P: a file of the same name in the current folder is not run.
        command = [sys.executable, "-P", "-m", module, *arguments]
        _helper = _Helper(subprocess.Popen(command, **nothing), package)
    try:
        yield
    finally:
        helper, _helper = _helper, None
        if helper is not None:
            helper.process.kill()  # if there was an error; what it has written is whole
            helper.process.wait()


def wait(module: str) -> bool:
    """Waits for the process to end if it may compile a kernel of this module.

    Returns whether it is worth a look into the cache.
    """
    helper = _helper
    if helper is None or not module.startswith(f"{helper.package}."):
        return False
    helper.process.wait()
    return True


def spare_core() -> bool:
    """Whether this process may use more than one core, and other programs leave one.

    Otherwise, two processes take longer than one, as both import libraries.
    """
    allowed = getattr(os, "sched_getaffinity", None)  # of Linux
    cores = len(allowed(0)) if allowed is not None else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0  # not on Windows
    return cores > 1 and load < cores - 0.5
