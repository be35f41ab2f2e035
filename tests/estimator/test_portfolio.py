"""Estimators with a time limit or structural features."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.estimator import LGCNClassifier, LGCNRegressor
from lgcn.training.portfolio import Ensemble

from .small import parts, small

TWO = {"settings": {"max_trials": 2}, "max_epochs": 4}


@pytest.mark.parametrize("kind", [LGCNClassifier, LGCNRegressor])
def test_several_models_are_one_estimator(graph: Graph, kind: Any, tmp_path: Path) -> None:
    x, y, edges = parts(graph)
    y = y if kind is LGCNClassifier else x[:, 0] + 5
    model = kind(random_state=0, verbose=False, time_limit="1m", **TWO).fit(x, y, edges)
    assert isinstance(model.model_, Ensemble)
    assert len(model.leaderboard_) == 2
    assert sum(row["weight"] for row in model.leaderboard_) == pytest.approx(1)
    assert model.settings_.time_limit == "1m"
    assert model.transform().shape[0] == 200
    model.save(tmp_path / "run")
    model.save(tmp_path / "run")  # takes the place of the one before
    loaded = kind.load(tmp_path / "run")
    np.testing.assert_allclose(loaded.predict(x, edges), model.predict())
    np.testing.assert_allclose(loaded.transform(x, edges), model.transform(), rtol=1e-5)
    names = {row["name"] for row in model.leaderboard_}
    assert {row["name"] for row in loaded.leaderboard_} == names
    loaded.save(tmp_path / "again")
    np.testing.assert_allclose(kind.load(tmp_path / "again").predict(x, edges), model.predict())
    with pytest.raises(UsageError, match="warm_start must be False with time_limit"):
        model.set_params(warm_start=True).fit(x, y, edges)


def test_wrong_time_limits_are_named(graph: Graph) -> None:
    for limit in ("soon", "-3s", 5j):
        with pytest.raises(UsageError, match="time_limit"):
            small(time_limit=limit).fit(graph)


def test_structural_features(graph: Graph, tmp_path: Path) -> None:
    x, y, edges = parts(graph)
    plain = small(max_epochs=2).fit(x, y, edges)
    model = small(structural_features=True, max_epochs=2).fit(x, y, edges)
    assert model.n_features_in_ == plain.n_features_in_ == 8
    assert model.settings_.structural_features == "yes"
    assert not np.allclose(model.predict_proba(), plain.predict_proba())
    model.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.n_features_in_ == 8
    np.testing.assert_allclose(loaded.predict_proba(x, edges), model.predict_proba(), atol=1e-6)
    np.testing.assert_allclose(loaded.transform(x, edges), model.transform(), atol=1e-6)


def test_a_graph_without_features(graph: Graph, tmp_path: Path) -> None:
    bare = replace(graph, x=None)
    model = small(max_epochs=30).fit(bare)
    assert model.n_features_in_ == 0
    assert model.predict().shape == (200,)
    again = small(positions="none", max_epochs=2).fit(bare)
    again.save(tmp_path)
    np.testing.assert_array_equal(LGCNClassifier.load(tmp_path).predict(bare), again.predict())
    number = small(LGCNRegressor, max_epochs=2).fit(bare, np.arange(200.0))
    assert np.isfinite(number.predict()).all()


def test_without_settings_the_better_of_two_is_kept_by_validation():
    """As `lgcn train` does for small graphs."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.eye(3)[y] + rng.normal(0, 0.3, (60, 3))
    source = rng.integers(0, 60, 150)
    edges = np.stack([source, source // 20 * 20 + rng.integers(0, 20, 150)])  # within a class
    model = LGCNClassifier(random_state=0).fit(X, y, edges=edges)
    scores = model.result_["labels_by_validation"]
    assert set(scores) == {"few", "many"}
    assert model.settings_.labels == max(scores, key=lambda name: scores[name])
    again = LGCNClassifier(random_state=0, settings={"labels": model.settings_.labels})
    again.fit(X, y, edges=edges)
    assert "labels_by_validation" not in again.result_
    np.testing.assert_array_equal(model.predict_proba(), again.predict_proba())
    assert again.settings_ == model.settings_


def test_where_neighbours_disagree_a_deep_network_is_tried():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 40)
    X = rng.normal(size=(80, 3))
    source = rng.integers(0, 80, 300)
    edges = np.stack([source, (source + 1 + 2 * rng.integers(0, 40, 300)) % 80])  # to the other
    model = LGCNClassifier(random_state=0).fit(X, y, edges=edges)
    scores = model.result_["labels_by_validation"]
    assert set(scores) == {"few", "many", "deep"}
    kept = model.settings_.preset == "residual"
    assert kept == (model.result_["labels"] == "deep")
    assert model.predict().shape == (80,)
