"""The fuzzer survives failing cases, counts them and keeps them."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from .cases import reduced
from .found import kept
from .source import MAX_LENGTH, Source, mutated, random_buffer

ROOT = Path(__file__).parents[2]


def fuzz(*arguments: object) -> subprocess.CompletedProcess[str]:
    sources = str(ROOT / "src")
    path = os.pathsep.join([sources, str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def test_failures_crashes_hangs_and_excess_memory_are_kept(tmp_path: Path) -> None:
    found, report = tmp_path / "found.jsonl", tmp_path / "report.json"
    limits = ("--case-seconds", 0.5, "--memory-mb", 512)
    done = fuzz(
        *("--targets", "faulty", "--no-warm-up", "--jobs", 1, "--seed", 6),
        *("--minutes", 1, "--found", found, "--report", report, *limits),
    )
    assert done.returncode == 1, done.stderr
    record = json.loads(report.read_text())
    counts = record["targets"]["faulty"]
    assert counts["cases"] >= 100
    assert counts["refused"] > 0
    assert counts["failed"] >= len(record["failures"])
    assert record["versions"]["numpy"]
    failures = {failure.kind: failure for failure in kept(found)}
    wheres = {failure["where"] for failure in record["failures"]}
    assert {failure["kind"] for failure in record["failures"]} == {"error", "crash", "time"}
    assert any(where.startswith("AssertionError faulty.py") for where in wheres)
    assert any("MemoryError" in where for where in wheres)
    assert "SIGSEGV" in wheres
    assert len(failures["crash"].buffer) == 1
    again = fuzz("--replay", "--found", found, *limits)
    assert again.returncode == 1
    assert again.stdout.count("FAILED") == len(record["failures"])
    assert "faulty" in done.stdout
    one = fuzz("--replay", failures["crash"].name, "--found", found, *limits)
    assert one.stdout.count("FAILED") == 1


def test_an_unknown_target_is_named() -> None:
    done = fuzz("--targets", "k_largset")
    assert done.returncode == 2
    assert "k_largset" in done.stderr
    assert "k_largest" in done.stderr


def test_a_case_is_the_same_each_time_and_ends_in_first_choices() -> None:
    choices = [Source(b"\x07\x01\xff\xff\x80"), Source(b"\x07\x01\xff\xff\x80")]
    drawn = [(s.below(5), s.flag(), s.integer(), s.text(), s.below(9)) for s in choices]
    assert drawn[0] == drawn[1]
    empty = Source(b"")
    assert (empty.below(7), empty.flag(), empty.choice("ab"), empty.take(3)) == (0, False, "a", b"")


def test_cases_are_reduced_to_the_bytes_that_matter() -> None:
    rng = np.random.default_rng(0)
    buffer = rng.bytes(500) + b"xy" + rng.bytes(300)
    small = reduced(buffer, lambda candidate: b"xy" in candidate, seconds=60)
    assert small == b"xy"
    assert reduced(buffer, lambda candidate: False, seconds=60) == buffer


def test_buffers_are_as_long_as_the_memory_for_them() -> None:
    rng = np.random.default_rng(0)
    buffers = [random_buffer(rng) for _ in range(300)]
    buffers += [mutated(a, b, rng) for a, b in pairwise(buffers)]
    assert max(map(len, buffers)) == MAX_LENGTH
    assert len(set(buffers)) > 550
