"""Brute force over nodes and edges is the oracle."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph, load_dataset
from lgcn.datasets.graph_report import check_graph
from lgcn.graph.statistics import feature_length, labels_per_class, suggest_k
from lgcn.tables.encoder import FeatureEncoder
from lgcn.training.choose import neighbours_agree

from .conftest import need


@st.composite
def graphs(draw: Any) -> Graph:
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=40))
    undirected = draw(st.booleans())
    weight = draw(st.none() | st.integers(0, 1000))
    if weight is not None:
        rng = np.random.default_rng(weight)
        weight = torch.from_numpy(rng.choice([0.5, 1.0], len(edges)))
    y = draw(st.none() | st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    make = Graph.from_edge_index if undirected else Graph.as_given
    return make(
        torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
        n,
        edge_weight=weight,
        y=None if y is None else torch.tensor(y),
    )


@settings(max_examples=150, deadline=None)
@given(graph=graphs())
def test_counts(graph: Graph) -> None:
    report = check_graph(graph)
    sources, targets = graph.edge_index.tolist()
    pairs = list(zip(sources, targets, strict=True))
    values = [1.0] * len(pairs) if graph.edge_weight is None else graph.edge_weight.tolist()
    weighted = sorted((s, t, w) for (s, t), w in zip(pairs, values, strict=True))
    symmetric = weighted == sorted((t, s, w) for s, t, w in weighted)
    loops = sum(s == t for s, t in pairs)
    entries = len(pairs) - loops
    assert report.directed == (not symmetric)
    assert report.edges == (entries // 2 if symmetric else entries) + loops
    assert report.self_loops == loops
    again = Counter(pairs) - Counter(set(pairs))
    loops_again = sum(number for (s, t), number in again.items() if s == t)
    others_again = again.total() - loops_again
    assert report.duplicate_edges == loops_again + others_again // (2 if symmetric else 1)
    assert report.isolated_nodes == graph.num_nodes - len({*sources, *targets})
    oracle = nx.Graph(pairs)
    oracle.add_nodes_from(range(graph.num_nodes))
    parts = [len(part) for part in nx.connected_components(oracle)]
    assert (report.components, report.largest_component) == (len(parts), max(parts))

    degree = [targets.count(i) for i in range(graph.num_nodes)]
    assert report.degree["smallest"] == min(degree)
    assert report.degree["largest"] == max(degree)
    for row in report.degree_histogram:
        assert row["nodes"] == sum(row["from"] <= d <= row["to"] for d in degree)
    assert sum(row["nodes"] for row in report.degree_histogram) == graph.num_nodes

    if graph.y is not None:
        y = graph.y.tolist()
        assert report.labelled_nodes == sum(c >= 0 for c in y)
        assert report.classes == {str(c): y.count(c) for c in range(max(y) + 1)}
        ends = [(y[s], y[t]) for s, t in pairs if s != t and y[s] >= 0 and y[t] >= 0]
        if ends:
            assert report.homophily == pytest.approx(np.mean([a == b for a, b in ends]))
            # Every source with every target of the same edges.
            chance = np.mean([a == b for a, _ in ends for _, b in ends])
            assert report.homophily_by_chance == pytest.approx(chance)
        else:
            assert report.homophily is None
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()


def test_histogram_bounds() -> None:
    star = torch.stack([torch.arange(1, 10), torch.zeros(9, dtype=torch.long)])
    rows = check_graph(Graph.as_given(star, 10)).degree_histogram
    assert rows == [
        {"from": 0, "to": 0, "nodes": 9},
        {"from": 1, "to": 1, "nodes": 0},
        {"from": 2, "to": 3, "nodes": 0},
        {"from": 4, "to": 7, "nodes": 0},
        {"from": 8, "to": 15, "nodes": 1},
    ]


@pytest.mark.parametrize(
    ("degree", "k"), [(0, 8), (7, 8), (8, 16), (15, 16), (16, 32), (31, 32), (32, 32), (200, 32)]
)
def test_k_of_regular_graphs(degree: int, k: int) -> None:
    n = 201
    node = torch.arange(n).repeat_interleave(degree)
    step = torch.arange(1, degree + 1).repeat(n)
    assert suggest_k(Graph.as_given(torch.stack([(node + step) % n, node]), n)) == k


def test_k_of_separate_graphs_is_that_of_training() -> None:
    full = torch.ones(20, 20).to_sparse().indices()
    train, test = torch.ones(20, dtype=torch.bool), torch.zeros(20, dtype=torch.bool)
    parts = [
        Graph.as_given(full[:, :0], 20, train_mask=train),
        Graph.as_given(full, 20, train_mask=test),
    ]
    assert suggest_k(Graph.concat(parts)) == 8
    assert suggest_k(parts[1]) == 32


def test_length_of_features() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 5.0], [1.0, 7.0]])
    edges = torch.tensor([[0], [1]])
    graph = Graph.as_given(edges, 4, x=x)
    assert feature_length(graph) == pytest.approx(5.0)  # root of (25 + 0 + 25 + 50) / 4
    sparse = Graph.as_given(edges, 4, x=x.to_sparse_csr())
    assert feature_length(sparse) == pytest.approx(5.0)
    assert feature_length(Graph.as_given(edges, 4, x=torch.zeros(4, 2))) == 1


def test_length_of_features_of_separate_graphs_is_that_of_training() -> None:
    edges = torch.tensor([[0], [1]])
    masks = [torch.ones(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)]
    parts = [
        Graph.as_given(edges, 2, x=torch.full((2, 4), size), train_mask=mask)
        for size, mask in zip((1.0, 100.0), masks, strict=True)
    ]
    assert feature_length(Graph.concat(parts)) == pytest.approx(2.0)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170, 1e300])
def test_length_of_features_whose_squares_leave_the_range_of_numbers(size: float) -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64) * size
    graph = Graph.as_given(torch.tensor([[0], [1]]), 2, x=x)
    smallest = torch.finfo(torch.float32).tiny  # one over less would be infinite in float32
    assert feature_length(graph) == pytest.approx(max(size * 12.5**0.5, smallest))


LOOPING = [(0, 0), *[(0, 1)] * 3, *[(1, 0)] * 3, *[(1, 1)] * 3]


def test_duplicated_edges_both_ways_end() -> None:
    """SciPy's strong components never return on such a matrix, where it is of float64."""
    weight = torch.ones(len(LOOPING), dtype=torch.float64)
    report = check_graph(Graph.as_given(torch.tensor(LOOPING).t(), 2, edge_weight=weight))
    assert (report.components, report.largest_component) == (1, 2)
    assert not report.directed
    assert report.duplicate_edges == 4


@settings(max_examples=60)
@given(
    nodes=st.integers(1, 9),
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 4)), max_size=9),
)
def test_components_of_graphs_with_duplicated_edges(
    nodes: int, pairs: list[tuple[int, int, int]]
) -> None:
    edges = [
        edge for s, t, times in pairs for edge in [(s % nodes, t % nodes), (t % nodes, s % nodes)]
        for _ in range(times)
    ]  # fmt: skip
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    weight = torch.ones(len(edges), dtype=torch.float64)
    report = check_graph(Graph.as_given(index, nodes, edge_weight=weight))
    expected = nx.Graph(edges)
    expected.add_nodes_from(range(nodes))
    parts = list(nx.connected_components(expected))
    assert report.components == len(parts)
    assert report.largest_component == max(map(len, parts))
    assert not report.directed


def test_duplicates_with_weights_in_another_order_are_reverses() -> None:
    index = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]])
    weights = torch.tensor([1.0, 2.0, 2.0, 1.0])
    assert not check_graph(Graph.as_given(index, 2, edge_weight=weights)).directed
    weights[0] = 3
    assert check_graph(Graph.as_given(index, 2, edge_weight=weights)).directed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.float32])
def test_weights_of_any_type_are_read(dtype: torch.dtype) -> None:
    weight = torch.ones(2).to(dtype)
    if dtype == torch.float32:
        weight.requires_grad_()
    graph = Graph.as_given(torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=weight)
    assert not check_graph(graph).directed


def test_a_graph_that_changed_is_checked_again() -> None:
    graph = Graph.as_given(torch.tensor([[0, 1], [1, 0]]), 2, y=torch.tensor([0, 1]))
    check_graph(graph)
    graph.col[0] = 10**9
    with pytest.raises(ValueError, match=r"col must be smaller .*\(2\), got .* = 1000000000"):
        check_graph(graph)


def test_no_node() -> None:
    report = check_graph(Graph(torch.zeros(1, dtype=torch.long), torch.empty(0, dtype=torch.long)))
    assert report.warnings == ["the graph has no nodes"]
    assert report.suggested_k == 8


@pytest.mark.parametrize(
    ("name", "file", "k"),
    [
        ("cora", "ind.cora.graph", 8),
        ("citeseer", "ind.citeseer.graph", 8),
        ("pubmed", "ind.pubmed.graph", 8),
        ("ppi-rederived", "ppi_rederived.npz", 32),
    ],
)
def test_known_graphs(real_data: Path, name: str, file: str, k: int) -> None:
    need(real_data, file)
    graph = load_dataset(name, real_data)
    assert suggest_k(graph) == k
    report = check_graph(graph)
    assert not report.directed
    assert report.nodes == graph.num_nodes
    if graph.multi_label:
        assert report.homophily is None
        assert report.labelled_nodes == graph.num_nodes
    else:
        assert report.homophily is not None
        assert report.homophily_by_chance is not None
        assert report.homophily > 0.7 > report.homophily_by_chance
        assert report.warnings == []


def test_digits_look_right() -> None:
    report = check_graph(load_dataset("digits"))
    assert report.warnings == []
    assert report.splits == {"train": 200, "val": 500, "test": 1097}


def ring(n: int = 200, **fields: Any) -> Graph:
    fields.setdefault("x", torch.randn(n, 3, generator=torch.Generator().manual_seed(0)))
    fields.setdefault("y", (torch.arange(n) >= n // 2).long())
    edges = fields.pop("edges", torch.stack([torch.arange(n), (torch.arange(n) + 1) % n]))
    return Graph.from_edge_index(edges, n, **fields)


def test_a_good_graph_has_no_warning() -> None:
    assert check_graph(ring()).warnings == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edges": torch.empty(2, 0, dtype=torch.long)}, "the graph has no edges"),
        ({"x": None}, "no features"),
        ({"x": torch.full((200, 2), float("nan"))}, "NaN or infinite"),
        ({"y": None}, "no node has a label"),
        ({"y": torch.full((200,), -1)}, "no node has a label"),
        ({"y": torch.zeros(200, dtype=torch.long)}, "another class"),
        ({"y": (torch.arange(200) == 3).long()}, "1 class ('1')"),
        ({"y": (torch.arange(200) < 4).long()}, "from 4 to 196"),
        ({"y": torch.arange(200) % 2}, "(0.00) than chance would (0.50)"),
        ({"label_names": ("-1", "1")}, "class '-1' has 100 nodes"),
        ({"train_mask": torch.zeros(200, dtype=torch.bool)}, "train split"),
        (
            {"train_mask": torch.arange(200) < 100, "label_names": ("a", "b")},
            "1 class that others have ('b')",
        ),
        (
            {
                "y": torch.eye(2)[(torch.arange(200) >= 100).long()],
                "train_mask": torch.arange(200) >= 100,
            },
            "1 label that others have ('0')",
        ),
        ({"edges": torch.tensor([[0, 1], [1, 2]])}, "no edge (197)"),
        (
            {
                "edges": torch.stack([torch.zeros(199, dtype=torch.long), torch.arange(1, 200)]),
                "node_ids": np.array(["unknown"] + [f"n{i}" for i in range(1, 200)]),
            },
            "'unknown' is joined with 199 of the 200",
        ),
    ],
)
def test_what_looks_wrong(fields: dict[str, Any], message: str) -> None:
    report = check_graph(ring(**fields))
    found = [warning for warning in report.warnings if message in warning]
    assert len(found) == 1, report.warnings


def test_duplicates_and_sparse_features() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 0]])
    x = torch.eye(2).to_sparse_csr()
    x.values()[0] = float("inf")
    warnings = check_graph(Graph.as_given(edges, 2, x=x)).warnings
    assert any("1 duplicate edge" in warning for warning in warnings)
    assert any("NaN or infinite" in warning for warning in warnings)


def test_an_undirected_duplicate_counts_once() -> None:
    edges = torch.tensor([[0, 1, 0, 1, 2, 2], [1, 0, 1, 0, 2, 2]])
    report = check_graph(Graph.as_given(edges, 3))
    assert not report.directed
    assert (report.edges, report.duplicate_edges) == (4, 2)  # one of the edge, one of the loop


def test_several_labels_a_node() -> None:
    y = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    graph = Graph.as_given(torch.tensor([[0, 1], [1, 0]]), 3, y=y, label_names=("a", "b"))
    report = check_graph(graph)
    assert report.classes == {"a": 2, "b": 1}
    assert report.labels == "several per node"
    assert (report.homophily, report.labelled_nodes) == (None, 3)
    masks: dict[str, Any] = {
        "train_mask": torch.tensor([True, False, False]),
        "val_mask": torch.tensor([False] * 3),
    }
    split = Graph(graph.rowptr, graph.col, y=y, **masks)
    assert check_graph(split).labelled_nodes == 1


def test_columns_and_notes_of_an_import() -> None:
    table = pa.table({"age": [1.0, 2.0, 3.0], "same": [1, 1, 1], "[red]": ["a", "b", "a"]})
    encoder = FeatureEncoder.fit(table, np.ones(3, dtype=bool))
    graph = Graph.as_given(
        torch.tensor([[0, 1], [1, 0]]), 3, x=encoder.transform(table), encoder=encoder
    )
    notes = [f"nodes.csv: {note}" for note in encoder.notes]  # as the import has them
    report = check_graph(graph, SimpleNamespace(notes=notes, counts={"edge_rows": 7}))
    assert report.columns == [
        {"name": "age", "kind": "number", "width": 1},
        {"name": "[red]", "kind": "category", "width": 2},
    ]
    assert report.notes == notes
    assert report.imported == {"edge_rows": 7}
    assert check_graph(graph).notes == encoder.notes


def test_fewer_names_than_classes_are_no_crash() -> None:
    y = torch.tensor([0, 1, 2, 2])
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    for names in ((), ("a", "b")):
        report = check_graph(Graph.as_given(edges, 4, y=y, label_names=names))
        assert report.homophily == pytest.approx(1 / 3)
        assert report.labelled_nodes == 4


def labelled_graph(edges: list[tuple[int, int]], y: list[int], train: list[int]) -> Graph:
    graph = Graph.from_edge_index(torch.tensor(edges).t(), len(y))
    mask = torch.zeros(len(y), dtype=torch.bool)
    mask[train] = True
    return replace(graph, y=torch.tensor(y), train_mask=mask)


def test_labels_per_class() -> None:
    graph = labelled_graph([(0, 1)], [0, 1, 0, 1, 1], [0, 1, 2])
    assert labels_per_class(graph) == 1.5
    assert labels_per_class(replace(graph, train_mask=None)) == 0
    several = torch.tensor([[1, 0], [1, 1], [0, 0], [1, 1], [1, 1]])
    assert labels_per_class(replace(graph, y=several)) == 1.5


@given(seed=st.integers(0, 200), alike=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_neighbours_agree_by_the_edges_between_training_nodes(seed: int, alike: float) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 40)
    edges = []
    while len(edges) < 60:
        a, b = rng.integers(0, 40, 2)
        if a != b and (y[a] == y[b]) == (rng.random() < alike):
            edges.append((int(a), int(b)))
    train = rng.permutation(40)[:30].tolist()
    graph = labelled_graph(edges, y.tolist(), train)
    pairs = [
        (int(y[a]), int(y[b]))
        for a, b in graph.edge_index.t().tolist()
        if a in train and b in train
    ]
    share = np.mean([a == b for a, b in pairs])
    classes = np.bincount([b for _, b in pairs], minlength=3) / len(pairs)
    chance = (classes**2).sum()
    assert neighbours_agree(graph) == (len(pairs) < 20 or share - chance >= 0.1 * (1 - chance))


def test_without_labels_neighbours_are_taken_to_agree() -> None:
    graph = labelled_graph([(i, i + 1) for i in range(30)], [0, 1] * 16, list(range(32)))
    assert not neighbours_agree(graph)
    assert neighbours_agree(replace(graph, y=torch.zeros(32, dtype=torch.long)))
    assert neighbours_agree(replace(graph, y=None))
    assert neighbours_agree(replace(graph, train_mask=None))
    assert neighbours_agree(replace(graph, y=torch.zeros(32, 2, dtype=torch.long)))
