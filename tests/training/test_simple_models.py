"""Models without the graph: their scores, their limits, and which of them is chosen."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

from lgcn.graph import Graph
from lgcn.training import simple_models as module
from lgcn.training.simple_models import simple_models

from .graphs import several_graphs, small_graph

LINE = torch.stack([torch.arange(599), torch.arange(1, 600)])


def tables(y: Any, x: Any, **more: Any) -> Graph:
    """A line of 600 nodes: 300 training, 150 validation and 150 test nodes, mixed."""
    place = np.random.default_rng(3).permutation(600)
    masks = {
        name: torch.from_numpy((place >= low) & (place < high))
        for name, low, high in (("train", 0, 300), ("val", 300, 450), ("test", 450, 600))
    }
    masks = {f"{name}_mask": mask for name, mask in masks.items()}
    x, y = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    return Graph.from_edge_index(LINE, 600, x=x, y=y, **masks, **more)


def columns(seed: int = 0, width: int = 4) -> Any:
    return np.random.default_rng(seed).normal(size=(600, width))


def parts(graph: Graph, split: str) -> tuple[Any, Any]:
    mask = graph.mask(split)
    return graph.x[mask].numpy(), graph.y[mask].numpy()


def test_the_majority_class_is_scikit_learns_dummy() -> None:
    graph = small_graph()
    found = simple_models(graph, "accuracy")["majority"]
    dummy = DummyClassifier().fit(*parts(graph, "train"))
    for split in ("val", "test"):
        assert found[split]["accuracy"] == pytest.approx(dummy.score(*parts(graph, split)))
    assert found["name"] == "majority class (0)"
    assert found["val"]["roc_auc"] == 0.5


def test_the_linear_model_is_logistic_regression_on_standardised_columns() -> None:
    x = columns()
    graph = tables((x @ [1, -2, 0.5, 0] > 0).astype(int), 100 * x + 5)
    found = simple_models(graph, "roc_auc")
    assert found["features"]["name"] == "logistic regression"
    scaler = StandardScaler().fit(parts(graph, "train")[0])
    best = 0.0
    for strength in module.STRENGTHS:
        model = LogisticRegression(C=strength)
        model.fit(scaler.transform(parts(graph, "train")[0]), parts(graph, "train")[1])
        best = max(
            best, model.score(scaler.transform(graph.x[graph.test_mask]), parts(graph, "test")[1])
        )
    assert found["features"]["test"]["accuracy"] == pytest.approx(best, abs=0.01)
    tried = [entry["name"] for entry in found["tried"]]
    assert tried == ["logistic regression", "logistic regression", "gradient boosting"]


def test_trees_win_where_no_line_separates() -> None:
    x = columns(1)
    graph = tables(((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int), x, label_names=("no", "yes"))
    found = simple_models(graph, "accuracy")
    assert found["features"]["name"] == "gradient boosting"
    assert found["features"]["test"]["accuracy"] > 0.85
    values = {entry["name"]: entry["val_score"] for entry in found["tried"]}
    assert values["gradient boosting"] == max(values.values())
    json.dumps(found, allow_nan=False)


def test_edges_and_seconds_aside_the_same_seed_gives_the_same() -> None:
    x = columns(1)
    graph = tables(((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int), x)
    masks = {f"{name}_mask": graph.mask(name) for name in ("train", "val", "test")}
    alone = Graph.from_edge_index(LINE[:, :0], 600, x=graph.x, y=graph.y, **masks)
    first, second = (simple_models(g, "accuracy", seed=4) for g in (graph, alone))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_numbers_have_the_mean_and_ridge_regression(metric: str) -> None:
    x = columns(2)
    graph = tables(x @ [3.0, 1, 0, -1] + 50, x)
    found = simple_models(graph, metric)
    assert found["features"]["name"] == "ridge regression"
    assert found["features"]["test"]["r2"] > 0.99
    y = parts(graph, "test")[1]
    wanted = abs(y - parts(graph, "train")[1].mean()).mean()
    assert found["majority"]["test"]["mae"] == pytest.approx(wanted, rel=1e-5)
    assert found["majority"]["test"]["r2"] < 0.05


def test_several_labels_have_a_regression_each() -> None:
    graph = several_graphs()
    found = simple_models(graph, "micro_f1")
    assert found["features"]["name"] == "logistic regression"
    assert found["features"]["test"]["micro_f1"] > 0.9
    train_y, test_y = parts(graph, "train")[1], parts(graph, "test")[1]
    guess = np.tile(train_y.mean(0) > 0.5, (len(test_y), 1))
    wanted = f1_score(test_y, guess, average="micro", zero_division=0)
    assert found["majority"]["test"]["micro_f1"] == pytest.approx(wanted)


def test_few_labels_get_a_model_if_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LABELS", 2)
    found = simple_models(several_graphs(), "micro_f1")
    assert found["limits"] == ["the 2 most frequent of 4 labels"]
    assert found["features"]["test"]["micro_f1"] < 0.9


def test_sparse_features_stay_sparse_and_wide_ones_are_reduced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.maximum(columns(5, 30) - 1, 0)
    y = (x[:, 0] > x[:, 1]).astype(int)
    graph = tables(y, x)
    sparse = replace(graph, x=graph.x.to_sparse_csr())
    monkeypatch.setattr(module, "BOOSTED_COLUMNS", 20)
    monkeypatch.setattr(module, "SVD_COLUMNS", 7)
    found = simple_models(sparse, "accuracy")
    assert found["limits"] == ["gradient boosting: 7 singular vectors as features"]
    assert found["features"]["test"]["accuracy"] > 0.75


def test_limits_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRAIN_ROWS", 40)
    monkeypatch.setattr(module, "SCORED_ROWS", 50)
    graph = tables((columns()[:, 0] > 0).astype(int), columns())
    found = simple_models(graph, "accuracy")
    assert found["limits"] == [
        "40 of 300 train nodes",
        "50 of 150 val nodes",
        "50 of 150 test nodes",
        "no gradient boosting: fewer than 60 training nodes",
    ]
    assert found["features"]["val"]["accuracy"] > 0.8


def test_what_cannot_be_learnt_is_left_out() -> None:
    graph = tables(np.zeros(600, dtype=int), columns(), label_names=("a", "b"))
    found = simple_models(graph, "accuracy")
    assert found["features"] is None
    assert found["majority"]["test"]["accuracy"] == 1.0
    assert any("one class" in text for text in found["limits"])
    none = replace(tables((columns()[:, 0] > 0).astype(int), columns()), x=None)
    assert simple_models(none, "accuracy")["features"] is None
    assert "test" not in simple_models(replace(graph, test_mask=None), "accuracy")["majority"]


def test_nodes_of_weight_zero_do_not_count() -> None:
    x = columns(7)
    y = (x[:, 0] > 0).astype(int)
    wrong = np.random.default_rng(0).random(600) < 0.6
    graph = tables(np.where(wrong, 1 - y, y), x)
    clean = replace(graph, y=torch.where(graph.train_mask, graph.y, torch.from_numpy(y)))
    weight = torch.from_numpy((~wrong).astype(np.float32))
    found = simple_models(clean, "accuracy", weight=weight)
    assert found["features"]["test"]["accuracy"] > 0.9
    assert simple_models(clean, "accuracy")["features"]["test"]["accuracy"] < 0.7


def test_the_threshold_is_tuned_like_the_models() -> None:
    x = columns(8)
    y = (x[:, 0] + np.random.default_rng(1).normal(size=600) > 1.8).astype(int)
    graph = tables(y, x)
    plain = simple_models(graph, "balanced_accuracy")["features"]["val"]["balanced_accuracy"]
    tuned = simple_models(graph, "balanced_accuracy", tune=True)["features"]["val"]
    assert tuned["balanced_accuracy"] > plain + 0.05
