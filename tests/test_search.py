"""The search by validation scores: what it writes, and that it can be ended at any time."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lgcn import load_dataset
from lgcn.experiments.jobs import GRAPHS
from lgcn.experiments.plans import BEST_SEEDS
from lgcn.training import Config

search = pytest.importorskip("benchmarks.search", reason="optuna is not installed")


def run(out: Path, monkeypatch: pytest.MonkeyPatch, trials: int, model: str = "lgcn") -> Any:
    arguments = ["digits", "--model", model, "--trials", str(trials), "--out", str(out)]
    arguments += ["--seeds", "1", "--max-epochs", "2"]
    monkeypatch.setattr(sys, "argv", ["benchmarks.search", *arguments])
    search.main()
    return json.loads(out.read_text())


def test_a_study_that_was_ended_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path / "a.json", monkeypatch, 2)
    assert [trial["value"] > 0.05 for trial in first["trials"]] == [True, True]
    assert "test" not in json.dumps(first["trials"])
    more = run(tmp_path / "a.json", monkeypatch, 3)
    assert more["trials"][:2] == first["trials"]
    assert len(more["trials"]) == 3
    again = run(tmp_path / "a.json", monkeypatch, 3)
    assert again["trials"] == more["trials"]


def test_the_same_command_makes_the_same_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = [run(tmp_path / f"{i}.json", monkeypatch, 2, "gcn") for i in range(2)]
    for trial in (t for study in studies for t in study["trials"]):
        del trial["seconds"]
    assert studies[0]["trials"] == studies[1]["trials"]
    assert studies[0]["trials"][0]["params"] != studies[0]["trials"][1]["params"]


def test_seeds_draw_the_splits_of_graphs_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(name: str, **options: Any) -> Any:
        asked.append((name, options))
        return load_dataset("digits")

    monkeypatch.setattr(search, "load_dataset", load)
    arguments = ["wordnet31-half", "--trials", "1", "--max-epochs", "2"]
    monkeypatch.setattr(
        sys, "argv", ["benchmarks.search", *arguments, "--out", str(tmp_path / "a.json")]
    )
    search.main()
    assert asked == [("wordnet31-half", {"split_seed": seed}) for seed in (1000, 1001)]
    [trial] = json.loads((tmp_path / "a.json").read_text())["trials"]
    assert {"rank", "mean", "num_layers"} <= trial["params"].keys()


STUDIES = sorted((Path(__file__).parents[1] / search.OUT).glob("*.json"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_recipe_has_what_the_committed_study_found(path: Path) -> None:
    study = json.loads(path.read_text())
    best = max(study["trials"], key=lambda trial: trial["value"])
    given = {key: study["given"][key] for key in ("dataset", "recipe")}
    recipe = Config.create(**given).to_dict()
    assert {name: recipe[name] for name in best["params"]} == pytest.approx(best["params"])


def test_there_is_a_study_for_each_graph_and_both_models() -> None:
    names = {path.stem for path in STUDIES}
    graphs = ("cora", "citeseer", "pubmed")
    assert names >= {f"{graph}-{model}" for graph in graphs for model in ("lgcn", "without")}


@pytest.mark.parametrize("graph", GRAPHS)
def test_systems_that_are_compared_had_the_same_budget(graph: str) -> None:
    models = ("lgcn", "gcn", "gat", "sage", "mlp")
    paths = {path.stem: path for path in STUDIES}
    studies = [json.loads(paths[f"{graph}-{model}"].read_text()) for model in models]
    budgets = [(len(s["trials"]), s["seeds"], s["given"]["max_epochs"]) for s in studies]
    assert set(budgets) == {(12, 1 if graph.endswith("-half") else 2, 200)}


def test_no_seed_of_the_tables_is_used() -> None:
    assert search.FIRST_SEED > BEST_SEEDS
