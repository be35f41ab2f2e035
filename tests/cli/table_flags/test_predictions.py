"""Predictions for the tables of a run, and for new ones."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from .tables import (
    CLASSES,
    NUM_NODES,
    OWN,
    PRINTS_WARNINGS,
    RUN,
    TOPIC,
    Columns,
    edge_columns,
    label,
    node_columns,
    rich_nodes,
    rows,
    write,
)

pytestmark = PRINTS_WARNINGS


# The tables of the run


def test_predictions_in_all_formats(lgcn_, trained: Path):
    for name in ("p.csv", "p.tsv", "p.parquet", "new/p.PARQUET"):
        assert lgcn_("predict", trained, "--output", name).code == 0
    table = pyarrow.parquet.read_table("p.parquet")
    assert table.equals(pyarrow.parquet.read_table("new/p.PARQUET"))
    assert table["node"].to_pylist() == node_columns()["id"]
    assert set(table["predicted"].to_pylist()) <= set(CLASSES)
    assert rows("p.csv") == rows("p.tsv", "\t")
    for row, cells in zip(rows("p.csv"), table.to_pylist(), strict=True):
        assert (row["node"], row["predicted"]) == (cells["node"], cells["predicted"])
        assert float(row["confidence"]) == pytest.approx(cells["confidence"], rel=1e-5)


def test_abstaining(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "all.csv")
    confidence = [float(row["confidence"]) for row in rows("all.csv")]
    threshold = sorted(confidence)[20] + 1e-6
    args = ("--output", "p.csv", "--abstain-below", threshold)
    abstained = sum(c < threshold for c in confidence)
    assert lgcn_("predict", trained, *args, "--json").json["abstained"] == abstained > 0
    for row, before in zip(rows("p.csv"), rows("all.csv"), strict=True):
        sure = float(row["confidence"]) >= threshold
        assert row == before | {"predicted": before["predicted"] if sure else ""}
    assert f"{abstained} of them left open" in lgcn_("predict", trained, *args).out


def test_only_nodes_without_a_label(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "all.csv")
    output = lgcn_("predict", trained, "--output", "p.csv", "--unlabelled-only")
    unlabelled = [f"p{i}" for i in range(0, NUM_NODES, 4)]
    assert output.out == f"wrote {len(unlabelled)} predictions to p.csv\n"
    assert rows("p.csv") == [row for row in rows("all.csv") if row["node"] in unlabelled]


def test_only_nodes_without_any_of_several_labels(lgcn_):
    write("nodes.csv", rich_nodes())
    lgcn_("train", *OWN, "--label-column", "tags", "--label-separator", ";", *RUN)
    lgcn_("predict", "run", "--output", "p.csv", "--unlabelled-only")
    assert [row["node"] for row in rows("p.csv")] == [f"p{i}" for i in range(0, NUM_NODES, 4)]


def test_labels_that_are_numbers(lgcn_):
    nodes = node_columns()
    nodes["topic"] = [{"art": 2, "law": 10, "zoo": -2, "": ""}[topic] for topic in nodes["topic"]]
    write("nodes.csv", nodes)
    lgcn_("train", *TOPIC, *RUN)
    assert lgcn_("predict", "run", "--output", "p.csv", "--json").json["classes"] == [
        "-2",
        "2",
        "10",
    ]
    assert {row["predicted"] for row in rows("p.csv")} <= {"-2", "2", "10"}


# New tables


def new_tables(size: int = 24, **columns: list[Any]) -> tuple[str, ...]:
    """Writes tables of other nodes, and returns the flags for them."""
    nodes = node_columns(size, "q") | columns
    write("new_nodes.csv", {name: cells for name, cells in nodes.items() if cells})
    write("new_edges.csv", edge_columns(size, "q"))
    return ("--nodes", "new_nodes.csv", "--edges", "new_edges.csv")


def test_predict_new_tables_without_labels(lgcn_, trained: Path):
    new = new_tables(topic=[])
    output = lgcn_("predict", trained, "--output", "p.csv", *new)
    assert (output.code, output.err) == (0, "")
    table = rows("p.csv")
    assert [row["node"] for row in table] == [f"q{i}" for i in range(24)]
    new_tables()
    lgcn_("predict", trained, "--output", "again.csv", *new)
    again = rows("again.csv")
    assert [row.pop("true") for row in again] == [label(i) if i % 4 else "" for i in range(24)]
    assert again == table
    lgcn_("predict", trained, "--output", "again.csv", "--no-truth", *new)
    assert rows("again.csv") == table


def test_predict_the_same_nodes_as_new_ones(lgcn_, trained: Path):
    """Features are scaled as in training, whichever rows come."""
    lgcn_("predict", trained, "--output", "a.csv")
    lgcn_("predict", trained, "--output", "b.csv", *OWN)
    own, new = rows("a.csv"), rows("b.csv")
    assert {row.pop("split") for row in own} == {"train", "val", "test", ""}
    assert own == new  # new tables have no split


def test_unseen_categories_are_told_of(lgcn_, trained: Path):
    countries = ["jp", "de"] * 12
    output = lgcn_("predict", trained, "--output", "p.csv", *new_tables(country=countries))
    assert output.code == 0
    (note,) = output.notes("country")
    assert "12 rows" in note
    assert "'jp'" in note
    assert len(rows("p.csv")) == 24


def test_evaluate_new_tables(lgcn_, trained: Path):
    new = new_tables()
    record = lgcn_("evaluate", trained, *new, "--json").json
    nodes = {split: part["nodes"] for split, part in record["splits"].items()}
    assert nodes == {"test": 18}
    lgcn_("predict", trained, "--output", "p.csv", *new)
    right = [row["predicted"] == label(i) for i, row in enumerate(rows("p.csv")) if i % 4]
    assert record["splits"]["test"]["score"] == pytest.approx(np.mean(right))
    output = lgcn_("evaluate", trained, *new)
    assert output.code == 0
    assert "18" in output.out


def test_predict_new_nodes_without_labels_only(lgcn_, trained: Path):
    args = ("predict", trained, "--output", "p.csv", "--unlabelled-only")
    assert lgcn_(*args, *new_tables(), "--json").json["nodes"] == 6
    assert lgcn_(*args, *new_tables(topic=[]), "--json").json["nodes"] == 24


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": []}, "lacks the column 'age'"),
        ({"age": ["inf"] * 24}, "'age', line 2"),
        ({"topic": ["art", "chess"] * 12}, "'chess'"),
        ({"topic": []}, "--label-column"),
        ({"topic": [""] * 24}, "label"),
    ],
)
def test_new_tables_that_do_not_fit(lgcn_, trained: Path, columns: Columns, message: str):
    output = lgcn_("evaluate", trained, *new_tables(**columns))
    assert output.code in (1, 2)
    assert message in output.message


def test_cells_of_new_tables_that_are_no_numbers(lgcn_, trained: Path):
    output = lgcn_("evaluate", trained, *new_tables(age=["x"] * 24))
    assert output.code == 0
    assert "'age' has 24 of 24 cells that are no number and count as missing" in output.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nodes", "nodes.csv"], "--nodes needs --edges"),
        (["--edges", "edges.csv"], "--edges needs --nodes"),
        ([*OWN, "--dataset", "digits"], "not both"),
    ],
)
def test_new_tables_are_two(lgcn_, trained: Path, args: list[str], message: str):
    for command in (("evaluate",), ("predict", "--output", "p.csv")):
        output = lgcn_(*command, trained, *args)
        assert output.code == 2
        assert message in output.message


def test_tables_for_a_run_that_has_none(lgcn_):
    options = ["dataset_options.num_nodes=60", "max_epochs=1", "max_nodes=60"]
    settings = [word for option in options for word in ("--set", option)]
    assert lgcn_("train", "--dataset", "synthetic", "--out", "run", *settings).code == 0
    output = lgcn_("predict", "run", "--output", "p.csv", *OWN)
    assert output.code == 2
    assert "was not trained on tables" in output.message


# Ids and files that could do harm


def test_ids_that_a_spreadsheet_would_run(lgcn_, place: Path):
    nodes, edges = node_columns(), edge_columns()
    renamed = {"p1": "=cmd|calc", "p2": "-7"}
    nodes["id"] = [renamed.get(id, id) for id in nodes["id"]]
    edges = {end: [renamed.get(id, id) for id in ids] for end, ids in edges.items()}
    write("nodes.csv", nodes)
    write("edges.csv", edges)
    assert lgcn_("train", *TOPIC, *RUN).code == 0
    output = lgcn_("predict", "run", "--output", "p.csv")
    assert [row["node"] for row in rows("p.csv")][:4] == ["p0", "'=cmd|calc", "-7", "p3"]
    assert output.notes("1 ids or labels got a '")
    assert output.notes("--no-spreadsheet-safe")
    output = lgcn_("predict", "run", "--output", "p.csv", "--no-spreadsheet-safe")
    assert [row["node"] for row in rows("p.csv")] == nodes["id"]
    assert not output.notes("spreadsheet")


def test_outputs_that_are_links_or_pipes(lgcn_, trained: Path, place: Path):
    lgcn_("predict", trained, "--output", "p.csv")
    (place / "link.csv").symlink_to("elsewhere.csv")
    assert lgcn_("predict", trained, "--output", "link.csv").code == 0
    assert (place / "link.csv").is_symlink()
    assert (place / "elsewhere.csv").read_bytes() == (place / "p.csv").read_bytes()
    os.mkfifo("pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()))
    reader.start()
    output = lgcn_("predict", trained, "--output", "pipe")
    reader.join()
    assert output.code == 0
    assert output.out == ""  # which may be where the predictions go
    assert got == [(place / "p.csv").read_bytes()]
