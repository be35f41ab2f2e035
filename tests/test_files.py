"""Files are written whole or not at all."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lgcn.files import atomic, write_json


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def fail_halfway(path: Path) -> None:
    with atomic(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("disk on fire")


def test_the_file_appears_when_all_is_written(tmp_path: Path):
    path = tmp_path / "a" / "b.txt"  # folders are made
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail_halfway(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_failure_leaves_no_file_where_there_was_none(tmp_path: Path):
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail_halfway(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_permissions_follow_the_umask(tmp_path: Path, umask: int):
    write_json(tmp_path / "a.json", 1)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o666 & ~umask
    assert os.umask(umask) == umask  # writing has not changed it


def test_json_comes_back(tmp_path: Path):
    value = {"name": "Müller", "scores": [0.1, None, True], "best": float("inf")}
    write_json(tmp_path / "a.json", value)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == value


def test_what_is_no_json_leaves_the_old_file(tmp_path: Path):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == 1
    assert len(list(tmp_path.iterdir())) == 1
