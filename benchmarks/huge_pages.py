"""Training epochs on the CPU with and without huge pages for torch's tensors.

python -m benchmarks.huge_pages [--out FILE] [--rounds 3] [--epochs 5] [--quick]

Defaults for own data, with few labels and with many, on a graph of Pubmed's size as one batch.
torch reads the setting once, so each measurement is its own process, and the two take turns. A time
is the median over the epochs of all processes, without the first epoch of each.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks._common import QUICK_GRAPH, add_quick, machine, make_parser, write
from benchmarks.validation import at_least_one
from lgcn.datasets import synthetic
from lgcn.training import Settings, train

VARIABLE = "THP_MEM_ALLOC_ENABLE"
GRAPH: dict[str, Any] = {"num_nodes": 20_000, "num_features": 500, "mean_degree": 5}
LABELS = ("few", "many")


def measure(labels: str, epochs: int, quick: bool) -> dict[str, list[float]]:
    """Seconds and page faults of each epoch but the first."""
    graph = synthetic(**(QUICK_GRAPH if quick else GRAPH))
    seen = []

    def on_epoch(_: Any) -> None:
        seen.append((time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt))

    settings = Settings.create(dataset="own", labels=labels, max_epochs=epochs + 1, device="cpu")
    train(graph, settings, on_epoch=on_epoch)
    pairs = list(itertools.pairwise(seen))
    return {
        "seconds": [after[0] - before[0] for before, after in pairs],
        "faults": [after[1] - before[1] for before, after in pairs],
    }


def main() -> None:
    parser = make_parser("huge_pages", __doc__)
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--epochs", type=at_least_one, default=5)
    add_quick(parser)
    parser.add_argument("--measure", choices=LABELS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.epochs, arguments.quick)))
        return
    if arguments.quick:
        arguments.rounds = arguments.epochs = 1
    results = []
    for labels in LABELS:
        found: dict[str, dict[str, list[float]]] = {}
        command = [sys.executable, "-m", "benchmarks.huge_pages", "--measure", labels]
        command += ["--epochs", str(arguments.epochs), *(["--quick"] if arguments.quick else [])]
        for _ in range(arguments.rounds):
            for huge in ("0", "1"):
                environment = {**os.environ, VARIABLE: huge}
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
                if done.returncode:
                    parser.exit(1, f"{labels} labels: a process ended with {done.returncode}\n")
                for name, values in json.loads(done.stdout.splitlines()[-1]).items():
                    found.setdefault(name, {"0": [], "1": []})[huge] += values
        result: dict[str, Any] = {"labels": labels}
        for name, by_variant in found.items():
            small, huge_pages = (statistics.median(by_variant[huge]) for huge in ("0", "1"))
            result |= {f"{name}_small_pages": small, f"{name}_huge_pages": huge_pages}
        results.append(result)
        ratio = result["seconds_small_pages"] / result["seconds_huge_pages"]
        print(f"{labels} labels: {ratio:.1f} times as fast with huge pages", flush=True)
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    setting = pages.read_text().strip() if pages.exists() else "none"
    graph = QUICK_GRAPH if arguments.quick else GRAPH
    write(
        arguments.out,
        "cpu",
        {"machine": machine(), "graph": graph, "system_setting": setting, "results": results},
    )


if __name__ == "__main__":
    main()
