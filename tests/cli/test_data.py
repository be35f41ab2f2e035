"""What `lgcn data` prints: list, info, path, check."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from rich.console import Console

import lgcn.datasets
from lgcn import Graph, load_dataset
from lgcn.cli.data.check import render
from lgcn.datasets.graph_report import GraphReport, check_graph
from lgcn.store.open_store import open_store

from ..datasets.test_graph_report import graphs
from .small import write_npz


def test_data_list_names_every_data_set(lgcn_):
    listed = lgcn_("data", "list", "--json").json
    assert list(listed) == lgcn.datasets.dataset_names()
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
        "labels": "one per node",
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


def text(report: GraphReport) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(render(report))
    return out.getvalue()


def test_a_good_graph() -> None:
    shown = text(check_graph(load_dataset("digits")))
    assert "Nothing looks wrong" in shown
    assert "undirected, unweighted" in shown
    assert "one per node, 10 in all" in shown
    assert "█" in shown


@settings(max_examples=50, deadline=None)
@given(graph=graphs())
def test_any_report(graph: Graph) -> None:
    report = check_graph(graph)
    shown = text(report)
    assert "Nodes by number of neighbours" in shown
    for warning in report.warnings:
        assert f"- {warning[:60]}" in shown
    assert ("Nothing looks wrong" in shown) == (not report.warnings)


@pytest.fixture
def report() -> GraphReport:
    return check_graph(Graph.as_given(torch.tensor([[0, 1], [1, 0]]), 2))


def test_the_users_words_are_no_markup(report: GraphReport) -> None:
    columns = [{"name": "[red]", "kind": "number", "width": 1}]
    named = replace(
        report,
        name="[bold]",
        columns=columns,
        classes={"[/]": 2},
        notes=["[note]"],
        warnings=["[blue] is wrong"],
        imported={"edge_rows": 7000},
    )
    shown = text(named)
    for word in ("[bold]", "[red]", "[/]", "- [note]", "- [blue] is wrong", "edge rows", "7,000"):
        assert word in shown


def test_an_empty_graph() -> None:
    nothing = Graph(torch.zeros(1, dtype=torch.long), torch.empty(0, dtype=torch.long))
    assert "the graph has no nodes" in text(check_graph(nothing))


def test_long_lists_are_cut(report: GraphReport) -> None:
    columns = [{"name": f"c{i}", "kind": "number", "width": 1} for i in range(45)]
    shown = text(replace(report, columns=columns, classes={f"k{i}": 1 for i in range(1041)}))
    assert "c39" in shown
    assert "c40" not in shown
    assert "and 5 more" in shown
    assert "k40" not in shown
    assert "and 1,001 more" in shown


def test_info_of_a_store(lgcn_, store: Path):
    record = lgcn_("data", "info", "store", "--json").json
    graph = open_store(store).graph
    assert record["nodes"] == 400
    assert record["undirected_edges"] == graph.num_edges // 2
    assert record["train_nodes"] == int(graph.train_mask.sum())


def test_info_of_a_directed_store(lgcn_, place: Path):
    (place / "edges.csv").write_text("source,target\n0,1\n1,2\n2,0\n")
    assert lgcn_("import", "one-way", "--edges", "edges.csv", "--directed").code == 0
    record = lgcn_("data", "info", "one-way", "--json").json
    assert record["directed_edges"] == 3
    assert "undirected_edges" not in record
