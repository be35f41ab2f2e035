"""The first training on a machine, which compiles kernels, compared with the next ones.

python -m benchmarks.first_command [--out FILE] [--repeats 5] [--quick]

`lgcn train --dataset digits --set max_epochs=20`, each time as a process of its own. The first
one finds an empty folder for compiled kernels, the next one what the first one left there. They
take turns. Processor times include that of the process that compiles ahead; other programs affect
them less than seconds. All figures are medians.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, write
from benchmarks.validation import at_least_one

EPOCHS = 20
COMMANDS = ("first", "next")


def measure(folder: Path, epochs: int) -> dict[str, float]:
    """One command: seconds, processor seconds, and kernels that it added to the folder."""
    command = [sys.executable, "-m", "lgcn", "train", "--dataset", "digits"]
    command += ["--set", f"max_epochs={epochs}", "--out", str(folder / "run"), "--overwrite"]
    cache = folder / "cache"
    kernels = _kernels(cache)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    start, processor = time.perf_counter(), _processor_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds, processor = time.perf_counter() - start, _processor_seconds() - processor
    if done.returncode:
        raise SystemExit(f"the command failed: {done.stderr}")
    added = _kernels(cache) - kernels
    return {"seconds": seconds, "processor_seconds": processor, "kernels_compiled": added}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _kernels(cache: Path) -> int:
    return len(list(cache.rglob("*.nbc")))  # one file per kernel and types


def main() -> None:
    parser = make_parser("first_command", __doc__)
    parser.add_argument("--repeats", type=at_least_one, default=5)
    add_quick(parser)
    arguments = parser.parse_args()
    repeats, epochs = (1, 2) if arguments.quick else (arguments.repeats, EPOCHS)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for name in COMMANDS:
                found[name].append(measure(Path(folder), epochs))
    results: list[dict[str, Any]] = []
    for name, measured in found.items():
        medians = {key: statistics.median(each[key] for each in measured) for key in measured[0]}
        results.append({"command": name, **medians})
        print(
            f"{name}: {medians['seconds']:.1f} s, {medians['processor_seconds']:.1f} s of processor"
            f" time, {medians['kernels_compiled']:.0f} kernels compiled",
            flush=True,
        )
    write(
        arguments.out,
        "cpu",
        {"machine": machine(), "dataset": "digits", "epochs": epochs, "results": results},
    )


if __name__ == "__main__":
    main()
