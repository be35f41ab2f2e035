"""Counts what a function does on a GPU: launches, waits, memory."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

# Enough calls to compile kernels, look at structures, and capture a training step as a CUDA graph.
FIRST_CALLS = 4
# Calls of CUDA that put work on a stream: a kernel, a whole graph of kernels, a copy, a fill.
LAUNCHES = ("Launch", "Memcpy", "Memset")


def count_on_gpu(run: Callable[[], object]) -> dict[str, int]:
    """The counts of a call that is not among the first.

    Returns:
        - **launches:** kernels, graphs of kernels, copies and fills
        - **waits:** calls for which the CPU waits for the GPU
        - **allocations, bytes, peak_bytes:** memory of torch's allocator: how often, how much in
          all, and how much of it at a time
    """
    for _ in range(FIRST_CALLS):
        run()
    return {"launches": _launches(run), "waits": _waits(run), **_memory(run)}


def _launches(run: Callable[[], object]) -> int:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        run()
    calls = Counter(str(event.name) for event in profiler.events())
    return sum(
        number
        for name, number in calls.items()
        # "cudaLaunchKernel" and "cuLaunchKernelEx", but not "Memcpy DtoH" of the GPU itself
        if name.startswith("cu") and any(part in name for part in LAUNCHES)
    )


def _waits(run: Callable[[], object]) -> int:
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("called a synchronizing" in str(warning.message) for warning in caught)


def _memory(run: Callable[[], object]) -> dict[str, int]:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    run()
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()

    def added(name: str) -> int:
        return int(after[name] - before[name])

    return {
        "allocations": added("allocation.all.allocated"),
        "bytes": added("allocated_bytes.all.allocated"),
        "peak_bytes": int(
            after["allocated_bytes.all.peak"] - before["allocated_bytes.all.current"]
        ),
    }
