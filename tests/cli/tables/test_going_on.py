"""Runs on tables that go on, and runs that exist already."""

import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from lgcn.training import Run, loop

from .tables import PRINTS_WARNINGS, RUN, TOPIC

pytestmark = PRINTS_WARNINGS


def test_an_interrupted_run_goes_on_from_anywhere(lgcn_, monkeypatch: pytest.MonkeyPatch):
    args = ("train", *TOPIC, "--set", "max_epochs=12", "--set", "patience=12", "--out")
    assert lgcn_(*args, "whole").code == 0
    train_epoch, epochs = loop._train_epoch, iter(range(100))

    def interrupted(*more: Any, **named: Any) -> Any:
        if next(epochs) == 5:
            signal.raise_signal(signal.SIGINT)
        return train_epoch(*more, **named)

    monkeypatch.setattr(loop, "_train_epoch", interrupted)
    output = lgcn_(*args, "run")
    assert (output.code, output.out) == (130, "")
    command = re.search(r"Resume with: lgcn (.*)", output.err)
    assert command is not None
    assert 0 < Run("run").load_checkpoint()[0] < 12
    monkeypatch.setattr(loop, "_train_epoch", train_epoch)
    resume = [word.replace("run", str(Path("run").absolute())) for word in shlex.split(command[1])]
    whole = Path("whole").absolute()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    resumed = lgcn_(*resume, "--json").json
    assert resumed["epochs"] == 12
    weights = [Path(run, "model.safetensors").read_bytes() for run in (resumed["out"], whole)]
    assert weights[0] == weights[1]


def test_resume_takes_the_same_tables_and_no_others(lgcn_, trained: Path):
    assert lgcn_("train", *TOPIC, *RUN, "--resume").code == 0
    output = lgcn_("train", *TOPIC, *RUN, "--resume", "--directed")
    assert output.code == 2
    assert "--resume keeps the settings" in output.message


def test_an_existing_run_is_not_touched(lgcn_, trained: Path):
    before = (trained / "model.safetensors").read_bytes()
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 2
    assert "already holds a run" in output.message
    assert (trained / "model.safetensors").read_bytes() == before
