"""Positions: against dense eigenvectors, and what a user can rely on."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from lgcn.graph import Graph
from lgcn.graph.positions import _learnt, _spectral, checksums, digest, positions

KINDS = ("spectral", "learnt")


def blocks(num_isolated: int = 0) -> tuple[Graph, np.ndarray]:
    """Four groups of 25 nodes, with most edges inside, and their numbers."""
    graph = nx.planted_partition_graph(4, 25, 0.3, 0.02, seed=3)
    edges = torch.tensor(list(graph.edges)).t()
    return Graph.from_edge_index(edges, 100 + num_isolated), np.arange(100) // 25


def test_spectral_is_the_leading_eigenspace() -> None:
    graph, _ = blocks()
    adjacency = dense(graph)
    degree = adjacency.sum(1)
    added = degree.mean()
    scale = 1 / np.sqrt(degree + added)
    matrix = scale[:, None] * (adjacency + added / len(degree)) * scale
    _, vectors = np.linalg.eigh(matrix)
    wanted = vectors[:, ::-1][:, 1:4]
    found = positions(graph, "spectral", 3)
    assert np.linalg.svd(wanted.T @ found)[1] == pytest.approx(np.ones(3), abs=1e-3)
    assert found.T @ found == pytest.approx(np.eye(3), abs=1e-5)


def dense(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.edge_index[1], graph.edge_index[0]] = 1
    return matrix


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_told_apart(kind: str) -> None:
    graph, group = blocks(num_isolated=3)
    found = positions(graph, kind, 8)
    assert found.shape == (103, 8)
    assert np.isfinite(found).all()
    model = LogisticRegression(C=1000).fit(found[:100:5], group[::5])
    assert model.score(found[:100], group) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_positions(kind: str) -> None:
    graph, _ = blocks()
    again = replace(graph, col=graph.col.clone())
    assert (positions(graph, kind, 8, 1) == positions(again, kind, 8, 1)).all()
    assert (np.array(checksums(positions(graph, kind, 8, 1))) >= 0).all()
    assert not np.allclose(positions(graph, kind, 8, 1), positions(graph, kind, 8, 2), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_nodes", [0, 1, 2, 3, 5])
def test_tiny_graphs(kind: str, num_nodes: int) -> None:
    nodes = torch.arange(num_nodes)
    graph = Graph.from_edge_index(torch.stack([nodes[1:], nodes[:-1]]), num_nodes)
    found = positions(graph, kind, 4)
    assert found.shape == (num_nodes, 4)
    assert np.isfinite(found).all()
    empty = Graph(torch.zeros(num_nodes + 1, dtype=torch.long), nodes[:0])
    assert (positions(empty, kind, 4) == 0).all()


@pytest.mark.parametrize("compute", [_spectral, _learnt])
def test_positions_survive_rounding(compute: Any) -> None:
    """Eigenvalues of equal components are equal; the vectors must not turn with the last bits."""
    graph = nx.disjoint_union_all([*[nx.cycle_graph(10)] * 6, nx.star_graph(20)])
    matrix = nx.to_scipy_sparse_array(graph, dtype=float, format="csr")
    rounded = matrix.copy()
    rounded.data *= 1 + 1e-13 * np.random.default_rng(0).standard_normal(matrix.nnz)
    first, second = (compute(each, 5, 0) for each in (matrix, rounded))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.ptp(first[:10], axis=0).max() > 0


def test_digest() -> None:
    graph, _ = blocks()
    other = replace(graph, col=graph.col.long(), rowptr=graph.rowptr.long())
    assert digest(graph) == digest(other)
    assert digest(graph) != digest(blocks(num_isolated=1)[0])
    assert digest(graph) != digest(replace(graph, edge_weight=torch.ones(graph.num_edges)))
    changed = graph.edge_index.clone()
    changed[0, 0] = (changed[0, 0] + 50) % 100
    assert digest(graph) != digest(Graph.from_edge_index(changed, 100))


def test_vectors_beyond_the_rank_are_zero() -> None:
    star = Graph.from_edge_index(torch.stack([torch.zeros(20).long(), torch.arange(1, 21)]), 21)
    found = positions(star, "learnt", 6)
    assert (found[:, 2:] == 0).all()
    assert np.allclose(found[1:], found[1], atol=1e-6)
