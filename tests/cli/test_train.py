"""What `lgcn train` prints, how settings are given to it, and how runs are resumed or replaced."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

import lgcn.datasets
from lgcn.cli import train as command
from lgcn.training import Run

from .small import (
    SETTINGS,
    contents,
    interrupt_after_a_checkpoint,
    lasting,
    several_labels,
    write_toml,
)

KEYS = {
    "dataset",
    "metric",
    "seed",
    "val_score",
    "test_score",
    "test_score_released_rule",
    "best_epoch",
    "epochs",
    "seconds",
    "out",
}


def test_train_prints_one_json_object(lgcn_, place: Path):
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json", "--quiet")
    assert output.code == 0
    record = output.json
    assert set(record) >= KEYS
    assert "history" not in record
    assert record["dataset"] == "synthetic"
    assert record["out"] == "a"
    assert output.err == ""
    assert record.pop("metrics") == json.loads((place / "a" / "metrics.json").read_text())
    saved = json.loads((place / "a" / "result.json").read_text())
    assert {key: saved[key] for key in record} == record


def test_train_says_both_rules_and_what_is_next(lgcn_):
    output = lgcn_("train", "--config", "small.toml", "--out", "a")
    record = Run("a").result()
    lines = output.out.splitlines()

    def score(label: str) -> str:
        (line,) = [line for line in lines if label in line]
        return re.findall(r"[\d.]+ %", line)[0]

    assert score("test, at that epoch") == f"{100 * record['test_score']:.1f} %"
    released = record["test_score_released_rule"]
    assert score("released program's rule (looks at the test set)") == f"{100 * released:.1f} %"
    assert score("validation, best epoch") == f"{100 * record['val_score']:.1f} %"
    assert "lgcn predict a --output FILE.csv" in output.out


def test_label_accuracy_is_shown_as_no_f1(lgcn_, monkeypatch: pytest.MonkeyPatch):
    several = replace(lgcn.datasets.DATASETS["synthetic"], load=several_labels)
    monkeypatch.setitem(lgcn.datasets.DATASETS, "several", several)
    output = lgcn_("train", "--dataset", "several", "--set", "max_epochs=2", "--out", "a")
    assert "share of node-label pairs (not F1)" in output.out
    assert "micro_f1" in output.out


def test_file_and_flags_mean_the_same(lgcn_):
    flags: list[str] = []
    for key, value in SETTINGS.items():
        table = {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {}
        flags += [x for k, v in (table or {key: value}).items() for x in ("--set", f"{k}={v}")]
    by_file = lgcn_("train", "--config", "small.toml", "--out", "a", "--json").json
    by_flags = lgcn_("train", *flags, "--out", "b", "--json").json
    assert lasting(by_file) == lasting(by_flags)
    assert Run("a").read() == Run("b").read()


def test_flags_win_over_the_file(lgcn_):
    lgcn_(
        *("train", "--config", "small.toml", "--seed", 3, "--out", "a"),
        *("--set", "max_epochs=2", "--set", "dataset_options.num_nodes=150"),
    )
    config, _ = Run("a").read()
    assert (config.seed, config.optimisation.max_epochs) == (3, 2)
    assert config.dataset_options == {**SETTINGS["dataset_options"], "num_nodes": 150}


def test_the_seed_changes_the_numbers(lgcn_):
    args = ("train", "--config", "small.toml", "--json", "--seed")
    records = [lgcn_(*args, seed).json for seed in (0, 1, 0)]
    assert [record["seed"] for record in records] == [0, 1, 0]
    folders = [record["out"] for record in records]
    assert folders == ["runs/synthetic-seed0", "runs/synthetic-seed1", "runs/synthetic-seed0-2"]
    weights = [Path(folder, "model.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[2]
    assert weights[0] != weights[1]


def test_progress_goes_to_a_terminal_on_standard_error(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "err", Console(stderr=True, force_terminal=True, width=100))
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert set(output.json) >= KEYS
    assert "validation" in output.err
    assert "epoch" in output.err


def test_progress_is_lines_without_a_terminal(lgcn_):
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert set(output.json) >= KEYS
    first, *_, last = output.err.splitlines()
    assert first.startswith("training LGCN on ")
    assert first.endswith("on the whole graph")
    epochs = output.json["epochs"]
    assert last.startswith(f"epoch {epochs}/")
    assert lgcn_("train", "--config", "small.toml", "--out", "b", "--quiet").err == ""


def test_paths_are_printed_whole(lgcn_, place: Path):
    folder = place / ("long-" * 30) / "[b]"
    output = lgcn_("train", "--config", "small.toml", "--out", folder)
    assert f"lgcn predict {shlex.quote(str(folder))} --output FILE.csv" in output.out


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


def test_a_second_interrupt_says_how_to_resume(lgcn_, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        interrupt_after_a_checkpoint(patched, "a")
        output = lgcn_("train", "--config", "small.toml", "--out", "a")
    assert output.code == 130
    command = re.search("lgcn (train --resume --out a)", output.err)
    assert command is not None
    assert lgcn_(*shlex.split(command[1]), "--json").json["epochs"] == 5


def test_a_run_stopped_by_ctrl_c_can_be_resumed(lgcn_, place: Path):
    long = ("--config", "small.toml", "--set", "max_epochs=200", "--set", "patience=200")
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
    assert Run("run").load_checkpoint()[0] < 200
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
