"""Greedy ensemble selection on validation nodes.

["Ensemble Selection from Libraries of Models"](https://doi.org/10.1145/1015330.1015432) (Caruana et
al., 2004): start from the best model, then add, with replacement, the one that improves the average
most. Few validation nodes would be fitted too well that way. So this is repeated on bootstrap
samples of the nodes, and the weights are averaged.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

MAX_MEMBERS = 8  # that an ensemble has at most
CANDIDATES = 16  # members that are considered, by their own score
ROUNDS = 12  # members that are added to one sample, with repetitions
BAGS = 16  # samples
MAX_NODES = 4000  # of the validation nodes, used to compare
LEAST = 0.03  # smaller weights are left out

# The rank of predictions on some nodes, higher is better, or None if it is not defined there: the
# score, and for ties the negative loss.
Rank = tuple[float, float] | None
Judge = Callable[[Tensor, Tensor], Rank]


def select(predictions: Sequence[Tensor], y: Tensor, judge: Judge, seed: int = 0) -> list[float]:
    """The weight of each member in the ensemble; they sum to one.

    Args:
        predictions: The calibrated probabilities, or values, of each member on the validation
            nodes, [nodes, outputs].
        y: The labels of these nodes.
        judge: Ranks averaged predictions.
        seed: Draws the samples. (default: 0)
    """
    generator = torch.Generator().manual_seed(seed)
    number = len(y)
    ranks = [judge(one, y) for one in predictions]
    order = sorted(
        (index for index, rank in enumerate(ranks) if rank is not None),
        key=lambda index: ranks[index] or (0.0, 0.0),
        reverse=True,
    )
    if not order:
        raise ValueError("no member can be scored on the validation nodes")
    chosen = order[:CANDIDATES]
    stack = torch.stack([predictions[index] for index in chosen])
    best = [1.0] + [0.0] * (len(chosen) - 1)
    if len(chosen) > 1:
        best = _better(stack, y, judge, best, _bagged(stack, y, judge, generator, number))
    weights = [0.0] * len(predictions)
    for index, weight in zip(chosen, best, strict=True):
        weights[index] = weight
    return weights


def _bagged(
    stack: Tensor, y: Tensor, judge: Judge, generator: torch.Generator, number: int
) -> list[list[float]]:
    """The averaged weights over bootstrap samples, and those of one selection on all nodes."""
    total = torch.zeros(len(stack), dtype=torch.double)
    size = min(number, MAX_NODES)
    for _ in range(BAGS):
        nodes = torch.randint(number, (size,), generator=generator)
        total += greedy(stack[:, nodes], y[nodes], judge)
    nodes = torch.randperm(number, generator=generator)[:size]
    once = greedy(stack[:, nodes], y[nodes], judge)
    return [_pruned(total), _pruned(once)]


def _better(
    stack: Tensor, y: Tensor, judge: Judge, single: list[float], others: list[list[float]]
) -> list[float]:
    """The first of the others that is no worse than the best single member on all nodes."""
    wanted = judge(average(stack, single), y)
    for weights in others:
        found = judge(average(stack, weights), y)
        if sum(weights) > 0 and found is not None and (wanted is None or found >= wanted):
            return weights
    return single


def greedy(stack: Tensor, y: Tensor, judge: Judge) -> Tensor:
    """One greedy selection: how often each member was added, as shares; zeros if undefined.

    Args:
        stack: Predictions, [members, nodes, outputs].
        y, judge: See `select`.
    """
    counts = torch.zeros(len(stack), dtype=torch.double)
    total = torch.zeros_like(stack[0])
    current: Rank = None
    for size in range(1, ROUNDS + 1):
        full = int((counts > 0).sum()) >= MAX_MEMBERS
        found: list[tuple[tuple[float, float], int]] = []
        for index in range(len(stack)):
            if full and counts[index] == 0:
                continue
            rank = judge((total + stack[index]) / size, y)
            if rank is not None:
                found.append((rank, -index))
        if not found or (current is not None and max(found)[0] <= current):
            break
        current, index = max(found)[0], -max(found)[1]
        counts[index] += 1
        total += stack[index]
    return counts / counts.sum() if counts.sum() > 0 else counts


def average(stack: Tensor, weights: Sequence[float]) -> Tensor:
    """The weighted average of predictions, [nodes, outputs]."""
    share = torch.tensor(weights, dtype=stack.dtype)
    return (stack * share[:, None, None]).sum(0)


def _pruned(weights: Tensor) -> list[float]:
    """Weights that sum to one, of the largest ones."""
    if float(weights.sum()) == 0:
        return weights.tolist()
    weights = weights / weights.sum()
    largest = torch.zeros_like(weights, dtype=torch.bool)
    largest[weights.topk(min(MAX_MEMBERS, len(weights))).indices] = True
    weights = torch.where(largest & (weights >= LEAST), weights, 0.0)
    found: list[float] = (weights / weights.sum()).tolist()
    return found
