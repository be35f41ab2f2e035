"""Calibrated probabilities: temperature scaling, and the calibration error.

["On Calibration of Modern Neural Networks"](https://arxiv.org/abs/1706.04599) divides all scores
by one number, the temperature. That changes the confidence of a prediction, never its class.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lgcn.errors import UsageError

LOWEST, HIGHEST = 0.05, 20.0


def find_temperature(logits: Tensor, y: Tensor) -> float:
    r"""The temperature T, from 0.05 to 20, that makes the labels most likely.

    $$
    \min_T \; \sum_i -\log p(y_i \mid z_i / T) + \tfrac{1}{2} \log^2 T
    $$

    The second term counts about as much as one node. It keeps T near 1 if there are too few nodes
    to decide, for example if all predictions are right. The mean loss of ``y`` is never higher than
    at T = 1.

    Args:
        logits: Scores before softmax or sigmoid, [nodes, classes], of nodes that the model
            was not trained on.
        y: Their classes [nodes], or zeros and ones [nodes, labels].
    """
    from scipy.optimize import minimize_scalar  # takes long to import

    z, labels = logits.detach().double().cpu(), y.cpu()
    if len(labels) == 0:
        return 1.0

    def cost(log_temperature: float) -> float:
        scaled = z / float(np.exp(log_temperature))
        return float(_total_loss(scaled, labels)) + 0.5 * log_temperature**2

    # The loss has a single minimum in T: it is convex in 1/T.
    bounds = (float(np.log(LOWEST)), float(np.log(HIGHEST)))
    found = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    if not cost(float(found.x)) < cost(0.0):
        return 1.0
    return float(np.clip(np.exp(found.x), LOWEST, HIGHEST))


def _total_loss(logits: Tensor, y: Tensor) -> Tensor:
    if y.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="sum")
    return F.cross_entropy(logits, y, reduction="sum")


def probabilities(logits: Tensor, multi_label: bool, temperature: float = 1.0) -> Tensor:
    """Probabilities of the classes, or of each label, at a temperature. (default: 1)"""
    if not LOWEST <= temperature <= HIGHEST:
        raise UsageError(f"temperature must be from {LOWEST} to {HIGHEST}, got {temperature!r}")
    scaled = logits if temperature == 1 else logits / temperature
    return scaled.sigmoid() if multi_label else torch.softmax(scaled, dim=1)


def decide(probabilities: Tensor, threshold: float | None = None) -> Tensor:
    """The predicted class of each node.

    Args:
        probabilities: [nodes, classes], calibrated.
        threshold: For two classes, the probability from which on the second is predicted. At 0.5,
            the more likely class is, and the first of two that are equally likely.
            (default: the most likely class)
    """
    if threshold is None or threshold == 0.5:
        return probabilities.argmax(dim=1)
    if probabilities.size(1) != 2:
        raise UsageError(f"threshold is for two classes, got {probabilities.size(1)}")
    return (probabilities[:, 1].double() >= threshold).long()


def confidence(probabilities: Tensor, multi_label: bool) -> Tensor:
    """The confidence of each prediction.

    It is the largest probability; with several labels per node, that of the least certain label.
    """
    if probabilities.size(1) == 0:
        return probabilities.new_ones(probabilities.size(0))
    if multi_label:
        return torch.maximum(probabilities, 1 - probabilities).amin(dim=1)
    return probabilities.amax(dim=1)


def expected_calibration_error(probabilities: Tensor, y: Tensor, bins: int = 15) -> float:
    """The mean gap between confidence and accuracy, over bins of confidence.

    Args:
        probabilities: [nodes, classes]
        y: Classes [nodes], or zeros and ones [nodes, labels]. In the second case, each pair of
            node and label counts as one prediction.
        bins: Bins of equal width between 0 and 1. (default: 15)
    """
    p = probabilities.detach().double().cpu()
    if y.dim() == 2:
        right = ((p > 0.5) == (y.cpu() > 0.5)).flatten()
        sure = torch.maximum(p, 1 - p).flatten()
    else:
        sure, predicted = p.max(dim=1)
        right = predicted == y.cpu()
    if len(sure) == 0:
        return 0.0
    number = (sure * bins).ceil().long().clamp(1, bins) - 1  # a bin holds its upper end
    gaps = torch.zeros(bins, dtype=torch.double).index_add_(0, number, right.double() - sure)
    return float(gaps.abs().sum()) / len(sure)
