"""Structural features against NetworkX and slow loops."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.graph import Graph, structural
from lgcn.graph.structural import structural_features, suitable_names
from lgcn.graph.structural_names import NAMES, OF_DEGREES

# Isolated nodes, a component of two, and everything else at random.
edge_lists = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=60)


def reference(graph: Graph) -> dict[str, list[float]]:
    """All features by loops over the edges and by NetworkX, of one graph."""
    n = graph.num_nodes
    directed = nx.MultiDiGraph()
    directed.add_nodes_from(range(n))
    weight = [1.0] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    ends = graph.edge_index.t().tolist()
    for (source, target), value in zip(ends, weight, strict=True):
        directed.add_edge(source, target, weight=value)
    simple = nx.Graph((a, b) for a, b in ends if a != b)
    simple.add_nodes_from(range(n))
    near = {i: [s for s, t in ends if t == i] for i in range(n)}
    log = {i: np.log1p(len(near[i])) for i in range(n)}
    degrees = {i: [log[j] for j in near[i]] or [0.0] for i in range(n)}
    size = {i: len(part) for part in nx.connected_components(simple) for i in part}
    rank = nx.pagerank(directed, tol=1e-12, max_iter=1000)
    triangles, share = nx.triangles(simple), nx.clustering(simple)
    core = nx.core_number(simple)
    found: dict[str, Any] = {
        "log_degree": log,
        "log_out_degree": {i: np.log1p(sum(s == i for s, _ in ends)) for i in range(n)},
        "log_weighted_degree": {
            i: np.log1p(sum(w for (_, t), w in zip(ends, weight, strict=True) if t == i))
            for i in range(n)
        },
        "mean_neighbour_degree": {i: np.mean(degrees[i]) for i in range(n)},
        "max_neighbour_degree": {i: max(degrees[i]) for i in range(n)},
        "min_neighbour_degree": {i: min(degrees[i]) for i in range(n)},
        "log_triangles": {i: np.log1p(triangles[i]) for i in range(n)},
        "clustering": share,
        "log_core": {i: np.log1p(core[i]) for i in range(n)},
        "log_pagerank": {i: np.log(n * rank[i]) for i in range(n)},
        "log_component": {i: np.log(size[i]) for i in range(n)},
    }
    return {name: [found[name][i] for i in range(n)] for name in NAMES}


def check(graph: Graph) -> None:
    found = structural_features(graph)
    for place, (name, expected) in enumerate(reference(graph).items()):
        np.testing.assert_allclose(found[:, place], expected, atol=1e-4, err_msg=name)


@settings(max_examples=25, deadline=None)
@given(edge_lists, st.booleans(), st.booleans())
def test_equal_to_networkx(edges: list[tuple[int, int]], directed: bool, weighted: bool) -> None:
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    weight = torch.arange(1.0, len(edges) + 1) / 7 if weighted else None
    check(Graph.from_edge_index(index, 12, directed=directed, edge_weight=weight))


def test_duplicates_and_self_loops() -> None:
    # Of three hundred duplicates, a byte would count 44.
    edges = torch.tensor([[0, 1]] * 300 + [[1, 0], [1, 2], [2, 0], [2, 2], [3, 3]]).t()
    check(Graph.as_given(edges, 5))


@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_without_edges(num_nodes: int) -> None:
    graph = Graph(torch.zeros(num_nodes + 1, dtype=torch.long), torch.empty(0, dtype=torch.long))
    assert structural_features(graph).tolist() == [[0.0] * len(NAMES)] * num_nodes


def test_separate_graphs_are_as_if_alone() -> None:
    parts = [Graph.from_edge_index(torch.tensor(nx_edges(seed)).t(), 20) for seed in (1, 2, 3)]
    together = structural_features(Graph.concat(parts))
    np.testing.assert_allclose(
        together, np.concatenate([structural_features(part) for part in parts]), atol=1e-5
    )


def nx_edges(seed: int) -> list[tuple[int, int]]:
    return list(nx.gnp_random_graph(20, 0.2, seed=seed).edges)


def test_names_follow_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = torch.tensor(nx_edges(1)).t()
    plain = Graph.from_edge_index(edges, 20)
    assert "log_out_degree" not in suitable_names(plain)
    assert "log_weighted_degree" not in suitable_names(plain)
    directed = Graph.from_edge_index(edges, 20, directed=True)
    assert "log_out_degree" in suitable_names(directed)
    weighted = replace(plain, edge_weight=torch.ones(plain.num_edges))
    assert "log_weighted_degree" in suitable_names(weighted)
    monkeypatch.setattr(structural, "LARGE", 10)
    assert set(suitable_names(plain)) == set(OF_DEGREES) - {"log_weighted_degree"}


def test_triangles_of_dense_parts_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    clique = Graph.from_edge_index(torch.tensor(list(nx.complete_graph(12).edges)).t(), 12)
    exact = structural_features(clique, ["log_triangles"])
    assert np.expm1(exact[:, 0]) == pytest.approx([55] * 12)
    monkeypatch.setattr(structural, "TRIANGLE_CAP", 3)
    again = replace(clique, col=clique.col.clone())  # nothing is kept of it yet
    capped = np.expm1(structural_features(again, ["log_triangles"])[:, 0])
    assert 0 < capped.sum() < 55 * 12


def test_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_edge_index(torch.tensor(nx_edges(1)).t(), 20)
    first = structural_features(graph, ["log_core"])
    monkeypatch.setattr(structural, "_core_numbers", None)
    assert (structural_features(replace(graph, name="other"), ["log_core"]) == first).all()


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="shoe_size"):
        structural_features(Graph.from_edge_index(torch.tensor([[0], [1]])), ["shoe_size"])
