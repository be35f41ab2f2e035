"""Shared by the benchmarks: command line, machine, fair timing, memory, records."""

import argparse
import ctypes
import gc
import importlib
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

from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.utils.machine import hardware_and_versions

# A graph for --quick, small enough for the dense baselines.
QUICK_GRAPH: dict[str, Any] = {"num_nodes": 200, "num_val": 40, "labels_per_class": 5}
RESULTS = Path("benchmarks/results")  # one file per benchmark, one line per run
# Several times the L2 cache of any GPU, and long enough to overwrite that the CPU has launched the
# timed kernels before it ends: what is timed then is the device, not the launching.
FLUSH_BYTES = 2**30


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with the option of every benchmark: the file that gets the record."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out = results_file(name)
    help_text = f"file for the record; other runs in it are kept (default: {out})"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE", help=help_text)
    return parser


def add_quick(parser: argparse.ArgumentParser) -> None:
    """Adds --quick."""
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to check that the benchmark runs"
    )


def parse_arguments(name: str, description: str | None) -> argparse.Namespace:
    """The options of a benchmark that runs on both devices: device, out, quick."""
    parser = make_parser(name, description)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    add_quick(parser)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda needs a CUDA device, and torch finds none")
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


def results_file(name: str, folder: Path = RESULTS) -> Path:
    """The file of all runs of a benchmark."""
    return folder / f"{name}.jsonl"


def write(path: Path, run: str, record: Mapping[str, Any]) -> None:
    """Adds the record of a run to the file. It replaces an older one of the same name only."""
    put_lines(path, [{"run": run, **record}], _run_name)


def read(path: Path) -> dict[str, Any]:
    """The records of a file by the name of their run; none where there is no file."""
    return {record["run"]: record for record in read_lines(path, _run_name).records.values()}


def _run_name(record: Any) -> tuple[str]:
    return (str(record["run"]),)
