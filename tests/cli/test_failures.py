"""Failures that nobody expected, and too little memory: one line, and the way is free again."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn.training import checks, loop, step

TRAIN = ("train", "--config", "small.toml", "--out", "a")


def raises(error: BaseException) -> Any:
    def raising(*_: Any, **__: Any) -> None:
        raise error

    return raising


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError()])
def test_a_bug_is_reported_in_a_line(lgcn_, monkeypatch: pytest.MonkeyPatch, error: Exception):
    monkeypatch.delenv("LGCN_DEBUG")
    monkeypatch.setattr(loop, "_train_epoch", raises(error))
    output = lgcn_(*TRAIN)
    assert output.code == 1
    assert f"internal error, {type(error).__name__}" in output.message
    path = re.search(r"report it with (\S+),", output.message)
    assert path is not None
    text = Path(path[1]).read_text()
    Path(path[1]).unlink()
    assert "Traceback" in text
    assert "_train_epoch" in text
    assert "small.toml" in text
    assert not Path("a").exists()


def test_what_is_nested_too_deeply_is_a_line(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "_train_epoch", raises(RecursionError("too deep")))
    output = lgcn_(*TRAIN)
    assert output.code == 1
    assert "nested too deeply" in output.message


def test_a_bug_is_raised_to_find_it(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "_train_epoch", raises(KeyError("x")))
    with pytest.raises(KeyError):
        lgcn_(*TRAIN)


def too_much_of_torch(*_: Any, **__: Any) -> None:
    torch.empty(2**50)


def too_much_of_numpy(*_: Any, **__: Any) -> None:
    np.empty(2**50)


@pytest.mark.parametrize("allocate", [too_much_of_torch, too_much_of_numpy])
def test_too_little_memory_for_a_step(lgcn_, monkeypatch: pytest.MonkeyPatch, allocate: Any):
    with monkeypatch.context() as patched:
        patched.setattr(step.Step, "_train_on", allocate)
        output = lgcn_(*TRAIN)
    assert output.code == 1
    assert "not enough memory for a training step on 200 nodes" in output.message
    assert "smaller k" in output.message
    assert not Path("a").exists()
    assert lgcn_(*TRAIN).code == 0


@pytest.mark.parametrize("allocate", [too_much_of_torch, too_much_of_numpy])
def test_too_little_memory_elsewhere(
    lgcn_, monkeypatch: pytest.MonkeyPatch, trained: Path, allocate: Any
):
    monkeypatch.setattr("lgcn.datasets.load_dataset", allocate)
    for command in (TRAIN, ("predict", trained, "--output", "p.csv"), ("evaluate", trained)):
        output = lgcn_(*command)
        assert output.code == 1
        assert "not enough memory" in output.message


@pytest.mark.parametrize("allocate", [too_much_of_torch, too_much_of_numpy])
def test_too_little_memory_for_scores(
    lgcn_, monkeypatch: pytest.MonkeyPatch, trained: Path, allocate: Any
):
    monkeypatch.setattr("lgcn.nn.lgcn.LGCN.forward", allocate)
    for command in (("predict", trained, "--output", "p.csv"), ("evaluate", trained)):
        output = lgcn_(*command)
        assert output.code == 1
        assert "not enough memory for the scores of a whole graph of 200 nodes" in output.message


def test_a_k_for_which_there_is_no_memory(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 10**9)
    output = lgcn_(*TRAIN, "--set", "k=1000000")
    assert output.code == 1
    assert "k=1000000" in output.message
    assert "1 GB" in output.message
    assert not Path("a").exists()
    assert lgcn_(*TRAIN, "--set", "k=4").code == 0


def test_an_older_run_survives_a_k_for_which_there_is_no_memory(
    lgcn_, monkeypatch: pytest.MonkeyPatch, trained: Path
):
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    monkeypatch.setattr(checks, "available_memory", lambda: 10**9)
    output = lgcn_(*TRAIN[:3], "--out", trained, "--overwrite", "--set", "k=1000000")
    assert output.code == 1
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_k_far_above_all_degrees_is_noted(lgcn_):
    output = lgcn_(*TRAIN, "--set", "k=150", "--json")
    assert output.json["epochs"] == 5
    (note,) = output.notes("k=150")
    assert re.search(r"k=\d\d selects", note)


def test_a_killed_run_without_a_checkpoint_is_not_in_the_way(lgcn_, trained: Path):
    """A killed process can remove nothing."""
    Path("a").mkdir()
    Path("a", "run.json").write_bytes((trained / "run.json").read_bytes())
    assert lgcn_(*TRAIN).code == 0


def test_a_folder_that_was_there_stays(lgcn_, monkeypatch: pytest.MonkeyPatch):
    Path("a").mkdir()
    Path("a", "notes.txt").write_text("mine")
    monkeypatch.setattr(loop, "_train_epoch", raises(MemoryError()))
    assert lgcn_(*TRAIN).code == 1
    assert [path.name for path in Path("a").iterdir()] == ["notes.txt"]


def test_a_reader_that_has_enough():
    process = subprocess.Popen(
        [sys.executable, "-m", "lgcn", "settings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) != 0
