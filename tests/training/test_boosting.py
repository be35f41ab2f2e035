"""Boosted trees without pickle give scikit-learn's predictions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from lgcn.errors import CheckpointError, UsageError
from lgcn.graph import Graph
from lgcn.inference import predict
from lgcn.nn.boosted_trees import WIDE, BoostedTrees
from lgcn.training import Run, Settings, train
from lgcn.training.boosting import copy_tree
from lgcn.training.tensor_files import load_tensors, save_tensors
from tests.training.graphs import several_graphs, small_graph


def boosting(**given: Any) -> Settings:
    small = {"dataset": "tables", "model": "boosting", "trees": 20, "baselines": False}
    return Settings.create(**{**small, **given})


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_arrays_give_scikit_learns_scores(classes: int) -> None:
    """Also with missing values, and with numbers that lie exactly on thresholds."""
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(300, 5)).astype(np.float32).round(1)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = rng.integers(0, classes, 300)
    y[: 2 * classes] = np.arange(2 * classes) % classes
    forest = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=15).fit(x, y)
    model = BoostedTrees(5, classes, num_layers=0, trees=15, leaves=15)
    outputs = [1] if classes == 2 else range(classes)
    for tree, predictors in enumerate(forest._predictors):
        for output, predictor in zip(outputs, predictors, strict=True):
            copy_tree(model, tree, output, predictor.nodes)
    model.used.fill_(12)
    model.check()
    found = model.evaluate(torch.from_numpy(x)).double().numpy()
    found[:, list(outputs)] += forest._baseline_prediction
    expected = forest.decision_function(x)
    if classes == 2:
        found = found[:, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_regression() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    forest = HistGradientBoostingRegressor(max_iter=8).fit(x, x[:, 0] ** 2)
    model = BoostedTrees(3, 1, num_layers=0, trees=8)
    for tree, predictors in enumerate(forest._predictors):
        copy_tree(model, tree, 0, predictors[0].nodes)
    model.used.fill_(8)
    found = model.evaluate(torch.from_numpy(x)).double().numpy() + forest._baseline_prediction
    np.testing.assert_allclose(found[:, 0], forest.predict(x), rtol=1e-5, atol=1e-5)


def test_the_features_are_means_over_hops() -> None:
    graph = small_graph(40)
    assert graph.x is not None
    model = BoostedTrees(8, 3)
    dense = torch.zeros(40, 40)
    for row in range(40):
        dense[row, graph.col[graph.rowptr[row] : graph.rowptr[row + 1]].long()] = 1
    degree = dense.sum(1, keepdim=True)
    mean = dense / degree.clamp_min(1)
    expected = torch.cat([graph.x, mean @ graph.x, mean @ mean @ graph.x, degree], dim=1)
    torch.testing.assert_close(model.node_features(graph.x, graph), expected)


def regression() -> Graph:
    graph = small_graph()
    assert graph.x is not None
    return replace(graph, y=100 + 5 * graph.x[:, 0])


@pytest.mark.parametrize("make", [small_graph, several_graphs, regression])
def test_it_trains_and_its_folder_predicts_the_same(make: Any, tmp_path: Path) -> None:
    graph = make()
    result = train(graph, boosting(), out=tmp_path / "run")
    assert result.record["val_score"] > 0.3
    model, _, spec = Run(tmp_path / "run").load_model()
    assert spec == result.spec
    assert torch.equal(predict(model, graph), predict(result.model, graph))
    assert not any(path.suffix in (".pkl", ".pickle") for path in (tmp_path / "run").iterdir())


def test_wide_features_are_projected_and_unseen_classes_not_predicted() -> None:
    graph = small_graph()
    assert graph.x is not None
    assert graph.y is not None
    wide = torch.cat([graph.x, torch.zeros(200, WIDE)], dim=1)
    sparse = wide.to_sparse_csr()
    mask = graph.train_mask & (graph.y != 2)
    dense_run = train(replace(graph, x=wide, train_mask=mask), boosting(hidden_channels=6))
    found = train(replace(graph, x=sparse, train_mask=mask), boosting(hidden_channels=6))
    projection = found.model.projection
    assert isinstance(projection, torch.Tensor)
    assert projection.shape == (WIDE + 8, 6)
    predicted = predict(found.model, replace(graph, x=sparse)).argmax(1)
    assert 2 not in predicted
    assert dense_run.record["val_score"] == pytest.approx(found.record["val_score"], abs=0.1)


@pytest.mark.parametrize("sparse", [False, True])
def test_own_features_stay_as_they_are_up_to_a_limit(sparse: bool) -> None:
    graph = small_graph()
    x = torch.randn(200, WIDE + 8, generator=torch.Generator().manual_seed(0))
    given = x.to_sparse_csr() if sparse else x
    kept = BoostedTrees(WIDE + 8, 3, hidden_channels=6, raw_features=WIDE + 8, num_layers=1)
    projected = BoostedTrees(WIDE + 8, 3, hidden_channels=6, raw_features=WIDE + 7, num_layers=1)
    for model in (kept, projected):
        assert model.projection is not None
        model.projection.data.copy_(torch.eye(WIDE + 8, 6))
    neighbours = torch.zeros(200, 200)
    neighbours[graph.edge_index[1], graph.edge_index[0]] = 1
    degree = neighbours.sum(1, keepdim=True)
    means = neighbours @ x[:, :6] / degree.clamp(min=1)
    for model, own in ((kept, x), (projected, x[:, :6])):
        found = model.node_features(given, graph)
        assert found.shape == (200, model.columns)
        torch.testing.assert_close(found, torch.cat([own, means, degree], dim=1))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    train(small_graph(), boosting(trees=2), out=tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    good = load_tensors(path)
    for name, value in (("left", -5), ("right", 10**6), ("feature", 10**6), ("used", 99)):
        damaged = {key: tensor.clone() for key, tensor in good.items()}
        damaged[name].view(-1)[0] = value
        save_tensors(path, damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            Run(tmp_path / "run").load_model()
    endless = {key: tensor.clone() for key, tensor in good.items()}
    endless["left"][0, 0, 1] = 0  # back to the root
    save_tensors(path, endless)
    with pytest.raises(CheckpointError, match="must describe trees"):
        Run(tmp_path / "run").load_model()


def test_what_it_cannot_do() -> None:
    graph = several_graphs()
    many = replace(graph, y=torch.ones(graph.num_nodes, 31, dtype=torch.long))
    with pytest.raises(UsageError, match="at most 30 labels"):
        train(many, boosting())
    one = small_graph()
    assert one.y is not None
    with pytest.raises(UsageError, match="at least two classes"):
        train(replace(one, y=one.y * 0, label_names=("a", "b")), boosting())
