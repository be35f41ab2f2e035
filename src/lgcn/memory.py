"""How much memory there may be, how much is taken, and what to change where it is too little."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from lgcn.errors import LGCNError, UsageError

_UNITS = {"": 0, "b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4}
_BINARY = {"ki": 1, "kib": 1, "mi": 2, "mib": 2, "gi": 3, "gib": 3, "ti": 4, "tib": 4}


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


def parse_memory(value: str | int, option: str = "memory") -> int:
    """A number of bytes from what a user writes, such as ``"2GB"``.

    Args:
        value: Bytes as an int, or a number with a unit: kB, MB, GB and TB are powers of 1000, KiB,
            MiB, GiB and TiB powers of 1024.
        option: The option's name, for the message.
    """
    wanted = f"{option} must be a size such as '2GB', '512MB' or '1.5GiB', got {value!r}"
    if isinstance(value, int) and not isinstance(value, bool):
        size = float(value)
    else:
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", str(value).lower())
        if not isinstance(value, str) or found is None:
            raise UsageError(wanted)
        number, unit = float(found[1]), found[2]
        if unit in _BINARY:
            size = number * 1024 ** _BINARY[unit]
        elif unit in _UNITS:
            size = number * 1000 ** _UNITS[unit]
        else:
            raise UsageError(f"{wanted}. The units are kB, MB, GB, TB, KiB, MiB, GiB and TiB")
    if not 1 <= size < 2**63:
        raise UsageError(wanted)
    return int(size)


def format_memory(size: float) -> str:
    """A number of bytes in a message, rounded up: a user may give it back as it is."""
    for unit, power in (("GB", 3), ("MB", 2), ("kB", 1)):
        if size >= 1000**power:
            tenths = -int(-size * 10 // 1000**power)
            return f"{tenths / 10:g} {unit}"
    return f"{size:.0f} bytes"


def machine_memory() -> int:
    """Bytes of memory that this process could have at most: the machine's, or its container's."""
    sizes = [2**63]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # not known on this system
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
            sizes.append(int(Path("/sys/fs/cgroup", limit).read_text(encoding="ascii")))
    return min(size for size in sizes if size > 0)


def check_memory(size: int, what: str, error: type[LGCNError] = UsageError) -> None:
    """Raises ``error`` where ``what``, of so many bytes, cannot fit in memory."""
    there = machine_memory()
    if size > there:
        raise error(
            f"{what} would need {format_memory(size)} of memory, and this machine has "
            f"{format_memory(there)}"
        )


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
