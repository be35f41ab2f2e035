"""The long run: faults at random moments of trainings on two and on three workers.

``python -m tests.workers.faults --faults 100`` in the root of the repository. Each training is one
run with many faults, most of which end all of its processes; one that a launcher starts again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .checks import Broken, check_restarts
from .data import Data, parts_of, small_graph
from .trainings import Fault, Outcome

SIZES = (2, 3)
EPOCHS_PER_FAULT = 2
WAITS, WRITES = 60, 14  # of a rank while it starts and trains an epoch or two
LIMIT = 8.0  # seconds of a wait
ROOM = 20  # restarts beyond those that faults cause
PACKAGES = ("lgcn", "numba", "safetensors", "torch")
# How often each kind comes, in percent.
KINDS = {
    "kill while it waits": 40,
    "kill while it writes": 20,
    "slow": 12,
    "too slow": 6,
    "full disk": 14,
    "missing shard": 8,
}


def draw(rng: random.Random, size: int, attempt: int) -> tuple[str, Fault]:
    """A fault for an attempt."""
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    rank, wait, write = rng.randrange(size), rng.randint(1, WAITS), rng.randint(1, WRITES)
    common: dict[str, Any] = {"first": attempt, "last": attempt}
    return kind, {
        "kill while it waits": Fault("kill", rank, number=wait, **common),
        "kill while it writes": Fault("kill", 0, "write", number=write, **common),
        "slow": Fault("sleep", rank, number=wait, seconds=rng.uniform(0.1, 1.0), **common),
        "too slow": Fault("sleep", rank, number=wait, seconds=10 * LIMIT, **common),
        "full disk": Fault("full", 0, "write", number=write, **common),
        "missing shard": Fault("lose", rank, **common),
    }[kind]


def plan(rng: random.Random, size: int, number: int) -> tuple[list[Fault], Counter[str]]:
    """Faults for one training: each attempt ends by one, after any number of slow workers."""
    faults: list[Fault] = []
    kinds: Counter[str] = Counter()
    attempt = 0
    for _ in range(number):
        kind, fault = draw(rng, size, attempt)
        faults.append(fault)
        kinds[kind] += 1
        attempt += kind != "slow"
    return faults, kinds


def long_run(data: Data, folder: Path, size: int, faults: list[Fault]) -> Outcome:
    epochs = EPOCHS_PER_FAULT * len(faults)
    return check_restarts(
        data,
        folder,
        folder / f"disturbed-{size}" / "run",
        *faults,
        size=size,
        settings=(f"max_epochs={epochs}", f"patience={epochs}"),
        max_restarts=len(faults) + ROOM,
        timeout=300 + epochs,
        limit=LIMIT,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.workers.faults", description=__doc__)
    parser.add_argument(
        "--faults",
        type=int,
        default=100,
        help="number of faults, of which a few come after their attempt (default: 100)",
    )
    parser.add_argument("--seed", type=int, help="seed for choosing them (default: random)")
    parser.add_argument("--report", type=Path, help="file for a report as JSON")
    chosen = parser.parse_args()
    seed = random.randrange(10**9) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    began = time.monotonic()
    broken, runs = [], []
    with tempfile.TemporaryDirectory() as base:
        # One part has no training nodes: an uneven split.
        data = parts_of(small_graph(), Path(base) / "data", without=3)
        for i, size in enumerate(SIZES):
            number = chosen.faults // len(SIZES) + (i < chosen.faults % len(SIZES))
            faults, kinds = plan(rng, size, number)
            entry: dict[str, Any] = {"workers": size, "faults": dict(kinds)}
            try:
                outcome = long_run(data, Path(base), size, faults)
            except (Broken, AssertionError) as error:
                broken.append(f"{size} workers: {error}")
                print(f"BROKEN {broken[-1]}", flush=True)
                continue
            finally:
                runs.append(entry)
            seconds = [max(one.seconds for one in ended) for ended in outcome.attempts[:-1]]
            entry |= {
                "happened": len(outcome.met()),
                "restarts": len(outcome.attempts) - 1,
                "epochs": len(outcome.history),
                "longest attempt": round(max(seconds, default=0.0), 1),
                "weights and history": "equal, to the last bit",
            }
            print(json.dumps(entry), flush=True)
    report = {
        "command": " ".join(["python", "-m", "tests.workers.faults", *sys.argv[1:]]),
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "limit of a wait": LIMIT,
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version(), "linux": platform.release()},
        "cores": os.cpu_count(),
        "faults": chosen.faults,
        "broken": broken,
        "runs": runs,
    }
    if chosen.report:
        chosen.report.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{chosen.faults} faults in {report['seconds']} s, {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
