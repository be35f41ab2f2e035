"""Neighbourhoods hold what a network reads, and no more."""

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from lgcn.errors import DataError, UsageError
from lgcn.explain import neighbourhood as module
from lgcn.explain.neighbourhood import neighbourhood, num_hops
from lgcn.graph import Graph

from .networks import build, random_graph


def test_nodes_come_by_their_distance():
    graph = random_graph(40, 50)
    paths = nx.from_edgelist(graph.edge_index.t().tolist())
    distance = nx.single_source_shortest_path_length(paths, 7)
    for hops in range(4):
        found = neighbourhood(graph, torch.tensor([7]), hops)
        expected = {node for node, far in distance.items() if far <= hops}
        assert set(found.nodes.tolist()) == expected
        assert [distance[node] for node in found.nodes.tolist()] == sorted(
            distance[node] for node in expected
        )
        assert found.reach == tuple(
            sum(far <= near for far in distance.values()) for near in range(hops + 1)
        )


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_degrees_and_normalised_rows_are_those_of_the_whole_graph(weights: bool, loops: bool):
    graph = random_graph(40, 60, weights=weights, loops=loops)
    found = neighbourhood(graph, torch.tensor([3]), 2)
    torch.testing.assert_close(found.graph.row_degree(), graph.row_degree()[found.nodes])
    for self_loops in (False, True):
        whole = graph.adjacency(normalize=True, self_loops=self_loops)
        part = found.graph.adjacency(normalize=True, self_loops=self_loops)
        for local in range(found.reach[1]):
            here = slice(*part.rowptr[local : local + 2].tolist())
            node = int(found.nodes[local])
            there = slice(*whole.rowptr[node : node + 2].tolist())
            assert found.nodes[part.col[here].long()].tolist() == whole.col[there].tolist()
            torch.testing.assert_close(part.values()[here], whole.values()[there])


def test_hops_are_counted_layer_by_layer():
    assert num_hops(build("lgcn", {"num_layers": 2})) == 4
    assert num_hops(build("lgcn", {"embedding": "linear", "classifier": "none"})) == 2
    assert num_hops(build("lgcn", {"classifier": "diffusion", "hops": 5})) == 8
    assert num_hops(build("residual", {"num_layers": 3, "aggregate": "mean"})) == 3
    assert num_hops(build("residual", {"num_layers": 3, "aggregate": "none"})) == 0


def test_a_neighbourhood_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_ENTRIES", 10)
    with pytest.raises(UsageError, match="node 3 has more than 10 edges"):
        neighbourhood(random_graph(40, 90), torch.tensor([3]), 3)


def test_indices_of_32_bits_and_memory_maps_give_the_same(tmp_path: Path):
    graph = random_graph(40, 60)
    expected = neighbourhood(graph, torch.tensor([3]), 3)
    np.save(tmp_path / "col.npy", graph.col.int().numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no tensors that cannot be written to
        col = torch.from_numpy(np.load(tmp_path / "col.npy", mmap_mode="r"))
    for rowptr in (graph.rowptr.int(), graph.rowptr.long()):
        stored = Graph._trusted(rowptr, col, x=graph.x)
        found = neighbourhood(stored, torch.tensor([3]), 3)
        assert torch.equal(found.nodes, expected.nodes)
        assert torch.equal(found.entry, expected.entry)
        assert torch.equal(found.graph.col, expected.graph.col)
        assert torch.equal(found.graph.rowptr, expected.graph.rowptr)


def test_an_edge_that_leads_nowhere_is_an_error():
    stored = Graph._trusted(torch.tensor([0, 1, 2]), torch.tensor([1, 7]), x=torch.ones(2, 1))
    with pytest.raises(DataError, match="leads to no node"):
        neighbourhood(stored, torch.tensor([0]), 2)
