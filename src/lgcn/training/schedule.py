"""The learning rate and the number of views over a training."""

import math

from torch import Tensor
from torch.optim import Optimizer

from lgcn.training.groups import OptimisationSettings

# lr_schedule=one_cycle: the share of the training in which the rate rises, and where it starts.
WARM_UP, FIRST_FACTOR = 0.2, 0.1


def learning_rate(chosen: OptimisationSettings, epochs: int, steps: int) -> float:
    """The learning rate of the next epoch.

    Args:
        chosen: The settings, with ``lr``, ``lr_schedule``, ``max_epochs`` and ``max_steps``.
        epochs: Epochs done.
        steps: Optimiser steps done.
    """
    if chosen.lr_schedule == "constant":
        return chosen.lr
    done = epochs / chosen.max_epochs
    if chosen.max_steps is not None:
        done = max(done, steps / chosen.max_steps)
    if chosen.lr_schedule == "one_cycle":
        if done < WARM_UP:
            return chosen.lr * (FIRST_FACTOR + (1 - FIRST_FACTOR) * done / WARM_UP)
        done = (done - WARM_UP) / (1 - WARM_UP)
    return chosen.lr * (1 + math.cos(math.pi * done)) / 2


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Gives all weights this learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):  # a CUDA graph reads it there
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def views_of(chosen: OptimisationSettings, epoch: int) -> int:
    """The number of views of a step: one before the epoch ``views_from``.

    Args:
        chosen: The settings, with ``views`` and ``views_from``.
        epoch: The epoch, from 1 on.
    """
    return chosen.views if epoch >= chosen.views_from else 1
