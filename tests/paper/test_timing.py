"""Times: what is measured, kept, and no longer taken. No time is compared with anything."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from lgcn.paper.jobs import make_job
from lgcn.paper.plans import make_plans
from lgcn.paper.tables import timings
from lgcn.paper.timing import Timing, measure, read_times, times_path, write_times


@pytest.fixture
def timing() -> Timing:
    variants = {
        "GCN": make_job("gcn", "digits", 0, {}),
        "LGCN_sub": make_job("lgcn", "digits", 0, {"max_hops": 1}),
    }
    return Timing("digits", "cpu", variants, epochs=2, repeats=3)


def test_measured_and_read_again(timing: Timing, tmp_path: Path) -> None:
    record = measure(timing)
    for variant in record["variants"].values():
        assert len(variant["seconds"]) == 3
        assert variant["median_seconds"] == statistics.median(variant["seconds"]) > 0
    assert record["epochs"] == 2
    assert record["variants"]["LGCN_sub"]["settings"]["max_hops"] == 1
    write_times(tmp_path, timing, record)
    assert times_path(tmp_path, timing) == tmp_path / "times" / "digits-cpu.json"
    found = read_times(tmp_path, timing)
    assert found is not None
    assert found.seconds == {n: v["median_seconds"] for n, v in record["variants"].items()}
    assert found.machine.startswith("CPU ")
    assert found.machine.endswith(" threads")

    fewer = replace(timing, variants={"GCN": timing.variants["GCN"]})
    assert read_times(tmp_path, fewer) == ({"GCN": found.seconds["GCN"]}, found.machine)
    more = {**timing.variants, "LGCN_whole": make_job("lgcn-whole", "digits", 0, {})}
    other = {**timing.variants, "GCN": make_job("gcn", "digits", 0, {"lr": 0.5})}
    for changed in (
        replace(timing, variants=more),
        replace(timing, variants=other),
        replace(timing, epochs=100),
    ):
        assert read_times(tmp_path, changed) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "null", json.dumps({"format": 1})])
def test_a_damaged_record_is_none(content: str, timing: Timing, tmp_path: Path) -> None:
    path = times_path(tmp_path, timing)
    path.parent.mkdir()
    path.write_text(content)
    assert read_times(tmp_path, timing) is None


def test_quick_times_are_kept_apart() -> None:
    [full], [quick] = make_plans("table5"), make_plans("table5", quick=True)
    long, short = timings(full, "cora", "cpu"), timings(quick, "cora", "cpu")
    assert long.epochs == 100
    assert long.repeats >= 3
    assert (short.epochs, short.repeats) == (3, 1)
    assert long.name != short.name
    assert long.variants == short.variants  # what is timed is not cut short by --quick
    assert timings(full, "cora", "cuda").name == "cora-cuda"
