"""What is said about a set of graphs before it is trained on."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcn import load_graphs
from lgcn.datasets.graph_set_report import check_graph_set, check_graph_source, graph_set_sizes
from lgcn.datasets.graph_source import GraphSource, choose_source
from lgcn.graph import Graph, GraphSet

from .tu_files import lines, parts_of, write_folder


def make(graphs: list[nx.Graph], **options: Any) -> GraphSet:
    options.setdefault("y", [place % 2 for place in range(len(graphs))])
    return load_graphs(graphs, name="mine", **options)


RINGS = [nx.cycle_graph(3 + place % 2) for place in range(20)]  # of 3 and 4 nodes, by turns


def test_counts_of_a_set() -> None:
    report = check_graph_set(make(RINGS))
    assert report.to_dict() == {
        "name": "mine",
        "graphs": 20,
        "nodes": 70,
        "edges": 70,
        "directed": False,
        "weighted": False,
        "nodes_per_graph": {"smallest": 3, "median": 3.5, "mean": 3.5, "largest": 4},
        "edges_per_graph": {"smallest": 3, "median": 3.5, "mean": 3.5, "largest": 4},
        "graphs_without_nodes": 0,
        "graphs_without_edges": 0,
        "isolated_nodes": 0,
        "features": 0,
        "columns": [],
        "labels": "one per graph",
        "classes": {"0": 10, "1": 10},
        "labelled_graphs": 20,
        "splits": {"train": 16, "val": 2, "test": 2},
        "target": None,
        "imported": {},
        "notes": [],
        "warnings": report.warnings,
    }
    assert [warning[:26] for warning in report.warnings] == ["the nodes have no features"]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=1, max_size=8),
    st.booleans(),
)
@pytest.mark.hypothesis
def test_counts_are_those_of_networkx(sizes: list[tuple[int, int]], directed: bool) -> None:
    kind = nx.DiGraph if directed else nx.Graph
    graphs = [
        nx.gnm_random_graph(size, edges, seed=place, directed=directed)
        for place, (size, edges) in enumerate(sizes)
    ]
    assert all(isinstance(graph, kind) for graph in graphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # about graphs without edges
        found = make(graphs, directed=directed)
    report = check_graph_set(found)
    without = [len(graph) for graph in graphs if not graph.number_of_edges()]
    counts = [graph.number_of_edges() for graph in graphs]
    one_way = any(not graph.has_edge(b, a) for graph in graphs for a, b in graph.edges)
    assert report.directed == one_way
    assert report.edges == (sum(counts) if one_way or not directed else sum(counts) // 2)
    assert report.nodes == sum(len(graph) for graph in graphs)
    assert report.nodes_per_graph["median"] == np.median([len(graph) for graph in graphs])
    assert report.graphs_without_nodes == sum(size == 0 for size in without)
    assert report.graphs_without_edges == sum(size > 0 for size in without)
    assert report.isolated_nodes == sum(nx.number_of_isolates(graph) for graph in graphs)
    sizes_alone = graph_set_sizes(found, directed=one_way)
    assert sizes_alone["nodes_per_graph"] == report.nodes_per_graph
    assert sizes_alone["directed_edges" if one_way else "undirected_edges"] == report.edges


def test_sizes_without_what_takes_long() -> None:
    record = graph_set_sizes(make(RINGS, val=0.2))
    assert record["undirected_edges"] == 70
    assert (record["graphs"], record["classes"], record["labels"]) == (20, 2, "one per graph")
    assert [record[f"{split}_graphs"] for split in ("train", "val", "test")] == [14, 4, 2]
    unlabelled = graph_set_sizes(make(RINGS, y=None))
    assert (unlabelled["labels"], unlabelled["train_graphs"]) == ("none", 0)


def test_targets_are_summarised() -> None:
    y = [float(place) for place in range(19)] + [float("nan")]
    report = check_graph_set(make(RINGS, y=y, task="regression"))
    assert report.labels == "a number per graph"
    assert (report.labelled_graphs, report.classes) == (19, {})
    assert report.target is not None
    assert report.target["mean"] == 9
    assert report.target["deviation"] == pytest.approx(np.std(range(19)))
    assert (report.target["smallest"], report.target["largest"]) == (0, 18)


def test_several_labels_are_counted() -> None:
    y = np.array([[place % 2, place % 4 == 0] for place in range(20)], int)
    report = check_graph_set(make(RINGS, y=y))
    assert report.labels == "several per graph"
    assert report.classes == {"0": 10, "1": 5}
    assert report.labelled_graphs == 20


@pytest.mark.parametrize(
    ("graphs", "options", "warning"),
    [
        (RINGS[:1], {}, "there is one graph"),
        (RINGS, {"y": None}, "no graph has a label"),
        (RINGS, {"y": [-1] * 20}, "no graph has a label"),
        (RINGS, {"y": [0] * 20}, "of one class"),
        (RINGS, {"y": [0] * 19 + [-1]}, "of one class"),
        (RINGS, {"y": [0] * 19 + [1]}, "unequal, from 1 to 19"),
        (RINGS, {"val": 0}, "no graph is for validation"),
        ([*RINGS, nx.empty_graph(0)], {}, "1 of 21 graphs has no nodes"),
        ([*RINGS, nx.empty_graph(2)], {}, "1 of 21 graphs has no edges"),
        (RINGS, {}, "no features"),
        ([*RINGS, nx.path_graph(4001)], {}, "4,001 nodes"),
    ],
)
@pytest.mark.filterwarnings("ignore:mine")
def test_what_looks_wrong_is_said(graphs: Any, options: dict[str, Any], warning: str) -> None:
    assert any(warning in one for one in check_graph_set(make(graphs, **options)).warnings)


@pytest.mark.filterwarnings("ignore:mine")
def test_graphs_without_nodes_are_said() -> None:
    report = check_graph_set(make([nx.empty_graph(0)] * 4))
    assert any("no graph has a node" in warning for warning in report.warnings)
    assert report.nodes_per_graph == {"smallest": 0, "median": 0, "mean": 0, "largest": 0}


def test_a_set_of_no_graphs_is_said(tmp_path: Path) -> None:
    none = load_graphs(write_folder(tmp_path, dict.fromkeys(parts_of([], []), "")))
    report = check_graph_set(none)
    assert report.warnings[0].startswith("there are no graphs")
    assert graph_set_sizes(none)["graphs"] == 0


def test_a_class_without_training_graphs_is_named() -> None:
    graphs = make(RINGS, y=["a", "b"] * 9 + ["c", "c"])
    train = torch.arange(20) < 18
    changed = graphs.with_targets(train_mask=train, val_mask=~train, test_mask=None)
    (warning,) = [one for one in check_graph_set(changed).warnings if "'c'" in one]
    assert "no training graph" in warning
    assert check_graph_set(changed).splits == {"train": 18, "val": 2}
    nobody = graphs.with_targets(train_mask=torch.zeros(20, dtype=torch.bool))
    assert "no graph is for training" in check_graph_set(nobody).warnings


def test_a_healthy_set_has_no_warnings() -> None:
    graphs = [nx.cycle_graph(4) for _ in range(20)]
    for place, graph in enumerate(graphs):
        nx.set_node_attributes(graph, {node: float(node + place) for node in graph}, "x")
    report = check_graph_set(make(graphs))
    assert report.warnings == []
    assert (report.features, [column["name"] for column in report.columns]) == (1, ["x"])


def test_weights_and_directions_are_told() -> None:
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])
    weight = torch.tensor([1.0, 2.0, 3.0])
    ptr = torch.tensor([0, 3, 5])
    for directed, wanted in ((False, [1, 2]), (True, [1, 2])):
        graph = Graph.from_edge_index(edges, 5, edge_weight=weight, directed=directed, ptr=ptr)
        report = check_graph_set(GraphSet.create(graph))
        assert (report.weighted, report.directed, report.edges) == (True, directed, 3)
        found = report.edges_per_graph
        assert [found["smallest"], found["largest"]] == wanted


def test_only_tables_are_told_to_name_a_column(tmp_path: Path) -> None:
    parts = {**parts_of(RINGS, []), "graph_labels": None, "node_labels": lines([*range(7)] * 10)}
    folder = write_folder(tmp_path / "S", parts)
    report = check_graph_source(GraphSource("graphs", {"path": str(folder)}))
    assert report.name == "S"
    assert report.features == 7
    (warning,) = report.warnings
    assert "no graph has a label" in warning
    assert "label_column" not in warning
    for name, text in (("g", "graph\na\nb\n"), ("e", "graph,source,target\na,0,1\nb,0,1\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    source = choose_source(graphs=tmp_path / "g.csv", edges=tmp_path / "e.csv")
    assert source is not None
    report = check_graph_source(source)
    assert any("Name a label_column" in warning for warning in report.warnings)
    assert report.imported["edge_rows"] == 2
