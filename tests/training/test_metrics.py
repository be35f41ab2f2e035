"""Scores against scikit-learn's."""

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from lgcn.training import metrics
from lgcn.training.metric_names import default_metric
from lgcn.training.metrics import METRICS


def classes(seed: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(50, 4, generator=rng), torch.randint(4, (50,), generator=rng)


def labels(seed: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(50, 6, generator=rng)
    return logits, (logits + torch.randn(50, 6, generator=rng) > 0.5).long()


@pytest.mark.parametrize("seed", range(3))
def test_accuracy(seed: int):
    logits, y = classes(seed)
    assert metrics.accuracy(logits, y) == pytest.approx(accuracy_score(y, logits.argmax(1)))


@pytest.mark.parametrize("seed", range(3))
def test_micro_f1(seed: int):
    logits, y = labels(seed)
    expected = f1_score(y, (logits > 0).long(), average="micro")
    assert metrics.micro_f1(logits, y) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_label_accuracy_is_the_released_programs_score(seed: int):
    """It averages, over the labels, the micro-F1 of "has it" and "has it not"."""
    logits, y = labels(seed)
    predicted = (logits > 0).long()
    of_label = [
        f1_score(y[:, i], predicted[:, i], labels=[0, 1], average="micro") for i in range(6)
    ]
    assert metrics.label_accuracy(logits, y) == pytest.approx(np.mean(of_label))


def test_predicting_nothing_is_worth_nothing_by_micro_f1_alone():
    y = torch.zeros(10, 10, dtype=torch.long)
    y[:, :3] = 1
    nothing = torch.full((10, 10), -1.0)
    assert metrics.micro_f1(nothing, y) == 0.0
    assert metrics.label_accuracy(nothing, y) == pytest.approx(0.7)


def test_nothing_predicted_and_nothing_true_is_zero():
    assert metrics.micro_f1(torch.full((2, 2), -1.0), torch.zeros(2, 2)) == 0.0


def test_a_score_of_zero_predicts_no_label():
    assert metrics.micro_f1(torch.zeros(1, 1), torch.ones(1, 1)) == 0.0


def test_score_and_its_name_follow_the_kind_of_labels():
    logits, y = classes(0)
    assert metrics.score(logits, y) == metrics.accuracy(logits, y)
    assert default_metric("classification") == "accuracy"
    logits, y = labels(0)
    assert metrics.score(logits, y) == metrics.micro_f1(logits, y)
    assert default_metric("multilabel") == "micro_f1"


def test_loss_of_classes_is_softmax_cross_entropy():
    logits, y = classes(1)
    expected = -logits.log_softmax(1)[range(50), y].mean()
    torch.testing.assert_close(metrics.loss(logits, y), expected)


def test_loss_of_labels_is_sigmoid_cross_entropy():
    logits, y = labels(1)
    expected = torch.where(y > 0, -F.logsigmoid(logits), -F.logsigmoid(-logits)).mean()
    torch.testing.assert_close(metrics.loss(logits, y), expected)


# The registry: every metric against scikit-learn's function on predictions and probabilities.


def numbers(seed: int) -> tuple[Tensor, Tensor, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=40) * 30 + 500
    return torch.from_numpy(y + rng.normal(size=40)), torch.from_numpy(y), rng.uniform(0, 2, 40)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_metrics_of_classes(seed: int, weighted: bool):
    logits, y = classes(seed)
    weight = np.random.default_rng(seed).uniform(0, 2, 50) if weighted else None
    predicted, chances = logits.argmax(1).numpy(), logits.double().softmax(1).numpy()
    true = y.numpy()
    options = {"sample_weight": weight}
    expected = {
        "accuracy": sk.accuracy_score(true, predicted, **options),
        "micro_f1": sk.f1_score(true, predicted, average="micro", **options),
        "balanced_accuracy": sk.balanced_accuracy_score(true, predicted, **options),
        "macro_f1": sk.f1_score(true, predicted, average="macro", **options),
        "log_loss": sk.log_loss(true, chances, **options),
        "roc_auc": sk.roc_auc_score(true, chances, multi_class="ovr", **options),
        "average_precision": sk.average_precision_score(np.eye(4)[true], chances, **options),
    }
    assert set(expected) == {n for n, m in METRICS.items() if "classification" in m.tasks}
    for name, value in expected.items():
        assert METRICS[name](logits, y, weight) == pytest.approx(value), name


@pytest.mark.parametrize("threshold", [None, 0.2, 0.5, 0.9])
def test_metrics_of_two_classes_use_the_threshold(threshold: float | None):
    logits, y = classes(3)
    logits, y = logits[:, :2], y % 2
    chance = logits.double().softmax(1)[:, 1].numpy()
    predicted = chance > 0.5 if threshold is None else chance >= threshold
    expected = {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
        "macro_f1": sk.f1_score(y, predicted, average="macro"),
        "roc_auc": sk.roc_auc_score(y, chance),
        "average_precision": sk.average_precision_score(y, chance),
        "log_loss": sk.log_loss(y, chance),
    }
    for name, value in expected.items():
        assert METRICS[name](logits, y, threshold=threshold) == pytest.approx(value), name


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_several_labels(weighted: bool):
    logits, y = labels(2)
    weight = np.random.default_rng(0).uniform(0.1, 2, 50) if weighted else None
    predicted, chances, true = (logits > 0).numpy(), logits.double().sigmoid().numpy(), y.numpy()
    options = {"sample_weight": weight}
    of_labels = [sk.log_loss(true[:, j], chances[:, j], **options) for j in range(6)]
    expected = {
        "accuracy": sk.accuracy_score(true, predicted, **options),
        "micro_f1": sk.f1_score(true, predicted, average="micro", **options),
        "macro_f1": sk.f1_score(true, predicted, average="macro", **options),
        "roc_auc": sk.roc_auc_score(true, chances, **options),
        "average_precision": sk.average_precision_score(true, chances, **options),
        "log_loss": np.mean(of_labels),
    }
    assert set(expected) == {n for n, m in METRICS.items() if "multilabel" in m.tasks}
    for name, value in expected.items():
        assert METRICS[name](logits, y, weight) == pytest.approx(value), name


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_a_regression(weighted: bool):
    values, y, weight = numbers(0)
    options = {"sample_weight": weight if weighted else None}
    expected = {
        "r2": sk.r2_score(y, values, **options),
        "rmse": sk.mean_squared_error(y, values, **options) ** 0.5,
        "mae": sk.mean_absolute_error(y, values, **options),
    }
    assert set(expected) == {n for n, m in METRICS.items() if "regression" in m.tasks}
    for name, value in expected.items():
        assert METRICS[name](values, y, weight if weighted else None) == pytest.approx(value), name
        # As a network gives them.
        assert METRICS[name](values[:, None], y) == METRICS[name](values, y)


def test_a_class_without_nodes_is_left_out_of_means_over_classes():
    logits, y = classes(0)
    kept = y < 3
    logits, y = logits[kept], y[kept]
    chances = logits.double().softmax(1).numpy()
    expected = np.mean([sk.roc_auc_score(y == c, chances[:, c]) for c in range(3)])
    assert METRICS["roc_auc"](logits, y) == pytest.approx(expected)
    predicted = logits.argmax(1)
    recalls = [float((predicted[y == c] == c).double().mean()) for c in range(3)]
    assert METRICS["balanced_accuracy"](logits, y) == pytest.approx(np.mean(recalls))


def test_what_is_not_defined_is_nan():
    logits = torch.randn(5, 2)
    for name in ("roc_auc", "average_precision"):
        assert np.isnan(METRICS[name](logits, torch.zeros(5, dtype=torch.long)))
    assert np.isnan(METRICS["r2"](torch.ones(1), torch.ones(1)))


def test_directions():
    worse = {name for name, metric in METRICS.items() if not metric.greater_is_better}
    assert worse == {"log_loss", "rmse", "mae"}


def test_loss_of_a_regression_is_the_mean_squared_error():
    values, y, weight = numbers(1)
    outputs = values[:, None]
    expected = sk.mean_squared_error(y, values)
    assert float(metrics.loss(outputs, y)) == pytest.approx(expected)
    share = torch.from_numpy(weight / weight.sum())
    expected = sk.mean_squared_error(y, values, sample_weight=weight)
    assert float(metrics.loss(outputs, y, share)) == pytest.approx(expected)
