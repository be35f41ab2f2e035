"""Times: what is measured, kept, and no longer taken. No time is compared with anything."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from lgcn.paper.jobs import make_job
from lgcn.paper.plans import make_plans
from lgcn.paper.tables import timings
from lgcn.paper.timing import Timing, measure, read_times, times_key, times_path, write_times

from .fakes import fake_times


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
    write_times(tmp_path, record)
    assert [path.name for path in tmp_path.iterdir()] == ["times.jsonl"]
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


WHAT = {"dataset": "digits", "device": "cpu", "epochs": 2}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", *(json.dumps(part) for part in ({"format": 1}, {**WHAT, "format": 1}))],
)
def test_a_damaged_record_is_none(content: str, timing: Timing, tmp_path: Path) -> None:
    times_path(tmp_path).write_text(content)
    assert read_times(tmp_path, timing) is None


def test_times_of_several_data_sets_and_devices_are_in_one_file(
    timing: Timing, tmp_path: Path
) -> None:
    others = [replace(timing, device="cuda"), replace(timing, dataset="cora"), timing]
    for seconds, one in enumerate(others, 1):
        write_times(tmp_path, fake_times(one, seconds))
    write_times(tmp_path, fake_times(timing, 9.0))  # which replaces one of them
    assert len(times_path(tmp_path).read_text().splitlines()) == len(others)
    firsts = [found.seconds["GCN"] for one in others if (found := read_times(tmp_path, one))]
    assert firsts == [1.0, 2.0, 9.0]


def test_quick_times_are_kept_apart() -> None:
    [full], [quick] = make_plans("table5"), make_plans("table5", quick=True)
    long, short = timings(full, "cora", "cpu"), timings(quick, "cora", "cpu")
    assert long.epochs == 100
    assert long.repeats >= 3
    assert (short.epochs, short.repeats) == (3, 1)
    assert long.name != short.name
    assert times_key(fake_times(long)) != times_key(fake_times(short))
    assert long.variants == short.variants  # what is timed is not cut short by --quick
    assert timings(full, "cora", "cuda").name == "cora-cuda"
