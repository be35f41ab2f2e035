"""What the benchmarks share: the machine, fair timing, the record."""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import torch


def machine() -> dict[str, Any]:
    """The machine, the versions and the command that a record belongs to."""
    cpu = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [
            line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": {"torch": torch.get_num_threads(), "numba": numba.get_num_threads()},
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numba": numba.__version__,
        "command": " ".join(["python", *map(_short, sys.orig_argv[1:])]),
    }


def _short(argument: str) -> str:
    """Paths of one machine say nothing on another: their last part is enough."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def compare(variants: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each variant.

    They take turns in one process, so that what else the machine does falls on all of them. One
    untimed turn comes first, for compilation.
    """
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(repeats + 1):
        for name, variant in variants.items():
            start = time.perf_counter()
            result = variant()
            elapsed = time.perf_counter() - start
            del result  # giving memory back is timed for no variant
            if turn > 0:
                seconds[name].append(elapsed)
    return {name: statistics.median(times) for name, times in seconds.items()}


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes the record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
