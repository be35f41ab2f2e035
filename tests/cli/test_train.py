"""What `lgcn train` prints where, and how settings are given to it."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import lgcn.datasets
from lgcn.cli import train as command
from lgcn.training import Run

from .small import SETTINGS, lasting, several_labels

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
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert output.code == 0
    record = output.json
    assert set(record) >= KEYS
    assert "history" not in record
    assert record["dataset"] == "synthetic"
    assert record["out"] == "a"
    assert output.err == ""
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


def test_paths_are_printed_whole(lgcn_, place: Path):
    folder = place / ("long-" * 30) / "[b]"
    output = lgcn_("train", "--config", "small.toml", "--out", folder)
    assert f"lgcn predict {shlex.quote(str(folder))} --output FILE.csv" in output.out
