"""From two tables to predictions: files of all kinds, what is printed, runs that are resumed."""

import gzip
import inspect
import json
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from lgcn.cli import table_flags as cli_tables
from lgcn.datasets.graph_report import suggest_k
from lgcn.tables.from_tables import import_tables
from lgcn.training import Run, loop

from .tables import (
    CLASSES,
    FEW,
    NUM_NODES,
    PRINTS_WARNINGS,
    RUN,
    TOPIC,
    Columns,
    edge_columns,
    label,
    node_columns,
    rows,
    write,
)

pytestmark = PRINTS_WARNINGS


def test_two_commands_from_two_tables_to_predictions(lgcn_):
    output = lgcn_("train", *TOPIC, "--out", "runs/mine", "--set", "max_epochs=30", "--quiet")
    assert output.code == 0
    assert output.err == ""
    assert "lgcn predict runs/mine --output FILE.csv" in output.out
    assert "released program" not in output.out
    output = lgcn_("predict", "runs/mine", "--output", "predictions.csv")
    assert (output.code, output.out) == (0, f"wrote {NUM_NODES} predictions to predictions.csv\n")
    assert output.err == ""
    table = rows("predictions.csv")
    probabilities = [f"probability_{name}" for name in CLASSES]
    columns = ["node", "predicted", "confidence", "true", "split", *probabilities]
    assert list(table[0]) == columns
    assert [row["node"] for row in table] == node_columns()["id"]
    assert [row["predicted"] for row in table] == [label(i) for i in range(NUM_NODES)]
    for row in table:
        chances = [float(row[name]) for name in probabilities]
        assert sum(chances) == pytest.approx(1, abs=1e-5)
        assert float(row["confidence"]) == max(chances)
        assert row["predicted"] == CLASSES[int(np.argmax(chances))]


def test_train_prints_one_json_object(lgcn_, place: Path):
    output = lgcn_("train", *TOPIC, *RUN, "--json", "--quiet")
    record = output.json
    assert output.err == ""
    assert (record["dataset"], record["graph"], record["metric"]) == ("tables", "nodes", "accuracy")
    assert record.pop("metrics")["metric"] == "accuracy"
    saved = json.loads((place / "run" / "result.json").read_text())
    assert {key: saved[key] for key in record} == record
    config, spec = Run("run").read()
    assert config.model.k == suggest_k(import_tables("edges.csv", "nodes.csv").graph)
    assert spec.label_names == CLASSES


def test_notes_go_to_standard_error(lgcn_):
    write("edges.csv", edge_columns() | {"weight": [1] * (3 * NUM_NODES)})
    output = lgcn_("train", *TOPIC, *RUN, "--json")
    assert output.json["dataset"] == "tables"
    (note,) = output.notes("edges.csv")
    assert "--weight-column weight" in note


def test_the_default_folder_has_the_name_of_the_node_table(lgcn_):
    record = lgcn_("train", *TOPIC, *FEW, "--json").json
    assert record["out"] == "runs/nodes-seed0"


def test_predictions_score_as_trained(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "p.csv")
    graph = import_tables("edges.csv", "nodes.csv", label_column="topic").graph
    right = [row["predicted"] == label(i) for i, row in enumerate(rows("p.csv"))]
    assert np.mean(np.array(right)[graph.test_mask]) == Run(trained).result()["test_score"]
    record = lgcn_("evaluate", trained, "--json").json
    splits = {split: part["nodes"] for split, part in record["splits"].items()}
    assert splits == {s: int(graph.mask(s).sum()) for s in ("train", "val", "test")}
    assert record["splits"]["test"]["score"] == Run(trained).result()["test_score"]


def test_help_lists_the_flags(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    for command in (["train"], ["data", "check"]):
        text = lgcn_(*command, "--help").out
        assert "Your own tables" in text
        for name in inspect.signature(cli_tables._flags).parameters:
            assert f"--{name.replace('_', '-')} " in text
    for command in ("predict", "evaluate"):
        text = lgcn_(command, "--help").out
        assert "--edges" in text
        assert "--nodes" in text


def save(kind: str, path: str, columns: Columns) -> str:
    """Writes a table in another format and returns its path."""
    path += kind
    if kind == ".parquet":
        cells = {k: [None if v == "" else v for v in c] for k, c in columns.items()}
        pyarrow.parquet.write_table(pa.table(cells), path)
    elif kind == ".npz":
        np.savez(path, **{name: np.array(column) for name, column in columns.items()})
    elif kind == ".csv.gz":
        write("plain.csv", columns)
        Path(path).write_bytes(gzip.compress(Path("plain.csv").read_bytes()))
    else:
        write(path, columns, {".tsv": "\t", ".txt": ";"}[kind], newline="\r\n")
    return path


@pytest.mark.parametrize("kind", [".tsv", ".txt", ".csv.gz", ".parquet", ".npz"])
def test_files_of_all_kinds_train_the_same(lgcn_, trained: Path, kind: str):
    nodes, edges = save(kind, "nodes", node_columns()), save(kind, "edges", edge_columns())
    args = ("--nodes", nodes, "--edges", edges, "--label-column", "topic")
    assert lgcn_("train", *args, "--out", "other", *FEW).code == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]
    lgcn_("predict", "run", "--output", "a.csv")
    lgcn_("predict", "other", "--output", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_run_is_used_from_another_folder(lgcn_, trained: Path, monkeypatch: pytest.MonkeyPatch):
    lgcn_("predict", trained, "--output", "p.csv")
    (trained.parent / "elsewhere").mkdir()
    monkeypatch.chdir(trained.parent / "elsewhere")
    assert lgcn_("predict", "../run", "--output", "p.csv").code == 0
    assert Path("p.csv").read_bytes() == Path("../p.csv").read_bytes()
    assert lgcn_("evaluate", "../run").code == 0
    assert lgcn_("train", "--resume", "--out", "../run").code == 0


def test_the_tables_of_a_run_may_not_vanish(lgcn_, trained: Path):
    Path("nodes.csv").unlink()
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.code == 1
    assert "nodes.csv does not exist" in output.message


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
