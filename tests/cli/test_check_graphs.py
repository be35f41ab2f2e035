"""`lgcn data check` and `lgcn data info` of sets of graphs."""

import csv
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from ..datasets.tu_files import lines, parts_of, write_folder, write_zip
from ..tables.graph_tables import Table, edge_table, graph_table, node_table

FLAGS = ("--graphs", "g.csv", "--nodes", "n.csv", "--edges", "e.csv")
RINGS = [nx.cycle_graph(3 + place % 2) for place in range(20)]  # of 3 and 4 nodes
PARTS = parts_of(RINGS, [place % 2 * 2 for place in range(20)])


def write_tables(folder: Path, **tables: Table) -> None:
    small = {"e": edge_table(), "n": node_table(), "g": graph_table()}
    for name, table in {**small, **tables}.items():
        with (folder / f"{name}.csv").open("w") as file:
            csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])


def row_of(text: str, name: str) -> str:
    """The value of a row of a printed table."""
    (found,) = [line for line in text.splitlines() if line.strip(" │").startswith(name)]
    return found.strip(" │").removeprefix(name).strip(" │")


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_check_counts_a_set_in_files(lgcn_, place: Path, form: str):
    if form == "folder":
        write_folder(place / "S", PARTS)
    else:
        write_zip(place / "S.zip", PARTS)
    name = "S" if form == "folder" else "S.zip"
    report = lgcn_("data", "check", "--graphs", name, "--json").json
    assert (report["graphs"], report["nodes"], report["edges"]) == (20, 70, 70)
    assert report["classes"] == {"0": 10, "2": 10}
    assert report["splits"] == {"train": 16, "val": 2, "test": 2}
    text = lgcn_("data", "check", "--graphs", name).out
    assert row_of(text, "graphs  ") == "20"
    assert row_of(text, "edges  ") == "70 (undirected, unweighted)"
    assert row_of(text, "nodes per graph") == "3 to 4, mean 3.5, median 3.5"
    assert row_of(text, "labels") == "one per graph, 2 in all"
    assert row_of(text, "train graphs") == "16"
    assert "Graphs by class" in text
    assert "no features" in text


def test_check_counts_what_the_import_left_out(lgcn_, place: Path):
    edges: Table = {"graph": list("aaab"), "source": [0, 1, 1, 0], "target": [1, 0, 1, 1]}
    write_tables(place, e=edges, g=graph_table(more=[1, 2, 3, 4]))
    output = lgcn_("data", "check", *FLAGS, "--label-column", "kind", "--json")
    report = output.json
    assert report["imported"]["self_loops"] == 1
    assert report["imported"]["duplicates"] == 1
    assert report["graphs_without_edges"] == 2
    assert {column["name"]: column["kind"] for column in report["columns"]} == {
        "element": "category",
        "charge": "number",
    }
    assert any("self-loop" in note for note in report["notes"])
    assert any("'more'" in note for note in report["notes"])
    text = lgcn_("data", "check", *FLAGS, "--label-column", "kind").out
    assert row_of(text, "graphs without edges") == "2"
    assert text.count("2 of 4 graphs have no edges") == 1


def test_check_speaks_of_flags(lgcn_, place: Path):
    write_tables(place)
    text = lgcn_("data", "check", *FLAGS).out
    assert "--label-column" in text
    assert "label_column" not in text
    write_folder(place / "S", {**PARTS, "graph_labels": None})
    text = lgcn_("data", "check", "--graphs", "S").out
    assert "no graph has a label" in text
    assert "--label-column" not in text


def test_check_shows_the_range_of_targets(lgcn_, place: Path):
    write_tables(place, g=graph_table(kind=[1.0, 2.0, 3.0, ""]))
    flags = (*FLAGS, "--label-column", "kind", "--task", "regression")
    text = lgcn_("data", "check", *flags).out
    assert row_of(text, "target").startswith("1 to 3, mean 2")
    assert row_of(text, "labelled graphs") == "3"
    assert "a number per graph" in text


def test_check_says_what_looks_wrong(lgcn_, place: Path):
    graphs = [*RINGS, nx.empty_graph(0), nx.empty_graph(1), nx.empty_graph(1)]
    write_folder(place / "S", parts_of(graphs, [0] * 22 + [1]))
    output = lgcn_("data", "check", "--graphs", "S")
    assert "unequal, from 1 to 22" in output.out
    assert "1 of 23 graphs has no nodes" in output.out
    assert "2 of 23 graphs have no edges" in output.out
    assert output.err == ""  # nothing is said twice


def test_info_tells_the_sizes(lgcn_, place: Path):
    write_folder(place / "S", PARTS | {"node_labels": lines([1, 2] * 35)})
    record = lgcn_("data", "info", "S", "--json").json
    assert record == {
        "name": "S",
        "graphs": 20,
        "nodes": 70,
        "undirected_edges": 70,
        "nodes_per_graph": {"smallest": 3, "median": 3.5, "mean": 3.5, "largest": 4},
        "edges_per_graph": {"smallest": 3, "median": 3.5, "mean": 3.5, "largest": 4},
        "features": 2,
        "classes": 2,
        "labels": "one per graph",
        "train_graphs": 16,
        "val_graphs": 2,
        "test_graphs": 2,
    }
    text = lgcn_("data", "info", "S").out
    assert all(key.replace("_", " ") in text for key in record)
    assert "smallest 3, median 3.5, mean 3.5, largest 4" in text


def test_check_reads_a_published_split(lgcn_, place: Path):
    write_folder(place / "S", PARTS)
    folds = [{"train": [0, 1, 2], "validation": [3, 4], "test": [5]}]
    (place / "S_splits.json").write_text(json.dumps(folds))
    report = lgcn_("data", "check", "--graphs", "S", "--fold", "0", "--json").json
    assert report["splits"] == {"train": 3, "val": 2, "test": 1}


WRONG: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    ({"A": "1, 99\n"}, (), ("S_A.txt", "line 1", "99")),
    ({"graph_indicator": None}, (), ("S_graph_indicator.txt", "missing")),
    ({"A": None}, (), ("NAME_A.txt",)),
    ({}, ("--fold", "0"), ("--fold", "S_splits.json")),
    ({}, ("--split-seed", "-1"), ("--split-seed", "-1")),
]


@pytest.mark.parametrize(("changed", "flags", "words"), WRONG)
def test_damaged_sets_are_one_line(lgcn_, place: Path, changed, flags, words):
    write_folder(place / "S", {**PARTS, **changed})
    message = lgcn_("data", "check", "--graphs", "./S", *flags).message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"e": edge_table(graph=[*"abc", "z"])}, ("e.csv", "line 5", "'z'")),
        ({"n": node_table(id=[0] * 8)}, ("n.csv", "line 2", "line 3")),
        ({"g": graph_table(graph=list("abca"))}, ("g.csv", "line 2", "line 5")),
        ({"g": {"graph": ["a"]}}, ("g.csv", "--label-column", "'kind'")),
    ],
)
def test_tables_that_do_not_fit_are_one_line(lgcn_, place: Path, tables, words):
    write_tables(place, **tables)
    message = lgcn_("data", "check", *FLAGS, "--label-column", "kind").message
    assert all(word in message for word in words), message
