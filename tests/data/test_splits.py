from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.data import random_split
from lgcn.errors import UsageError


@settings(max_examples=100, deadline=None)
@given(
    y=st.lists(st.integers(-1, 4), max_size=120),
    labels_per_class=st.integers(1, 12),
    num_val=st.integers(0, 60),
    seed=st.integers(0, 5),
)
def test_counts(y: list[int], labels_per_class: int, num_val: int, seed: int) -> None:
    labels = torch.tensor(y, dtype=torch.long)
    masks = torch.stack(random_split(labels, labels_per_class, num_val, seed))
    assert masks.dtype == torch.bool
    # Every labelled node is in one mask, and no other node is in any.
    assert torch.equal(masks.sum(0), (labels >= 0).long())
    for c in range(5):
        count = y.count(c)
        wanted = labels_per_class if count >= 2 * labels_per_class else max(count // 2, 1)
        assert int(masks[0, labels == c].sum()) == (wanted if count else 0)
    rest = int((labels >= 0).sum() - masks[0].sum())
    assert int(masks[1].sum()) == min(num_val, rest // 2)
    assert torch.equal(masks, torch.stack(random_split(labels, labels_per_class, num_val, seed)))
    as_array = random_split(np.array(y, dtype=np.int16), labels_per_class, num_val, seed)
    assert torch.equal(masks, torch.stack(as_array))


def test_seeds_give_different_splits() -> None:
    y = torch.arange(200) % 2
    first, second = random_split(y, num_val=50, seed=0), random_split(y, num_val=50, seed=1)
    assert all(not torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_every_node_is_drawn_about_as_often() -> None:
    y = torch.arange(20) % 2
    drawn = sum(random_split(y, 2, 4, seed)[0].long() for seed in range(500))
    assert isinstance(drawn, torch.Tensor)
    assert drawn.min() > 60  # 100 expected, deviation 9
    assert drawn.max() < 140


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels_per_class": 0}, "labels_per_class"),
        ({"labels_per_class": 1.5}, "labels_per_class"),
        ({"labels_per_class": True}, "labels_per_class"),
        ({"num_val": -1}, "num_val"),
        ({"num_val": "many"}, "num_val"),
        ({"seed": -1}, "split_seed"),
        ({"y": torch.zeros(3)}, "y must"),
        ({"y": torch.zeros(3, 2, dtype=torch.long)}, "y must"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        random_split(**{"y": torch.zeros(3, dtype=torch.long), **options})
