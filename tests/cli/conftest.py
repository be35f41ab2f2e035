"""A folder with a config file, a finished run, and a graph store with a run on it."""

import shutil
from pathlib import Path

import pytest

from lgcn.datasets import synthetic
from lgcn.training import Settings, train

from .small import SETTINGS, SHORT, SIZE, write_toml


@pytest.fixture(autouse=True)
def place(empty_folder: Path) -> Path:
    write_toml(empty_folder / "small.toml", SETTINGS)
    return empty_folder


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    options = SETTINGS["dataset_options"]
    train(synthetic(**options), Settings.create(**SETTINGS), out=folder)
    return folder


@pytest.fixture
def trained(trained_run: Path, place: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(trained_run, place / "trained"))


@pytest.fixture
def store(lgcn_, place: Path) -> Path:
    assert lgcn_("generate", "store", *SIZE).code == 0
    return place / "store"


@pytest.fixture
def run_on_store(lgcn_, store: Path, place: Path) -> Path:
    output = lgcn_("train", "--graph", "store", *SHORT, "--out", "run")
    assert output.code == 0, output.err
    return place / "run"
