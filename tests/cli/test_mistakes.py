"""A message and an exit code for every failure."""

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["train", "--dataset", "coro"], 2, "did you mean 'cora'?"),
        (["train", "--dataset", "cora"], 1, "the files of cora are not on this machine"),
        (["train", "--dataset", "no.npz"], 1, "no.npz"),
        (["train", "--set", "droput=1"], 2, "did you mean 'dropout'?"),
        (["train", "--set", "k=0"], 2, "k must be at least 1, got 0"),
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
        (["predict", "none", "--output", "."], 2, "must end in .csv, .tsv, .parquet (--output)"),
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
