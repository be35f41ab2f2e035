"""What a run says of itself: the metrics in its folder, what the graph adds, and warnings."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import classification_report, confusion_matrix, log_loss

from lgcn import predict
from lgcn.errors import CheckpointError
from lgcn.training import Run, simple_models, train
from lgcn.training.evaluation import whole_graphs
from lgcn.training.run_metrics import graph_adds, never_predicted, run_metrics
from lgcn.training.scoring import Scoring
from lgcn.training.split_reports import split_reports

from .graphs import settings, several_graphs, small_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics") / "run"
    train(small_graph(), settings(max_epochs=20), out=folder)
    return folder


def test_the_metrics_of_a_run_are_scikit_learns(folder: Path) -> None:
    metrics, graph, run = Run(folder).metrics(), small_graph(), Run(folder)
    assert metrics is not None
    logits = predict(run.load_model()[0], graph)
    chances = torch.softmax(logits / run.temperature(), dim=1).double().numpy()
    for split in ("val", "test"):
        mask = graph.mask(split).numpy()
        y, p = graph.y.numpy()[mask], chances[mask]
        report = metrics["splits"][split]
        wanted = classification_report(y, p.argmax(1), output_dict=True, zero_division=np.nan)
        matrix = confusion_matrix(y, p.argmax(1))
        np.testing.assert_array_equal(report["confusion_matrix"], matrix)
        assert report["scores"]["accuracy"] == pytest.approx(wanted["accuracy"])
        assert report["scores"]["accuracy"] == pytest.approx(run.result()[f"{split}_score"])
        assert report["scores"]["macro_f1"] == pytest.approx(wanted["macro avg"]["f1-score"])
        assert report["scores"]["log_loss"] == pytest.approx(
            log_loss(y, p / p.sum(1, keepdims=True)), rel=1e-5
        )
        for row in report["per_class"]:
            assert row["recall"] == pytest.approx(wanted[row["class"]]["recall"])
    assert metrics["baselines"]["features"]["name"] == "logistic regression"
    assert metrics["summary"].startswith("The graph ")


def test_reports_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for graph, metric in ((small_graph(), "accuracy"), (several_graphs(), "micro_f1")):
        result = train(graph, settings(max_epochs=3))
        scored = [(part, predict(result.model, part)) for part in whole_graphs(graph)]
        scoring = replace(Scoring.default(graph), metric=metric, temperature=1.7)
        whole = split_reports(scored, ("val", "test"), scoring)
        monkeypatch.setattr("lgcn.nn.layerwise.MAX_READ_ROWS", 7)
        assert split_reports(scored, ("val", "test"), scoring) == whole
        monkeypatch.setattr("lgcn.training.split_reports.MAX_VALUES", 100)
        part = split_reports(scored, ("val",), scoring)["val"]
        assert part["sampled_nodes"] < whole["val"]["nodes"]
        assert part["per_class"][0]["recall"] == whole["val"]["per_class"][0]["recall"]
        monkeypatch.undo()


def test_no_folder_no_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **more: Any) -> Any:
        raise AssertionError("computed")

    monkeypatch.setattr(simple_models, "simple_models", never)
    train(small_graph(), settings(max_epochs=1))
    train(small_graph(), settings(max_epochs=1, baselines=False), out=tmp_path)
    metrics = Run(tmp_path).metrics()
    assert metrics is not None
    assert metrics["baselines"] is None
    assert metrics["summary"] is None
    assert metrics["splits"]["test"]["nodes"] == 110


@pytest.mark.parametrize(
    ("error", "words"), [(MemoryError("no room"), "no room"), (KeyboardInterrupt(), "stopped")]
)
def test_a_run_survives_its_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, words: str
) -> None:
    def fail(*args: Any, **more: Any) -> Any:
        raise error

    monkeypatch.setattr(simple_models, "simple_models", fail)
    with pytest.warns(UserWarning, match=words):
        train(small_graph(), settings(max_epochs=1), out=tmp_path)
    assert Run(tmp_path).finished
    assert Run(tmp_path).metrics()["baselines"] is None


def test_a_class_that_is_never_predicted_is_a_warning(tmp_path: Path) -> None:
    graph = small_graph()
    graph = replace(graph, label_names=("red", "green", "blue"))
    logits = torch.zeros(200, 3)
    logits[:, 2] = 1  # all are blue
    scored, scoring = [(graph, logits)], Scoring.default(graph)
    scoring = replace(scoring, spec=replace(scoring.spec, label_names=graph.label_names))
    with pytest.warns(UserWarning, match="never predicted") as caught:
        found = run_metrics(graph, settings(), scored, scoring)
    texts = [str(warning.message) for warning in caught]
    assert texts == found["warnings"]
    nodes = int((graph.y[graph.test_mask] != 2).sum())
    assert texts[0] == (
        f"the classes 'red', 'green' are never predicted, but {nodes} test nodes have them"
    )
    assert "no better than the majority class" in texts[1]
    assert found["summary"].startswith("The graph costs ")


def metrics_of(ours: float, theirs: float, metric: str = "accuracy", **more: Any) -> dict[str, Any]:
    split = more.get("split", "test")
    report = {"nodes": more.get("nodes", 10_000), "scores": {metric: ours}}
    model = {"name": "gradient boosting", split: {metric: theirs}}
    found = {"majority": model, "features": model if more.get("features", True) else None}
    return {"metric": metric, "splits": {split: report}, "baselines": found}


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (
            metrics_of(0.851, 0.789),
            "The graph adds 6.2 points of accuracy over the features alone (85.1 against 78.9, "
            "gradient boosting; test nodes).",
        ),
        (
            metrics_of(0.7, 0.75, split="val"),
            "The graph costs 5.0 points of accuracy against the features alone (70.0 against "
            "75.0, gradient boosting; validation nodes).",
        ),
        (
            metrics_of(0.75, 0.75),
            "The graph adds nothing in accuracy to the features alone (75.0 against 75.0, "
            "gradient boosting; test nodes).",
        ),
        (
            metrics_of(0.76, 0.75, nodes=100),
            "The graph adds 1.0 points of accuracy over the features alone (76.0 against 75.0, "
            "gradient boosting; test nodes), within the standard error of 100 nodes.",
        ),
        (
            metrics_of(1.5, 2.0, "rmse"),
            "The graph saves 0.500 of rmse over the features alone (1.500 against 2.000, gradient "
            "boosting; test nodes).",
        ),
        (
            metrics_of(0.4, 0.5, "r2"),
            "The graph costs 0.100 of r2 against the features alone (0.400 against 0.500, "
            "gradient boosting; test nodes).",
        ),
        (
            metrics_of(0.9, 0.5, features=False),
            "The model adds 40.0 points of accuracy over the baseline (90.0 against 50.0, "
            "gradient boosting; test nodes).",
        ),
    ],
)
def test_what_the_graph_adds(metrics: dict[str, Any], text: str) -> None:
    assert graph_adds(metrics) == text


def test_nothing_is_said_that_is_not_known() -> None:
    assert graph_adds({**metrics_of(0.8, 0.7), "baselines": None}) is None
    unknown = metrics_of(0.8, 0.7)
    unknown["splits"]["test"]["scores"]["accuracy"] = None
    assert graph_adds(unknown) is None
    assert never_predicted({}) == []


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ((), {"metric": "nope"}),
        ((), {"splits": {"other": {}}}),
        ((), {"warnings": [1]}),
        ((), {"baselines": {"majority": None}}),
        (("splits", "test"), {"scores": {"accuracy": "high"}}),
        (("splits", "test"), {"confusion_matrix": [[1, 2], [3]]}),
        (("splits", "test"), {"per_class": [{"class": 1}]}),
        (("splits", "val"), {"nodes": True}),
        (("baselines", "features"), {"test": {"accuracy": []}}),
    ],
)
def test_damaged_metrics_are_named(
    folder: Path, tmp_path: Path, table: tuple[str, ...], change: dict[str, Any]
) -> None:
    content = json.loads((folder / "metrics.json").read_text())
    inside = content
    for name in table:
        inside = inside[name]
    inside.update(change)
    (tmp_path / "metrics.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"metrics\.json is damaged") as caught:
        Run(tmp_path).metrics()
    assert "\n" not in str(caught.value)


def test_runs_of_earlier_versions_have_no_metrics(tmp_path: Path) -> None:
    assert Run(tmp_path).metrics() is None
