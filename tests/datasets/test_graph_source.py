"""Which graph the arguments name."""

from pathlib import Path
from typing import Any

import pytest

from lgcn.datasets import synthetic
from lgcn.datasets.graph_source import GraphSource, as_store, choose_source
from lgcn.errors import DataError, UsageError
from lgcn.store.write_store import write_store


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_names_nothing() -> None:
    assert choose_source() is None


def test_a_data_set_by_name() -> None:
    assert choose_source("digits", root="data") == GraphSource("digits", {}, "data")


def test_a_store_by_either_argument(place: Path) -> None:
    write_store("s", synthetic(num_nodes=30, num_val=5))
    expected = GraphSource("store", {"path": str(place / "s")})
    assert choose_source(store="s") == choose_source("s") == choose_source("./s") == expected
    assert as_store(GraphSource("s")) == expected
    assert expected.load().num_nodes == 30


def test_tables_have_absolute_paths(place: Path) -> None:
    source = choose_source(edges="e.csv", nodes=Path("n.csv"), delimiter=";")
    assert source is not None
    paths = {"edges": str(place / "e.csv"), "nodes": str(place / "n.csv")}
    assert source == GraphSource("tables", {**paths, "delimiter": ";"})
    assert source.title == "n"
    without = choose_source(edges=None, nodes="n.csv")
    assert without is not None
    assert without.options["edges"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "digits", "store": "s"}, "dataset= and store="),
        ({"dataset": "digits", "edges": "e", "nodes": "n"}, "dataset= and your own edges="),
        ({"edges": "e.csv"}, "edges= needs nodes="),
        ({"nodes": "n.csv"}, "nodes= needs edges=.*edges=None"),
        ({"delimiter": ","}, "delimiter= needs nodes="),
    ],
)
def test_what_does_not_go_together(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_source(**arguments)


def test_what_is_missing(place: Path) -> None:
    source = GraphSource("tables", {"edges": str(place / "e.csv"), "nodes": str(place / "n.csv")})
    assert source.missing_path == place / "n.csv"
    with pytest.raises(DataError, match=r"n\.csv"):
        source.check()
    (place / "n.csv").write_text("id\n1\n")
    assert source.missing_path == place / "e.csv"
    assert GraphSource("store", {"path": "s"}).missing_path == Path("s")
    assert GraphSource("a.npz").missing_path == Path("a.npz")
    assert GraphSource("digits").missing_path is None
