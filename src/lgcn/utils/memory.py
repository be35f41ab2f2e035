"""How much memory there may be, how much is taken, and what to change where it is too little."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from lgcn.errors import LGCNError, first_line_of, ran_out_of_memory


class OutOfMemory(LGCNError, torch.OutOfMemoryError):
    """There is too little memory; the message says for what, and what would need less."""


@contextlib.contextmanager
def needs_memory(what: str) -> Iterator[None]:
    """Names what ran out of memory, and what to change."""
    try:
        yield
    except OutOfMemory:  # what ran out inside knows better
        raise
    except (MemoryError, RuntimeError) as error:
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        if not on_gpu and not ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"not enough {'GPU ' if on_gpu else ''}memory for {what}. Less is needed by smaller "
            "sub-graphs (training=subgraph, a smaller max_nodes or subgraphs_per_batch)"
            f"{', by a smaller k, or on the CPU (device=cpu)' if on_gpu else ' or by a smaller k'}"
            f". The error was: {first_line_of(error)}"
        ) from error


def release_memory() -> None:
    """Gives GPU memory that nothing holds any more back to other processes."""
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()


def empty(
    name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """A tensor on the device of ``like``, and of its dtype unless another is given."""
    dtype = like.dtype if dtype is None else dtype
    gigabytes = torch.Size(shape).numel() * dtype.itemsize / 1e9
    with needs_memory(f"{name} = {list(shape)}, {gigabytes:.2f} GB"):
        return torch.empty(tuple(shape), dtype=dtype, device=like.device)


def anonymous_memory() -> int:
    """Bytes of this process that are in memory and in no file: what the machine cannot drop.

    Mapped files, as those of a store, do not count. Where the system does not tell (other than
    Linux), the largest resident size so far, which is more.
    """
    try:
        return _kilobytes(Path("/proc/self/status"), "RssAnon:")
    except (OSError, IndexError):
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def available_memory() -> int | None:
    """Bytes that this process can still get, by the machine and by its control group.

    ``None`` where the system does not tell (other than Linux).
    """
    found = []
    with contextlib.suppress(OSError, IndexError, ValueError):
        found.append(_kilobytes(Path("/proc/meminfo"), "MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, IndexError, ValueError):  # "max" is no limit
        limit, taken = (
            int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current")
        )
        files = int((group / "memory.stat").read_text("ascii").split("\nfile ")[1].split()[0])
        found.append(max(0, limit - taken + files))  # what is cached of files can be dropped
    return min(found, default=None)


def _kilobytes(path: Path, key: str) -> int:
    return int(path.read_text("ascii").split(key)[1].split(None, 1)[0]) * 1024


def trim_memory() -> None:
    """Gives memory that was freed back to the system, which C libraries keep for later use."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries lack it
            ctypes.CDLL(None).malloc_trim(0)


class PeakMemory:
    """The largest :func:`anonymous_memory` while a block runs, looked at every few milliseconds.

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

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, anonymous_memory())
