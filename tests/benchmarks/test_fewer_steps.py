"""Candidates for fewer steps, beside the defaults."""

import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks._common import read
from benchmarks.training_cost_tables import fewer_steps as table

from benchmarks import fewer_steps
from lgcn.training import Settings


def run(candidate: str, seed: int, scores: list[float], test: float = 0.5) -> dict[str, Any]:
    """A run on one graph, whose epochs take a second each."""
    curve = {
        "val_score": scores,
        "val_loss": [1.0] * len(scores),
        "seconds": [float(epoch) for epoch in range(1, len(scores) + 1)],
    }
    best = max(scores)
    place = {"dataset": "cora", "split": "20 per class", "labels": "few", "candidate": candidate}
    numbers = {"val_score": best, "best_epoch": scores.index(best) + 1, "epochs": len(scores)}
    return {**place, "seed": seed, **numbers, "test_score": test, "seconds": 10.0, "curve": curve}


def test_every_candidate_has_settings_that_there_are() -> None:
    for changes in fewer_steps.CANDIDATES.values():
        for labels, given in changes.items():
            chosen = Settings.create(dataset="tables", labels=labels, **given)
            default = Settings.create(dataset="tables", labels=labels)
            assert (chosen != default) == bool(given)


def test_candidates_are_set_beside_the_defaults_on_the_same_seeds() -> None:
    runs = [
        run("defaults", 1, [0.2, 0.8, 0.5, 0.5]),
        run("defaults", 2, [0.6, 0.6, 0.6, 0.5]),
        run("other", 1, [0.7, 0.9], test=0.6),
        run("other", 2, [0.6, 0.7]),
        run("other", 3, [1.0]),  # the defaults have no such seed
    ]
    results = {row["candidate"]: row for row in fewer_steps.summary(runs)}
    other = results["other"]
    assert (other["seeds"], other["val_score"], other["gain"]) == (2, 80.0, 10.0)
    assert (other["test_gain"], other["error"], other["gain_error"]) == (5.0, 10.0, 0.0)
    assert other["epochs_ratio"] == 0.5
    # The target is 0.7 - 0.1: the defaults reach it after 2 and 1 seconds, the other after 1 and 1.
    assert other["time_to_score"] == pytest.approx(2 / 3, abs=0.001)
    assert results["defaults"]["gain"] == 0.0
    assert "| other | few | 1 | 0.50 | +10.00 | +10.00 | -1.0 | +5.00 |" in table(
        {"results": [other]}
    )


def test_early_stopping_is_read_off_the_curve_of_a_longer_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = {"early": {"early_stop": "patience", "patience": 2}}
    monkeypatch.setattr(fewer_steps, "REPLAYED", rules)
    whole = run("defaults", 1, [0.5, 0.4, 0.3, 0.9, 0.2])
    cut = fewer_steps.replay(whole, "early")
    assert (cut["candidate"], cut["epochs"], cut["seconds"]) == ("early", 3, 3.0)
    assert (cut["val_score"], cut["best_epoch"]) == (0.5, 1)
    assert cut["test_score"] is None  # known at the best epoch of the whole run alone
    same = fewer_steps.replay(run("defaults", 1, [0.5, 0.9, 0.3, 0.2, 0.2]), "early")
    assert (same["epochs"], same["test_score"]) == (4, 0.5)


def test_the_command_resumes_from_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[Any] = []

    def run_tasks(tasks: Any, function: Any, on_result: Any, *, processes: int) -> None:
        done.extend(tasks)
        for task in tasks:
            on_result(task, function(task))

    monkeypatch.setattr(fewer_steps, "run_tasks", run_tasks)
    out = tmp_path / "a.jsonl"
    for candidates in (["defaults"], ["defaults", "trend, 30 epochs"]):
        given = ["--name", "a", "--quick", "--out", str(out), "--processes", "1"]
        monkeypatch.setattr(sys, "argv", ["fewer_steps", *given, "--candidates", *candidates])
        fewer_steps.main()
    assert [task[4] for task in done] == 2 * ["defaults"] + 2 * ["trend, 30 epochs"]
    record = read(out)["a-cpu"]
    assert {run["split"] for run in record["runs"]} == set(fewer_steps.SPLITS)
    assert all(len(run["curve"]["val_loss"]) == 3 for run in record["runs"])
    assert "trend, 30 epochs" in capsys.readouterr().out
