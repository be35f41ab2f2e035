"""Kept matrices are the blocks they were made of, and leave no file."""

import errno
import tempfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn.errors import DataError, UsageError
from lgcn.utils.scratch import Scratch

BLOCKS = torch.randn(7, 3).split([2, 4, 1])


@pytest.mark.parametrize("memory", [0, 84])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_matrix_is_its_blocks(tmp_path: Path, memory: int, dtype: torch.dtype) -> None:
    scratch = Scratch(84, dtype, memory, tmp_path)
    assert scratch.in_memory is (memory == 84)
    kept = scratch.keep((7, 3), (block.to(dtype) for block in BLOCKS))
    assert torch.equal(kept, torch.cat(BLOCKS).to(dtype))
    assert list(tmp_path.iterdir()) == []  # while it is mapped, and so after a kill too


def test_files_go_with_the_last_tensor(tmp_path: Path) -> None:
    def open_files() -> int:
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    if not Path("/proc/self/maps").exists():
        pytest.skip("only Linux lists its maps")
    kept = Scratch(84, torch.float32, 0, tmp_path).keep((7, 3), iter(BLOCKS))
    view = kept[2:4]
    del kept
    assert open_files() == 1
    del view
    assert open_files() == 0


def test_a_folder_must_exist_if_it_is_used(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert Scratch(10, torch.float32, 10, missing).in_memory
    with pytest.raises(UsageError, match="scratch must be an existing folder, got"):
        Scratch(11, torch.float32, 10, missing)


def test_a_disk_that_is_too_small_is_named_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10))
    with pytest.raises(DataError, match=r"too little space for 2.50 GB of layers .*\(memory\)"):
        Scratch(2_500_000_000, torch.float32, 10, tmp_path)


def test_a_disk_that_fills_up_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, **_: Any) -> None: ...

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with pytest.raises(DataError, match="has too little space"):
        Scratch(84, torch.float32, 0, tmp_path).keep((7, 3), iter(BLOCKS))


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    scratch = Scratch(8, torch.float32, memory=0, folder=tmp_path)
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(DataError, match=rf"{tmp_path}: Permission denied.*scratch"):
        scratch.keep((1, 2), iter([torch.zeros(1, 2)]))


@pytest.mark.parametrize("memory", [0, 84])
def test_missing_rows_are_written_later(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lgcn.utils.scratch.ZEROS_BYTES", 24)  # two rows
    kept = Scratch(84, torch.float32, memory, tmp_path).keep((7, 3), iter(BLOCKS[:1]))
    kept[2:] = torch.cat(BLOCKS[1:])
    assert torch.equal(kept, torch.cat(BLOCKS))
