"""Scores against scikit-learn's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from lgcn.training import metrics
from lgcn.training.metric_names import default_metric


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
