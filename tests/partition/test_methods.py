"""Parts are balanced, none is empty, and few edges are cut."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.partition import ldg as ldg_module
from lgcn.partition.ldg import ldg
from lgcn.partition.methods import assign, fill_empty
from lgcn.store.open_store import Store

from .graphs import stored


def nothing(*_: object) -> None:
    """No progress."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four groups of 50 nodes in random order, and a few edges between them."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.arange(200) % 4)
    members = [np.flatnonzero(group == g) for g in range(4)]
    inside = np.concatenate([rng.choice(m, (2, 400)) for m in members], axis=1)
    edges = np.concatenate([inside, rng.integers(0, 200, (2, 60))], axis=1)
    train = torch.from_numpy(rng.random(200) < 0.3)
    graph = Graph.from_edge_index(
        torch.from_numpy(edges), 200, y=torch.from_numpy(group), train_mask=train
    )
    return stored(tmp_path / "store", graph)


def cut(store: Store, part: np.ndarray) -> float:  # type: ignore[type-arg]
    row = np.repeat(np.arange(len(part)), np.diff(store.arrays["rowptr"]))
    return float((part[row] != part[store.arrays["col"]]).mean())


def test_the_stream_cuts_little_and_further_passes_cut_less(store: Store) -> None:
    once = ldg(store, 4, block=1 << 20, passes=1, on_progress=nothing)
    found = ldg(store, 4, block=1 << 20, on_progress=nothing)
    assert cut(store, found) < cut(store, once)
    assert cut(store, found) < 0.15 < 0.7 < cut(store, np.arange(200, dtype=np.int32) % 4)


def test_the_stream_balances_nodes_and_training_nodes(store: Store) -> None:
    found = ldg(store, 4, block=1 << 20, on_progress=nothing)
    sizes = np.bincount(found, minlength=4)
    train = np.bincount(found[store.arrays["train_mask"]], minlength=4)
    assert sizes.max() <= ldg_module.SLACK * 50 + 1
    assert train.max() <= ldg_module.TRAIN_SLACK * train.mean() + 1


def test_blocks_do_not_change_the_stream(store: Store) -> None:
    whole = ldg(store, 5, block=1 << 20, on_progress=nothing)
    pieces = ldg(store, 5, block=100, on_progress=nothing)
    assert (whole == pieces).all()


@pytest.mark.parametrize("method", ["metis", "ldg", "hash"])
@pytest.mark.parametrize("num_parts", [1, 7, 30])
def test_no_part_is_empty_whatever_the_graph(method: str, num_parts: int, tmp_path: Path) -> None:
    for edges in (torch.zeros(2, 0).long(), torch.tensor([[0, 0, 0, 5], [1, 2, 3, 6]])):
        empty = stored(tmp_path / "store", Graph.from_edge_index(edges, 30))
        found = assign(empty, num_parts, method, 0, block=1 << 20, on_progress=nothing)
        sizes = np.bincount(found, minlength=num_parts)
        assert found.dtype == np.int32
        assert len(sizes) == num_parts
        assert sizes.min() > 0
        if method != "hash":
            assert sizes.max() <= max(1.5 * 30 / num_parts, 4)


def test_nodes_of_the_largest_part_fill_an_empty_one() -> None:
    part = np.array([0, 0, 0, 2, 2], np.int32)
    fill_empty(part, 4)
    assert sorted(np.bincount(part, minlength=4)) == [1, 1, 1, 2]
