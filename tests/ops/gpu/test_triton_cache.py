"""Triton's cache: its own folder where it can be written to, else a temporary one."""

import os
import warnings
from pathlib import Path

import pytest

from lgcn.ops.gpu.triton_cache import ensure_triton_cache


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRITON_HOME", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", "")  # so that it is put back as it was
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_folder_that_can_be_made_is_left_to_triton(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        ensure_triton_cache()
    assert os.environ["TRITON_CACHE_DIR"] == ""
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("variable", ["HOME", "TRITON_HOME", "TRITON_CACHE_DIR"])
def test_where_it_cannot_be_a_temporary_folder_is_taken_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    file = tmp_path / "file"  # there cannot be a folder in it, whoever asks
    file.touch()
    monkeypatch.setenv(variable, str(file))
    with pytest.warns(UserWarning, match=rf"{file}.* cannot be written to.*TRITON_CACHE_DIR"):
        ensure_triton_cache()
    assert Path(os.environ["TRITON_CACHE_DIR"]).is_dir()
    with warnings.catch_warnings(action="error"):
        ensure_triton_cache()
