"""The split of a run: written, read again, and refused if it is damaged."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.errors import CheckpointError, UsageError
from lgcn.training import Run, train
from lgcn.training.split_file import check_split, read_split, split_of, write_split

from .graphs import settings, small_graph


def test_a_split_is_read_as_it_was_written(tmp_path: Path) -> None:
    graph = small_graph()
    write_split(tmp_path / "split.npz", split_of(graph))
    found = read_split(tmp_path / "split.npz", graph.num_nodes)
    assert found is not None
    for name in ("train", "val", "test"):
        np.testing.assert_array_equal(found[name], graph.mask(name).numpy())
        assert np.load(tmp_path / "split.npz")[name].dtype == np.uint8
    write_split(tmp_path / "again.npz", split_of(graph))
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "split.npz").read_bytes()


def test_a_missing_mask_has_no_nodes() -> None:
    split = split_of(replace(small_graph(), test_mask=None))
    assert not split["test"].any()
    assert split["train"].sum() == 30


def test_no_file_is_no_split(tmp_path: Path) -> None:
    assert read_split(tmp_path / "split.npz", 10) is None


def arrays(**changes: Any) -> bytes:
    split: dict[str, Any] = {name: np.zeros(5, np.uint8) for name in ("train", "val", "test")}
    file = io.BytesIO()
    np.savez(file, **{k: v for k, v in {**split, **changes}.items() if v is not None})
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        arrays()[:-30],
        arrays(val=None),
        arrays(val=np.full(5, 2, np.uint8)),
        arrays(val=np.zeros(4, np.uint8)),
        arrays(train=np.zeros((5, 1), np.uint8)),
        arrays(test=np.zeros(5)),
        arrays(test=np.array([object()] * 5)),
    ],
)
def test_a_damaged_split_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "split.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"split\.npz") as caught:
        read_split(tmp_path / "split.npz", 5)
    assert "\n" not in str(caught.value)


def test_a_small_file_cannot_fill_the_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "split.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("train", "val", "test"):
            archive.writestr(f"{name}.npy", bytes(2**22))
    with pytest.raises(CheckpointError, match="unpacks to"):
        read_split(tmp_path / "split.npz", 5)


def test_a_run_on_another_split_is_not_resumed(tmp_path: Path) -> None:
    graph = small_graph()
    train(graph, settings(max_epochs=1), out=tmp_path / "run")
    other = replace(graph, val_mask=graph.test_mask, test_mask=graph.val_mask)
    stored = Run(tmp_path / "run").split(200)
    assert stored is not None
    check_split(tmp_path, graph, stored)
    check_split(tmp_path, other, None)
    with pytest.raises(UsageError, match="val nodes"):
        train(other, settings(max_epochs=1), out=tmp_path / "run", resume=True)
