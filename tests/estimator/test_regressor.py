"""The scikit-learn regressor: scikit-learn's own checks, predictions, intervals, files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import lgcn
from lgcn import Graph
from lgcn.errors import CheckpointError, UsageError
from lgcn.estimator import LGCNClassifier, LGCNRegressor
from lgcn.estimator.targets import read_numbers

from .small import REPEATED, parts, small

# The checks of scikit-learn 1.9 that cannot apply, with the reason.
ESTIMATOR_CHECKS_THAT_CANNOT_APPLY = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    "check_methods_subset_invariance": (
        "it wants seven equal digits of predictions in float64, and networks compute in float32; "
        "test_a_prediction_does_not_depend_on_others compares as many as float32 has"
    ),
}


def cannot_apply(estimator: Any) -> dict[str, str]:
    return ESTIMATOR_CHECKS_THAT_CANNOT_APPLY


@parametrize_with_checks(
    [LGCNRegressor(max_epochs=30, lr=0.03, hidden_channels=64)],
    expected_failed_checks=cannot_apply,
    xfail_strict=False,  # rounding may be the same
)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def targets(graph: Graph) -> Any:
    """Numbers that a node's neighbours decide, with a mean far from 0."""
    assert graph.x is not None
    mean = graph.adjacency(normalize=True, self_loops=True)
    matrix = scipy.sparse.csr_matrix((mean.weight, mean.col, mean.rowptr), (200, 200))
    return 1000 + 50 * (matrix @ graph.x[:, 0].double().numpy())


def learner(**given: Any) -> Any:
    options = {"max_epochs": 60, "hidden_channels": 16, "settings": {"labels": "many"}}
    return small(LGCNRegressor, **{**options, **given})


@pytest.fixture(scope="module")
def y(graph: Graph) -> Any:
    return targets(graph)


@pytest.fixture(scope="module")
def fitted_regressor(graph: Graph, y: Any) -> LGCNRegressor:
    x, _, edges = parts(graph)
    hidden = np.arange(200) % 4 == 0
    model: LGCNRegressor = learner().fit(x, np.where(hidden, np.nan, y), edges)
    return model


def test_it_learns_numbers(graph: Graph, y: Any, fitted_regressor: LGCNRegressor) -> None:
    hidden = np.arange(200) % 4 == 0
    predicted = fitted_regressor.predict()
    assert predicted.dtype == np.float64
    assert predicted.shape == (200,)
    assert r2_score(y[hidden], predicted[hidden]) > 0.5
    assert is_regressor(fitted_regressor)
    assert not fitted_regressor.graph_.train_mask.numpy()[hidden].any()


def test_a_prediction_does_not_depend_on_others(graph: Graph, y: Any) -> None:
    x, _, _ = parts(graph)
    model = learner(max_epochs=5).fit(x, y)
    one_by_one = np.concatenate([model.predict(row[None]) for row in x])
    np.testing.assert_allclose(one_by_one, model.predict(x), atol=1e-5 * y.std())


def test_scores_are_r2(y: Any, fitted_regressor: LGCNRegressor) -> None:
    predicted = fitted_regressor.predict()
    assert fitted_regressor.score(None, y) == pytest.approx(r2_score(y, predicted))
    some = np.arange(0, 200, 3)
    assert fitted_regressor.score(some, y[some]) == pytest.approx(
        r2_score(y[some], predicted[some])
    )
    known = np.arange(200) > 50
    part = fitted_regressor.score(None, np.where(known, y, np.nan))
    assert part == pytest.approx(r2_score(y[known], predicted[known]))
    weight = np.random.default_rng(0).random(200)
    assert fitted_regressor.score(None, y, weight) == pytest.approx(
        r2_score(y, predicted, sample_weight=weight)
    )


@pytest.mark.parametrize(
    ("metric", "by_hand"),
    [(None, r2_score), ("rmse", root_mean_squared_error), ("mae", mean_absolute_error)],
)
def test_the_metric_is_that_of_the_validation_nodes(
    graph: Graph, y: Any, metric: str | None, by_hand: Callable[..., float]
) -> None:
    x, _, edges = parts(graph)
    model = learner(metric=metric, max_epochs=15).fit(x, y, edges)
    val = model.graph_.val_mask.numpy()
    score = by_hand(y[val], model.predict()[val])
    assert model.result_["val_score"] == pytest.approx(score, rel=1e-5)
    best = max if metric is None else min
    assert model.result_["val_score"] == pytest.approx(best(model.validation_scores_), rel=1e-4)
    assert model.settings_.evaluation.metric == (metric or "auto")


def test_minus_one_is_a_number(graph: Graph) -> None:
    x, _, edges = parts(graph)
    y = np.where(np.arange(200) % 2, -1.0, 1.0)
    y[:20] = np.nan
    model = learner(max_epochs=2).fit(x, y, edges)
    used = (model.graph_.train_mask | model.graph_.val_mask).numpy()
    np.testing.assert_array_equal(used, np.arange(200) >= 20)
    assert read_numbers([-1, 1]).known.all()
    assert model.score(None, np.full(200, -1.0) + np.arange(200)) < 1


def test_intervals_hold_the_stated_share(graph: Graph, y: Any) -> None:
    """The half width is the residual of rank ceil((n + 1) level) of the validation nodes."""
    x, _, edges = parts(graph)
    model = learner(validation_fraction=0.5).fit(x, y, edges)
    val = model.graph_.val_mask.numpy()
    residuals = np.sort(np.abs(y - model.predict())[val])
    for level in (None, 0.9, 0.5, 0.75):
        lower, upper = model.predict_interval(level=level).T
        rank = int(np.ceil((len(residuals) + 1) * (level or 0.9)))
        np.testing.assert_allclose((upper - lower) / 2, residuals[rank - 1], rtol=1e-4)
        np.testing.assert_allclose((upper + lower) / 2, model.predict(), rtol=1e-9)
        inside = (y >= lower - 1e-6) & (y <= upper + 1e-6)
        assert inside[val].mean() >= (level or 0.9)
    assert np.isinf(model.predict_interval(level=0.999)).all()
    np.testing.assert_array_equal(model.predict_interval([3, 5]), model.predict_interval()[[3, 5]])
    for level in (0, 1, 1.5, "high"):
        with pytest.raises(UsageError, match=r"level must be .*, got"):
            model.predict_interval(level=level)


def test_predictions_as_a_table(fitted_regressor: LGCNRegressor, y: Any) -> None:
    table = fitted_regressor.predictions([7, 2])
    np.testing.assert_allclose(table["true"], y[[7, 2]])
    assert set(table["split"].to_pylist()) <= {"train", "val", "test", None}
    assert table["node"].to_pylist() == [7, 2]
    np.testing.assert_array_equal(table["predicted"], fitted_regressor.predict([7, 2]))
    ends = np.stack([table["lower"], table["upper"]], axis=1)
    np.testing.assert_allclose(ends, fitted_regressor.predict_interval([7, 2]))


def test_forms_of_targets(graph: Graph, y: Any) -> None:
    x, _, edges = parts(graph)
    some = np.where(np.arange(200) % 4 == 0, np.nan, y)
    expected = learner(max_epochs=3).fit(x, some, edges).predict()
    objects = np.array([None if np.isnan(value) else value for value in some], dtype=object)
    of_graph = replace(graph, y=torch.from_numpy(some))
    forms = [some.tolist(), objects, torch.from_numpy(some), pd.Series(some), pd.array(objects)]
    for form in forms:
        found = learner(max_epochs=3).fit(x, form, edges).predict()
        np.testing.assert_array_equal(found, expected)
    found = learner(max_epochs=3).fit(of_graph).predict()
    np.testing.assert_array_equal(found, expected)
    nodes = np.flatnonzero(~np.isnan(some))
    found = learner(max_epochs=3).fit(nodes, some[nodes], graph=graph).predict()
    np.testing.assert_array_equal(found, expected)
    with pytest.warns(UserWarning, match="column-vector"):
        found = learner(max_epochs=3).fit(x, some[:, None], edges).predict()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["a"] * 200, r"y must hold numbers, NaN if unknown, got .*LGCNClassifier"),
        (["1.5"] * 200, "y must hold numbers"),
        ([np.nan] * 200, "y must have some numbers, got none in 200 entries"),
        (np.zeros((200, 2)), r"y must hold one number per node, got shape \[200, 2\]"),
        (np.full(200, np.inf), "Input y contains infinity"),
        (np.zeros(9), "inconsistent numbers of samples"),
        (np.zeros(200, dtype="datetime64[s]"), "y must hold numbers"),
        (np.full(200, 3.0), "target 3"),
        (None, "requires y to be passed.* pass one number per node, NaN"),
    ],
)
def test_targets_that_are_refused(graph: Graph, wrong: Any, message: str) -> None:
    x, _, edges = parts(graph)
    with pytest.raises(ValueError, match=message):
        learner(max_epochs=1).fit(x, wrong, edges)


def test_classes_of_a_graph_are_no_numbers(graph: Graph, y: Any) -> None:
    with pytest.raises(UsageError, match=r"y of .* must hold floating-point .*int64"):
        learner().fit(graph)
    with pytest.raises(UsageError, match=r"has no targets \(y\); pass them as y="):
        learner(max_epochs=1).fit(graph, y).score(replace(graph, y=None))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        small().fit(replace(graph, y=torch.from_numpy(y)))


def test_settings_of_classifiers_are_refused(graph: Graph, y: Any) -> None:
    for options, message in (
        ({"metric": "accuracy"}, "metric=accuracy .* use one of r2, rmse, mae"),
        ({"metric": "r22"}, "unknown metric 'r22'; did you mean 'r2'"),
        ({"settings": {"threshold": 0.3}}, "threshold"),
        ({"settings": {"class_weight": "balanced"}}, "class_weight"),
    ):
        with pytest.raises(UsageError, match=message):
            learner(**options).fit(graph, y)


def test_networkx(graph: Graph, y: Any) -> None:
    x, _, edges = parts(graph)
    made = networkx.Graph()
    for i in range(200):
        made.add_node(i, vector=x[i].tolist())
        if i % 4:
            made.nodes[i]["y"] = float(y[i])
    made.add_edges_from(edges.T.tolist())
    model = learner(max_epochs=5).fit(made)
    known = (model.graph_.train_mask | model.graph_.val_mask).numpy()
    np.testing.assert_array_equal(known, np.arange(200) % 4 > 0)
    np.testing.assert_allclose(model.graph_.y.numpy()[known], y[known], rtol=1e-6)


def test_tables(graph: Graph, y: Any) -> None:
    """A graph of tables, with its split and its weights."""
    x, _, edges = parts(graph)
    split = np.array(["train", "val", "test", ""])[np.arange(200) % 4]
    nodes = {"id": np.arange(200), "price": y, "part": split, "weight": np.arange(1.0, 201)}
    nodes |= {f"x{i}": x[:, i] for i in range(8)}
    options = {"label_column": "price", "task": "regression", "split_column": "part"}
    made = lgcn.from_tables(
        {"source": edges[0], "target": edges[1]}, nodes, sample_weight_column="weight", **options
    )
    model = learner(max_epochs=5).fit(made)
    test = np.arange(200) % 4 == 2
    assert model.score() == pytest.approx(r2_score(y[test], model.predict()[test]))
    np.testing.assert_array_equal(model.graph_.val_mask, np.arange(200) % 4 == 1)
    np.testing.assert_array_equal(model.graph_.sample_weight, made.sample_weight)


def test_searches(graph: Graph, y: Any) -> None:
    nodes = np.arange(150)
    grid = {"dropout": [0.0, 0.5]}
    search = GridSearchCV(
        learner(max_epochs=5), grid, cv=2, scoring="neg_mean_absolute_error", error_score="raise"
    )
    search.fit(nodes, y[nodes], graph=graph)
    assert search.predict(nodes).shape == (150,)
    scores = cross_val_score(learner(), nodes, y[nodes], cv=2, params={"graph": graph})
    assert scores.min() > 0.2


def test_warm_start(graph: Graph, y: Any) -> None:
    x, _, edges = parts(graph)
    model = small(LGCNRegressor, warm_start=True, max_epochs=1, lr=0.0).fit(x, y, edges)
    before = {key: value.clone() for key, value in model.model_.state_dict().items()}
    model.fit(x, y, edges)
    for key, value in model.model_.state_dict().items():
        assert torch.equal(value, before[key])


def test_validation_nodes_have_targets_of_all_sizes(graph: Graph) -> None:
    x, _, edges = parts(graph)
    model = learner(max_epochs=1).fit(x, np.arange(200.0), edges)
    tenth = np.flatnonzero(model.graph_.val_mask.numpy()) // 20
    np.testing.assert_array_equal(np.bincount(tenth), np.full(10, 4))
    two = learner(max_epochs=1).fit(x[:10], np.arange(10) % 2)
    assert two.graph_.val_mask.sum() == 2
    assert sorted(two.graph_.y[two.graph_.val_mask].tolist()) == [0, 1]
    with pytest.raises(UsageError, match=r"n_samples=1 is too few .*validation_fraction=0"):
        learner().fit(x[:1], [1.0])


def test_sub_graphs(graph: Graph, y: Any) -> None:
    x, _, edges = parts(graph)
    model = learner(training="subgraph", max_nodes=80, max_epochs=20).fit(x, y, edges)
    assert model.score(None, y) > 0.3


def test_sample_weights_count(graph: Graph, y: Any) -> None:
    """Two targets for one kind of node: the prediction is nearer to the heavier one."""
    x = np.ones((200, 3), dtype=np.float32)
    values = np.where(np.arange(200) % 2, 0.0, 10.0)
    means = []
    last = {"evaluate_every": 60}  # validation scores have no weights, so they choose no epoch
    for heavy in (0, 1):
        weight = np.where(np.arange(200) % 2 == heavy, 9.0, 1.0)
        model = learner(settings=last).fit(x, values, sample_weight=weight)
        means.append(model.predict().mean())
    assert means[0] > 6 > 4 > means[1]


def test_saved_and_loaded(
    graph: Graph, y: Any, fitted_regressor: LGCNRegressor, tmp_path: Path
) -> None:
    x, _, edges = parts(graph)
    fitted_regressor.save(tmp_path / "run")
    loaded = lgcn.LGCNRegressor.load(tmp_path / "run")
    assert loaded.get_params() == fitted_regressor.get_params()
    np.testing.assert_array_equal(loaded.predict(x, edges), fitted_regressor.predict())
    np.testing.assert_array_equal(
        loaded.predict_interval(x, edges), fitted_regressor.predict_interval()
    )
    assert loaded.predictions(x, edges).equals(fitted_regressor.predictions(truth=False))
    assert loaded.score(x, y, edges=edges) == fitted_regressor.score(None, y)
    assert loaded.interval_ == fitted_regressor.interval_
    assert loaded.history_ == fitted_regressor.history_
    assert loaded.loss_curve_ == fitted_regressor.loss_curve_
    with pytest.raises(UsageError, match=r"level must be 0.9 in a loaded estimator.*got 0.5"):
        loaded.predict_interval(x, edges, level=0.5)
    with pytest.raises(UsageError, match=r"holds a model for regression: use lgcn\.LGCNRegressor"):
        LGCNClassifier.load(tmp_path / "run")
    assert clone(loaded).fit(x, y, edges).graph_ is not None
    small(max_epochs=1).fit(graph).save(tmp_path / "classes")
    with pytest.raises(UsageError, match=r"holds a model for classification: .*LGCNClassifier"):
        LGCNRegressor.load(tmp_path / "classes")


@pytest.mark.parametrize(
    "interval",
    [None, [], {}, {"level": 2, "half_width": 1.0}, {"level": 0.9, "half_width": "wide"}],
)
def test_a_damaged_interval_is_named(
    fitted_regressor: LGCNRegressor, tmp_path: Path, interval: Any
) -> None:
    fitted_regressor.save(tmp_path)
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "interval": interval}))
    with pytest.raises(CheckpointError, match=r"result\.json is damaged: interval"):
        LGCNRegressor.load(tmp_path)


def test_nothing_before_fit() -> None:
    for method in ("predict", "predict_interval", "transform", "score", "predictions"):
        with pytest.raises(NotFittedError):
            getattr(LGCNRegressor(), method)([0])
