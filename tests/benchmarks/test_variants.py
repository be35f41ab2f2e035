"""Variants of the best trial of a search, by validation scores."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks._common import read, write
from benchmarks.report import TABLES

from benchmarks import variants
from lgcn.errors import LGCNError
from lgcn.paper.plans import BEST_SEEDS, CITATIONS
from lgcn.paper.pool import Failure
from lgcn.training import Settings

pytest.importorskip("benchmarks.search", reason="optuna is not installed")


@pytest.mark.parametrize("dataset", CITATIONS)
def test_every_variant_is_another_network_or_training(dataset: str) -> None:
    base = variants.best_settings(dataset)
    found = [Settings.create(**{**base, **own}) for own in variants.variants(base).values()]
    assert base["dataset"] == dataset
    assert len(found) > 14
    assert len({json.dumps(config.to_dict()) for config in found}) == len(found)


def test_what_the_base_has_already_is_no_variant() -> None:
    names = variants.variants({"sharpen": 0.1 + 0.2, "hops": 10, "k": 8})
    assert "sharpened to 0.3" not in names
    assert "10 hops" not in names
    assert {"nothing changed", "k = 4", "two LGCLs"} <= names.keys()


def test_seeds_are_those_of_no_table_and_no_search() -> None:
    from benchmarks.search import FIRST_SEED

    assert variants.FIRST_SEED - FIRST_SEED > 50 > BEST_SEEDS


def test_a_run_changes_what_the_variant_says_and_scores_no_test_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Any, Any]] = []

    def train(graph: Any, config: Settings) -> Any:
        seen.append((graph.test_mask, config))
        from lgcn.training.loop import train as real

        return real(graph, config)

    monkeypatch.setattr("benchmarks.validation.train", train)
    base = {"dataset": "digits", "preset": "best", "max_epochs": 2, "k": 4}
    run = variants.train_once(("two LGCLs", 1103), base, "cpu")
    [(mask, config)] = seen
    assert mask is None
    assert (
        config.model.num_layers,
        config.model.k,
        config.seed,
        config.optimisation.max_epochs,
    ) == (2, 4, 1103, 2)
    assert (run["variant"], run["seed"], run["epochs"]) == ("two LGCLs", 1103, 2)
    assert 0.0 < run["val_score"] <= 1.0


def test_differences_are_those_of_runs_of_one_seed() -> None:
    def run(variant: str, seed: int, score: float) -> dict[str, Any]:
        return {"variant": variant, "seed": seed, "val_score": score}

    runs = [
        run(variants.UNCHANGED, 0, 0.5),
        run(variants.UNCHANGED, 1, 0.7),
        run("other", 0, 0.52),
        run("other", 1, 0.76),
        run("other", 2, 0.1),  # no partner
    ]
    unchanged, other = variants.summary(runs)
    assert unchanged == {
        "variant": variants.UNCHANGED,
        "seeds": 2,
        "val_score": 60.0,
        "std": pytest.approx(14.1421),
    }
    assert (other["variant"], other["seeds"], other["val_score"]) == ("other", 3, 46.0)
    assert other["difference"] == pytest.approx(4.0)  # of 2 and 6 points
    assert other["error"] == pytest.approx(2.0)


def test_the_command_writes_all_runs_and_names_those_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int) -> None:
        asked.append(len(tasks))
        for name, seed in reversed(tasks):
            if name == "four views" and len(asked) == 1:
                done((name, seed), Failure("no memory"))
            else:
                run = {"variant": name, "seed": seed, "val_score": 0.5}
                done((name, seed), {**run, "best_epoch": 1, "epochs": 2})

    monkeypatch.setattr(variants, "run_tasks", run_tasks)
    monkeypatch.setattr("benchmarks.validation.load_dataset", lambda name: None)
    out = tmp_path / "a.jsonl"
    monkeypatch.setattr(sys, "argv", ["variants", "cora", "--seeds", "2", "--out", str(out)])
    with pytest.raises(SystemExit, match="1"):
        variants.main()
    assert "four views, seed 1101: no memory" in capsys.readouterr().err
    [(name, record)] = read(out).items()
    assert name == "cora-cpu"
    base = variants.best_settings("cora")
    assert record["base"] == base
    count = len(variants.variants(base))
    assert [run["seed"] for run in record["runs"]] == [1100] * (count - 1) + [1101] * (count - 1)
    assert record["runs"][0]["variant"] == variants.UNCHANGED
    assert TABLES["variants"](record).count("50.0") == count - 1
    variants.main()  # goes on with what failed
    assert asked == [2 * count, 2]
    assert len(read(out)["cora-cpu"]["runs"]) == 2 * count


def test_runs_of_other_settings_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.validation.load_dataset", lambda name: None)
    out = tmp_path / "a.jsonl"
    write(out, "cora-cpu", {"base": {"k": 3}, "runs": []})
    before = read(out)
    monkeypatch.setattr(sys, "argv", ["variants", "cora", "--out", str(out)])
    with pytest.raises(SystemExit):
        variants.main()
    error = capsys.readouterr().err
    assert "has variants of another trial" in error
    assert "k, " in error
    assert read(out) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes", "0"], "--processes: must be a number from 1 on, got '0'"),
        (["--seeds=-1"], "--seeds: must be a number from 1 on, got '-1'"),
    ],
)
def test_counts_are_checked_before_any_run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["variants", "cora", *arguments])
    with pytest.raises(SystemExit):
        variants.main()
    assert message in capsys.readouterr().err


def test_what_is_missing_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise LGCNError(f"{name} is not there")

    monkeypatch.setattr("benchmarks.validation.load_dataset", missing)
    monkeypatch.setattr(sys, "argv", ["variants", "cora"])
    with pytest.raises(SystemExit):
        variants.main()
    assert capsys.readouterr().err.endswith("error: cora is not there\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        variants.main()
    assert "make it with python -m benchmarks.search cora" in capsys.readouterr().err
