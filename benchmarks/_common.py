"""Shared by the benchmarks: command line, machine, fair timing, memory, record."""

import argparse
import ctypes
import gc
import importlib
import json
import math
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import torch

from lgcn.utils.machine import hardware_and_versions

# A graph for --quick, small enough for the dense baselines.
QUICK_GRAPH: dict[str, Any] = {"num_nodes": 200, "num_val": 40, "labels_per_class": 5}
RESULTS = Path("benchmarks/results")
# Several times the L2 cache of any GPU, and long enough to overwrite that the CPU has launched the
# timed kernels before it ends: what is timed then is the device, not the launching.
FLUSH_BYTES = 2**30


def parse_arguments(name: str, description: str | None) -> argparse.Namespace:
    """The options of every benchmark: device, out, quick."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help=f"(default: {RESULTS}/{name}-DEVICE.json)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all?")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a CUDA device, and torch finds none")
    arguments.out = arguments.out or RESULTS / f"{name}-{arguments.device}.json"
    return arguments


def machine(device: str = "cpu") -> dict[str, Any]:
    """The machine, the versions and the command that a record belongs to."""
    record: dict[str, Any] = {
        **hardware_and_versions(device),
        "load": round(os.getloadavg()[0], 1),  # of the last minute, this program's share included
        "threads": {"torch": torch.get_num_threads(), "numba": numba.get_num_threads()},
        "command": shlex.join(["python", *map(_short, sys.orig_argv[1:])]),
    }
    if device == "cuda":
        record |= {
            "gpu_gigabytes": round(torch.cuda.get_device_properties(0).total_memory / 1e9),
            "triton": importlib.import_module("triton").__version__,
        }
    return record


def _short(argument: str) -> str:
    """A path without its folders, which mean nothing on another machine."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def compare(
    variants: Mapping[str, Callable[[], object]],
    repeats: int,
    device: str = "cpu",
    budget: float = math.inf,
) -> dict[str, float]:
    """Median seconds of each variant.

    The variants take turns in one process, so that other load on the machine affects all of them.
    The first turn compiles and is not timed. A variant gets at least one timed turn, and no more
    than fit into ``budget`` seconds.
    """
    clock = _cuda_seconds if device == "cuda" else _cpu_seconds
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(repeats + 1):
        for name, variant in variants.items():
            spent = seconds[name]
            if turn > 1 and sum(spent[1:]) + spent[-1] > budget:
                continue
            spent.append(clock(variant))
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def _cpu_seconds(variant: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = variant()
    elapsed = time.perf_counter() - start
    del result  # giving memory back is timed for no variant
    return elapsed


def _cuda_seconds(variant: Callable[[], object]) -> float:
    start: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda").zero_()
    start.record()
    result = variant()
    end.record()
    end.synchronize()
    del result
    return float(start.elapsed_time(end)) / 1e3


def peak_megabytes(function: Callable[[], object], device: str) -> float:
    """Peak memory of one call beyond what is held already. Call it once before."""
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    ctypes.CDLL(None).malloc_trim(0)  # else freed memory, still resident, would be used unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here (Linux)
    resident = _peak_resident()
    function()
    return _peak_resident() - resident


def _peak_resident() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes the record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
