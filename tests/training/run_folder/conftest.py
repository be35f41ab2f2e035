"""A finished run and one that was stopped, and copies of them."""

import shutil
from pathlib import Path

import pytest

from lgcn.errors import TrainingInterrupted
from lgcn.training import Result, loop, train

from ..graphs import settings, small_graph
from .runs import at_epoch, interrupt


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every epoch."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, train(small_graph(), settings(), out=folder)


@pytest.fixture
def finished(finished_run: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of a finished run, to be damaged."""
    return Path(shutil.copytree(finished_run[0], tmp_path / "run"))


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(TrainingInterrupted):
        train(small_graph(), settings(), out=folder, on_epoch=at_epoch(3, interrupt))
    return folder


@pytest.fixture
def stopped(stopped_run: Path, tmp_path: Path) -> Path:
    """A copy of a run that was stopped after epoch 3, to be damaged or gone on with."""
    return Path(shutil.copytree(stopped_run, tmp_path / "run"))
