"""What pictures of whole graphs hold, beside NetworkX's view of the same graphs."""

from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from lgcn.graph import Graph, GraphSet
from lgcn.report import drawings as module
from lgcn.report.drawings import Drawings, drawings, one_hot_block
from lgcn.report.sample import Listed

NONE = np.zeros(0, dtype=np.int64)


def graph_set(graphs: list[nx.Graph], x: Any = None, **options: Any) -> GraphSet:
    parts = []
    for graph in graphs:
        pairs = [(a, b) for a, b in graph.edges] + [(b, a) for a, b in graph.edges if a != b]
        ends = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
        parts.append(Graph.from_edge_index(ends, len(graph)))
    whole = Graph.concat(parts)
    ptr = torch.tensor([0, *np.cumsum([len(graph) for graph in graphs])])
    whole = Graph(whole.rowptr, whole.col, x=x, ptr=ptr, **options)
    return GraphSet.create(whole, y=torch.arange(len(graphs)) % 2)


def drawn(graphs: GraphSet, listed: np.ndarray = NONE, sampled: Any = None) -> Drawings:
    spec: Any = SimpleNamespace(given_features=graphs.num_features)
    chosen = np.arange(len(graphs)) if sampled is None else np.array(sampled)
    return drawings(graphs, chosen, Listed(NONE, listed), spec)


def test_nodes_and_edges_are_those_of_the_graphs() -> None:
    given = [
        nx.path_graph(4),
        nx.empty_graph(0),
        nx.gnp_random_graph(12, 0.3, 1),
        nx.empty_graph(3),
    ]
    found = drawn(graph_set(given), sampled=[0, 1, 2, 3])
    assert found.sizes.tolist() == [4, 0, 12, 3]
    assert found.edges.tolist() == [graph.number_of_edges() for graph in given]
    for place, graph in enumerate(given):
        ends = found.ends[found.edge_ptr[place] : found.edge_ptr[place + 1]]
        nodes = found.nodes[found.ptr[place] : found.ptr[place + 1]]
        assert nodes.tolist() == list(range(len(graph)))
        assert {tuple(pair) for pair in ends.tolist()} == {tuple(sorted(e)) for e in graph.edges}
    assert len(found.points) == found.ptr[-1]
    assert found.labels is None
    data = found.data()
    assert data["label"] is None
    assert data["node"] == found.nodes.tolist()
    assert len(data["ends"]) == 2 * found.edge_ptr[-1]


def test_self_loops_count_and_directed_edges_count_one_by_one() -> None:
    rowptr, col = torch.tensor([0, 1, 4, 5]), torch.tensor([1, 0, 1, 2, 1])
    loop = GraphSet.create(Graph(rowptr, col), y=torch.tensor([0]))
    assert drawn(loop).edges.tolist() == [3]
    assert drawn(loop).edge_ptr.tolist() == [0, 2]
    one_way = Graph(torch.tensor([0, 1, 3, 3]), torch.tensor([1, 0, 2]))
    directed = GraphSet.create(one_way, y=torch.tensor([0]))
    found = drawn(directed)
    assert found.edges.tolist() == [3]
    assert found.edge_ptr.tolist() == [0, 2]  # a line stands for both ways


def test_of_a_large_graph_a_part_is_drawn() -> None:
    large = nx.barabasi_albert_graph(400, 2, seed=0)
    found = drawn(graph_set([large]))
    assert found.sizes.tolist() == [400]
    assert len(found.nodes) == module.MOST_NODES
    kept = found.nodes[found.ends]
    expected = large.subgraph(found.nodes.tolist())
    assert {tuple(pair) for pair in kept.tolist()} == {tuple(sorted(e)) for e in expected.edges}


def test_graphs_of_the_tables_are_drawn_first(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = graph_set([nx.path_graph(5)] * 10)
    monkeypatch.setattr(module, "MOST_DRAWN", 30)  # a path of five has nine nodes and edges
    found = drawn(graphs, listed=np.array([7, 9]))
    assert np.flatnonzero(np.diff(found.ptr)).tolist() == [0, 7, 9]
    assert found.sizes.tolist() == [5] * 10
    assert found.edges.tolist() == [4] * 10


def test_a_block_of_one_hot_features_are_labels() -> None:
    given = [nx.path_graph(3), nx.path_graph(5)]
    number = np.array([0, 2, 1, 2, 2, 1, 2, 0])
    x = np.column_stack([np.linspace(0, 1, 8), np.eye(3)[number]])
    found = drawn(graph_set(given, torch.from_numpy(x).float())).labels
    assert found is not None
    assert found.column is None
    assert found.names == ["0", "1", "2"]
    assert found.number.tolist() == number.tolist()
    data = drawn(graph_set(given, torch.from_numpy(x).float())).data()
    assert data["ranks"] == [1, 2, 0]  # four nodes have the last label, two each the others


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (np.eye(4), (0, 4)),
        (np.column_stack([np.eye(4)[:, ::-1], np.eye(4)]), (0, 4)),
        (np.column_stack([[0.5, 1, 2, 3], np.eye(4)]), (1, 5)),
        (np.ones((4, 1)), None),
        (np.column_stack([np.ones(4), np.arange(4.0)]), None),
        (np.triu(np.ones((4, 4))), None),
        (np.zeros((4, 0)), None),
    ],
)
def test_one_hot_blocks_are_found(columns: np.ndarray, expected: Any) -> None:
    assert one_hot_block(columns) == expected
