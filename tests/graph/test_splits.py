from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.datasets import random_split
from lgcn.errors import UsageError
from lgcn.graph.splits import fraction_split


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


@settings(max_examples=200, deadline=None)
@given(
    y=st.lists(st.integers(-1, 5), max_size=80),
    val=st.floats(0, 0.9),
    test=st.floats(0, 0.9),
    seed=st.integers(0, 5),
    data=st.data(),
)
def test_shares(y: list[int], val: float, test: float, seed: int, data: Any) -> None:
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))), bool)
    labels = torch.tensor(y, dtype=torch.long)
    if val + test >= 1:
        with pytest.raises(UsageError, match=r"val \+ test must be below 1"):
            fraction_split(labels, known, val, test, seed)
        return
    masks = torch.stack(fraction_split(labels, known, val, test, seed))
    assert masks.dtype == torch.bool
    labelled = torch.from_numpy(known) & (labels >= 0)
    assert torch.equal(masks.sum(0), labelled.long())
    counts = [int((labelled & (labels == c)).sum()) for c in range(6)]
    for c, count in enumerate(counts):
        train, in_val, in_test = masks[:, labels == c].sum(1).tolist()
        assert train >= (count > 0)
        # At most one for the rounding of a share, one for that of the share before it, and one that
        # was moved so that no class lacks training nodes and no share is empty.
        assert abs(in_test - count * test) < 2
        assert abs(in_val - count * val) < 3
    spare = sum(max(count - 1, 0) for count in counts)
    wanted = [share for share in (val, test) if share > 0]
    if spare >= len(wanted):
        assert masks[1].any() == (val > 0)
        assert masks[2].any() == (test > 0)
    assert torch.equal(masks, torch.stack(fraction_split(labels, known, val, test, seed)))


def test_shares_of_a_large_graph_are_exact() -> None:
    y = torch.arange(10_000) % 4
    train, val, test = fraction_split(y, seed=3)
    assert [abs(int(mask.sum()) - n) <= 1 for mask, n in ((val, 2000), (test, 2000))] == [True] * 2
    for c in range(4):
        assert abs(int(test[y == c].sum()) - 500) <= 1
        assert abs(int(val[y == c].sum()) - 500) <= 2
    assert not torch.equal(train, fraction_split(y, seed=4)[0])


def test_every_node_is_in_every_split_about_as_often() -> None:
    y = torch.tensor([0] * 5 + [1] * 10)
    drawn = sum(torch.stack(fraction_split(y, seed=seed)).long() for seed in range(1000))
    assert isinstance(drawn, torch.Tensor)
    assert (drawn[1:] - 200).abs().max() < 60  # deviation 13
    assert (drawn[0] - 600).abs().max() < 80


def test_shares_with_several_labels_a_node() -> None:
    y = torch.zeros(50, 3)
    known = np.arange(50) < 40
    masks = torch.stack(fraction_split(y, known, 0.25, 0.25, 0))
    assert masks.sum(1).tolist() == [20, 10, 10]
    assert torch.equal(masks.any(0), torch.from_numpy(known))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"val": -0.1}, "val must be a number from 0 to 1"),
        ({"test": "some"}, "test must be"),
        ({"test": float("nan")}, "test must be"),
        ({"val": 0.5, "test": 0.5}, r"val \+ test must be below 1"),
        ({"seed": 0.5}, "split_seed"),
        ({"y": torch.zeros(3).bool()}, "y must"),
        ({"known": np.ones(2, dtype=bool)}, "known must"),
        ({"known": np.ones(3)}, "known must"),
    ],
)
def test_wrong_shares(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fraction_split(**{"y": torch.zeros(3, dtype=torch.long), **options})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_targets_of_a_regression_are_split_at_random(dtype: torch.dtype) -> None:
    y = torch.arange(100).to(dtype)
    y[::10] = torch.nan
    masks = torch.stack(fraction_split(y, val=0.3, test=0.1, seed=2))
    assert masks.sum(1).tolist() == [54, 27, 9]
    assert torch.equal(masks.any(0), ~y.isnan())
    assert int(masks.sum(0).max()) == 1
    assert torch.equal(masks, torch.stack(fraction_split(y, val=0.3, test=0.1, seed=2)))
    assert not torch.equal(masks, torch.stack(fraction_split(y, val=0.3, test=0.1, seed=3)))
    with pytest.raises(UsageError, match="one class per node"):
        random_split(y)
