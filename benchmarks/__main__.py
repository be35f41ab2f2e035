"""Runs all benchmarks, one process each, then writes their tables into docs/evidence.

python -m benchmarks [--device cpu|cuda] [--out FOLDER] [--worse FACTOR] [--quick] [NAME ...]

Each ratio is compared with that of the record in benchmarks/results from before. The exit status is
not zero if one got worse by more than --worse, or a benchmark failed.

The tables are written only if the results go to benchmarks/results, so not with --quick.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._common import RESULTS, read, results_file
from benchmarks.ratios import ratios, worse
from benchmarks.report_tables import number

CPU_ONLY = (
    "own_epoch",
    "k_largest_sweep",
    "subgraph",
    "first_command",
    "profile_epoch",
    "tables",
    "table_reader",
    "fit_memory",
    "huge_pages",
    "store_loader",
    "large",
    "partition",
)
NAMES = {
    "cpu": (
        "k_largest",
        "layer",
        "fusion",
        "recompute",
        "training_step",
        "epoch",
        "whole_graphs",
        *CPU_ONLY,
        "scaling",
        "speed",
    ),
    "cuda": (
        "k_largest",
        "training_step",
        "changing_subgraphs",
        "layer",
        "fusion",
        "recompute",
        "compile",
        "epoch",
        "whole_graphs",
        "scaling",
        "speed",
    ),
}


def flags(name: str, arguments: argparse.Namespace) -> list[str]:
    out = ["--out", str(arguments.out / f"{name}.jsonl")]
    device = [] if name in CPU_ONLY else ["--device", arguments.device]
    return [*out, *device, *(["--quick"] if arguments.quick else [])]


def compare(name: str, before: dict[str, Any], now: dict[str, Any], factor: float) -> list[str]:
    """One line per ratio that got worse by more than the factor."""
    lines = [
        f"{name}, {what}: {number(old.value)} before, {number(new.value)} now "
        f"({number(new.loss(old))} times worse)"
        for what, old, new in worse(ratios(name, before), ratios(name, now), factor)
    ]
    old, new = (record["machine"].get("gpu", record["machine"]["cpu"]) for record in (before, now))
    if lines and old != new:
        print(f"{name}: the record from before is of another machine: {old}, not {new}", flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="FOLDER", help=f"(default: {RESULTS})"
    )
    parser.add_argument(
        "--worse",
        type=float,
        default=1.5,
        metavar="FACTOR",
        help="how many times worse a ratio may be than in the record from before (default: 1.5)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to check that all benchmarks run"
    )
    arguments = parser.parse_args()
    if arguments.quick and arguments.out == RESULTS:
        parser.error(
            "--quick must not replace the committed results: choose another folder with --out"
        )
    known = NAMES[arguments.device]
    for name in arguments.names:
        if name not in known:
            parser.error(f"NAME must be one of {', '.join(known)}, got {name!r}")
    failed, lost = [], []
    for name in arguments.names or known:
        print(f"== {name}", flush=True)
        before = read(results_file(name)).get(arguments.device)
        command = [sys.executable, "-m", f"benchmarks.{name}", *flags(name, arguments)]
        if subprocess.run(command).returncode != 0:  # go on with the others
            failed.append(name)
            continue
        now = read(results_file(name, arguments.out))[arguments.device]
        if before is not None and not arguments.quick:
            lost += compare(name, before, now, arguments.worse)
    if arguments.out == RESULTS:
        subprocess.run([sys.executable, "-m", "benchmarks.report"], check=True)
    if lost:
        print("\n".join(["== worse than before", *lost]), flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if lost:
        sys.exit(f"{len(lost)} ratios are more than {arguments.worse:g} times worse than before")


if __name__ == "__main__":
    main()
