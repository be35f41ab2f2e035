"""Runs all targets for some time in several processes, keeps failing cases, and reports."""

import json
import mmap
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .cases import Outcome, quiet, reduced, run_case, versions
from .found import Failure, keep, kept
from .processes import CASES, FAILED, REFUSED, SECONDS, Limits, Process, Slot, killed, run_isolated
from .scratch import VARIABLE, make_scratch
from .source import mutated, random_buffer

TURN = 2.0  # seconds that a process spends on a target before the next one
POOL = 256  # passing cases, from which others are mutated
REDUCE = 10.0  # seconds for shortening a failing case
MOST_KILLED = 10  # killed processes after which a target is left out
FIRST_CASES = 25  # of every target, in one process, so that kernels are compiled once
FIRST_SECONDS = 900.0  # for a case that compiles kernels
# Imported once, before processes are forked: imports are most of the start of a process.
IMPORTS = (
    *("torch", "torch_geometric.data", "torch_geometric.utils", "numba", "scipy.sparse"),
    *("scipy.sparse.csgraph", "sklearn.base", "sklearn.utils.multiclass", "pyarrow.parquet"),
    *("pyarrow.csv", "pyarrow.compute", "safetensors.torch"),
)


class Options(NamedTuple):
    """See ``python -m fuzz --help``."""

    targets: tuple[str, ...]
    minutes: float
    cases: int | None
    jobs: int
    seed: int
    limits: Limits
    found: Path
    warm_up: bool


class Shared:
    """Shared by all processes: the targets to leave out from now on."""

    def __init__(self, num_targets: int) -> None:
        self.left_out = np.ndarray(num_targets, np.bool_, mmap.mmap(-1, num_targets))


@dataclass
class Fuzzing:
    """One run of the fuzzer."""

    options: Options
    scratch: Path
    shared: Shared = field(init=False)
    counts: Any = field(init=False)
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    warm: bool = False  # kernels are compiled

    def __post_init__(self) -> None:
        self.shared = Shared(len(self.options.targets))
        self.counts = np.zeros((len(self.options.targets), 4))

    def run(self) -> None:
        began = time.monotonic()
        print("first cases of every target, which compile kernels", flush=True)
        self._run_processes(1, first=True, end=None)
        end = time.monotonic() + 60 * self.options.minutes
        print(f"{self.options.jobs} processes, seed {self.options.seed}", flush=True)
        self._run_processes(self.options.jobs, first=False, end=end)
        self.seconds = time.monotonic() - began
        for number, failure in enumerate(self.failures.values()):
            if failure.kind == "crash" and number < 20:
                failure.buffer = self._reduced_crash(failure)
            failure.versions = versions()
            keep(failure, self.options.found)
            print(f"kept {failure.name} in {self.options.found}", flush=True)

    def _run_processes(self, jobs: int, *, first: bool, end: float | None) -> None:
        limits = self.options.limits
        if first and self.options.warm_up:
            limits = limits._replace(seconds=FIRST_SECONDS)
        started = 0
        running: list[Process] = []
        try:
            while True:
                while len(running) < jobs and not self._over(end):
                    running.append(self._start(started, limits, end))
                    started += 1
                for process in list(running):
                    ended = process.poll()
                    if ended is None:
                        continue
                    running.remove(process)
                    self.counts += process.slot.counts
                    if ended[0] != "done":
                        self._killed(process, *ended)
                    elif first:
                        self.warm = True
                if not running and self._over(end):
                    return
                if end is not None and time.monotonic() > end + limits.seconds + REDUCE:
                    return
                self._collect()
                self._leave_out_finished(running)
                time.sleep(0.1)
        finally:
            for process in running:
                process.stop()
                self.counts += process.slot.counts
            self._collect()

    def _over(self, end: float | None) -> bool:
        over = self.warm if end is None else time.monotonic() > end
        return over or bool(self.shared.left_out.all())

    def _start(self, number: int, limits: Limits, end: float | None) -> Process:
        slot = Slot(len(self.options.targets))
        shift = number if self.kills else number * len(self.options.targets) // self.options.jobs

        def work() -> None:
            worker(self.options, slot, self.shared, number, shift, end)

        return Process(work, slot, limits, self.scratch / f"trace-{number}")

    def _killed(self, process: Process, kind: str, details: str) -> None:
        number, buffer = process.slot.case
        if number < 0:
            raise SystemExit(f"a process ended before its first case: {kind}: {details}")
        name = self.options.targets[number]
        self.counts[number, FAILED] += 1
        self.kills[name] = self.kills.get(name, 0) + 1
        self._add(killed(name, buffer, kind, details))
        if self.kills[name] >= MOST_KILLED:
            self.shared.left_out[number] = True
            print(f"{name} is left out: it ended {MOST_KILLED} processes", flush=True)

    def _collect(self) -> None:
        for path in (self.scratch / "failures").glob("*.jsonl"):
            for failure in kept(path):
                self._add(failure)
            path.unlink()

    def _add(self, failure: Failure) -> None:
        key = (failure.target, failure.where)
        if key not in self.failures:
            print(f"FAILED {failure.target}: {failure.where}: {failure.error[:300]}", flush=True)
        known = self.failures.setdefault(key, failure)
        if len(failure.buffer) < len(known.buffer):
            self.failures[key] = failure

    def _leave_out_finished(self, running: list[Process]) -> None:
        if self.options.cases is None:
            return
        total = self.counts + sum(process.slot.counts for process in running)
        self.shared.left_out |= total[:, CASES] >= self.options.cases

    def _reduced_crash(self, failure: Failure) -> bytes:
        trace = self.scratch / "trace-again"

        def fails(candidate: bytes) -> bool:
            ended, details = run_isolated(
                lambda: run_case(failure.target, candidate), self.options.limits, trace
            )
            return ended == "crash" and details.startswith(failure.where)

        return reduced(failure.buffer, fails, 3 * REDUCE, tries=100)


def worker(
    options: Options, slot: Slot, shared: Shared, number: int, shift: int, end: float | None
) -> None:
    """Runs the targets in turn until a time, or a few cases of each if it is None."""
    first = end is None
    quiet()
    if first and options.warm_up:
        from lgcn.training.warmup import warmup

        warmup()
    names = options.targets
    pools: list[list[bytes]] = [[] for _ in names]
    seen: set[tuple[str, str]] = set()
    turn = 0
    while not shared.left_out.all():
        at = (turn + shift) % len(names)
        rng = np.random.default_rng([options.seed, number, turn, first])
        turn += 1
        if not shared.left_out[at]:
            began = time.monotonic()
            done = 0
            while not shared.left_out[at]:
                _one_case(options, slot, names[at], at, pools[at], seen, rng)
                done += 1
                if time.monotonic() - began > TURN or (first and done >= FIRST_CASES):
                    break
            slot.counts[at, SECONDS] += time.monotonic() - began
        if turn == len(names) if end is None else time.monotonic() > end:
            return


def _one_case(
    options: Options,
    slot: Slot,
    name: str,
    at: int,
    pool: list[bytes],
    seen: set[tuple[str, str]],
    rng: Any,
) -> None:
    if len(pool) > 10 and rng.random() < 0.5:
        one, other = rng.integers(0, len(pool), 2)
        buffer = mutated(pool[one], pool[other], rng)
    else:
        buffer = random_buffer(rng)

    def run(case: bytes) -> Outcome:
        slot.begin(at, case)
        outcome = run_case(name, case)
        slot.end()
        return outcome

    outcome = run(buffer)
    counts = slot.counts[at]
    counts[CASES] += 1
    counts[REFUSED] += outcome.refused
    if outcome.where:
        counts[FAILED] += 1
        if (name, outcome.where) not in seen:
            seen.add((name, outcome.where))
            _hand_over(Failure(name, buffer, "error", outcome.where, outcome.error))
            small = reduced(buffer, lambda case: run(case).where == outcome.where, REDUCE)
            _hand_over(Failure(name, small, "error", outcome.where, run(small).error))
    elif not outcome.refused and len(buffer) <= 2048:
        if len(pool) < POOL:
            pool.append(buffer)
        else:
            pool[int(rng.integers(0, POOL))] = buffer


def _hand_over(failure: Failure) -> None:
    """Writes a failure to its own file, for the first process."""
    keep(failure, Path(os.environ[VARIABLE]) / "failures" / f"{failure.name}.jsonl")


def run(options: Options, report: Path | None = None) -> int:
    """Runs the fuzzer, prints a table and writes a report. Returns the number of failures."""
    for name in IMPORTS if options.warm_up else ():
        import_module(name)
    folder = make_scratch()
    os.environ[VARIABLE] = str(folder)
    fuzzing = Fuzzing(options, folder)
    try:
        fuzzing.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        del os.environ[VARIABLE]
    record = record_of(fuzzing)
    print(table(record), flush=True)
    if report is not None:
        report.write_text(json.dumps(record, indent=1) + "\n")
    return len(fuzzing.failures)


def record_of(fuzzing: Fuzzing) -> dict[str, Any]:
    options = fuzzing.options
    targets = {}
    for name, (cases, refused, failed, seconds) in zip(
        options.targets, fuzzing.counts.tolist(), strict=True
    ):
        targets[name] = {
            "cases": int(cases),
            "refused": int(refused),
            "failed": int(failed),
            "seconds": round(seconds, 1),
        }
    return {
        "command": " ".join(["python -m tests.fuzz", *sys.argv[1:]]),
        "seed": options.seed,
        "jobs": options.jobs,
        "seconds": round(fuzzing.seconds, 1),
        "limits": {"memory_bytes": options.limits.memory, "case_seconds": options.limits.seconds},
        "machine": {
            "system": platform.platform(),
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)),
        },
        "versions": versions(),
        "cases": sum(target["cases"] for target in targets.values()),
        "targets": targets,
        "failures": [
            {
                "target": failure.target,
                "kind": failure.kind,
                "where": failure.where,
                "error": failure.error,
                "name": failure.name,
            }
            for failure in fuzzing.failures.values()
        ],
    }


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def table(record: dict[str, Any]) -> str:
    lines = [f"{'target':<20}{'cases':>10}{'refused':>9}{'failed':>8}{'seconds':>9}{'per s':>8}"]
    for name, target in record["targets"].items():
        share = f"{100 * target['refused'] / max(1, target['cases']):.0f} %"
        speed = target["cases"] / max(target["seconds"], 0.1)
        lines.append(
            f"{name:<20}{target['cases']:>10}{share:>9}{target['failed']:>8}"
            f"{target['seconds']:>9.0f}{speed:>8.0f}"
        )
    lines.append(
        f"{record['cases']} cases in {record['seconds']:.0f} s, "
        f"{len(record['failures'])} different failures"
    )
    return "\n".join(lines)


def replay(failures: list[Failure], limits: Limits) -> int:
    """Runs kept examples, each in its own process. Returns how many fail."""
    failing = 0
    folder = make_scratch()
    os.environ[VARIABLE] = str(folder)
    try:
        for failure in failures:
            marker = folder / "outcome"

            def work(failure: Failure = failure, marker: Path = marker) -> None:
                quiet()
                marker.write_text(run_case(failure.target, failure.buffer).error)

            marker.unlink(missing_ok=True)
            ended, details = run_isolated(work, limits, folder / "trace", failure.buffer)
            error = details if ended != "done" else marker.read_text()
            failing += bool(error)
            print(f"{failure.name}: {'FAILED ' + error if error else 'passed'}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        del os.environ[VARIABLE]
    return failing
