"""How much memory there is, how much this process uses, and giving memory back."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from lgcn.errors import LGCNError, UsageError
from lgcn.utils.sizes import format_memory


def machine_memory() -> int:
    """The memory in bytes of the machine, or of its container if that has less."""
    sizes = [2**63]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # unknown on this system
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
            sizes.append(int(Path("/sys/fs/cgroup", limit).read_text(encoding="ascii")))
    return min(size for size in sizes if size > 0)


def available_memory() -> int | None:
    """Bytes that this process can still allocate, within the machine and its control group.

    `None` if the system does not tell, which only Linux does.
    """
    found = []
    with contextlib.suppress(OSError, IndexError, ValueError):
        found.append(_kilobytes(Path("/proc/meminfo"), "MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, IndexError, ValueError):  # "max" means no limit
        limit, taken = (
            int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current")
        )
        files = int((group / "memory.stat").read_text("ascii").split("\nfile ")[1].split()[0])
        found.append(max(0, limit - taken + files))  # cached files can be dropped
    return min(found, default=None)


def check_memory(size: int, what: str, error: type[LGCNError] = UsageError) -> None:
    """Raises `error` if `what`, of `size` bytes, cannot fit in memory."""
    there = machine_memory()
    if size > there:
        raise error(
            f"{what} would need {format_memory(size)} of memory, and this machine has "
            f"{format_memory(there)}"
        )


def anonymous_memory() -> int:
    """Bytes of this process that are in memory and in no file, so that they cannot be dropped.

    Memory-mapped files, such as those of a store, do not count. On systems other than Linux, it is
    the largest resident size so far, which is more.
    """
    try:
        return _kilobytes(Path("/proc/self/status"), "RssAnon:")
    except (OSError, IndexError):
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def _status_or_none(key: str) -> int | None:
    """A size in bytes that Linux knows of this process."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return _kilobytes(Path("/proc/self/status"), key)
    return None


def _kilobytes(path: Path, key: str) -> int:
    return int(path.read_text("ascii").split(key)[1].split(None, 1)[0]) * 1024


class PeakMemory:
    """The largest `anonymous_memory` while a block runs, sampled every few milliseconds.

    Attributes:
        peak: In bytes, so far.
    """

    def __init__(self, every: float = 0.01) -> None:
        self.peak = anonymous_memory()
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lgcn-memory", daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            self.peak = max(self.peak, anonymous_memory())

    @contextlib.contextmanager
    def in_one_call(self) -> Iterator[None]:
        """For a block that lets no other thread run: C code that holds Python's lock.

        The system knows the largest resident size. Files that are mapped then are not counted.
        """
        before = _status_or_none("VmHWM:")
        yield
        after, files = _status_or_none("VmHWM:"), _status_or_none("RssFile:")
        if before is not None and after is not None and files is not None and after > before:
            self.peak = max(self.peak, after - files)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, anonymous_memory())


def trim_memory() -> None:
    """Returns freed memory to the system, which C libraries keep for later use."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries lack it
            ctypes.CDLL(None).malloc_trim(0)


def release_memory() -> None:
    """Returns unused GPU memory, so that other processes can use it."""
    import torch  # takes a second

    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
