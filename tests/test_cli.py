"""The command line: what it prints where, its exit codes, and a message for every failure."""

import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import lgcn.data
from lgcn import cli
from lgcn.data import synthetic
from lgcn.graph import Graph
from lgcn.training import Config, Run, loop, train
from lgcn.warmup import Warmup

SETTINGS: dict[str, Any] = {
    "dataset": "synthetic",
    "dataset_options": {
        "num_nodes": 200,
        "num_classes": 3,
        "num_features": 8,
        "noise": 1.0,
        "labels_per_class": 10,
        "num_val": 60,
    },
    "hidden_channels": 8,
    "lgcl_channels": 4,
    "cnn": "double",
    "num_layers": 1,
    "k": 4,
    "dropout": 0.2,
    "lr": 0.05,
    "max_epochs": 5,
    "training": "whole",
}
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


@pytest.fixture(autouse=True)
def place(empty_folder: Path) -> Path:
    write_toml(empty_folder / "small.toml", SETTINGS)
    return empty_folder


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    options = SETTINGS["dataset_options"]
    train(synthetic(**options), Config.create(**SETTINGS), out=folder)
    return folder


@pytest.fixture
def trained(trained_run: Path, place: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(trained_run, place / "trained"))


def write_toml(path: Path, settings: dict[str, Any]) -> None:
    lines = [f"{key} = {json.dumps(v)}" for key, v in settings.items() if not isinstance(v, dict)]
    for key, table in settings.items():
        if isinstance(table, dict):
            lines += [f"[{key}]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
    path.write_text("\n".join(lines))


def write_npz(path: Path) -> None:
    """A ring of 60 nodes in three classes, with names for nodes and classes."""
    labels = np.repeat([0, 1, 2], 20)
    np.savez(
        path,
        edges=np.stack([np.arange(60), (np.arange(60) + 1) % 60], axis=1),
        labels=labels,
        feat_indptr=np.arange(61),
        feat_indices=labels,
        feat_shape=np.array([60, 3]),
        classes=np.array(["red", "green", "blue"]),
        names=np.array([f"node-{i}" for i in range(60)]),
    )


def several_labels() -> Graph:
    graph = synthetic(**SETTINGS["dataset_options"])
    return replace(graph, y=(graph.x[:, :4] > 0).long(), name="several")


def rows(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in record.items() if not key.endswith("_per_second")}
    return {key: value for key, value in kept.items() if key not in ("seconds", "out")}


# train


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
    several = lgcn.data.DATASETS["synthetic"]._replace(load=several_labels)
    monkeypatch.setitem(lgcn.data.DATASETS, "several", several)
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
    assert (config.seed, config.max_epochs) == (3, 2)
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
    assert "drop k or start a new run" in output.err


def test_resume_takes_the_same_settings_however_they_are_written(lgcn_, place: Path):
    write_toml(place / "b.toml", {**SETTINGS, "max_hops": "none", "dropout": 0})
    assert lgcn_("train", "--config", "b.toml", "--out", "b").code == 0
    assert lgcn_("train", "--config", "b.toml", "--out", "b", "--resume").code == 0


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
    assert lgcn_("evaluate", "a").code == 1


def test_a_damaged_run_is_a_failure(lgcn_, trained: Path):
    (trained / "model.safetensors").write_bytes(b"nonsense")
    output = lgcn_("evaluate", trained)
    assert output.code == 1
    assert "model.safetensors is damaged" in output.err.replace("\n", "")


def test_a_second_interrupt_says_how_to_go_on(lgcn_, monkeypatch: pytest.MonkeyPatch):
    def impatient(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_train_epoch", impatient)
    output = lgcn_("train", "--config", "small.toml", "--out", "a")
    assert output.code == 130
    assert "lgcn train --resume --out a" in output.err


def test_progress_goes_to_a_terminal_on_standard_error(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "err", Console(stderr=True, force_terminal=True, width=100))
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert set(output.json) >= KEYS
    assert "validation" in output.err
    assert "epoch" in output.err


def test_paths_are_printed_whole(lgcn_, place: Path):
    folder = place / ("long-" * 30) / "[b]"
    output = lgcn_("train", "--config", "small.toml", "--out", folder)
    assert f"lgcn predict {folder} --output FILE.csv" in output.out


# evaluate and predict


def test_evaluate_scores_all_splits(lgcn_, trained: Path):
    record = lgcn_("evaluate", trained, "--json").json
    result = Run(trained).result()
    assert record["metric"] == "accuracy"
    assert {split: part["nodes"] for split, part in record["splits"].items()} == {
        "train": 30,
        "val": 60,
        "test": 110,
    }
    assert record["splits"]["val"]["score"] == result["val_score"]
    assert record["splits"]["test"]["score"] == result["test_score"]


def test_evaluate_prints_a_table(lgcn_, trained: Path):
    output = lgcn_("evaluate", trained)
    score = f"{100 * Run(trained).result()['test_score']:.1f} %"
    (line,) = [line for line in output.out.splitlines() if "│ test" in line]
    assert score in line
    assert "110" in line


def test_predict_writes_every_nodes_probabilities(lgcn_, trained: Path):
    output = lgcn_("predict", trained, "--output", "new/p.csv", "--json")
    record = {"output": "new/p.csv", "nodes": 200, "abstained": 0}
    assert output.json == {**record, "classes": ["0", "1", "2"]}
    table = rows("new/p.csv")
    assert list(table[0]) == [
        "node",
        "predicted",
        "confidence",
        *(f"probability_{name}" for name in "012"),
    ]
    assert [row["node"] for row in table] == [str(i) for i in range(200)]
    chances = np.array([[float(row[f"probability_{i}"]) for i in range(3)] for row in table])
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)
    assert [int(row["predicted"]) for row in table] == chances.argmax(axis=1).tolist()


def test_predictions_score_as_evaluated(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "p.csv")
    graph = synthetic(**SETTINGS["dataset_options"])
    predicted = torch.tensor([int(row["predicted"]) for row in rows("p.csv")])
    right = (predicted == graph.y)[graph.test_mask].double().mean()
    assert float(right) == Run(trained).result()["test_score"]


def test_predict_replaces_the_file(lgcn_, trained: Path, place: Path):
    (place / "p.csv").write_text("old")
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.out == "wrote 200 predictions to p.csv\n"
    assert len(rows("p.csv")) == 200


def test_names_of_nodes_and_classes_are_used(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    record = lgcn_(
        *("train", "--dataset", "ring.npz", "--out", "a", "--json"),
        *("--set", "max_epochs=30", "--set", "dropout=0", "--set", "dataset_options.num_val=15"),
    ).json
    assert record["test_score"] > 0.8
    lgcn_("predict", "a", "--output", "p.csv")
    table = rows("p.csv")
    assert list(table[0])[3:] == ["probability_red", "probability_green", "probability_blue"]
    assert table[0]["node"] == "node-0"
    assert [table[i]["predicted"] for i in (5, 25, 45)] == ["red", "green", "blue"]


def test_several_labels_share_a_cell(lgcn_, monkeypatch: pytest.MonkeyPatch):
    several = lgcn.data.DATASETS["synthetic"]._replace(load=several_labels)
    monkeypatch.setitem(lgcn.data.DATASETS, "several", several)
    lgcn_("train", "--dataset", "several", "--set", "max_epochs=30", "--out", "a")
    assert lgcn_("predict", "a", "--output", "p.csv").code == 0
    table = rows("p.csv")
    for row in table:
        likely = [str(i) for i in range(4) if float(row[f"probability_{i}"]) > 0.5]
        assert row["predicted"] == ";".join(likely)
    assert any(";" in row["predicted"] for row in table)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_graph_that_does_not_fit_is_refused(lgcn_, trained: Path, command: str, place: Path):
    more = ["--output", "p.csv"] if command == "predict" else []
    output = lgcn_(command, trained, "--dataset", "digits", *more)
    assert output.code == 2
    assert "the model wants 8 features a node, digits has 64" in output.err
    assert not (place / "p.csv").exists()


def test_settings_lists_every_setting_with_its_default(lgcn_):
    listed = lgcn_("settings", "--json").json
    assert {key: row["default"] for key, row in listed.items()} == Config().to_dict()
    text = lgcn_("settings").out
    assert all(key in text for key in listed)
    assert "lgcn settings --dataset tables" in text


def test_settings_of_a_recipe_on_a_data_set(lgcn_):
    for flags, given in (
        (["--dataset", "tables"], {"dataset": "tables"}),
        (["--dataset", "tables", "--set", "labels=many"], {"dataset": "tables", "labels": "many"}),
        (["--recipe", "gat", "--set", "k=none"], {"recipe": "gat", "k": None}),
    ):
        listed = lgcn_("settings", "--json", *flags).json
        config = Config.create(**given).to_dict()
        assert {key: row["default"] for key, row in listed.items()} == config
    output = lgcn_("settings", "--recipe", "gta")
    assert output.code == 2
    assert "unknown recipe 'gta'; did you mean 'gat'?" in output.err
    output = lgcn_("settings", "--dataset", "coar")
    assert output.code == 2
    assert "there is no data set 'coar' (did you mean 'cora'?)" in output.err


# data


def test_data_list_names_every_data_set(lgcn_):
    listed = lgcn_("data", "list", "--json").json
    assert list(listed) == lgcn.data.dataset_names()
    text = lgcn_("data", "list").out
    assert all(name in text for name in listed)


def test_data_info_tells_the_sizes(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    record = lgcn_("data", "info", "ring.npz", "--json").json
    expected = {
        "name": "ring",
        "graphs": 1,
        "nodes": 60,
        "undirected_edges": 60,
        "mean_degree": 2.0,
        "largest_degree": 2,
        "isolated_nodes": 0,
        "features": 3,
        "classes": 3,
        "labels": "one a node",
        "setting": "transductive",
        "train_nodes": 30,
        "val_nodes": 15,
        "test_nodes": 15,
    }
    assert record == expected
    text = lgcn_("data", "info", "ring.npz").out
    assert all(key.replace("_", " ") in text for key in expected)


def test_data_path_tells_where_files_are(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    assert lgcn_("data", "path", "ring", "--root", place, "--json").json == {
        "name": "ring",
        "files": [str(place / "ring.npz")],
    }
    assert lgcn_("data", "path", "ring", "--root", place).out == f"{place / 'ring.npz'}\n"


def test_data_path_of_what_needs_no_files(lgcn_):
    assert lgcn_("data", "path", "digits", "--json").json == {"name": "digits", "files": []}
    output = lgcn_("data", "path", "digits")
    assert (output.code, output.out, output.err) == (0, "", "digits needs no files\n")


# fresh processes


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
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    command = re.search(r"Go on with: lgcn (.*)", err)
    assert command is not None
    assert Run("run").load_checkpoint()[0] < 400
    resumed = lgcn_(*shlex.split(command[1]), "--json").json
    assert lasting(resumed) == lasting(whole)
    weights = [Path(folder, "model.safetensors").read_bytes() for folder in ("run", "whole")]
    assert weights[0] == weights[1]


def test_help_and_version_load_no_torch():
    code = (
        "import sys\n"
        "from lgcn.cli import main\n"
        "for option in ('--help', '--version'):\n"
        "    sys.argv = ['lgcn', option]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'numba', 'torch_geometric'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "lgcn 0." in done.stdout


def test_warmup_tells_what_was_compiled_and_what_was_there(lgcn_, monkeypatch: pytest.MonkeyPatch):
    def stub(on_step: Callable[[str, int, int], None] | None) -> Warmup:
        if on_step is not None:
            on_step("k largest, float32", 3, 8)
        return Warmup({"lgcn.a._f": ["int32", "int64"]}, {"lgcn.b._g": ["int64"]}, ["/cache"], 1.5)

    monkeypatch.setattr("lgcn.warmup.warmup", stub)
    assert lgcn_("warmup", "--json").json == {
        "compiled": {"lgcn.a._f": ["int32", "int64"]},
        "cached": {"lgcn.b._g": ["int64"]},
        "folders": ["/cache"],
        "seconds": 1.5,
    }
    monkeypatch.setattr(cli, "err", Console(stderr=True, force_terminal=True, width=100))
    output = lgcn_("warmup")
    assert "38 %" in output.err
    assert "k largest, float32" in output.err
    rows = [re.findall(r"[\w.]+", line) for line in output.out.splitlines()]
    assert ["lgcn.a._f", "2", "0"] in rows
    assert ["lgcn.b._g", "0", "1"] in rows
    assert output.out.endswith("1.5 s; kept in\n/cache\n")


def test_version(lgcn_):
    assert lgcn_("--version").out == f"lgcn {lgcn.__version__}\n"
