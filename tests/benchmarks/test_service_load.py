"""The load test of the service, in two seconds."""

import sys
from pathlib import Path

import pytest
from benchmarks.http_load import percentiles, run_load

from benchmarks import _common, report, service_load


@pytest.mark.slow
def test_it_measures_every_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    out = tmp_path / "load.jsonl"
    arguments = ["benchmarks.service_load", "--quick", "--out", str(out), "--clients", "3"]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", *arguments])
    service_load.main()
    record = _common.read(out)["cpu"]
    for phase in ("echo", "known", "mixed", "recovery"):
        found = record[phase]
        assert set(found["statuses"]) == {"200"}, phase
        assert 0 < found["p50_ms"] <= found["p99_ms"]
        assert found["per_second"] > 0
    assert set(record["mixed"]["by_kind"]) == {"known", "new"}
    overload = record["overload"]
    assert set(overload["statuses"]) <= {"200", "429", "503"}
    assert overload["statuses"]["429"] > 0
    refused = sum(n for status, n in overload["statuses"].items() if status != "200")
    assert overload["retry_after"] == refused
    assert record["memory"]["start_megabytes"] > 50
    assert record["machine"]["command"].startswith("python -m benchmarks.service_load --quick")
    assert report.TABLES["service_load"](record).count("\n") >= 8


def test_percentiles_are_those_of_the_times() -> None:
    times = [i / 1000 for i in range(1, 101)]
    assert percentiles(times) == {"p50_ms": 51.0, "p99_ms": 100.0}
    assert percentiles([]) == {"p50_ms": None, "p99_ms": None}


def test_other_machines_are_never_loaded() -> None:
    with pytest.raises(ValueError, match="loopback"):
        run_load("192.0.2.1", 80, 1, 1.0, lambda: ("known", "/", {}))
