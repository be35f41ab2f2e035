"""minesweeper and tolokers: made-up files, and the real ones where they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.datasets import check_dataset, dataset_files, load_dataset
from lgcn.errors import DataError, UsageError

NODES = 30


def arrays(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    part = rng.integers(0, 3, (10, NODES))
    found = {
        "node_features": rng.random((NODES, 4)).astype(np.float32),
        "node_labels": rng.integers(0, 2, NODES),
        "edges": rng.integers(0, NODES, (50, 2)),
        **{f"{name}_masks": part == i for i, name in enumerate(("train", "val", "test"))},
    }
    return {**found, **changes}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "heterophilous").mkdir()
    np.savez(tmp_path / "heterophilous" / "tolokers.npz", **arrays())
    return tmp_path


def test_content(root: Path) -> None:
    given = arrays()
    graph = load_dataset("tolokers", root, split=3)
    assert graph.name == "tolokers"
    assert (graph.x.numpy() == given["node_features"]).all()
    assert (graph.y.numpy() == given["node_labels"]).all()
    for name in ("train", "val", "test"):
        assert (graph.mask(name).numpy() == given[f"{name}_masks"][3]).all()
    pairs = {(int(a), int(b)) for a, b in given["edges"] if a != b}
    assert set(map(tuple, graph.edge_index.t().tolist())) == pairs | {(b, a) for a, b in pairs}
    assert dataset_files("tolokers", root) == [root / "heterophilous" / "tolokers.npz"]


@pytest.mark.parametrize("split", [-1, 10, 0.5, True, "0"])
def test_wrong_split(root: Path, split: Any) -> None:
    with pytest.raises(UsageError, match="split must be a whole number from 0 to 9"):
        load_dataset("tolokers", root, split=split)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": np.array([[0, NODES]])}, "edges"),
        ({"node_labels": np.full(NODES, -1)}, "node_labels"),
        ({"node_features": np.full((NODES, 2), np.nan)}, "node_features"),
        ({"val_masks": np.zeros((10, 3), bool)}, "val_masks"),
    ],
)
def test_damaged(root: Path, change: dict[str, Any], message: str) -> None:
    np.savez(root / "heterophilous" / "tolokers.npz", **arrays(**change))
    with pytest.raises(DataError, match=message):
        load_dataset("tolokers", root)


def test_missing_and_unknown(root: Path) -> None:
    with pytest.raises(DataError, match=r"minesweeper\.npz"):
        load_dataset("minesweeper", root)
    with pytest.raises(UsageError, match="no option 'fold'"):
        check_dataset("tolokers", root, fold=1)


@pytest.mark.parametrize(
    ("name", "sizes"), [("minesweeper", (10000, 78804, 7)), ("tolokers", (11758, 1038000, 10))]
)
def test_real_files(real_data: Path, name: str, sizes: tuple[int, int, int]) -> None:
    if not (real_data / "heterophilous" / f"{name}.npz").exists():
        pytest.skip(f"LGCN_DATA lacks {name}.npz")
    graph = load_dataset(name, real_data, split=9)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == sizes
    total = sum(int(graph.mask(split).sum()) for split in ("train", "val", "test"))
    assert total == graph.num_nodes
    assert not bool((graph.train_mask & graph.test_mask).any())
