"""What `lgcn predict` writes and prints."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import lgcn.datasets
from lgcn.datasets import synthetic
from lgcn.training import Run

from .small import SETTINGS, several_labels, write_npz


def rows(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predict_writes_every_nodes_probabilities(lgcn_, trained: Path):
    output = lgcn_("predict", trained, "--output", "new/p.csv", "--json")
    record = {"output": "new/p.csv", "nodes": 200, "abstained": 0}
    assert output.json == {**record, "classes": ["0", "1", "2"]}
    table = rows("new/p.csv")
    assert list(table[0]) == [
        "node",
        "predicted",
        "confidence",
        "true",
        "split",
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
    assert list(table[0])[5:] == ["probability_red", "probability_green", "probability_blue"]
    assert table[0]["node"] == "node-0"
    assert [table[i]["predicted"] for i in (5, 25, 45)] == ["red", "green", "blue"]


def test_several_labels_share_a_cell(lgcn_, monkeypatch: pytest.MonkeyPatch):
    several = replace(lgcn.datasets.DATASETS["synthetic"], load=several_labels)
    monkeypatch.setitem(lgcn.datasets.DATASETS, "several", several)
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
    assert "digits has 64" in output.err
    assert "8 features" in output.err
    assert not (place / "p.csv").exists()


def test_predictions_and_json_are_not_mixed(lgcn_, run_on_store: Path):
    output = lgcn_("predict", run_on_store, "--output", "/dev/stdout", "--json")
    assert output.code == 2
    assert "--json" in output.message
