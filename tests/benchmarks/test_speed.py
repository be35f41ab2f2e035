"""The table of speed against the alternatives."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.speed_table import Row, speed

ROOT = Path(__file__).parents[2]
# The rows for a GPU, tiny and on the CPU. In a process of its own: see test_benchmarks.py.
PROGRAM = """
import json
from benchmarks import speed_cuda
print(json.dumps([row.record() for row in speed_cuda.rows("cpu", quick=True)]))
"""


@pytest.mark.parametrize(
    ("value", "target", "at_least", "verdict"),
    [
        (1.5, 1.5, False, "reached"),
        (1.51, 1.5, False, "missed"),
        (12.0, 12.0, True, "reached"),
        (11.9, 12.0, True, "missed"),
        (1.0, None, False, "-"),
    ],
)
def test_a_verdict_follows_from_value_and_target(
    value: float, target: float | None, at_least: bool, verdict: str
) -> None:
    row = Row("selection", "one shape", value, "times", target, at_least)
    assert row.verdict == verdict
    text = speed({"results": [row.record()], "seconds": 60})
    assert text.splitlines()[3].endswith(f"| {verdict} |")


def test_a_heading_stands_above_its_rows_once() -> None:
    rows = [Row(about, what, 2.0, "times", 3.0) for about, what in ("ax", "ay", "bz")]
    lines = speed({"results": [row.record() for row in rows], "seconds": 90}).splitlines()
    firsts = [line.split(" | ")[0] for line in lines[2:7]]
    assert firsts == ["| **a**", "| x", "| y", "| **b**", "| z"]
    assert "at most 3" in lines[3]
    assert "1.5 minutes" in lines[-1]


@pytest.mark.slow
def test_the_rows_for_a_gpu_can_be_tried_on_a_cpu() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    rows = json.loads(done.stdout)
    # Four layers: with gradients, with recompute, without gradients, memory.
    assert sum(row["about"].startswith("`LGConv`") for row in rows) == 16
    assert {row["target"] for row in rows} == {1.5, 25.0, 4.0, 3.0, None}
    assert all(row["value"] > 0 for row in rows)
    assert "deterministic" in rows[-1]["about"]
