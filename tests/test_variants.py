"""Variants of the best trial of a search, by validation scores."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import variants
from benchmarks.report import TABLES

from lgcn.experiments.plans import BEST_SEEDS, CITATIONS
from lgcn.experiments.pool import Failure
from lgcn.training import Config

pytest.importorskip("benchmarks.search", reason="optuna is not installed")


@pytest.mark.parametrize("dataset", CITATIONS)
def test_every_variant_is_another_network_or_training(dataset: str) -> None:
    base = variants.best_settings(dataset)
    found = [Config.create(**{**base, **own}) for own in variants.variants(dataset).values()]
    unchanged, *others = found
    assert base["dataset"] == dataset
    assert sum(other == unchanged for other in others) <= 1  # one may be what was found
    assert len({json.dumps(config.to_dict()) for config in found}) >= len(found) - 1


def test_seeds_are_those_of_no_table_and_no_search() -> None:
    from benchmarks.search import FIRST_SEED

    assert variants.FIRST_SEED - FIRST_SEED > 50 > BEST_SEEDS


def test_a_run_changes_what_the_variant_says_and_scores_no_test_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Any, Any]] = []

    def train(graph: Any, config: Config) -> Any:
        seen.append((graph.test_mask, config))
        from lgcn.training.loop import train as real

        return real(graph, config)

    monkeypatch.setattr("lgcn.training.train", train)
    base = {"dataset": "digits", "recipe": "best", "max_epochs": 2, "k": 4}
    run = variants.train_once(("digits", "two LGCLs", 1103), base, "cpu")
    [(mask, config)] = seen
    assert mask is None
    assert (config.num_layers, config.k, config.seed, config.max_epochs) == (2, 4, 1103, 2)
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
    assert unchanged == {"variant": variants.UNCHANGED, "seeds": 2, "val_score": 60.0, "std": 14.14}
    assert (other["variant"], other["seeds"], other["val_score"]) == ("other", 3, 46.0)
    assert other["difference"] == pytest.approx(4.0)  # of 2 and 6 points
    assert other["error"] == pytest.approx(2.0)


def test_the_command_writes_all_runs_and_names_those_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int) -> None:
        asked.append(len(tasks))
        for dataset, name, seed in reversed(tasks):
            assert dataset == "cora"
            if name == "four views" and len(asked) == 1:
                done((dataset, name, seed), Failure("no memory"))
            else:
                run = {"variant": name, "seed": seed, "val_score": 0.5}
                done((dataset, name, seed), {**run, "best_epoch": 1, "epochs": 2})

    monkeypatch.setattr(variants, "run_tasks", run_tasks)
    out = tmp_path / "a.json"
    monkeypatch.setattr(sys, "argv", ["variants", "cora", "--seeds", "2", "--out", str(out)])
    with pytest.raises(SystemExit, match="1"):
        variants.main()
    assert "four views, seed 1101: no memory" in capsys.readouterr().err
    record = json.loads(out.read_text())
    assert record["base"] == variants.best_settings("cora")
    assert [run["seed"] for run in record["runs"]] == [1100] * 16 + [1101] * 16
    assert record["runs"][0]["variant"] == variants.UNCHANGED
    assert TABLES["variants_cora"](record).count("50.0") == 16
    variants.main()  # goes on with what failed
    assert asked == [34, 2]
    assert len(json.loads(out.read_text())["runs"]) == 34
    out.write_text(json.dumps(record | {"base": {}}))
    variants.main()
    assert asked == [34, 2, 34]
