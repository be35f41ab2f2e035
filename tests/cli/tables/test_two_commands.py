"""From two tables to predictions in two commands, and what these print."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from lgcn.cli import table_flags as cli_tables
from lgcn.datasets.graph_report import suggest_k
from lgcn.tables.from_tables import import_tables
from lgcn.training import Run

from .tables import (
    CLASSES,
    FEW,
    NUM_NODES,
    PRINTS_WARNINGS,
    RUN,
    TOPIC,
    edge_columns,
    label,
    node_columns,
    rows,
    write,
)

pytestmark = PRINTS_WARNINGS


def test_two_commands_from_two_tables_to_predictions(lgcn_):
    output = lgcn_("train", *TOPIC, "--out", "runs/mine", "--set", "max_epochs=30")
    assert output.code == 0
    assert output.err == ""
    assert "lgcn predict runs/mine --output FILE.csv" in output.out
    assert "released program" not in output.out
    output = lgcn_("predict", "runs/mine", "--output", "predictions.csv")
    assert (output.code, output.out) == (0, f"wrote {NUM_NODES} predictions to predictions.csv\n")
    assert output.err == ""
    table = rows("predictions.csv")
    probabilities = [f"probability_{name}" for name in CLASSES]
    assert list(table[0]) == ["node", "predicted", "confidence", *probabilities]
    assert [row["node"] for row in table] == node_columns()["id"]
    assert [row["predicted"] for row in table] == [label(i) for i in range(NUM_NODES)]
    for row in table:
        chances = [float(row[name]) for name in probabilities]
        assert sum(chances) == pytest.approx(1, abs=1e-5)
        assert float(row["confidence"]) == max(chances)
        assert row["predicted"] == CLASSES[int(np.argmax(chances))]


def test_train_prints_one_json_object(lgcn_, place: Path):
    output = lgcn_("train", *TOPIC, *RUN, "--json")
    record = output.json
    assert output.err == ""
    assert (record["dataset"], record["graph"], record["metric"]) == ("tables", "nodes", "accuracy")
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
