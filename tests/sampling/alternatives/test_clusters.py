"""Clusters by METIS: each training node serves once, and few edges are cut."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.sampling import ClusterLoader

from ...graph.graphs import cliques

pytest.importorskip("pymetis")
RandomGraph = Callable[..., Graph]


def test_each_training_node_serves_once_with_the_whole_of_its_cluster() -> None:
    mask = torch.arange(80) % 10 == 3
    mask[:40] = False  # the first four cliques have none
    mask[41:43] = True
    graph = cliques(8, train_mask=mask)
    loader = ClusterLoader(graph, max_nodes=20, clusters_per_subgraph=2)
    assert len(loader) == 2
    for epoch in range(3):
        batches = list(loader.epoch(epoch))
        nodes = torch.cat([batch.n_id for batch in batches])
        assert nodes.sort().values.tolist() == list(range(40, 80))
        weights = torch.cat([batch.node_weight for batch in batches])
        assert nodes[weights > 0].sort().values.tolist() == mask.nonzero().flatten().tolist()
        # The mean of the batches' losses is that of the training nodes.
        losses = torch.arange(80).float()
        found = [float((batch.node_weight * losses[batch.n_id]).sum()) for batch in batches]
        assert np.mean(found) == pytest.approx(float(losses[mask].mean()))
        for batch in batches:
            assert torch.equal(batch.edge_index, graph.subgraph(batch.n_id).edge_index)


@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_do_not_change_the_sequence(random_graph: RandomGraph, num_workers: int) -> None:
    graph = random_graph(100, 0.05)
    alone, others = (
        ClusterLoader(graph, max_nodes=30, seed=1, num_workers=n) for n in (0, num_workers)
    )
    epochs = [[batch.n_id.tolist() for batch in alone] for _ in range(2)]
    assert epochs == [[batch.n_id.tolist() for batch in others] for _ in range(2)]
    assert epochs[0] != epochs[1]


def test_one_cluster_is_the_whole_graph(random_graph: RandomGraph) -> None:
    graph = random_graph(12)
    (batch,) = ClusterLoader(graph, clusters_per_subgraph=1)
    assert batch.n_id.tolist() == list(range(12))
    with pytest.raises(ValueError, match=r"clusters_per_subgraph must .*1, got 0"):
        ClusterLoader(graph, clusters_per_subgraph=0)


def test_without_metis_it_says_what_to_install(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(UsageError, match=r"pip install 'lgcn\[metis\]'"):
        ClusterLoader(random_graph())


def test_max_nodes_must_be_positive(random_graph: RandomGraph) -> None:
    with pytest.raises(ValueError, match="max_nodes must be at least 1, got 0"):
        ClusterLoader(random_graph(), max_nodes=0)


def test_the_halo_is_in_the_sub_graph_but_not_scored() -> None:
    node = torch.arange(60)
    edges = torch.stack([node, (node + 1) % 60])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    everyone = torch.ones(60, dtype=torch.bool)
    graph = Graph.from_edge_index(edges, 60, train_mask=everyone)
    loader = ClusterLoader(graph, max_nodes=20, clusters_per_subgraph=1, halo=2)
    scored = []

    for batch in loader.epoch(0):
        assert batch.n_id is not None
        assert batch.node_weight is not None
        core = batch.n_id[batch.node_weight > 0]
        near = torch.cat([core + step for step in range(-2, 3)]) % 60
        assert sorted(batch.n_id.tolist()) == sorted(set(near.tolist()))
        assert float(batch.node_weight[batch.node_weight > 0][0]) == pytest.approx(len(loader) / 60)
        scored += core.tolist()

    assert sorted(scored) == list(range(60))
