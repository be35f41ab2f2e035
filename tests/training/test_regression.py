"""Regression: training, scores, intervals, resuming, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

from lgcn import load_run
from lgcn.errors import CheckpointError, TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.graph.statistics import labels_per_class, neighbour_agreement
from lgcn.training import ModelSpec, Run, train
from lgcn.training.agreement import deviation

from .graphs import digest, lasting, settings, small_graph
from .run_folder.runs import at_epoch, change, interrupt


def graph_with_targets(dtype: torch.dtype = torch.float64, **more: Any) -> Graph:
    """Targets of mean 1000 that depend on the features; every tenth is unknown."""
    graph = small_graph(400)
    assert graph.x is not None
    y = (graph.x[:, 0] * 40 + graph.x[:, 1] * 20 + 1000).to(dtype)
    y[::10] = torch.nan
    part = torch.from_numpy(np.random.default_rng(0).integers(0, 3, 400))
    masks = {f"{s}_mask": (part == i) & ~y.isnan() for i, s in enumerate(("train", "val", "test"))}
    return replace(graph, y=y, label_names=None, **masks, **more)


SETTINGS: dict[str, Any] = {
    "max_epochs": 12,
    "embedding": "linear",
    "classifier": "none",
    "dropout": 0.0,
    "input_dropout": 0.0,
    "adj_dropout": 0.0,
}


def test_the_kind_of_labels_says_regression():
    graph = graph_with_targets()
    assert (graph.task, graph.num_classes, graph.num_outputs) == ("regression", 0, 1)
    assert "task='regression'" in repr(graph)
    assert torch.equal(graph.unlabelled(), graph.y.isnan())
    assert labels_per_class(graph) == int(graph.train_mask.sum()) / 10
    spec = ModelSpec.of(graph)
    targets = graph.y[graph.train_mask].numpy()
    assert (spec.num_classes, spec.task, spec.class_names) == (1, "regression", ())
    assert spec.target_mean == pytest.approx(targets.mean())
    assert spec.target_scale == pytest.approx(targets.std())
    standard = spec.standardised(graph.y)[graph.train_mask]
    assert float(standard.mean()) == pytest.approx(0, abs=1e-5)
    torch.testing.assert_close(
        spec.values(spec.standardised(graph.y)[:, None]), graph.y, equal_nan=True, rtol=1e-6, atol=0
    )


def test_agreement_of_neighbours_is_a_correlation():
    graph = graph_with_targets()
    everywhere = torch.ones(400, dtype=torch.bool)
    graph = replace(graph, y=torch.nan_to_num(graph.y, 1000.0), train_mask=everywhere)
    source, target = graph.edge_index
    expected = np.corrcoef(graph.y[source], graph.y[target])[0, 1]
    found = neighbour_agreement(graph)
    assert found.alike == pytest.approx(expected)
    assert (found.entries, found.by_chance) == (graph.num_edges, 0.0)


@pytest.mark.parametrize(
    ("metric", "how"),
    [
        ("auto", {}),
        ("rmse", {"training": "subgraph", "max_nodes": 150, "n_init": 40}),
        ("mae", {"training": "subgraph", "max_nodes": 150, "evaluate_on": "sampled"}),
        ("auto", {"views": 2, "agreement": 1.0}),
    ],
    ids=["whole", "sub-graphs", "sampled", "views"],
)
def test_scores_are_those_of_the_predictions(metric: str, how: dict[str, Any]):
    graph = graph_with_targets()
    result = train(graph, settings(**SETTINGS, **how, metric=metric))
    record, spec = result.record, ModelSpec.of(graph)
    with torch.no_grad():
        values = spec.values(result.model(graph.x, graph))
    oracle = {
        "auto": sk.r2_score,
        "rmse": sk.root_mean_squared_error,
        "mae": sk.mean_absolute_error,
    }
    for split in ("val", "test"):
        mask = graph.mask(split)
        expected = oracle[metric](graph.y[mask], values[mask])
        assert record[f"{split}_score"] == pytest.approx(expected, rel=1e-4)
    assert record["metric"] == ("r2" if metric == "auto" else metric)
    residuals = (graph.y - values)[graph.val_mask].abs().numpy()
    n = len(residuals)
    rank = np.ceil((n + 1) * 0.9) / n
    expected = np.quantile(residuals, rank, method="inverted_cdf")
    assert record["interval"]["half_width"] == pytest.approx(expected, rel=1e-3)
    inside = (graph.y - values)[graph.test_mask].abs() <= record["interval"]["half_width"]
    assert 0.75 < float(inside.double().mean()) <= 1
    assert record["threshold"] is None
    assert not {"temperature", "calibration"} & set(record)


def test_the_epoch_with_the_lowest_error_is_kept():
    folder_scores = []
    result = train(
        graph_with_targets(),
        settings(**SETTINGS, metric="rmse"),
        on_epoch=lambda state: folder_scores.append(state.history[-1]["val_score"]),
    )
    assert result.record["best_epoch"] == int(np.argmin(folder_scores)) + 1
    assert result.record["val_score"] == pytest.approx(min(folder_scores))


def test_units_do_not_matter():
    """Targets in other units give the same network up to rounding."""
    graph = graph_with_targets()
    other = replace(graph, y=graph.y * 1e6 - 5e9)
    records = [train(g, settings(**SETTINGS)).record for g in (graph, other)]
    assert records[1]["test_score"] == pytest.approx(records[0]["test_score"], rel=1e-3)
    widths = [record["interval"]["half_width"] for record in records]
    assert widths[1] == pytest.approx(widths[0] * 1e6, rel=1e-3)


def test_sample_weights_change_what_is_learned():
    graph = graph_with_targets()
    weight = torch.where(graph.x[:, 2] > 0, 10.0, 0.1)
    plain, weighted = (
        train(replace(graph, sample_weight=w), settings(**SETTINGS)).model for w in (None, weight)
    )
    assert digest(plain) != digest(weighted)


def test_a_stopped_run_is_resumed_to_the_same_end(tmp_path: Path):
    graph, chosen = graph_with_targets(), settings(**SETTINGS, metric="mae")
    whole = train(graph, chosen, out=tmp_path / "whole")
    with pytest.raises(TrainingInterrupted):
        train(graph, chosen, out=tmp_path / "half", on_epoch=at_epoch(3, interrupt))
    resumed = train(graph, chosen, out=tmp_path / "half", resume=True)
    assert lasting(resumed.record) == lasting(whole.record)
    assert digest(resumed.model) == digest(whole.model)
    moved = replace(graph, y=graph.y + 1)
    with pytest.raises(UsageError, match="another graph"):
        train(moved, chosen, out=tmp_path / "whole", resume=True)


def test_a_run_predicts_in_the_units_of_the_target(tmp_path: Path):
    graph = graph_with_targets()
    result = train(graph, settings(**SETTINGS), out=tmp_path)
    run = load_run(tmp_path)
    values = run.predict(graph=graph)
    assert values.shape == (400,)
    with torch.no_grad():
        torch.testing.assert_close(values, run.spec.values(result.model(graph.x, graph)))
    torch.testing.assert_close(run.predict(graph=graph, memory="1GB"), values)
    assert run.interval == (0.9, result.record["interval"]["half_width"])
    assert run.threshold is None
    found = run.evaluate(graph=graph)
    assert found.metric == "r2"
    assert found.splits["test"]["score"] == pytest.approx(result.record["test_score"])
    classes = replace(graph, y=torch.zeros(400, dtype=torch.long))
    with pytest.raises(UsageError, match=r"a number per node.*one class per node"):
        run.evaluate(graph=classes)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("model", {"task": "guess"}),
        ("model", {"target_scale": 0.0}),
        ("model", {"target_scale": "x"}),
        ("model", {"target_mean": float("inf")}),
        ("model", {"num_classes": 2}),
        ("model", {"label_names": ["a"]}),
    ],
)
def test_damaged_specifications(tmp_path: Path, table: str, values: dict[str, Any]):
    train(graph_with_targets(), settings(max_epochs=1), out=tmp_path)
    change(tmp_path / "run.json", table, **values)
    with pytest.raises(CheckpointError, match=r"run.json is damaged"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "interval", [None, [1, 2], {"level": 2, "half_width": 1}, {"level": 0.9, "half_width": -1}]
)
def test_damaged_intervals(tmp_path: Path, interval: Any):
    train(graph_with_targets(), settings(max_epochs=1), out=tmp_path)
    change(tmp_path / "result.json", "", interval=interval)
    with pytest.raises(CheckpointError, match="interval must have"):
        Run(tmp_path).interval()


@pytest.mark.parametrize("threshold", [-1, 2, "x", True])
def test_damaged_thresholds(tmp_path: Path, threshold: Any):
    train(small_graph(), settings(max_epochs=1), out=tmp_path)
    change(tmp_path / "result.json", "", threshold=threshold)
    with pytest.raises(CheckpointError, match="threshold must be"):
        Run(tmp_path).threshold()


def changed(**fields: Any) -> Graph:
    return replace(graph_with_targets(), **fields)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (changed(y=torch.full((400,), 7.0)), "the target 7"),
        (changed(y=torch.full((400,), torch.inf)), "finite"),
        (changed(y=torch.full((400,), torch.nan)), "without a label .*NaN"),
        (changed(y=torch.linspace(-1, 1, 400).double() * 1e300), "from -.*e.* to .*Divide"),
    ],
)
def test_targets_that_cannot_be_learned(graph: Graph, message: str):
    with pytest.raises(UsageError, match=message):
        train(graph, settings())


def test_r2_needs_different_validation_targets():
    graph = graph_with_targets()
    y = torch.where(graph.val_mask, 3.0, graph.y)
    with pytest.raises(UsageError, match=r"metric=r2 .*metric=rmse"):
        train(replace(graph, y=y), settings())
    assert train(replace(graph, y=y), settings(metric="rmse")).record["metric"] == "rmse"


def test_what_needs_classes_says_so():
    with pytest.raises(UsageError, match=r"start_nodes=balanced .*a number per node"):
        train(graph_with_targets(), settings(training="subgraph", start_nodes="balanced"))
    with pytest.raises(UsageError, match="metric=accuracy"):
        train(graph_with_targets(), settings(metric="accuracy"))


def test_views_disagree_by_their_squared_distance_from_the_mean():
    views = [torch.tensor([[1.0], [4.0]]), torch.tensor([[3.0], [4.0]])]
    assert float(deviation(views)) == pytest.approx(np.mean([1, 0, 1, 0]))


def test_a_target_that_depends_on_the_features_is_learned():
    graph = graph_with_targets(torch.float32)
    chosen = settings(**{**SETTINGS, "max_epochs": 40, "weight_decay": 0.0})
    assert train(graph, chosen).record["test_score"] > 0.7
