import sys
import tempfile
from pathlib import Path

import pytest

from lgcn.datasets.locate import cache_folder, data_folders, find_files, missing_files


def test_order(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, variable = tmp_path / "root", tmp_path / "variable"
    monkeypatch.setenv("LGCN_DATA", str(variable))
    assert data_folders(root) == [root, variable, cache]
    for folder in (cache, variable, root):  # the later ones take precedence
        folder.mkdir(parents=True)
        (folder / "file").touch()
        assert find_files(["file"], root) == [folder / "file"]


def test_all_files_must_be_in_one_folder(tmp_path: Path, cache: Path) -> None:
    (cache / "sub").mkdir(parents=True)
    (tmp_path / "a").touch()
    (cache / "sub" / "b").touch()
    assert find_files(["a", "b"], tmp_path, ["sub"]) is None
    (cache / "sub" / "a").touch()
    assert find_files(["a", "b"], tmp_path) is None
    assert find_files(["a", "b"], tmp_path, ["sub"]) == [cache / "sub" / "a", cache / "sub" / "b"]


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert find_files(["a"], tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has LOCALAPPDATA instead")
def test_cache_without_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "lgcn"


def test_message(tmp_path: Path, cache: Path) -> None:
    message = str(missing_files("it", ["a", "b"], tmp_path, ["sub"], advice="or else"))
    for part in ("it", "a, b", "sub/", str(tmp_path), str(cache), "LGCN_DATA", "root", "or else"):
        assert part in message


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has LOCALAPPDATA instead")
def test_cache_of_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(number: int) -> None:
        raise KeyError(number)

    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert cache_folder() == Path(tempfile.gettempdir()) / "lgcn"
