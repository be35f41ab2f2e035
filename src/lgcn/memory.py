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

from lgcn.errors import LGCNError


class OutOfMemory(LGCNError, torch.OutOfMemoryError):
    """A GPU has too little memory; the message says for what, and what would need less."""


@contextlib.contextmanager
def needs_memory(what: str) -> Iterator[None]:
    """Names what ran out of memory, and what to change."""
    try:
        yield
    except OutOfMemory:  # what ran out inside knows better
        raise
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            f"not enough GPU memory for {what}. Less is needed by smaller sub-graphs "
            "(training=subgraph, a smaller max_nodes or subgraphs_per_batch), by a smaller k, or "
            f"on the CPU (device=cpu). torch says: {str(error).splitlines()[0]}"
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
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("RssAnon:")[1].split(None, 1)[0]) * 1024
    except (OSError, IndexError):
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


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
