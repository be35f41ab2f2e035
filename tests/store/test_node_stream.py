"""Stores from tables of nodes: features, types of columns, broken tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from lgcn.errors import DataError, UsageError
from lgcn.store import csv_blocks
from lgcn.store.node_stream import NodeStream
from lgcn.tables.from_tables import import_tables
from lgcn.tables.open_table import open_table

from .stores import assert_same, imported, random_tables

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "uint8"])
def test_kinds_of_features(tmp_path: Path, kind: Any) -> None:
    edges, nodes = random_tables(0, 50, 100, True)
    expected = import_tables(edges, nodes, label_column="label", val=0, test=0).graph
    store, _ = imported(
        tmp_path / "store", edges, nodes, label_column="label", val=0, test=0, features=kind
    )
    assert store.graph.x is not None
    assert store.graph.x.dtype == getattr(torch, kind)
    assert store.graph.encoder is not None
    step = {"float16": 2e-3, "bfloat16": 2e-2, "uint8": 2e-2}[kind]
    assert torch.allclose(store.graph.features(), expected.x, atol=step)  # type: ignore[arg-type]


def test_sparse_features(tmp_path: Path) -> None:
    edges, nodes = random_tables(0, 300, 500, False)
    nodes["many"] = np.array([f"c{i // 2}" for i in range(300)], dtype=object)
    nodes["more"] = np.array([f"c{i // 2}" for i in range(300)], dtype=object)
    options: dict[str, Any] = {"categorical_columns": ["many", "more"], "ignore_columns": "label"}
    expected = import_tables(edges, nodes, **options).graph
    assert expected.x is not None
    assert expected.x.layout == torch.sparse_csr
    store, _ = imported(tmp_path / "store", edges, nodes, **options)
    assert_same(store.graph, expected)
    with pytest.raises(UsageError, match="features must not be uint8 here"):
        imported(tmp_path / "other", edges, nodes, features="uint8", **options)


def node_file(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["id,f,g,l", *rows]) + "\n")
    return path


@pytest.mark.parametrize("last", ["7.5,x,b", ",4,b", "7,2024-01-01,", "true,,b"])
def test_the_types_of_columns_are_those_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK", 64)
    rows = [f"{i},{i},{i % 3},{'ab'[i % 2]}" for i in range(60)]
    path = node_file(tmp_path / "nodes.csv", [*rows, f"60,{last}"])
    edges = {"source": [0], "target": [1]}
    expected = import_tables(edges, path, label_column="l")
    store, counts = imported(tmp_path / "store", edges, path, label_column="l")
    assert_same(store.graph, expected.graph)
    assert counts["notes"] == expected.notes


def test_a_broken_node_table(tmp_path: Path) -> None:
    edges = {"source": [0], "target": [1]}
    path = node_file(tmp_path / "nodes.csv", ["0,1,2,a", "1,2,3", "2,3,4,b"])
    with pytest.raises(DataError, match=r"nodes\.csv, line 3: must have 4 cells"):
        imported(tmp_path / "store", edges, path)
    path = node_file(path, ["0,1,2,a", "1,2,3,a", "0,3,4,b"])
    with pytest.raises(
        DataError, match=r"nodes\.csv: ids must differ, got 0 in line 2 and in line"
    ):
        imported(tmp_path / "store", edges, path)
    path = node_file(path, ["0,1,2,a", "1,2,1e300,a", "2,3,4,b"])
    with pytest.raises(DataError, match=r"nodes\.csv: column 'g', line 3"):
        imported(tmp_path / "store", edges, path)
    assert [file.name for file in tmp_path.iterdir()] == ["nodes.csv"]


def test_a_sample_of_the_rows_where_not_all_fit() -> None:
    table = pa.table({"id": range(5000), "f": np.arange(5000.0), "g": ["text"] * 5000})
    stream = NodeStream(open_table(table, "nodes"), ["id"], 10**6)
    assert stream.read(["id", "f", "g"]).column("id").to_pylist() == list(range(5000))
    assert (stream.stride, len(stream.sample)) == (1, 5000)
    stream = NodeStream(open_table(table, "nodes"), ["id"], 10**6)
    stream._sample_memory = 20_000
    stream.read(["id", "f"])
    assert stream.stride == 2
    assert stream.sample.column("f").to_pylist() == list(range(0, 5000, 2))
    with pytest.raises(DataError, match=r"ids, labels and splits of 5000 rows need .*Raise memory"):
        NodeStream(open_table(table, "nodes"), ["id"], 10**5).read(["id", "f"])


def test_nodes_without_edges_and_without_features(tmp_path: Path) -> None:
    store, counts = imported(tmp_path / "a", None, {"id": [1, 2], "f": [1, 2]})
    assert (counts["nodes"], counts["rows"], counts["edges"]) == (2, 0, 0)
    assert store.graph.rowptr.tolist() == [0, 0, 0]
    store, counts = imported(tmp_path / "b", np.array([[1, 2]]), {"id": [1, 2]})
    assert store.graph.x is None
    assert "no feature column" in counts["notes"][0]
