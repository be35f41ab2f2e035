"""The long run: kills commands at random moments while they write.

``python -m tests.crash --kills 200`` in the root of the repository, or ``make crash``.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from .checks import Broken, Laboratory
from .scenarios import SCENARIOS, Scenario
from .trials import KILLS, Disturbance, Machine

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
NEW_PROCESS_EVERY = 10  # one kill in so many hits a new process, started as a user starts it
PACKAGES = ("lgcn", "numpy", "numba", "pyarrow", "safetensors", "torch", "torch_geometric")


class Trial(NamedTuple):
    """A command, and what happens to it."""

    scenario: Scenario
    disturbance: Disturbance
    new_process: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="number of kills (default: 200)")
    parser.add_argument("--seed", type=int, help="seed for choosing the moments (default: random)")
    parser.add_argument("--only", action="append", help="only this command, as reports name it")
    parser.add_argument(
        "--errors",
        action="store_true",
        help="make every write fail instead: each call of each command, in five ways",
    )
    parser.add_argument("--report", type=Path, help="file for a report as JSON")
    chosen = parser.parse_args()
    if unknown := set(chosen.only or ()) - set(SCENARIOS):
        parser.error(f"no such command: {min(unknown)!r}; choose from {', '.join(SCENARIOS)}")
    scenarios = [s for s in SCENARIOS.values() if not chosen.only or s.name in chosen.only]
    seed = random.randrange(10**9) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    started = time.monotonic()
    found: dict[str, dict[str, Any]] = {}
    broken: list[str] = []
    with Machine() as machine, tempfile.TemporaryDirectory() as base:
        laboratory = Laboratory(machine, Path(base))
        if chosen.errors:
            plan = errors(laboratory, scenarios)
        else:
            plan = kills(laboratory, scenarios, chosen.kills, random.Random(seed))
        for number, trial in enumerate(plan, start=1):
            _run(laboratory, trial, found, broken)
            if number % 20 == 0:
                print(f"{number} trials, {len(broken)} broken", flush=True)
    report = {
        "command": " ".join(["python", "-m", "tests.crash", *sys.argv[1:]]),
        "seed": seed,
        "seconds": round(time.monotonic() - started),
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version(), "linux": platform.release()},
        "cores": os.cpu_count(),
        "trials": sum(entry["trials"] for entry in found.values()),
        "broken": broken,
        "commands": found,
    }
    if chosen.report:
        chosen.report.write_text(json.dumps(report, indent=1) + "\n")
    _show(report)
    return 1 if broken else 0


def kills(
    laboratory: Laboratory, scenarios: list[Scenario], number: int, rng: random.Random
) -> Iterator[Trial]:
    """Kills of each command in turn, at a call drawn uniformly from those of the command."""
    for i in range(number):
        scenario = scenarios[i % len(scenarios)]
        calls = len(laboratory.undisturbed(scenario).ended.calls)
        disturbance = Disturbance(rng.randint(1, calls), rng.choice(KILLS))
        # A new process has nothing that stands for the runs of `reproduce`.
        plain = scenario.command.function is None and scenario.name != "reproduce"
        yield Trial(scenario, disturbance, plain and rng.randrange(NEW_PROCESS_EVERY) == 0)


def errors(laboratory: Laboratory, scenarios: list[Scenario]) -> Iterator[Trial]:
    """For each call of each command: three errors, a full disk, and a write of half the bytes."""
    for scenario in scenarios:
        for call in laboratory.undisturbed(scenario).ended.calls:
            yield from (Trial(scenario, Disturbance(call.n, "fail", error)) for error in ERRORS)
            yield Trial(scenario, Disturbance(call.n, "full"))
            if call.size > 1:
                yield Trial(scenario, Disturbance(call.n, "short"))


def _run(
    laboratory: Laboratory, trial: Trial, found: dict[str, dict[str, Any]], broken: list[str]
) -> None:
    scenario, disturbance, new_process = trial
    entry = found.setdefault(
        scenario.name,
        {
            "command": str(scenario.command),
            "calls": len(laboratory.undisturbed(scenario).ended.calls),
            "trials": 0,
            "in a new process": 0,
            "modes": Counter(),
            "hit": Counter(),
            "left": Counter(),
            "next command equal": 0,
        },
    )
    entry["trials"] += 1
    entry["in a new process"] += new_process
    entry["modes"][disturbance.mode] += 1
    try:
        outcome = laboratory.trial(scenario, disturbance, new_process=new_process)
    except Broken as error:
        broken.append(str(error))
        print(f"BROKEN {error}", flush=True)
        return
    entry["hit"][outcome.call] += 1
    entry["left"][outcome.state] += 1
    entry["next command equal"] += 1


def _show(report: dict[str, Any]) -> None:
    print(f"{'command':24}{'calls':>7}{'trials':>8}{'old':>6}{'new':>6}{'absent':>8}{'equal':>7}")
    for name, entry in report["commands"].items():
        left = entry["left"]
        print(
            f"{name:24}{entry['calls']:7}{entry['trials']:8}{left['old']:6}{left['new']:6}"
            f"{left['absent']:8}{entry['next command equal']:7}"
        )
    total, seconds = report["trials"], report["seconds"]
    print(f"{total} trials in {seconds} s, {len(report['broken'])} broken")


if __name__ == "__main__":
    sys.exit(main())
