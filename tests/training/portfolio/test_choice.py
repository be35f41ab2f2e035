"""Few or many labels, by validation where it is cheap."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn.graph import Graph
from lgcn.inference import load_run, predict
from lgcn.nn.residual import ResidualLGCN
from lgcn.training import Settings, train
from lgcn.training.portfolio import choice, train_as_asked, trainer
from lgcn.training.portfolio.choice import settings_by_validation
from lgcn.training.presets import preset_values
from tests.training.graphs import lasting, small_graph


def asked(**given: Any) -> Settings:
    return Settings.create(dataset="tables", baselines=False, **given)


def test_when_both_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph()
    assert settings_by_validation(asked(), graph)
    assert settings_by_validation(asked(seed=3, device="cpu", metric="macro_f1"), graph)
    for given in (
        {"labels": "few"},
        {"labels": "many"},
        {"k": 4},
        {"lr": 0.1},
        {"preset": "quick"},
    ):
        assert not settings_by_validation(asked(**given), graph), given
    cora = Settings.create(dataset="cora")  # settings of its own
    assert not settings_by_validation(cora, graph)
    monkeypatch.setattr(choice, "CHEAP_NODES", 199)
    assert not settings_by_validation(asked(), graph)


@pytest.fixture
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real trainings take a second each."""

    def short(name: str, dataset: object, labels: object = "few") -> dict[str, Any]:
        return {**preset_values(name, dataset, labels), "max_epochs": 5, "hidden_channels": 16}

    monkeypatch.setattr("lgcn.training.settings.preset_values", short)


@pytest.mark.usefixtures("few_epochs")
def test_the_better_one_is_kept_as_an_ordinary_run(tmp_path: Path) -> None:
    graph, folder = small_graph(), tmp_path / "run"
    result = train_as_asked(graph, asked(), out=folder)
    alone = {labels: train(graph, asked(labels=labels)) for labels in ("few", "many")}
    scores = {labels: one.record["val_score"] for labels, one in alone.items()}
    assert result.record["labels_by_validation"] == scores
    best = max(scores, key=lambda labels: scores[labels])
    expected = alone[best]
    assert torch.equal(predict(result.model, graph), predict(expected.model, graph))
    kept = lasting(result.record)
    assert kept.pop("labels") == best
    del kept["labels_by_validation"]
    assert kept == lasting(expected.record)
    run = load_run(folder)
    assert run.settings == asked(labels=best).resolve(graph)
    assert torch.equal(run.predict(graph=graph), predict(expected.model, graph))
    assert not (folder / "members").exists()
    assert not (folder / "ensemble.json").exists()
    assert (folder / "split.npz").exists()
    assert run.result()["history"]


@pytest.mark.usefixtures("few_epochs")
def test_ties_are_for_the_rule_of_thumb(monkeypatch: pytest.MonkeyPatch) -> None:
    def equal(graph: Graph, settings: Settings, **options: Any) -> Any:
        result = train(graph, settings, **options)
        result.record["val_score"] = 0.5
        return result

    monkeypatch.setattr(trainer, "train", equal)
    graph = small_graph()
    for many in (False, True):
        monkeypatch.setattr("lgcn.training.choose.wants_many", lambda graph, many=many: many)
        found = train_as_asked(graph, asked())
        layers = 3 if many else 1
        assert len(found.model.layers) == layers  # type: ignore[arg-type]


@pytest.mark.usefixtures("few_epochs")
def test_a_deep_network_is_tried_where_neighbours_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, folder = small_graph(), tmp_path / "run"
    assert [name for name, _ in choice.label_members(asked(), graph)] == ["few", "many"]
    monkeypatch.setattr("lgcn.training.choose.neighbours_agree", lambda graph: False)
    members = dict(choice.label_members(asked(seed=3), graph))
    assert list(members) == ["many", "few", "deep"]
    assert members["deep"].model.name == "residual"
    assert members["deep"].seed == 3

    def best_is_deep(graph: Graph, settings: Settings, **options: Any) -> Any:
        result = train(graph, settings, **options)
        result.record["val_score"] = float(settings.model.name == "residual")
        return result

    monkeypatch.setattr(trainer, "train", best_is_deep)
    result = train_as_asked(graph, asked(), out=folder)
    assert result.record["labels"] == "deep"
    assert isinstance(result.model, ResidualLGCN)
    run = load_run(folder)
    assert run.settings.preset == "residual"
    assert torch.equal(run.predict(graph=graph), predict(result.model, graph))
