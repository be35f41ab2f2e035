"""The search by validation scores: what it writes, and that it can be ended at any time."""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks._common import read, results_file, write

from benchmarks import validation
from lgcn import load_dataset
from lgcn.paper.jobs import GRAPHS
from lgcn.paper.plans import BEST_SEEDS, CITATIONS
from lgcn.paper.pool import Failure
from lgcn.training import Settings

search = pytest.importorskip("benchmarks.search", reason="optuna is not installed")


def run(out: Path, monkeypatch: pytest.MonkeyPatch, trials: int, model: str = "lgcn") -> Any:
    return command(out, monkeypatch, "--model", model, "--trials", str(trials), "--seeds", "1")


def command(out: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    common = ["digits", "--max-epochs", "2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["benchmarks.search", *common, *arguments])
    search.main()
    return study_in(out)


def study_in(path: Path) -> Any:
    """The only study of a file."""
    [study] = read(path).values()
    return study


def write_study(path: Path, study: Any) -> None:
    write(path, "digits-lgcn", study)


def test_a_study_that_was_ended_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path / "a.json", monkeypatch, 2)
    assert [trial["value"] > 0.05 for trial in first["trials"]] == [True, True]
    assert "test" not in json.dumps(first["trials"])
    more = run(tmp_path / "a.json", monkeypatch, 3)
    assert more["trials"][:2] == first["trials"]
    assert len(more["trials"]) == 3
    assert more["trials"][2]["params"] not in [trial["params"] for trial in first["trials"]]
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


def test_studies_of_several_data_sets_are_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    write(path, "zoo-gcn", {"trials": []})
    write(path, "digits-gat", {"trials": [1]})
    arguments = ["digits", "--model", "gcn", "--trials", "1", "--max-epochs", "2"]
    monkeypatch.setattr(sys, "argv", ["benchmarks.search", *arguments, "--out", str(path)])
    search.main()
    studies = read(path)
    assert list(studies) == ["digits-gat", "digits-gcn", "zoo-gcn"]
    assert studies["digits-gat"]["trials"] == [1]


def score_is_the_rate(trials: Any, seeds: Any, on_score: Any) -> None:
    """In place of training."""
    for number, settings in enumerate(trials):
        on_score(number, settings["lr"], 1.0)


def test_no_two_trials_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def suggest(trial: Any) -> dict[str, Any]:
        return {"lr": trial.suggest_float("lr", 0.01, 0.05, step=0.01)}

    monkeypatch.setitem(search.SPACES, "gcn", ("gcn", suggest))
    monkeypatch.setattr(search, "_validate", score_is_the_rate)
    for trials in (2, 5):
        study = run(tmp_path / "a.json", monkeypatch, trials, "gcn")
    rates = sorted(round(trial["params"]["lr"], 9) for trial in study["trials"])
    assert rates == [0.01, 0.02, 0.03, 0.04, 0.05]


def two_good_trials(path: Path) -> list[dict[str, Any]]:
    trials = [
        {"params": {"lr": lr}, "value": value, "seconds": 1.0}
        for lr, value in ((0.01, 0.9), (0.05, 0.82), (0.02, 0.85))
    ]
    given = {"dataset": "digits", "preset": "gcn"}
    write_study(path, {"given": given, "seeds": 2, "trials": trials})
    return trials


def test_other_seeds_confirm_the_best_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[float, int]] = []

    def validate_on(settings: Any, seed: int) -> dict[str, float]:
        seen.append((settings["lr"], seed))
        return {"val_score": {0.01: 0.7, 0.02: 0.8}[settings["lr"]] + (seed - 1003) / 10}

    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int, address: Any) -> None:
        assert (processes, address) == (4, None)
        for task in reversed(tasks):  # runs end in any order
            done(task, function(task))

    path = tmp_path / "a.json"
    trials = two_good_trials(path)
    monkeypatch.setattr(validation, "validate_on", validate_on)
    monkeypatch.setattr(search, "run_tasks", run_tasks)
    confirm = ["--confirm", "2", "--seeds", "3", "--processes", "4"]
    study = command(path, monkeypatch, *confirm)
    assert sorted(seen) == [(lr, seed) for lr in (0.01, 0.02) for seed in (1002, 1003, 1004)]
    assert study["trials"][1] == trials[1]
    assert study["trials"][0]["confirmed"] == {"value": pytest.approx(0.7), "seeds": 3}
    assert search.best_trial(study["trials"])["params"] == {"lr": 0.02}
    assert "best of 3: 80.00 on validation, {'lr': 0.02}" in capsys.readouterr().out
    command(path, monkeypatch, *confirm)
    assert len(seen) == 6  # what was confirmed is not run again
    study = command(path, monkeypatch, "--confirm", "1", "--seeds", "4", "--processes", "4")
    assert seen[6:] == [(0.02, 1005)]  # the best of these, with the seed that it did not have
    assert study["trials"][2]["confirmed"] == {"value": pytest.approx(0.85), "seeds": 4}


def test_a_study_that_went_on_is_confirmed_in_the_same_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight seeds and then sixteen, for trials that came after others had sixteen."""
    seen: list[tuple[float, int]] = []

    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int, address: Any) -> None:
        for task in tasks:
            seen.append(task)
            done(task, {"val_score": 0.9})

    path = tmp_path / "a.json"
    two_good_trials(path)
    study = study_in(path)
    study["trials"][0]["confirmed"] = {"value": 0.8, "seeds": 16}
    study["trials"][1]["confirmed"] = {"value": 0.7, "seeds": 8}
    write_study(path, study)
    monkeypatch.setattr(search, "run_tasks", run_tasks)
    command(path, monkeypatch, "--confirm", "2", "--seeds", "8")
    assert seen == [(2, seed) for seed in range(1002, 1010)]  # the best two by the search's seeds
    study = command(path, monkeypatch, "--confirm", "1", "--seeds", "16")
    assert seen[8:] == [(2, seed) for seed in range(1010, 1018)]  # the best by eight
    assert search.best_trial(study["trials"]) == study["trials"][2]


def test_a_trial_with_a_run_that_fails_is_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int, address: Any) -> None:
        for task in tasks:
            done(task, Failure("no memory") if task == (0, 1003) else {"val_score": 0.5})

    path = tmp_path / "a.json"
    trials = two_good_trials(path)
    monkeypatch.setattr(search, "run_tasks", run_tasks)
    with pytest.raises(SystemExit):
        command(path, monkeypatch, "--confirm", "2")
    assert "{'lr': 0.01} with seed 1003: no memory" in capsys.readouterr().err
    found = study_in(path)["trials"]
    assert found[:2] == trials[:2]
    assert found[2]["confirmed"]["value"] == 0.5  # the other one is kept


def test_each_of_lgcn_and_without_starts_from_both_presets() -> None:
    for model in ("lgcn", "without"):
        own, other = search._starts(model, "pubmed")
        presets = [Settings.create(dataset="pubmed", preset=r) for r in ("best", "best-without")]
        if model == "without":
            presets.reverse()
        for start, preset in zip((own, other), presets, strict=True):
            assert start.items() <= preset.flat().items()
    # The preset without LGCLs has none to offer: their number and kind are the LGCN's own.
    own, other = search._starts("lgcn", "debian_bookworm-half")
    assert other["num_layers"] == own["num_layers"] > 0
    assert other["hidden_channels"] != own["hidden_channels"]
    assert len(search._starts("gcn", "pubmed")) == 1


def test_a_study_that_goes_on_keeps_what_was_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "a.json", monkeypatch, 1, "gcn")
    command(tmp_path / "a.json", monkeypatch, "--model", "gcn", "--confirm", "1", "--seeds", "1")
    study = run(tmp_path / "a.json", monkeypatch, 2, "gcn")
    first, second = study["trials"]
    assert first["confirmed"]["value"] > 0.05
    assert "confirmed" not in second
    assert study["confirmed_on"]["command"]


@pytest.mark.parametrize("changed", [["--seeds", "2"], ["--max-epochs", "3"]])
def test_a_study_goes_on_as_it_was_begun(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: list[str],
) -> None:
    first = run(tmp_path / "a.json", monkeypatch, 1, "gcn")
    other = ["--model", "gcn", "--trials", "2", "--seeds", "1", *changed]
    with pytest.raises(SystemExit):
        command(tmp_path / "a.json", monkeypatch, *other)
    assert "use the same values, or choose another --out" in capsys.readouterr().err
    assert study_in(tmp_path / "a.json") == first


def test_a_space_without_further_trials_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def suggest(trial: Any) -> dict[str, Any]:
        return {"lr": trial.suggest_categorical("lr", [0.01, 0.02])}

    monkeypatch.setitem(search.SPACES, "gcn", ("gcn", suggest))
    monkeypatch.setattr(search, "_validate", score_is_the_rate)
    monkeypatch.setattr(search, "MOST_IN_VAIN", 50)
    with pytest.raises(SystemExit):
        run(tmp_path / "a.json", monkeypatch, 3, "gcn")
    assert "after 2 trials, 50 more were all known ones" in capsys.readouterr().err
    assert len(study_in(tmp_path / "a.json")["trials"]) == 2


def test_what_is_to_be_confirmed_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command(tmp_path / "a.json", monkeypatch, "--confirm", "2")
    assert "--confirm needs a study digits-lgcn" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command(tmp_path / "a.json", monkeypatch, "--confirm", "0")
    assert "--confirm: must be a number from 1 on, got '0'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "processes", "address"),
    [(["--processes", "2"], 2, None), (["--ray", "head:6379"], 1, "head:6379")],
)
def test_the_runs_of_a_trial_can_be_tasks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    processes: int,
    address: str | None,
) -> None:
    asked = []

    def run_tasks(tasks: Any, function: Any, done: Any, **how: Any) -> None:
        asked.append((tasks, how))
        for task in reversed(tasks):  # runs end in any order
            done(task, function(task))

    search_for_two = ["--model", "gcn", "--trials", "2", "--seeds", "2"]
    alone = command(tmp_path / "a.json", monkeypatch, *search_for_two)
    monkeypatch.setattr(search, "run_tasks", run_tasks)
    study = command(tmp_path / "b.json", monkeypatch, *search_for_two, *flags)
    for trial in (*alone["trials"], *study["trials"]):
        del trial["seconds"]
    assert study["trials"] == alone["trials"]
    pairs = [(0, 1000), (0, 1001)]
    assert asked == [(pairs, {"processes": processes, "address": address})] * 2


def test_several_trials_are_drawn_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of five trials in pools of at most three trials; a trial with all runs is kept."""
    pools = []

    def run_tasks(tasks: Any, function: Any, done: Any, **how: Any) -> None:
        pools.append(tasks)
        for task in sorted(tasks, key=lambda task: task[1]):
            done(task, {"val_score": 0.5 + task[0] / 10, "seconds": 1.0})

    monkeypatch.setattr(search, "run_tasks", run_tasks)
    arguments = ["--model", "gcn", "--trials", "5", "--seeds", "2", "--processes", "4"]
    study = command(tmp_path / "a.json", monkeypatch, *arguments, "--at-once", "3")
    assert [len(pool) for pool in pools] == [6, 4]
    values = [trial["value"] for trial in study["trials"]]
    assert values == pytest.approx([0.5, 0.6, 0.7, 0.5, 0.6])
    drawn = [json.dumps(trial["params"]) for trial in study["trials"]]
    assert len(set(drawn)) == 5


def test_a_run_that_fails_ends_the_search_and_keeps_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path / "a.json", monkeypatch, 1, "gcn")

    def run_tasks(tasks: Any, function: Any, done: Any, **how: Any) -> None:
        done(tasks[0], Failure("no memory"))

    monkeypatch.setattr(search, "run_tasks", run_tasks)
    more = ["--model", "gcn", "--trials", "2", "--seeds", "1", "--processes", "2"]
    with pytest.raises(SystemExit):
        command(tmp_path / "a.json", monkeypatch, *more)
    assert "the run with seed 1000 failed: no memory" in capsys.readouterr().err
    assert study_in(tmp_path / "a.json") == first


def test_a_number_of_trials_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command(tmp_path / "a.json", monkeypatch, "--trials", "many")
    assert "--trials: must be a number from 1 on, got 'many'" in capsys.readouterr().err


def test_what_is_confirmed_by_most_seeds_counts() -> None:
    trials = [
        {"params": {}, "value": 0.9},
        {"params": {}, "value": 0.8, "confirmed": {"value": 0.85, "seeds": 2}},
        {"params": {}, "value": 0.7, "confirmed": {"value": 0.8, "seeds": 8}},
    ]
    assert search.best_trial(trials) == trials[2]
    assert search.best_trial(trials[:1]) == trials[0]


def test_an_unknown_data_set_is_an_error_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["nosuch", "--out", str(tmp_path / "a.json")]
    monkeypatch.setattr(sys, "argv", ["benchmarks.search", *arguments])
    with pytest.raises(SystemExit):
        search.main()
    message = capsys.readouterr().err
    assert "there is no data set 'nosuch'" in message
    assert "Traceback" not in message


def test_seeds_draw_the_splits_of_graphs_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(name: str, **options: Any) -> Any:
        asked.append((name, options))
        return load_dataset("digits")

    monkeypatch.setattr(validation, "load_dataset", load)
    arguments = ["wordnet31-half", "--trials", "1", "--max-epochs", "2"]
    monkeypatch.setattr(
        sys, "argv", ["benchmarks.search", *arguments, "--out", str(tmp_path / "a.json")]
    )
    search.main()
    seeds = [{"split_seed": seed} for seed in (1000, 1001)]
    assert asked == [("wordnet31-half", options) for options in ({}, *seeds)]  # {}: is it there?
    [trial] = study_in(tmp_path / "a.json")["trials"]
    assert {"rank", "mean", "num_layers"} <= trial["params"].keys()
    monkeypatch.setattr(sys, "argv", [*sys.argv[:-1], str(tmp_path / "b.json"), "--model=without"])
    search.main()
    [other] = study_in(tmp_path / "b.json")["trials"]
    lgcls = {"lgcl_channels", "num_layers", "k", "rank", "mean", "batch_norm"}
    assert other["params"].keys() == trial["params"].keys() - lgcls


ROOT = Path(__file__).parents[2]
# By data set and model.
STUDIES = {
    (study["given"]["dataset"], name.removeprefix(f"{study['given']['dataset']}-")): study
    for name, study in read(ROOT / results_file("search")).items()
}
# Searches of several networks, of which the preset takes the best by validation nodes.
LGCNS = ("lgcn", "lgcl-dropout", "propagated", "plain-propagated", "residual")
WITHOUT = ("without", "propagated-without", "plain-propagated-without", "residual-mean")
ROLES = {**dict.fromkeys(LGCNS, "best"), **dict.fromkeys(WITHOUT, "best-without")}
CHOSEN = sorted({(dataset, ROLES.get(model, model)) for dataset, model in STUDIES})


def best_of(dataset: str, preset: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The best trial of all studies of a preset, and what was given in its study."""
    found = [
        (study["given"], search.best_trial(study["trials"]))
        for (of, model), study in STUDIES.items()
        if of == dataset and ROLES.get(model, model) == preset
    ]
    return max(found, key=lambda pair: search.score_of(pair[1]))


@pytest.mark.parametrize(("dataset", "preset"), CHOSEN, ids="-".join)
def test_the_preset_has_what_the_committed_studies_found(dataset: str, preset: str) -> None:
    given, trial = best_of(dataset, preset)
    wanted = {**given, **trial["params"]}
    for limit in ("preset", "max_epochs"):  # those of the search
        wanted.pop(limit, None)
    flat = Settings.create(dataset=dataset, preset=preset).flat()
    assert {name: flat[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize("name", STUDIES, ids="-".join)
def test_a_study_is_of_its_data_set(name: tuple[str, str]) -> None:
    assert name[1] in search.SPACES


def test_there_is_a_study_for_each_graph_and_both_models() -> None:
    wanted = {(graph, model) for graph in CITATIONS for model in ("lgcn", "without")}
    assert STUDIES.keys() >= wanted


@pytest.mark.parametrize("graph", CITATIONS)
def test_both_searches_of_a_graph_had_the_same_budget(graph: str) -> None:
    for model in ("lgcn", "without"):
        study = STUDIES[graph, model]
        confirmed = [t["confirmed"]["seeds"] for t in study["trials"] if "confirmed" in t]
        assert (len(study["trials"]), study["seeds"]) == (96, 2)
        ranked = sorted(study["trials"], key=lambda trial: -trial["value"])
        assert all("confirmed" in trial for trial in ranked[:8])
        assert confirmed.count(16) >= 3
        assert set(confirmed) == {8, 16}


@pytest.mark.parametrize("graph", GRAPHS)
def test_systems_that_are_compared_had_the_same_budget(graph: str) -> None:
    models = ("lgcn", "without", "gcn", "gat", "sage", "mlp")
    studies = [STUDIES[graph, model] for model in models]
    budgets = [(len(s["trials"]), s["seeds"], s["given"]["max_epochs"]) for s in studies]
    assert set(budgets) == {(18, 1, 200) if graph.endswith("-half") else (12, 2, 200)}
    for study in studies:
        params = [trial["params"] for trial in study["trials"]]
        assert not any(validation.has(a, b) for a, b in itertools.combinations(params, 2))


def test_no_seed_of_the_tables_is_used() -> None:
    assert search.FIRST_SEED > BEST_SEEDS
