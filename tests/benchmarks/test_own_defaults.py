"""Candidates for the defaults of own data, by validation scores."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks._common import read, results_file
from benchmarks.report import TABLES

from benchmarks import own_defaults
from lgcn import load_dataset
from lgcn.paper.pool import Failure
from lgcn.training import Settings


def test_every_candidate_is_another_network_or_training() -> None:
    found = [
        Settings.create(dataset="tables", **settings)
        for settings in own_defaults.CANDIDATES.values()
    ]
    different = {json.dumps(config.to_dict(), sort_keys=True) for config in found}
    assert len(different) == len(found)


def test_the_defaults_are_candidates() -> None:
    graph = load_dataset("digits")
    for name, labels in (("few, LGCL in half of the views", "few"), ("many", "many")):
        default = Settings.create(dataset="tables", labels=labels).resolve(graph)
        candidate = Settings.create(dataset="tables", **own_defaults.CANDIDATES[name]).resolve(
            graph
        )
        assert candidate == default


def test_a_run_scores_validation_nodes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def train(graph: Any, config: Settings) -> Any:
        from lgcn.training.loop import train as real

        seen.append(graph)
        return real(graph, config)

    monkeypatch.setattr("benchmarks.validation.train", train)
    for split in own_defaults.SPLITS:
        run = own_defaults.train_once((2001, "digits", split, "few, 10 hops"), 2, "cpu")
        assert (run["split"], run["candidate"], run["seed"]) == (split, "few, 10 hops", 2001)
        assert (run["epochs"], run["k"]) == (2, 8)
        assert 0.0 < run["val_score"] <= 1.0
    few, many = seen
    assert few.test_mask is None
    assert many.test_mask is None
    assert int(few.train_mask.sum()) == 200  # of ten classes
    assert int(many.train_mask.sum()) == round(0.6 * many.num_nodes)


def test_masks_are_apart_and_leave_out_what_has_no_label() -> None:
    y = torch.tensor([0, 1] * 50 + [-1] * 10)
    train, val = own_defaults.most_for_training(y, seed=3)
    assert (int(train.sum()), int(val.sum())) == (60, 20)
    assert not bool((train & val).any())
    assert not bool((train | val)[100:].any())
    assert not torch.equal(train, own_defaults.most_for_training(y, seed=4)[0])


def test_candidates_are_compared_where_all_were_run() -> None:
    def result(dataset: str, candidate: str, score: float) -> dict[str, Any]:
        return {"dataset": dataset, "split": "a", "candidate": candidate, "val_score": score}

    rows = own_defaults.behind(
        [
            result("one", "x", 80.0),
            result("one", "y", 81.5),
            result("two", "x", 70.0),
            result("two", "y", 69.5),
            result("three", "x", 99.0),  # y was not run on it
        ]
    )
    assert rows == [
        {"candidate": "y", "mean": 0.25, "most": 0.5, "settings": 2},
        {"candidate": "x", "mean": 0.75, "most": 1.5, "settings": 2},
    ]


def test_the_command_writes_all_runs_and_names_those_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int) -> None:
        assert processes == 3
        for task in tasks:
            seed, dataset, split, candidate = task
            if (candidate, split) == ("many", own_defaults.SPLITS[0]):
                done(task, Failure("no memory"))
                continue
            run = {"dataset": dataset, "split": split, "candidate": candidate, "seed": seed}
            numbers = {"k": 8, "val_score": 0.5, "best_epoch": 1, "epochs": 2, "seconds": 1.5}
            done(task, run | numbers)

    monkeypatch.setattr(own_defaults, "run_tasks", run_tasks)
    out = tmp_path / "a.jsonl"
    wanted = ["--datasets", "digits", "--candidates", "few", "many", "--processes", "3"]
    monkeypatch.setattr(sys, "argv", ["own_defaults", "--name", "few", "--out", str(out), *wanted])
    with pytest.raises(SystemExit, match="1"):
        own_defaults.main()
    printed = capsys.readouterr()
    assert "(2000, 'digits', '20 per class', 'many'): no memory" in printed.err
    assert "few                              behind the best by  0.00" in printed.out
    [(name, record)] = read(out).items()
    assert name == "few-cpu"
    assert [run["seed"] for run in record["runs"]] == [2000] * 3 + [2001] * 3
    assert "| 6 runs, 1 graph |" in TABLES["own_defaults"](record)
    with pytest.raises(SystemExit):
        own_defaults.main()
    assert "has a run few-cpu already" in capsys.readouterr().err
    assert read(out) == {"few-cpu": record}


def test_the_records_are_of_candidates_that_there_are() -> None:
    records = read(Path(__file__).parents[2] / results_file("own_defaults"))
    assert len(records) == 7
    for record in records.values():
        assert {run["candidate"] for run in record["runs"]} <= own_defaults.CANDIDATES.keys()
        assert {run["split"] for run in record["runs"]} <= set(own_defaults.SPLITS)
