"""Agreement between several views of a graph: a loss for all nodes, labelled or not."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lgcn.training.calibration import probabilities


def agreement(
    views: Sequence[Tensor], sharpen: float, multi_label: bool, share: Tensor | None = None
) -> Tensor:
    r"""How far the predictions of the views are from their sharpened mean.

    $$
    \frac{1}{SN} \sum_{s=1}^{S} \sum_{i=1}^{N}
    \lVert \mathbf{p}_i^{(s)} - \bar{\mathbf{p}}_i^{\prime} \rVert_2^2
    \quad \text{with} \quad
    \bar{p}^{\prime}_{ic} = \frac{\bar{p}_{ic}^{1/T}}{\sum_{c'} \bar{p}_{ic'}^{1/T}}
    $$

    from the ["Graph Random Neural Networks"](https://arxiv.org/abs/2005.11079) paper. If
    nodes can have several labels, each label is a problem of two classes.

    Args:
        views: Scores of all nodes before softmax or sigmoid, from several passes.
        sharpen: The temperature $T$; smaller values ask for more confident predictions.
        multi_label: Whether a node can have several labels.
        share: The share of each node in the mean. (default: all equal)
    """
    predictions = torch.stack([probabilities(view, multi_label) for view in views])
    if multi_label:
        predictions = torch.stack([predictions, 1 - predictions], dim=-1)
    with torch.no_grad():
        target = predictions.mean(0) ** (1 / sharpen)
        target /= target.sum(-1, keepdim=True)
    distances = (predictions - target).square().sum(-1)
    return _mean(distances, share)


def deviation(views: Sequence[Tensor], share: Tensor | None = None) -> Tensor:
    """How far the predicted numbers of the views are from their mean: the mean squared deviation.

    It takes the place of `agreement` in a regression.

    Args:
        views: Predictions of all nodes, from several passes.
        share: The share of each node in the mean. (default: all equal)
    """
    predictions = torch.stack(list(views))
    return _mean((predictions - predictions.detach().mean(0)).square(), share)


def _mean(values: Tensor, share: Tensor | None) -> Tensor:
    """The mean of values per view, node and possibly label."""
    if share is None:
        return values.mean()
    of_nodes = values.mean(0) if values.dim() == 2 else values.mean((0, 2))
    return (of_nodes * share).sum()


def agreement_weight(weight: float, epoch: int, epochs: int) -> float:
    """The weight of the agreement in an epoch.

    It grows: with full weight from the start, all predictions of some networks would agree on one
    class.

    Args:
        weight: The weight that it reaches.
        epoch: The epoch, from 1 on.
        epochs: The epoch in which it is reached.
    """
    return weight * min(1.0, epoch / epochs)
