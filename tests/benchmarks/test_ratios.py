"""Which ratios of a record got worse since another one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.ratios import Ratio, ratios, worse
from benchmarks.speed_table import Row

from benchmarks import __main__ as program
from benchmarks import _common

MACHINE = {"cpu": "one", "cores": 2}


def selection(speedup: float, times_floor: float, nodes: int = 100) -> dict[str, Any]:
    return {
        "degrees": "poisson",
        "nodes": nodes,
        "speedup": speedup,
        "times_floor": times_floor,
        "ratio_forward": {"padded": speedup / 2},
        "seconds": {"ours": 1.0},
    }


def record(*results: dict[str, Any], cpu: str = "one") -> dict[str, Any]:
    return {"results": list(results), "machine": {**MACHINE, "cpu": cpu}}


def test_ratios_are_found_by_their_names_and_know_what_is_better() -> None:
    assert ratios("k_largest", record(selection(10.0, 3.0))) == {
        "degrees poisson, nodes 100: speedup": Ratio(10.0, True),
        "degrees poisson, nodes 100: times_floor": Ratio(3.0, False),
        "degrees poisson, nodes 100: ratio_forward padded": Ratio(5.0, True),
    }


def test_seconds_are_set_in_relation_to_the_baseline() -> None:
    layers = {
        "LGConv": {"seconds_forward": 3.0, "megabytes_forward": 7.0},
        "SAGEConv, CSR": {"seconds_forward": 2.0, "megabytes_forward": 1.0},
    }
    found = ratios("layer", record({"graph": "a", "layers": layers}))
    assert found == {"graph a: LGConv / SAGEConv, CSR, seconds_forward": Ratio(1.5, False)}
    step = {"dataset": "b", "seconds": {"LGCN_sub": 1.0, "GCN": 4.0, "GCN, dense features": 2.0}}
    assert ratios("training_step", record(step)) == {
        "dataset b: LGCN_sub / GCN, seconds": Ratio(0.25, False)
    }


def test_rows_of_the_table_of_speed_are_ratios_unless_they_are_times() -> None:
    rows = [
        Row("selection", "small", 9.0, "times as fast as topk (1 ms against 9)", 8, at_least=True),
        Row("layer", "forward", 20.0, "ms (peak 2 GB)", 25),
    ]
    found = ratios("speed", record(*(row.record() for row in rows)))
    assert found == {
        "about selection, what small: times as fast as topk": Ratio(9.0, True),
    }


def test_a_record_without_ratios_has_none() -> None:
    assert ratios("scaling", {"results": {"nodes": {"fits": {}}}}) == {}
    assert ratios("partition", {"real": []}) == {}


def test_the_worst_comes_first_and_gains_do_not_count() -> None:
    before = ratios("k_largest", record(selection(10.0, 2.0), selection(10.0, 2.0, nodes=7)))
    now = ratios("k_largest", record(selection(4.0, 8.0), selection(99.0, 0.1, nodes=7)))
    found = worse(before, now, 2.0)
    assert [name.rpartition(": ")[2] for name, _, _ in found] == [
        "times_floor",
        "ratio_forward padded",
        "speedup",
    ]
    assert [new.loss(old) for _, old, new in found] == [4.0, 2.5, 2.5]
    assert len(worse(before, now, 2.5)) == 1
    assert worse(before, before, 1.0) == []


def test_other_sizes_are_not_compared() -> None:
    before = ratios("k_largest", record(selection(10.0, 2.0)))
    assert worse(before, ratios("k_largest", record(selection(1.0, 9.0, nodes=7))), 1.5) == []


@pytest.mark.parametrize(
    ("speedup", "arguments", "fails"),
    [
        (4.0, [], True),
        (4.0, ["--worse", "3"], False),
        (9.0, [], False),
        (4.0, ["--quick"], False),
    ],
)
def test_the_program_fails_if_a_ratio_got_worse(
    speedup: float,
    arguments: list[str],
    fails: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(command: list[str], **_: Any) -> Any:
        out = Path(command[command.index("--out") + 1])
        _common.write(out, "cpu", record(selection(speedup, 2.0), cpu="another"))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.chdir(tmp_path)
    _common.write(_common.results_file("k_largest"), "cpu", record(selection(10.0, 2.0)))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "k_largest", "--out", "new", *arguments])
    if fails:
        with pytest.raises(SystemExit, match=r"2 ratios .* 1\.5 times worse"):
            program.main()
    else:
        program.main()
    printed = capsys.readouterr().out
    assert ("speedup: 10.0 before, 4.00 now (2.50 times worse)" in printed) == fails
    assert ("another machine: one" in printed) == fails
