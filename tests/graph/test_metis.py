"""METIS puts together what hangs together, whatever the direction of edges."""

from collections.abc import Callable

import pytest
import torch

from lgcn import Graph
from lgcn.graph.metis import metis_parts

from .graphs import cliques

pytest.importorskip("pymetis")
RandomGraph = Callable[..., Graph]


def test_clusters_are_what_hangs_together() -> None:
    found = metis_parts(cliques(6), 6, 0, "test").reshape(6, 10)
    assert (found == found[:, :1]).all()
    assert len(set(found[:, 0])) == 6


def test_direction_and_self_loops_do_not_matter() -> None:
    graph = cliques(4)
    source, target = graph.edge_index
    once = graph.edge_index[:, source < target]
    loops = torch.arange(40).repeat(2, 1)
    other = Graph.as_given(torch.cat([once, loops], dim=1), 40)
    assert (metis_parts(other, 4, 0, "test") == metis_parts(graph, 4, 0, "test")).all()


def test_duplicated_edges_and_self_loops_change_nothing(random_graph: RandomGraph) -> None:
    graph = random_graph(60, 0.1)
    edges = graph.edge_index
    loops = torch.arange(60).repeat(2, 1)
    again = Graph.as_given(torch.cat([edges, edges, loops, loops, edges], dim=1), 60)
    assert metis_parts(again, 5, 0, "test").tolist() == metis_parts(graph, 5, 0, "test").tolist()


def test_clusters_of_a_graph_without_edges() -> None:
    graph = Graph(torch.zeros(11).long(), torch.zeros(0).long())
    assert len(metis_parts(graph, 5, 0, "test")) == 10
