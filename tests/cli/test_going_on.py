"""Runs that exist or were stopped: kept, replaced, gone on with."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn.training import Run, loop

from .small import SETTINGS, lasting, write_toml


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_existing_run_is_not_touched(lgcn_, trained: Path):
    before = contents(trained)
    output = lgcn_("train", "--config", "small.toml", "--out", trained)
    assert output.code == 2
    assert "already holds a run" in output.err
    assert "--resume" in output.err
    assert "--overwrite" in output.err
    assert contents(trained) == before


def test_overwrite_replaces_the_run(lgcn_, trained: Path):
    args = ("train", "--config", "small.toml", "--out", trained, "--overwrite", "--seed", 5)
    assert lgcn_(*args, "--json").json["seed"] == 5
    assert Run(trained).read()[0].seed == 5


def test_overwrite_keeps_the_old_run_where_the_new_one_cannot_start(lgcn_, trained: Path):
    before = contents(trained)
    assert lgcn_("train", "--dataset", "cora", "--out", trained, "--overwrite").code == 1
    assert contents(trained) == before


def test_resume_of_a_finished_run_prints_its_result(lgcn_, trained: Path):
    before = contents(trained)
    output = lgcn_("train", "--resume", "--out", trained, "--json")
    assert lasting(output.json).items() <= Run(trained).result().items()
    assert contents(trained) == before


def test_resume_refuses_changed_settings(lgcn_, trained: Path):
    output = lgcn_("train", "--resume", "--out", trained, "--set", "k=9", "--seed", 0)
    assert output.code == 2
    assert re.search(r"--resume .* drop k\b.*--out", output.err)


def test_resume_takes_the_same_settings_however_they_are_written(lgcn_, place: Path):
    write_toml(place / "b.toml", {**SETTINGS, "max_hops": "none", "dropout": 0})
    assert lgcn_("train", "--config", "b.toml", "--out", "b").code == 0
    assert lgcn_("train", "--config", "b.toml", "--out", "b", "--resume").code == 0


def test_a_second_interrupt_says_how_to_go_on(lgcn_, monkeypatch: pytest.MonkeyPatch):
    train_epoch = loop._train_epoch

    def impatient(*args: Any, **more: Any) -> Any:
        if Run("a").load_checkpoint() is not None:
            raise KeyboardInterrupt
        return train_epoch(*args, **more)

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(loop, "_train_epoch", impatient)
    output = lgcn_("train", "--config", "small.toml", "--out", "a")
    assert output.code == 130
    monkeypatch.setattr(loop, "_train_epoch", train_epoch)
    command = re.search("lgcn (train --resume --out a)", output.err)
    assert command is not None
    assert lgcn_(*shlex.split(command[1]), "--json").json["epochs"] == 5


def test_a_run_stopped_by_ctrl_c_can_be_gone_on_with(lgcn_, place: Path):
    long = ("--config", "small.toml", "--set", "max_epochs=400", "--set", "patience=400")
    whole = lgcn_("train", *long, "--out", "whole", "--json").json
    process = subprocess.Popen(
        [sys.executable, "-m", "lgcn", "train", *long, "--out", "run", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    try:
        deadline = time.monotonic() + 90
        while not Run("run").started and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)  # run.json may be there before it is synced, and the first epoch begins
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    command = re.search(r"Resume with: lgcn (.*)", err)
    assert command is not None, err
    assert Run("run").load_checkpoint()[0] < 400
    resumed = lgcn_(*shlex.split(command[1]), "--json").json
    assert lasting(resumed) == lasting(whole)
    weights = [Path(folder, "model.safetensors").read_bytes() for folder in ("run", "whole")]
    assert weights[0] == weights[1]


def test_two_trainings_at_once_leave_one_whole_run(lgcn_, place: Path):
    args = ("train", "--config", "small.toml", "--out", "run")
    with Run("run").locked():
        for more in ((), ("--overwrite",)):
            output = lgcn_(*args, *more)
            assert output.code == 2
            assert "another process is writing to the run in run" in output.message
    assert lgcn_(*args).code == 0
    with Run("run").locked():
        assert lgcn_(*args).code == 2
        assert lgcn_("predict", "run", "--output", "p.csv").code == 0  # readers need no lock
    (place / "run" / "result.json").unlink()
    with Run("run").locked():
        output = lgcn_("train", "--resume", "--out", "run")
        assert output.code == 2
        assert "another process is writing to the run in run" in output.message
