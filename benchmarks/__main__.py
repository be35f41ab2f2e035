"""Runs all benchmarks, one process each, then writes their tables into docs/evidence.

python -m benchmarks [--device cpu|cuda] [--out FOLDER] [--quick] [NAME ...]

The tables are written only if the results go to benchmarks/results, so not with --quick.
"""

import argparse
import subprocess
import sys
from pathlib import Path

RESULTS = Path("benchmarks/results")
CPU_ONLY = (
    "k_largest_sweep",
    "subgraph",
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
    ),
    "cuda": (
        "k_largest",
        "training_step",
        "layer",
        "fusion",
        "recompute",
        "compile",
        "epoch",
        "whole_graphs",
        "scaling",
    ),
}


def flags(name: str, arguments: argparse.Namespace) -> list[str]:
    out = ["--out", str(arguments.out / f"{name}.jsonl")]
    device = [] if name in CPU_ONLY else ["--device", arguments.device]
    return [*out, *device, *(["--quick"] if arguments.quick else [])]


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
    failed = []
    for name in arguments.names or known:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *flags(name, arguments)]
        if subprocess.run(command).returncode != 0:  # go on with the others
            failed.append(name)
    if arguments.out == RESULTS:
        subprocess.run([sys.executable, "-m", "benchmarks.report"], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
