"""What `lgcn import` makes of tables: the graph in memory, with the ids of its nodes."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from lgcn.store.open_store import open_store
from lgcn.tables.from_tables import import_tables

from .small import SHORT, write_tables

pytestmark = pytest.mark.filterwarnings("always::UserWarning")


def test_import_equals_the_tables_in_memory(lgcn_, place: Path):
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    counts = lgcn_("import", "s", "--edges", "a.csv", "b.csv", *options, "--json").json
    expected = import_tables("all.csv", "nodes.csv", label_column="kind").graph
    found = open_store("s")
    assert counts["nodes"] == 40
    assert found.graph.num_edges == counts["entries"] == expected.num_edges
    np.testing.assert_array_equal(found.graph.rowptr, expected.rowptr)
    np.testing.assert_array_equal(found.graph.col, expected.col)
    np.testing.assert_array_equal(found.graph.x, expected.x)
    np.testing.assert_array_equal(found.graph.y, expected.y)
    assert found.node_ids(0, 40).to_pylist() == expected.node_ids.tolist()


def test_import_of_directed_edges(lgcn_, place: Path):
    write_tables(place)
    both, one = (
        lgcn_("import", name, "--edges", "all.csv", *flags, "--json").json["entries"]
        for name, flags in (("both", ()), ("one", ("--directed",)))
    )
    assert one < both
    assert open_store("one").header["directed"]
    assert not open_store("both").header["directed"]


def test_predictions_have_the_ids_of_the_store(lgcn_, place: Path):
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    lgcn_("import", "s", "--edges", "all.csv", *options)
    assert lgcn_("train", "--graph", "s", "--out", "r", *SHORT).code == 0
    lgcn_("predict", "r", "--output", "p.parquet", "--unlabelled-only")
    table = pyarrow.parquet.read_table("p.parquet")
    assert table["node"].to_pylist() == [f"n{i}" for i in range(0, 40, 4)]
    assert set(table["predicted"].to_pylist()) <= set("xyz")


def test_a_store_by_its_path_has_its_ids(lgcn_, place: Path):
    write_tables(place)
    import_ = ("import", "store", "--edges", "all.csv", "--nodes", "nodes.csv")
    assert lgcn_(*import_, "--label-column", "kind").code == 0
    assert lgcn_("train", "--dataset", "./store", *SHORT, "--out", "run").code == 0
    assert lgcn_("predict", "run", "--output", "own.csv").code == 0
    assert lgcn_("predict", "run", "--dataset", "./store", "--output", "named.csv").code == 0
    assert Path("own.csv").read_text().splitlines()[1].startswith('"n0",')
    assert Path("own.csv").read_bytes() == Path("named.csv").read_bytes()


def test_a_run_on_a_store_predicts_new_tables(lgcn_, place: Path):
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    lgcn_("import", "s", "--edges", "all.csv", *options)
    assert lgcn_("train", "--graph", "s", "--out", "r", *SHORT).code == 0
    new = ("--edges", "a.csv", "--nodes", "nodes.csv", "--output", "p.parquet")
    assert lgcn_("predict", "r", *new, "--json").json["nodes"] == 40
    assert "no labelled nodes" in lgcn_("evaluate", "r", *new[:4]).message
