"""Every test sees empty data folders and no network, unless it asks for something else."""

import os
from pathlib import Path

import pytest

from lgcn.datasets.locate import find_files

REAL_DATA = os.environ.get("LGCN_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a machine that is offline."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setenv("LOCALAPPDATA", str(base))
    monkeypatch.setenv("LGCN_OFFLINE", "1")
    monkeypatch.delenv("LGCN_DATA", raising=False)
    return base / "lgcn"


@pytest.fixture
def real_data() -> Path:
    """The folder of real data; tests of a single file call :func:`need` as well."""
    if REAL_DATA is None:
        pytest.skip("LGCN_DATA is not set")
    return Path(REAL_DATA)


def need(root: Path, file: str) -> None:
    """Skips the test where a file of real data is absent."""
    if find_files([file], root, ("planetoid", "ppi", "npz")) is None:
        pytest.skip(f"LGCN_DATA lacks {file}")
