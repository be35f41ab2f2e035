"""A message and an exit code for every failure, and nothing left that is in the way."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn.cli import app
from lgcn.training import checks, loop, step

from ..small import contents

TRAIN = ("train", "--config", "small.toml", "--out", "a")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["train", "--dataset", "coro"], 2, r"'coro'.*'cora'"),
        (["train", "--dataset", "cora"], 1, r"cora .*LGCN_OFFLINE"),
        (["train", "--dataset", "no.npz"], 1, r"no\.npz"),
        (["train", "--set", "droput=1"], 2, r"'droput'.*'dropout'"),
        (["train", "--set", "k=0"], 2, r"\bk .*\b1.*got 0"),
        (["train", "--set", "n_init=20", "--set", "max_nodes=10"], 2, r"n_init .*max_nodes.*20"),
        (["train", "--set", "dataset_options.x=1"], 2, r"synthetic|digits .*'x'"),
        (["train", "--set", "rank=[/a]"], 2, r"rank .*normalized.*got '\[/a\]'"),
        (["train", "--set", "k"], 2, r"--set .*key=value.*'k'"),
        (["train", "--config", "no.toml"], 2, r"no\.toml"),
        (["train", "--resume"], 2, r"--resume .*--out"),
        (["train", "--resume", "--out", "none"], 2, ": none"),
        (["train", "--resume", "--out", "."], 1, "run folder"),
        (["train", "--out", "small.toml"], 1, r"small\.toml"),
        (["train", "--set", "device=nonsense"], 2, r"device .*'nonsense'"),
        (["train", "--nonsense"], 2, "--nonsense"),
        (["evaluate", "none"], 2, ": none"),
        (["evaluate", "[/none]"], 2, r"\[/none\]"),
        (["predict", "none", "--output", "a.csv"], 2, ": none"),
        (["data", "info", "coro"], 2, r"'coro'.*'cora'"),
        (["data", "path", "cora"], 1, r"cora .*lgcn data info cora"),
    ],
)
def test_mistakes_end_in_a_message(lgcn_, args: list[str], code: int, message: str):
    output = lgcn_(*args)
    assert output.code == code
    assert re.search(message, output.err.replace("\n", " "))


def test_a_diverged_run_is_a_failure(lgcn_):
    output = lgcn_("train", "--config", "small.toml", "--set", "lr=1e30", "--out", "a")
    assert output.code == 1
    assert re.search(r"loss became (nan|inf) in epoch \d", output.err)
    assert not Path("a").exists()


def test_a_damaged_run_is_a_failure(lgcn_, trained: Path):
    (trained / "model.safetensors").write_bytes(b"nonsense")
    output = lgcn_("evaluate", trained)
    assert output.code == 1
    assert "model.safetensors" in output.err.replace("\n", "")


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_control_characters_of_a_path_do_not_reach_the_terminal(lgcn_, command: str):
    name = "a\x1b]0;title\x07\x9b31m\u202e.npz"
    args = {
        "train": ("train", "--dataset", name),
        "evaluate": ("evaluate", name),
        "predict": ("predict", name, "--output", "a.csv"),
    }
    output = lgcn_(*args[command])
    assert r"a\x1b]0;title\x07\x9b31m\u202e.npz" in output.err
    assert not set("\x1b\x07\x9b\u202e") & set(output.err)


def raises(error: BaseException) -> Any:
    def raising(*_: Any, **__: Any) -> None:
        raise error

    return raising


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (MemoryError("Unable to allocate 8 TiB"), "memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."), "memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested"),
    ],
)
def test_memory_that_cannot_be_had_is_one_line(
    lgcn_, monkeypatch: pytest.MonkeyPatch, error: Exception, word: str
):
    monkeypatch.setattr(loop, "_train_epoch", raises(error))
    output = lgcn_(*TRAIN)
    assert output.code == 1
    assert word in output.message


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
    assert "memory" in output.message
    assert "200 nodes" in output.message
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
        assert "memory" in output.message


@pytest.mark.parametrize("allocate", [too_much_of_torch, too_much_of_numpy])
def test_too_little_memory_for_scores(
    lgcn_, monkeypatch: pytest.MonkeyPatch, trained: Path, allocate: Any
):
    monkeypatch.setattr("lgcn.nn.lgcn.LGCN.forward", allocate)
    for command in (("predict", trained, "--output", "p.csv"), ("evaluate", trained)):
        output = lgcn_(*command)
        assert output.code == 1
        assert "memory" in output.message
        assert "200 nodes" in output.message


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
    before = contents(trained)
    monkeypatch.setattr(checks, "available_memory", lambda: 10**9)
    output = lgcn_(*TRAIN[:3], "--out", trained, "--overwrite", "--set", "k=1000000")
    assert output.code == 1
    assert contents(trained) == before


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


def test_a_signal_while_an_error_is_reported_changes_nothing(
    lgcn_: Any, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    # A launcher sends it to all processes when one of them fails.
    report = app._report

    def interrupted(error: Exception) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return report(error)

    monkeypatch.setattr(app, "_report", interrupted)
    output = lgcn_("train", "--dataset", "nobody")
    assert output.code == 2
    assert "nobody" in output.message
