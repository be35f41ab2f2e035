"""Portfolios: what is tried, kept, averaged, and resumed."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn.errors import CheckpointError, TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.inference import embed, load_run, predict
from lgcn.training import Run, Settings, train
from lgcn.training.calibration import probabilities
from lgcn.training.portfolio import Entry, PortfolioResult, train_as_asked, train_portfolio, trainer
from lgcn.training.portfolio.members import DISAGREEING, WITH_FEW, WITH_MANY, Member, members
from lgcn.training.state import State
from tests.training.graphs import lasting, several_graphs, small_graph

# Small networks, so that a member takes a tenth of a second.
QUICK: dict[str, Any] = {"dataset": "tables", "max_epochs": 4, "baselines": False, "trees": 5}


def quick(**given: Any) -> Settings:
    settings = {**QUICK, **given}
    settings.pop("trees")
    return Settings.create(**settings)


def regression() -> Graph:
    graph = small_graph()
    assert graph.x is not None
    return replace(graph, y=100 + 5 * graph.x[:, 0])


def portfolio(graph: Graph, settings: Settings, **options: Any) -> PortfolioResult:
    result = train_portfolio(graph, settings, **options)
    assert isinstance(result, PortfolioResult)
    return result


@pytest.mark.parametrize("make", [small_graph, several_graphs, regression])
def test_the_folder_predicts_what_the_result_does(make: Any, tmp_path: Path) -> None:
    graph = make()
    result = portfolio(graph, quick(), max_trials=3, out=tmp_path / "run")
    assert [entry.error for entry in result.leaderboard] == [None] * 3
    assert sum(entry.weight for entry in result.leaderboard) == pytest.approx(1)
    run = load_run(tmp_path / "run")
    assert torch.equal(predict(run.model(), graph), result.predict(graph))
    assert run.result()["leaderboard"] == result.record["leaderboard"]
    # The scores of the record are those of the ensemble on the whole graph.
    found = run.evaluate(graph=graph)
    assert found.splits["val"]["score"] == pytest.approx(result.record["val_score"])
    assert found.splits["test"]["score"] == pytest.approx(result.record["test_score"])
    assert run.predictions(graph=graph).num_rows == graph.num_nodes
    with_memory = run.predict(graph=graph, memory="10MB")
    torch.testing.assert_close(with_memory, run.predict(graph=graph), rtol=1e-4, atol=1e-4)


def test_the_ensemble_averages_calibrated_probabilities() -> None:
    graph = small_graph()
    result = portfolio(graph, quick(), max_trials=4)
    expected = torch.zeros(graph.num_nodes, 3)
    for part in result.ensemble.parts:
        scores = predict(part.model, part.spec.prepare(graph))
        expected += part.weight * probabilities(scores, False, part.temperature)
    torch.testing.assert_close(result.predict(graph).softmax(1), expected)


def test_members_with_features_from_the_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph()
    some = (
        Member("with", "a", "few", {"structural_features": "yes"}),
        Member("without", "b", "few"),
    )
    monkeypatch.setattr("lgcn.training.portfolio.members.WITH_FEW", some)
    result = portfolio(graph, quick(max_epochs=8), max_trials=2)
    widths = {part.name: part.spec.num_features for part in result.ensemble.parts}
    assert widths.get("without", 8) == 8
    assert widths.get("with", 20) > 8
    assert result.predict(graph).shape == (graph.num_nodes, 3)
    assert embed(result.model, graph).shape[0] == graph.num_nodes


def test_without_a_clock_it_is_repeatable() -> None:
    graph = small_graph()
    first, second = (portfolio(graph, quick(), max_trials=3) for _ in range(2))
    assert torch.equal(first.predict(graph), second.predict(graph))
    rows = [[replace(e, seconds=0) for e in one.leaderboard] for one in (first, second)]
    assert rows[0] == rows[1]
    other = portfolio(graph, quick(seed=1), max_trials=3)
    assert not torch.equal(first.predict(graph), other.predict(graph))


def test_labels_of_test_nodes_change_nothing() -> None:
    """Neither what is tried, nor the weights of the ensemble, nor a prediction."""
    graph = small_graph()
    assert graph.y is not None
    y = graph.y.clone()
    y[graph.test_mask] = (y[graph.test_mask] + 1) % graph.num_classes
    first, second = (portfolio(replace(graph, y=of), quick(), max_trials=4) for of in (graph.y, y))
    rows = [[replace(e, seconds=0) for e in one.leaderboard] for one in (first, second)]
    assert rows[0] == rows[1]
    assert first.record["temperature"] == second.record["temperature"]
    assert torch.equal(first.predict(graph), second.predict(graph))
    assert first.record["test_score"] != second.record["test_score"]


def test_a_failing_member_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def sometimes(graph: Graph, settings: Settings, **options: Any) -> Any:
        if settings.model.num_layers == 0:
            raise RuntimeError("out of memory\nand more")
        return train(graph, settings, **options)

    monkeypatch.setattr(trainer, "train", sometimes)
    seen: list[Entry] = []
    result = portfolio(small_graph(), quick(), max_trials=3, on_member=seen.append)
    assert [entry.error for entry in seen][1] == "out of memory and more"
    assert seen[1].val_score is None
    assert [row["name"] for row in result.record["leaderboard"]][-1] == seen[1].name
    assert len(seen) == 3


def test_all_members_failing_is_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def never(*args: Any, **options: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(trainer, "train", never)
    with pytest.raises(UsageError, match=r"all 2 members .* failed: out of memory"):
        train_portfolio(small_graph(), quick(), max_trials=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_limit_below_one_epoch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"time_limit=0.001s is shorter than one epoch on"):
        train_portfolio(small_graph(), quick(), time_limit="0.001s", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_clock_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member takes ten seconds by a clock that tests can move."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limits = []

    def slow(graph: Graph, settings: Settings, **options: Any) -> Any:
        limits.append(options["deadline"] - now[0])
        now[0] += 10
        return train(graph, settings)

    monkeypatch.setattr(trainer, "train", slow)
    result = portfolio(small_graph(), quick(), time_limit="35s")
    assert len(result.leaderboard) == 4
    assert limits == sorted(limits, reverse=True)
    assert limits[0] < 35 / 2  # several are tried


def test_a_deadline_stops_a_training() -> None:
    settings = quick(max_epochs=10, hidden_channels=8)
    seen: list[int] = []

    def on_epoch(state: State) -> None:
        seen.append(state.epoch)

    found = train(small_graph(), settings, deadline=time.monotonic() - 1, on_epoch=on_epoch)
    assert seen == [1]
    assert found.record["epochs"] == 1
    plain = train(small_graph(), settings)
    never = train(small_graph(), settings, deadline=math.inf)
    assert lasting(never.record) == lasting(plain.record)


def test_an_interrupted_portfolio_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph, folder = small_graph(), tmp_path / "run"
    whole = portfolio(graph, quick(max_trials=3))
    trained: list[str] = []

    def interrupted(graph: Graph, settings: Settings, **options: Any) -> Any:
        trained.append(Path(options["out"]).name)
        if len(trained) == 3:
            raise KeyboardInterrupt
        return train(graph, settings, **options)

    monkeypatch.setattr(trainer, "train", interrupted)
    with pytest.raises(TrainingInterrupted, match=r"2 finished members kept. Resume with: .*run"):
        train_portfolio(graph, quick(max_trials=3), out=folder)
    assert not Run(folder).finished
    stored, _ = Run(folder).read()
    result = train_as_asked(graph, stored, out=folder, resume=True)
    assert trained[3:] == trained[2:3]  # the others were read
    assert torch.equal(predict(result.model, graph), whole.predict(graph))
    again = load_run(folder)
    assert torch.equal(predict(again.model(), graph), whole.predict(graph))


def test_overwriting_removes_all_members(tmp_path: Path) -> None:
    graph, folder = small_graph(), tmp_path / "run"
    train_portfolio(graph, quick(), max_trials=2, out=folder)
    with pytest.raises(UsageError, match="already holds a run"):
        train_portfolio(graph, quick(), max_trials=2, out=folder, overwrite=False)
    train(graph, quick(labels="few"), out=folder)
    assert not (folder / "members").exists()
    assert not (folder / "ensemble.json").exists()
    train_portfolio(graph, quick(), max_trials=1, out=folder)
    assert [path.name for path in (folder / "members").iterdir()] == ["few"]


def test_the_user_s_settings_hold_for_all_members() -> None:
    graph = small_graph()
    for _, own in members(quick(lr=0.5, metric="macro_f1", device="cpu"), graph):
        assert own.optimisation.lr == 0.5
        assert own.evaluation.metric == "macro_f1"
    only = [own.model.name for _, own in members(quick(model="residual"), graph)]
    assert set(only) == {"residual"}


@pytest.mark.parametrize("order", [WITH_FEW, WITH_MANY, DISAGREEING])
def test_every_portfolio_has_every_kind(order: tuple[Member, ...]) -> None:
    names = {member.name for member in order}
    assert {"few", "many", "no-lgcl", "gcn", "residual-gcn", "residual-mean", "mlp"} <= names
    assert {"residual-attention", "boosting", "boosting-structural", "deep-gcn"} <= names
    assert len(names) == len(order)


def test_search_follows_once_all_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lgcn.training.portfolio.members.WITH_FEW", WITH_FEW[:1])
    result = portfolio(small_graph(), quick(), max_trials=4)
    names = [entry.name for entry in result.leaderboard]
    assert names == ["few", "search-1", "search-2", "search-3"]
    assert all(entry.changes["of"] for entry in result.leaderboard[1:])


@pytest.mark.parametrize(
    "change",
    [
        {"entries": [{"name": "../../x"}]},
        {"entries": "none"},
        {"format": 2},
        {"weight": -1.0},
        {"weight": 0.0},
        {"name": "../evil"},
        {"name": "missing"},
    ],
)
def test_a_damaged_ensemble_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = tmp_path / "run"
    train_portfolio(small_graph(), quick(), max_trials=1, out=folder)
    path = folder / "ensemble.json"
    stored = json.loads(path.read_text())
    for key, value in change.items():
        if key in stored:
            stored[key] = value
        else:
            stored["entries"][0][key] = value
    path.write_text(json.dumps(stored))
    with pytest.raises(CheckpointError):
        load_run(folder).model()


def test_members_of_other_classes_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train_portfolio(small_graph(), quick(), max_trials=1, out=folder)
    (name,) = [path.name for path in (folder / "members").iterdir()]
    other = replace(small_graph(), label_names=("a", "b", "c"))
    train(other, quick(labels="few"), out=folder / "members" / name)
    with pytest.raises(CheckpointError, match="predicts other classes"):
        load_run(folder).model()
