"""Thresholds and intervals against slow and obvious computations."""

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lgcn.errors import UsageError
from lgcn.training import ModelSpec
from lgcn.training.scoring import Scoring, best_threshold, conformal_half_width

from .graphs import settings

TWO = ModelSpec(4, 2)
ORACLES = {
    "accuracy": sk.accuracy_score,
    "micro_f1": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "macro_f1": lambda y, p: sk.f1_score(y, p, average="macro", zero_division=0.0),
}


@pytest.mark.parametrize("metric", ORACLES)
@limits(max_examples=15, deadline=None)
@given(
    data=st.integers(2, 12).flatmap(
        lambda n: st.tuples(
            arrays(np.int64, n, elements=st.integers(0, 1)),
            # Few values, so that nodes share probabilities.
            arrays(np.int64, n, elements=st.integers(1, 6)).map(lambda a: a / 7),
        )
    )
)
def test_the_best_threshold_is_best(metric: str, data: tuple[np.ndarray, np.ndarray]):
    y, chances = data
    found = best_threshold(metric, chances, y)
    assert 0 <= found <= 1
    if len(set(y)) < 2:
        assert found == 0.5
        return
    tried = np.arange(0.5, 7) / 7  # between all probabilities
    scores = [ORACLES[metric](y, (chances >= t).astype(int)) for t in tried]
    assert ORACLES[metric](y, (chances >= found).astype(int)) == pytest.approx(max(scores))


def test_a_threshold_that_changes_nothing_stays_at_one_half():
    assert best_threshold("accuracy", np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])) == 0.5


@pytest.mark.parametrize(("number", "level"), [(9, 0.9), (10, 0.9), (57, 0.9), (200, 0.8)])
def test_the_interval_is_the_corrected_quantile_of_absolute_residuals(number: int, level: float):
    residuals = np.random.default_rng(number).normal(size=number)
    corrected = np.ceil((number + 1) * level) / number
    expected = np.quantile(np.abs(residuals), corrected, method="inverted_cdf")
    assert conformal_half_width(torch.from_numpy(residuals), level) == pytest.approx(expected)


def test_too_few_residuals_give_no_interval():
    assert conformal_half_width(torch.ones(8), 0.9) is None


def test_intervals_hold_the_promised_share():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        half = conformal_half_width(torch.from_numpy(rng.standard_t(3, 30)), 0.9)
        held.append(np.mean(np.abs(rng.standard_t(3, 200)) <= half))
    assert 0.89 < np.mean(held) < 0.93


@pytest.mark.parametrize(
    ("spec", "given_", "expected"),
    [
        (TWO, {}, None),
        (TWO, {"metric": "accuracy"}, "tuned"),
        (TWO, {"metric": "macro_f1"}, "tuned"),
        (TWO, {"metric": "roc_auc"}, None),
        (TWO, {"metric": "macro_f1", "threshold": 0.5}, 0.5),
        (TWO, {"threshold": "tuned"}, "tuned"),
        (TWO, {"metric": "log_loss", "threshold": 0.1}, 0.1),
        (ModelSpec(4, 3), {"metric": "macro_f1"}, None),
        (ModelSpec(4, 2, "multilabel"), {"metric": "macro_f1"}, None),
        (ModelSpec(4, 1, "regression"), {"metric": "mae"}, None),
    ],
)
def test_which_threshold_is_used(spec: ModelSpec, given_: dict, expected: object):
    assert Scoring.of(settings(**given_), spec).threshold == expected


@pytest.mark.parametrize(
    ("spec", "given_", "message"),
    [
        (ModelSpec(4, 3), {"threshold": 0.3}, "threshold=0.3.*3 classes"),
        (ModelSpec(4, 2, "multilabel"), {"threshold": "tuned"}, "threshold=tuned.*several labels"),
        (ModelSpec(4, 1, "regression"), {"threshold": 0.3}, "threshold=0.3.*regression"),
        (TWO, {"threshold": "tuned", "metric": "roc_auc"}, "threshold=tuned.*metric=roc_auc"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused(spec: ModelSpec, given_: dict, message: str):
    with pytest.raises(UsageError, match=message):
        Scoring.of(settings(**given_), spec)


@pytest.mark.parametrize("value", [-0.1, 1.5, "best", True])
def test_wrong_values_of_the_threshold(value: object):
    with pytest.raises(UsageError, match=r"threshold must be .*tuned.*from 0 to 1"):
        settings(threshold=value)


def test_scores_of_a_regression_are_in_the_units_of_the_target():
    spec = ModelSpec(4, 1, "regression", target_mean=100.0, target_scale=20.0)
    outputs, y = torch.tensor([[0.0], [1.0], [-1.0]]), torch.tensor([110.0, 120.0, 70.0])
    assert Scoring(spec, "mae").score(outputs, y) == pytest.approx((10 + 0 + 10) / 3)
    assert Scoring(spec, "rmse").score(outputs, y) == pytest.approx((200 / 3) ** 0.5)
    # The loss stays in units of the network.
    assert Scoring(spec, "mae").loss(outputs, y) == pytest.approx(200 / 3 / 400)
