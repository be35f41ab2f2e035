"""The study of what a layer makes of the neighbours."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.aggregators_plan import (
    MAX_EPOCHS,
    PATIENCE,
    SEARCH_SEEDS,
    SETTINGS,
    SYSTEMS,
    TASKS,
    TOLERANCE,
    Run,
    count_parameters,
    data_options,
    key,
    model_settings,
    plan,
    width,
)

from benchmarks import aggregators, aggregators_table, validation
from lgcn import Graph
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.pool import Failure
from lgcn.training import Settings

# Features and classes: few and many of each.
SIZES = [(7, 2), (50, 121), (500, 3), (1433, 7), (2000, 58), (6805, 15)]


def test_all_systems_of_a_graph_and_a_seed_come_together_and_after_their_search() -> None:
    systems = list(SYSTEMS)
    runs = list(plan(["a", "b", "c"], systems, 3))
    assert len(runs) == len(set(runs))
    tests = [run for run in runs if run.part == "test"]
    assert [run.task for run in tests[:: len(systems)]] == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    for start in range(0, len(tests), len(systems)):
        together = tests[start : start + len(systems)]
        assert [run.system for run in together] == systems
        assert len({(run.task, run.seed) for run in together}) == 1
    for task in ("a", "b", "c"):
        parts = [run.part for run in runs if run.task == task]
        searches = len(systems) * len(SETTINGS) * len(SEARCH_SEEDS)
        assert parts == ["graph"] + ["search"] * searches + ["test"] * 3 * len(systems)
    # The next graph's search is started before the runs that wait for this one's.
    assert runs.index(Run("b", "graph")) < runs.index(tests[0]) < runs.index(Run("c", "graph"))


def test_every_system_is_searched_with_the_same_settings_and_seeds_that_are_not_reported() -> None:
    runs = [run for run in plan(["a"], list(SYSTEMS), 10)]
    for system in SYSTEMS:
        searched = {(r.setting, r.seed) for r in runs if (r.part, r.system) == ("search", system)}
        assert searched == {(i, seed) for i in range(len(SETTINGS)) for seed in SEARCH_SEEDS}
        reported = {run.seed for run in runs if (run.part, run.system) == ("test", system)}
        assert reported == set(range(10))
        assert not reported & set(SEARCH_SEEDS)
        assert not SYSTEMS[system].keys() & {name for one in SETTINGS for name in one}


def test_splits_follow_the_seed_where_there_are_several() -> None:
    assert data_options("cora", 3) == {}
    assert data_options("wordnet31-half", 2001) == {"split_seed": 2001}
    assert [data_options("tolokers", seed)["split"] for seed in (0, 9, 2000, 2001)] == [0, 9, 0, 1]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_is_as_large_as_the_mean(system: str, size: tuple[int, int]) -> None:
    for setting, given in enumerate(SETTINGS):
        wanted = count_parameters("mean", setting, given["hidden_channels"], *size)
        hidden = width(system, setting, *size)
        found = count_parameters(system, setting, hidden, *size)
        # A layer that mixes features has so many weights per unit that the width is coarse.
        limit = 0.04 if system == "lgcl+mean-mixing" else TOLERANCE
        assert abs(found / wanted - 1) <= limit, (setting, hidden)


def test_the_parameters_that_are_counted_are_those_of_the_training() -> None:
    for system in SYSTEMS:
        given = model_settings(system, 2, 9, 4)
        settings = Settings.create(
            dataset="tables", model="residual", input_scale=1.0, labels="few", **given
        )
        model = settings.build_model(9, 4)
        found = sum(parameter.numel() for parameter in model.parameters())
        assert found == count_parameters(system, 2, given["hidden_channels"], 9, 4)


def small_search(path: Path, scores: list[list[float | None]], system: str = "mean") -> None:
    put_lines(
        path,
        [
            {**Run("digits", "search", system, setting, seed)._asdict(), "val_score": score}
            for setting, both in enumerate(scores)
            for seed, score in zip(SEARCH_SEEDS, both, strict=True)
        ],
        key,
    )


def test_settings_are_chosen_by_the_mean_of_both_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.jsonl"
    run = Run("digits", "test", "mean", -1, 0)
    monkeypatch.setattr(aggregators, "WAIT", 0.0)
    with pytest.raises(RuntimeError, match="search of mean on digits is not complete"):
        aggregators.best_setting(run, out)
    small_search(out, [[0.5, 0.5], [0.9, 0.3], [0.1, 0.2], [0.1, 0.1]])
    assert aggregators.best_setting(run, out) == 1
    small_search(out, [[0.5, 0.5], [0.9, None], [0.1, 0.2], [0.6, 0.4]])  # one run failed
    assert aggregators.best_setting(run, out) == 0


def test_the_search_never_sees_test_nodes_and_a_test_run_has_the_chosen_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def train(graph: Any, settings: Settings) -> Any:
        from lgcn.training.loop import train as real

        seen.append((graph, settings))
        return real(graph, settings)

    monkeypatch.setattr(aggregators, "train", train)
    out = tmp_path / "a.jsonl"
    limits = {"max_epochs": 2, "patience": 2}
    system = "lgcl+mean"
    small_search(out, [[0.5, 0.5], [0.9, 0.8], [0.1, 0.2], [0.1, 0.1]], system)
    searched = aggregators.do(Run("digits", "search", system, 2, 2000), "cpu", limits, out)
    tested = aggregators.do(Run("digits", "test", system, -1, 3), "cpu", limits, out)
    (graph, settings), (other, chosen) = seen
    assert graph.test_mask is None
    assert other.test_mask is not None
    assert "test_score" not in searched
    assert 0 < tested["test_score"] <= 1
    assert tested["chosen"] == 1
    assert (settings.model.num_layers, chosen.model.num_layers) == (5, 2)
    assert (settings.seed, chosen.seed) == (2000, 3)
    for found, one in ((searched, settings), (tested, chosen)):
        assert found["width"] == one.model.hidden_channels
        assert (found["max_epochs"], found["patience"], found["epochs"]) == (2, 2, 2)
        assert one.model.cnn == "depthwise"
    assert tested["parameters"] == count_parameters(
        system, 1, tested["width"], other.num_features, other.num_classes
    )


def test_numbers_of_a_graph_by_hand() -> None:
    edges = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]])
    graph = Graph.from_edge_index(
        edges,
        5,
        x=torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0], [0.0, 4.0], [0.0, 0.0]]),
        y=torch.tensor([0, 0, 1, 1, 0]),
        train_mask=torch.tensor([True, False, True, False, False]),
    )
    found = aggregators.facts(graph)
    assert (found["nodes"], found["features"], found["classes"]) == (5, 2, 2)
    assert (found["training_nodes"], found["labels_per_class"]) == (2, 1)
    assert (found["mean_degree"], found["more_than_k"]) == (1.6, 0)
    assert found["non_zeros"] == 0.4
    assert found["homophily"] == 0.5  # edges 0-1 and 2-3 of four
    assert found["adjusted_homophily"] == 0  # each class has four of the eight ends


def call(monkeypatch: pytest.MonkeyPatch, out: Path, *arguments: str) -> list[Run]:
    """Runs the command; returns what it asked the pool for."""
    asked: list[Run] = []

    def run_tasks(tasks: Any, function: Any, done: Any, *, processes: int) -> None:
        assert processes == 3
        for run in tasks:
            asked.append(run)
            if run == Run("cora", "search", "mean", 1, 2000) and len(tasks) > 20:
                done(run, Failure("no memory"))
            elif run.part != "test" or run.seed == 0:  # the others are interrupted
                limits = {"max_epochs": MAX_EPOCHS, "patience": PATIENCE}
                done(run, {"val_score": 0.5, "test_score": 0.4, "seconds": 1.0, **limits})

    monkeypatch.setattr(aggregators, "run_tasks", run_tasks)
    monkeypatch.setattr(validation, "check", lambda *_: None)  # Cora may not be here
    wanted = ["--datasets", "cora", "--aggregates", "mean", "lgcl", "--processes", "3"]
    monkeypatch.setattr(sys, "argv", ["aggregators", "--out", str(out), *wanted, *arguments])
    aggregators.main()
    return asked


def test_a_stopped_study_goes_on_where_it_was_and_tries_failed_searches_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.jsonl"
    first = call(monkeypatch, out, "--seeds", "3")
    assert len(first) == 1 + 2 * len(SETTINGS) * len(SEARCH_SEEDS) + 2 * 3
    assert "failed: no memory" in capsys.readouterr().out
    record = read_lines(out, key).records["cora", "search", "mean", 1, 2000]
    assert (record["val_score"], record["error"]) == (None, "no memory")
    again = call(monkeypatch, out, "--seeds", "3")
    assert again == [
        Run("cora", "search", "mean", 1, 2000),
        *(Run("cora", "test", system, -1, seed) for seed in (1, 2) for system in ("mean", "lgcl")),
    ]
    assert "error" not in read_lines(out, key).records["cora", "search", "mean", 1, 2000]
    before = out.read_text()
    with pytest.raises(SystemExit):  # runs of another length are another study
        call(monkeypatch, out, "--max-epochs", "5")
    assert "runs with other limits" in capsys.readouterr().err
    assert out.read_text() == before


def records_of(scores: dict[str, list[float]], task: str = "cora", **more: Any) -> list[Any]:
    return [
        {**Run(task, "test", system, -1, seed)._asdict(), "test_score": score, **more}
        for system, values in scores.items()
        for seed, score in enumerate(values)
    ]


GRAPH = {
    **{"nodes": 2000, "mean_degree": 3.94, "degree_90": 7.0, "more_than_k": 0.054},
    **{"features": 1433, "non_zeros": 0.0127, "classes": 7, "training_nodes": 140},
    **{"labels_per_class": 20.0, "homophily": 0.81, "adjusted_homophily": None},
}


def cells(text: str) -> list[list[str]]:
    lines = text.split("\n\n")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in (lines[0], *lines[2:])]


def test_scores_count_the_seeds_that_all_systems_have() -> None:
    records = records_of({"mean": [0.5, 0.6, 0.9], "max": [0.7, 0.8]})
    text = aggregators_table.scores_table(records)
    header, row = cells(text)
    found = dict(zip(header, row, strict=True))
    assert found["graph"] == "cora (2)"
    assert found["mean"] == "55.0 ± 7.1"
    assert found["max"] == "**75.0 ± 7.1**"
    assert "attention" not in found  # a system without any run
    more = records + records_of({"attention": [0.5, 0.6]}, "pubmed")
    header, row, _ = cells(aggregators_table.scores_table(more))
    assert dict(zip(header, row, strict=True))["attention"] == "-"
    assert "Reduced" not in text
    short = records_of({"mean": [0.5]}, max_epochs=5, patience=5)
    assert "**Reduced runs**: 5 epochs" in aggregators_table.scores_table(short)
    assert aggregators_table.scores_table([]) == ""


def test_differences_are_paired_and_stand_beside_the_graph() -> None:
    records = []
    for task, gain in (("cora", 0.01), ("pubmed", 0.03)):
        ours = [0.5 + gain, 0.7 + gain, 0.6 + gain + 0.03]
        scores = {"mean": [0.5, 0.7, 0.6], "max": ours, "lgcl+mean": ours}
        records += records_of(scores, task)
        records.append({**Run(task, "graph")._asdict(), **GRAPH})
    header, *rows = cells(aggregators_table.differences_table(records))
    assert [row[0] for row in rows] == ["pubmed (3)", "cora (3)"]  # the largest gain first
    found = dict(zip(header, rows[1], strict=True))
    assert found["lgcl+mean minus mean"] == "+2.0 ± 1.0"
    assert found["lgcl+mean minus max"] == "+0.0 ± 0.0"
    assert (found["more than k"], found["non-zeros"], found["adjusted"]) == ("5 %", "1.3 %", "-")
    without = [record for record in records if record["system"] != "max"]
    assert aggregators_table.differences_table(without) == ""


def test_the_tables_show_the_settings_and_are_empty_without_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing.jsonl"
    monkeypatch.setattr(aggregators_table, "results_file", lambda name: missing)
    assert aggregators_table.aggregators("scores") == ""
    assert aggregators_table.aggregators("differences") == ""
    assert len(cells(aggregators_table.aggregators("settings"))) == 1 + len(SETTINGS)


def test_the_page_explains_every_system_and_every_column() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs" / "evidence" / "where-lgcls-pay.md").read_text()
    first = [line.strip("| ").split(" | ")[0] for line in text.splitlines() if line[:1] == "|"]
    named = {name for cell in first for name in cell.split(", ")}
    assert SYSTEMS.keys() <= named
    records = records_of({name: [0.5, 0.6] for name in ("mean", "max", "lgcl+mean")})
    records.append({**Run("cora", "graph")._asdict(), **GRAPH})
    header, _ = cells(aggregators_table.differences_table(records))
    for column in header[1:]:
        assert column.removeprefix("lgcl+mean ") in text, column


def test_records_are_of_runs_that_are_planned() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "results" / "aggregators.jsonl"
    known = set(plan([*TASKS, "ppi-rederived"], list(SYSTEMS), 10))
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        assert record["part"] == "machine" or Run(*key(record)) in known
