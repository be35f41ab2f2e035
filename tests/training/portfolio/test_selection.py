"""Greedy ensemble selection: against all subsets, and on validation nodes that are few."""

import itertools

import pytest
import torch
from torch import Tensor

from lgcn.training.portfolio.selection import MAX_MEMBERS, Rank, average, greedy, select


def accuracy(predictions: Tensor, y: Tensor) -> Rank:
    chances = predictions.gather(1, y[:, None]).clamp_min(1e-7)
    return float((predictions.argmax(1) == y).double().mean()), float(chances.log().mean())


def random_members(count: int, nodes: int, seed: int) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (nodes,), generator=generator)
    noise = torch.randn(count, nodes, 3, generator=generator)
    return list(torch.softmax(torch.eye(3)[y] + noise, dim=2)), y


@pytest.mark.parametrize("seed", range(5))
def test_the_ensemble_is_no_worse_than_any_member(seed: int) -> None:
    members, y = random_members(6, 200, seed)
    weights = select(members, y, accuracy, seed)
    assert sum(weights) == pytest.approx(1)
    found = accuracy(average(torch.stack(members), weights), y)
    assert found is not None
    assert found >= max(rank for one in members if (rank := accuracy(one, y)) is not None)


def test_one_greedy_selection_step_by_step() -> None:
    members, y = random_members(4, 100, 0)
    counts = greedy(torch.stack(members), y, accuracy)
    # A slow reference: the multiset that grows by the best member while the rank rises.
    chosen: list[int] = []
    rank: Rank = None
    while len(chosen) < 12:
        ranks = {}
        for index in range(4):
            mean = torch.stack([members[i] for i in [*chosen, index]]).mean(0)
            ranks[index] = accuracy(mean, y)
        best = max(ranks, key=lambda index: ranks[index] or (0, 0))
        if rank is not None and not (ranks[best] or (0, 0)) > rank:
            break
        rank = ranks[best]
        chosen.append(best)
    expected = [chosen.count(index) / len(chosen) for index in range(4)]
    assert counts.tolist() == pytest.approx(expected)


def test_a_single_good_member_keeps_all_weight() -> None:
    y = torch.tensor([0, 1] * 50)
    right = torch.eye(2)[y] * 0.98 + 0.01
    wrong = 1 - right
    assert select([wrong, right], y, accuracy) == [0, 1]
    assert select([right], y, accuracy) == [1]


def test_members_are_limited_and_the_seed_decides() -> None:
    members, y = random_members(40, 300, 1)
    weights = select(members, y, accuracy, 3)
    assert 1 <= sum(weight > 0 for weight in weights) <= MAX_MEMBERS
    assert select(members, y, accuracy, 3) == weights


def test_a_metric_that_is_not_defined_on_a_sample() -> None:
    """With one positive node, most samples have none."""
    members, y = random_members(3, 20, 2)
    y = torch.zeros(20, dtype=torch.long)
    y[0] = 1

    def judge(predictions: Tensor, y: Tensor) -> Rank:
        return None if y.unique().numel() < 2 else accuracy(predictions, y)

    assert sum(select(members, y, judge)) == pytest.approx(1)
    with pytest.raises(ValueError, match="no member can be scored"):
        select(members, y * 0, judge)


def test_averages() -> None:
    members, _ = random_members(3, 10, 0)
    stack = torch.stack(members)
    expected = 0.5 * members[0] + 0.5 * members[2]
    torch.testing.assert_close(average(stack, [0.5, 0, 0.5]), expected)
    for one in itertools.permutations([0.2, 0.3, 0.5]):
        assert average(stack, list(one)).shape == (10, 3)
