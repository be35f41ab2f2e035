"""Data sets by name: what is listed, how options are passed, and mistakes in names."""

from pathlib import Path

import pytest

from lgcn.datasets import (
    DATASETS,
    dataset_files,
    dataset_names,
    describe,
    load_dataset,
)
from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph

NAMES = ["digits", "synthetic", "cora", "citeseer", "pubmed", "ppi", "ppi-rederived"]
NAMES += ["minesweeper", "tolokers", "store", "partition", "tables", "graphs"]
NAMES += ["graph_tables"]


def test_names_and_descriptions() -> None:
    assert dataset_names() == NAMES
    for name in NAMES:
        assert 10 < len(describe(name)) < 100
        assert "\n" not in describe(name)


def test_options_reach_the_loader() -> None:
    graph = load_dataset("synthetic", num_nodes=30, num_classes=2)
    assert isinstance(graph, Graph)
    assert (graph.num_nodes, graph.num_classes) == (30, 2)
    assert dataset_files("synthetic") == []


@pytest.mark.parametrize(
    ("name", "close"),
    [("Cora", "cora"), ("pubmet", "pubmed"), ("ppi_rederived", "ppi-rederived"), ("PPI", "ppi")],
)
def test_unknown_name(name: str, close: str) -> None:
    for call in (load_dataset, dataset_files, describe):
        with pytest.raises(UsageError, match=f"did you mean '{close}'"):
            call(name)
        with pytest.raises(UsageError, match="no data set 'xyzzy'") as caught:
            call("xyzzy")
        assert all(known in str(caught.value) for known in NAMES[:-5])


def test_unknown_name_lists_files_on_this_machine(cache: Path) -> None:
    (cache / "npz").mkdir(parents=True)
    (cache / "npz" / "amazon.npz").touch()
    with pytest.raises(UsageError, match="did you mean 'amazon'"):
        load_dataset("amazonn")


def test_missing_npz_path(tmp_path: Path, cache: Path) -> None:
    for call in (load_dataset, dataset_files):
        with pytest.raises(DataError, match=r"nowhere\.npz") as caught:
            call("nowhere.npz", tmp_path)
        assert str(cache) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "option", "valid"),
    [
        ("digits", "n_neighbours", "did you mean 'n_neighbors'"),
        ("digits", "xyzzy", "n_neighbors.*num_val"),
        ("synthetic", "num_node", "num_nodes"),
        ("cora", "normalise", "normalize_features"),
        ("ppi", "labels_per_class", "normalize_features"),
    ],
)
def test_unknown_option(name: str, option: str, valid: str) -> None:
    with pytest.raises(UsageError, match=rf"{name} has no option '{option}'.*{valid}"):
        load_dataset(name, **{option: 1})


def test_tables_are_a_data_set() -> None:
    tables = {
        "edges": {"source": [1, 2, 3], "target": [2, 3, 4]},
        "nodes": {"id": [1, 2, 3, 4], "size": [0.5, 1.5, 2.5, 3.5], "kind": ["a", "b", "a", "b"]},
    }
    graph = load_dataset("tables", **tables, label_column="kind", val=0, test=0)
    assert (graph.num_nodes, graph.num_edges, graph.label_names) == (4, 6, ("a", "b"))
    with pytest.raises(UsageError, match=r"no option 'label_colum'.*did you mean 'label_column'"):
        load_dataset("tables", **tables, label_colum="kind")
    with pytest.raises(UsageError, match="needs the option nodes, got none"):
        load_dataset("tables", edges=tables["edges"])


def test_no_option_switches_the_checks_of_a_store_off(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="store has no option 'verify'"):
        load_dataset("store", path=tmp_path, verify=False)


def test_options_that_a_file_may_set_are_those_of_the_loaders() -> None:
    for dataset in DATASETS.values():
        known = set(dataset.options())
        assert known - set(dataset.stored) <= {"root", "encoder", "edge_encoder", "label_names"}
        assert set(dataset.stored) <= known
    assert "verify" not in DATASETS["store"].stored
