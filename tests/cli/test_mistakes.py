"""A message and an exit code for every failure."""

import re
from pathlib import Path

import pytest

from lgcn.training import loop


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["train", "--dataset", "coro"], 2, "did you mean 'cora'?"),
        (["train", "--dataset", "cora"], 1, "the files of cora are not on this machine"),
        (["train", "--dataset", "no.npz"], 1, "no.npz"),
        (["train", "--set", "droput=1"], 2, "did you mean 'dropout'?"),
        (["train", "--set", "k=0"], 2, "k must be a whole number of at least 1, or none, got 0"),
        (["train", "--set", "n_init=20", "--set", "max_nodes=10"], 2, "n_init must be at most"),
        (["train", "--set", "dataset_options.x=1"], 2, "has no option 'x'"),
        (["train", "--set", "rank=[/a]"], 2, "got '[/a]'"),
        (["train", "--set", "k"], 2, "--set wants key=value"),
        (["train", "--config", "no.toml"], 2, "cannot read the config file no.toml"),
        (["train", "--resume"], 2, "--resume needs --out"),
        (["train", "--resume", "--out", "none"], 2, "no such run folder: none"),
        (["train", "--resume", "--out", "."], 1, "not a run folder"),
        (["train", "--out", "small.toml"], 1, "small.toml"),
        (["train", "--set", "device=nonsense"], 2, "device 'nonsense' is not available"),
        (["train", "--nonsense"], 2, "--nonsense"),
        (["evaluate", "none"], 2, "no such run folder: none"),
        (["evaluate", "[/none]"], 2, "no such run folder: [/none]"),
        (["predict", "none", "--output", "a.csv"], 2, "no such run folder: none"),
        (["data", "info", "coro"], 2, "did you mean 'cora'?"),
        (["data", "path", "cora"], 1, "the files of cora are not on this machine"),
    ],
)
def test_mistakes_end_in_a_message(lgcn_, args: list[str], code: int, message: str):
    output = lgcn_(*args)
    assert output.code == code
    assert message in output.err


def test_a_diverged_run_is_a_failure(lgcn_):
    output = lgcn_("train", "--config", "small.toml", "--set", "lr=1e30", "--out", "a")
    assert output.code == 1
    assert re.search(r"loss became (nan|inf) in epoch \d", output.err)
    assert not Path("a").exists()


def test_a_damaged_run_is_a_failure(lgcn_, trained: Path):
    (trained / "model.safetensors").write_bytes(b"nonsense")
    output = lgcn_("evaluate", trained)
    assert output.code == 1
    assert "model.safetensors is damaged" in output.err.replace("\n", "")


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


def test_memory_that_cannot_be_had_is_one_line(lgcn_, monkeypatch: pytest.MonkeyPatch):
    errors = iter(
        [
            MemoryError("Unable to allocate 8 TiB"),
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."),
            RecursionError("maximum recursion depth exceeded"),
        ]
    )

    def fail(*_: object, **__: object) -> None:
        raise next(errors)

    monkeypatch.setattr(loop, "_train_epoch", fail)
    for number in range(3):
        output = lgcn_("train", "--config", "small.toml", "--out", f"run{number}")
        assert output.code == 1
        assert ("memory" if number < 2 else "nested") in output.message
