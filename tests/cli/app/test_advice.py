"""Advice on settings, runs and stores is followed to the letter, and helps."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lgcn.training import Run, loop

from ..small import SIZE, contents, interrupt_after_a_checkpoint, write_npz

FEW = ("--set", "max_epochs=2")
TRAIN = ("train", "--config", "small.toml", *FEW)
PREDICT = ("--output", "p.csv")


def found(pattern: str, output: Any) -> list[str]:
    """The words of an advice in the one line of an error."""
    match = re.search(pattern, output.message)
    assert match is not None, output.message
    return shlex.split(match[1] if match.re.groups else match[0])


def ok(output: Any) -> None:
    assert output.code == 0, output.err


@pytest.mark.parametrize(
    ("wrong", "advice", "right"),
    [
        ("--dataset syntetic", "did you mean '(synthetic)'", "--dataset {}"),
        ("--preset papr", "did you mean '(paper)'", "--preset {}"),
        ("--preset nope", r"known: .*(quick)\b", "--preset {}"),
        ("--set max_epoch=2", "did you mean '(max_epochs)'", "--set {}=2"),
        ("--set cnn=tripel", "must be one of (double)", "--set cnn={}"),
        ("--set lr=-1", r"at least (\d)", "--set lr={}"),
        ("--set k=abc", "whole number .*or (none)", "--set k={}"),
        ("--set views=1 --set agreement=1", r"at least (\d) views", "--set views={}"),
        ("--set sampler=walks --set max_nodes=none", "needs (max_nodes)", "--set {}=50"),
        (
            "--set dataset_options.num_node=200",
            "did you mean '(num_nodes)'",
            "--set dataset_options.{}=200",
        ),
        ("--memory much", "such as '(2GB)'", "--memory {}"),
    ],
)
def test_a_right_name_or_value(lgcn_, wrong: str, advice: str, right: str):
    refused = lgcn_(*TRAIN, *wrong.split())
    assert refused.code == 2
    (word,) = found(advice, refused)
    ok(lgcn_(*TRAIN, *right.format(word).split()))


def test_files_of_a_data_set_are_found_in_the_folder_that_is_named(lgcn_, place: Path):
    (place / "elsewhere").mkdir()
    write_npz(place / "elsewhere" / "ring.npz")
    output = lgcn_("data", "info", "ring.npz")
    assert output.code == 1
    flag = re.search(r"give (--root)", output.err)
    assert flag is not None
    assert "LGCN_DATA" in output.err
    ok(lgcn_("data", "info", "ring.npz", flag[1], "elsewhere"))


def test_a_data_set_is_downloaded_as_the_message_says(lgcn_, monkeypatch: pytest.MonkeyPatch):
    output = lgcn_("data", "path", "cora")
    command = re.search(r"lgcn (data info cora)", output.err)
    assert command is not None
    asked: list[str] = []

    def download(url: str, *_: Any) -> None:
        asked.append(url)

    monkeypatch.delenv("LGCN_OFFLINE")
    monkeypatch.setattr("lgcn.datasets.download.download", download)
    lgcn_(*command[1].split())
    assert len(asked) == 8


def test_a_run_that_exists_can_be_gone_on_with_replaced_and_left(lgcn_):
    ok(lgcn_(*TRAIN, "--out", "a"))
    weights = Path("a/model.safetensors")
    first = weights.stat().st_mtime_ns
    output = lgcn_(*TRAIN, "--out", "a")
    assert output.code == 2
    ok(lgcn_(*TRAIN, "--out", "a", *found("--resume", output)))
    assert weights.stat().st_mtime_ns == first
    ok(lgcn_(*TRAIN, "--out", "a", *found("--overwrite", output)))
    assert weights.stat().st_mtime_ns > first
    ok(lgcn_(*TRAIN, *found("--out", output), "b"))
    assert Run("b").finished


def test_the_folder_to_go_on_with_is_named(lgcn_):
    ok(lgcn_(*TRAIN, "--out", "a"))
    refused = lgcn_(*TRAIN, "--resume")
    assert refused.code == 2
    ok(lgcn_(*TRAIN, "--resume", *found("--out", refused), "a"))


def test_settings_that_changed_are_dropped_or_are_of_a_new_run(lgcn_):
    ok(lgcn_(*TRAIN, "--out", "a"))
    changed = (*TRAIN, "--set", "k=3")
    output = lgcn_(*changed, "--resume", "--out", "a")
    assert found(r"drop (\w+)", output) == ["k"]
    ok(lgcn_(*TRAIN, "--resume", "--out", "a"))
    ok(lgcn_(*changed, *found("--out", output), "b"))


@pytest.mark.parametrize("command", [("evaluate",), ("predict", *PREDICT), ("embed", *PREDICT)])
def test_a_run_that_was_stopped_names_the_command_to_go_on(
    lgcn_, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    if command[0] == "embed":
        command = ("embed", "--output", "e.npy")
    with monkeypatch.context() as patched:
        interrupt_after_a_checkpoint(patched, "a b")
        assert lgcn_(*TRAIN, "--out", "a b").code == 130
    ok(lgcn_(*found("lgcn (train --resume .*)", lgcn_(command[0], "a b", *command[1:]))))
    ok(lgcn_(command[0], "a b", *command[1:]))


def test_a_diverged_run_is_tried_again_in_the_same_folder(lgcn_):
    output = lgcn_(*TRAIN, "--set", "lr=1e30", "--out", "a")
    assert output.code == 1
    ok(lgcn_(*TRAIN, *found(r"--set lr=[\d.]+", output), "--out", "a"))


def test_what_is_next_after_training(lgcn_):
    text = lgcn_(*TRAIN, "--out", "a b").out.replace("\n", " ")
    command = re.search(r"next: lgcn (predict .* --output FILE\.csv)", text)
    assert command is not None
    ok(lgcn_(*shlex.split(command[1])))


def test_what_is_next_after_generating(lgcn_):
    text = lgcn_("generate", "my store", *SIZE).out
    command = re.search(r"next: lgcn (train --graph .*)", text)
    assert command is not None
    ok(lgcn_(*shlex.split(command[1]), *FEW))


def test_a_store_that_exists_is_replaced(lgcn_):
    ok(lgcn_("generate", "store", *SIZE))
    first = contents(Path("store"))
    command = ("generate", "store", *SIZE, "--seed", 1)
    refused = lgcn_(*command)
    assert refused.code == 2
    assert contents(Path("store")) == first
    ok(lgcn_(*command, *found("--overwrite", refused)))
    assert contents(Path("store")) != first


def trained_on_store(lgcn_: Callable[..., Any]) -> Callable[[], list[str]]:
    ok(lgcn_("generate", "store", *SIZE))
    ok(lgcn_("train", "--graph", "store", "--out", "run", *FEW))

    def moved() -> list[str]:
        Path("store").rename("moved")
        return ["moved"]

    return moved


def trained_on_npz(lgcn_: Callable[..., Any]) -> Callable[[], list[str]]:
    write_npz(Path("ring.npz"))
    ok(lgcn_("train", "--dataset", "ring.npz", "--out", "run", *FEW))

    def moved() -> list[str]:
        Path("other").mkdir()
        Path("ring.npz").rename("other/ring.npz")
        return ["other/ring.npz"]

    return moved


@pytest.mark.parametrize(
    ("trained_on", "flag"), [(trained_on_store, "--graph"), (trained_on_npz, "--dataset")]
)
def test_a_graph_that_moved_is_named_anew(lgcn_, trained_on: Any, flag: str):
    path = trained_on(lgcn_)()
    commands = (
        ("predict", "run", *PREDICT),
        ("evaluate", "run"),
        ("embed", "run", "--output", "e.npy"),
    )
    for command in commands:
        output = lgcn_(*command)
        assert output.code == 1
        advice = re.search(rf"has moved, give ({flag})", output.err)
        assert advice is not None, output.err
        ok(lgcn_(*command, advice[1], *path))


def test_a_run_whose_store_is_elsewhere_goes_on_when_it_is_back(
    lgcn_, monkeypatch: pytest.MonkeyPatch
):
    ok(lgcn_("generate", "store", *SIZE))
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    with monkeypatch.context() as patched:
        patched.setattr(loop.Run, "finish", interrupt)
        assert lgcn_("train", "--graph", "store", "--out", "run", *FEW).code == 130
    Path("store").rename("moved")
    output = lgcn_("train", "--resume", "--out", "run")
    path = re.search(r"put it back at (\S+)", output.message)
    assert path is not None, output.message
    Path("moved").rename(path[1])
    ok(lgcn_("train", "--resume", "--out", "run"))


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_model_that_cannot_go_layer_by_layer(lgcn_):
    small = ("--dataset", "synthetic", "--set", "dataset_options.num_nodes=200", *FEW)
    ok(lgcn_("train", *small, "--set", "model=gcn", "--preset", "gcn", "--out", "a"))
    command = ("predict", "a", *PREDICT)
    assert found("without (--memory)", lgcn_(*command, "--memory", "1GB"))
    ok(lgcn_(*command))


def test_an_output_of_a_known_kind(lgcn_, trained: Path):
    for command, name in (("predict", "p.txt"), ("embed", "p.csv")):
        output = lgcn_(command, trained, "--output", name)
        assert output.code == 2
        (suffix,) = found(r"must end in (\.\w+)", output)
        ok(lgcn_(command, trained, "--output", f"p{suffix}"))
        assert Path(f"p{suffix}").stat().st_size > 0


def test_one_graph_at_a_time(lgcn_):
    ok(lgcn_("generate", "store", *SIZE))
    output = lgcn_("train", "--graph", "store", "--dataset", "digits", *FEW)
    assert found("--dataset and --graph", output)
    ok(lgcn_("train", "--graph", "store", *FEW))


def test_store_by_its_name(lgcn_):
    ok(lgcn_("generate", "store", *SIZE))
    refused = lgcn_("train", "--dataset", "store", *FEW)
    assert refused.code == 2
    ok(lgcn_("train", *found("--graph", refused), "store", *FEW))


def test_k_that_is_far_too_large(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.training.checks.available_memory", lambda: 10**6)
    output = lgcn_(*TRAIN, "--set", "k=100000", "--out", "a")
    assert output.code == 1
    (largest,) = found(r"more than (\d+) values", output)
    ok(lgcn_(*TRAIN, "--set", f"k={largest}", "--out", "a"))
