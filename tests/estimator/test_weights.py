"""Sample weights and class weights: what they do, and which are refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.estimator import LGCNClassifier, LGCNRegressor
from lgcn.estimator.weights import name_class_weight, read_sample_weight

from .small import parts, small

BAD_SAMPLE_WEIGHTS = [
    ([1.0, -0.5, 1.0], "sample_weight must not be negative, the smallest is -0.5"),
    ([0, 0, 0], "sample_weight must not sum to zero"),
    ([1.0, 1.0], r"sample_weight must have one number per row of X \(3\), got 2"),
    ([1.0, np.nan, 1.0], "sample_weight must be finite"),
    ([1.0, np.inf, 1.0], "sample_weight must be finite"),
    ([[1.0], [1.0], [1.0]], r"sample_weight of shape \[3, 1\]"),
    (["a", "b", "c"], r"sample_weight must hold one number per row of X, got \['a'"),
    (-1, "sample_weight must not be negative"),
]


@pytest.mark.parametrize(("weight", "message"), BAD_SAMPLE_WEIGHTS)
def test_sample_weights_that_are_refused(weight: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_sample_weight(weight, 3)
    assert "\n" not in str(caught.value)


def test_sample_weights_of_any_form() -> None:
    for weight in ([2, 0, 1], np.array([2, 0, 1]), torch.tensor([2.0, 0, 1]), pd.Series([2, 0, 1])):
        assert read_sample_weight(weight, 3).tolist() == [2, 0, 1]
    assert read_sample_weight(2, 3).tolist() == [2, 2, 2]
    assert read_sample_weight([True, False], 2).tolist() == [1, 0]


@pytest.mark.parametrize("estimator", [LGCNClassifier, LGCNRegressor])
def test_fit_and_score_refuse_wrong_sample_weights(graph: Graph, estimator: Any) -> None:
    x, y, edges = parts(graph)
    model = small(estimator, max_epochs=1)
    for weight, message in (
        (np.full(200, -1), "must not be negative"),
        (np.zeros(200), "must not sum to zero"),
        (np.ones(9), r"\(200\), got 9"),
    ):
        with pytest.raises(UsageError, match=message):
            model.fit(x, y, edges, sample_weight=weight)
        with pytest.raises(UsageError, match=message):
            model.fit(graph, y, sample_weight=weight)
    with pytest.raises(UsageError, match=r"\(5\), got 9"):
        model.fit(np.arange(5), y[:5], graph=graph, sample_weight=np.ones(9))
    model.fit(x, y, edges)
    with pytest.raises(UsageError, match="must not be negative"):
        model.score(None, y, sample_weight=np.full(200, -1))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1, 7: 2}, "class_weight has the class 7, which y does not have: 0, 1, 2"),
        ({"0": 1}, "class_weight has the class '0'"),
        ({0: -1}, "class_weight of 0 must be a number of at least 0, got -1"),
        ({0: "much"}, "class_weight of 0 must be a number of at least 0, got 'much'"),
        ({0: 0, 1: 0, 2: 0}, "class_weight must not be zero for every class"),
        ("balance", "class_weight must be 'balanced', None or a mapping .* got 'balance'"),
        ([1, 2, 3], "class_weight must be 'balanced', None or a mapping"),
    ],
)
def test_class_weights_that_are_refused(graph: Graph, class_weight: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        small(class_weight=class_weight).fit(graph)
    assert "\n" not in str(caught.value)


def test_class_weights_go_by_name() -> None:
    classes, names = np.array([1, 2]), ("1", "2")
    assert name_class_weight({np.int64(2): np.float32(3)}, classes, names) == {"2": 3.0}
    assert name_class_weight("balanced", classes, names) == "balanced"
    assert name_class_weight(None, classes, names) is None
    bools = name_class_weight({True: 2, False: 1}, np.array([False, True]), ("False", "True"))
    assert bools == {"True": 2.0, "False": 1.0}


def test_balanced_weights_are_sample_weights_by_class(graph: Graph) -> None:
    """The two ways to the same loss, with scikit-learn's weights."""
    x, y, edges = parts(graph)
    uneven = np.where((y == 0) & (np.arange(200) % 4 > 0), -1, y)
    one = small(class_weight="balanced").fit(x, uneven, edges)
    train = one.graph_.train_mask.numpy()
    weight = np.ones(200)
    weight[train] = compute_sample_weight("balanced", uneven[train])
    other = small().fit(x, uneven, edges, sample_weight=weight)
    np.testing.assert_allclose(other.predict_proba(), one.predict_proba(), atol=1e-4)
    mapping = {c: weight[train][uneven[train] == c][0] for c in (0, 1, 2)}
    third = small(class_weight=mapping).fit(x, uneven, edges)
    np.testing.assert_allclose(third.predict_proba(), one.predict_proba(), atol=1e-4)
    plain = small().fit(x, uneven, edges)
    assert not np.allclose(plain.predict_proba(), one.predict_proba(), atol=1e-3)


def test_a_heavy_class_is_found_more_often(graph: Graph) -> None:
    x, y, _ = parts(graph)
    noisy = x + np.random.default_rng(0).normal(scale=3, size=x.shape).astype(np.float32)
    shares = [
        (small(class_weight=weight).fit(noisy, y).predict() == 0).mean()
        for weight in ({0: 0.1}, None, {0: 20.0})
    ]
    assert shares[0] + 0.1 < shares[1] < shares[2] - 0.1


def test_equal_weights_change_nothing(graph: Graph, fitted: LGCNClassifier) -> None:
    x, y, edges = parts(graph)
    for weight in (1, 1e-30, np.full(200, 1e30)):
        same = small().fit(x, y, edges, sample_weight=weight)
        np.testing.assert_allclose(same.predict_proba(), fitted.predict_proba(), atol=1e-5)


def test_nodes_of_weight_zero_are_left_out(graph: Graph) -> None:
    x, y, edges = parts(graph)
    out = np.arange(200) % 3 == 0
    for by_numbers in (False, True):
        if by_numbers:
            some = np.arange(150)
            model = small().fit(some, y[:150], graph=graph, sample_weight=~out[:150])
            expected = ~out & (np.arange(200) < 150)
        else:
            model = small().fit(x, y, edges, sample_weight=~out)
            expected = ~out
        used = (model.graph_.train_mask | model.graph_.val_mask).numpy()
        np.testing.assert_array_equal(used, expected)
    # Their labels have no part in it.
    wrong = np.where(out, (y + 1) % 3, y)
    again = small().fit(x, wrong, edges, sample_weight=~out)
    hidden = small().fit(x, np.where(out, -1, y), edges)
    np.testing.assert_allclose(again.predict_proba(), hidden.predict_proba(), atol=1e-5)


def test_fit_transform_takes_sample_weights(graph: Graph) -> None:
    x, y, edges = parts(graph)
    weight = np.random.default_rng(0).random(200)
    found = small().fit_transform(x, y, edges, sample_weight=weight)
    np.testing.assert_array_equal(found, small().fit(x, y, edges, sample_weight=weight).transform())


def test_searches_split_sample_weights(graph: Graph) -> None:
    y = graph.y.numpy()
    nodes, weight = np.arange(200), np.random.default_rng(0).random(200)
    search = GridSearchCV(small(max_epochs=2), {"dropout": [0.1]}, cv=2, error_score="raise")
    search.fit(nodes, y, graph=graph, sample_weight=weight)
    best = search.best_estimator_
    np.testing.assert_allclose(best.graph_.sample_weight, weight / weight.mean(), rtol=1e-5)
