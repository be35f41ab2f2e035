"""Groups of whole graphs by size and density, against loops over single graphs."""

import numpy as np
import pytest
import torch

from lgcn.graph import Graph, GraphSet
from lgcn.report.bins import range_bins
from lgcn.report.score_groups import graph_groups
from tests.report.test_bins import results


def test_ranges_hold_all_scored_graphs_in_rising_order() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(3, 40, 200)
    wrong = rng.random(200) < 0.3
    split = rng.integers(0, 3, 200).astype(np.int8)
    found = range_bins(results("classification", wrong, split), values, "{:.0f}".format)
    inside = split == 2
    assert sum(row["nodes"] for row in found) == inside.sum()
    before = 0.0
    for row in found:
        low, _, high = row["bin"].partition(" to ")
        assert before < float(low)
        before = float(high or low)
        members = inside & (values >= float(low)) & (values <= before)
        assert row["nodes"] == members.sum() > 0
        assert row["score"] == pytest.approx(1 - wrong[members].mean())
    assert len(found) == 5
    sizes = [row["nodes"] for row in found]
    assert max(sizes) < 2 * min(sizes)


def test_equal_values_are_one_range_and_nothing_scored_is_none() -> None:
    same = range_bins(results("classification", np.zeros(9)), np.full(9, 4), "{:.0f}".format)
    assert [(row["bin"], row["nodes"]) for row in same] == [("4", 9)]
    none = results("classification", np.zeros(4), np.full(4, -1, dtype=np.int8))
    assert range_bins(none, np.arange(4), str) == []


def test_graphs_are_grouped_by_nodes_and_neighbours_per_node() -> None:
    ends = torch.tensor([[0, 1, 2, 3, 3, 4, 4, 2], [1, 0, 3, 2, 4, 3, 2, 4]])
    graph = Graph.from_edge_index(ends, 5)
    ptr = torch.tensor([0, 2, 5, 5])  # an edge, a triangle, and a graph without nodes
    graphs = GraphSet.create(Graph(graph.rowptr, graph.col, ptr=ptr), y=torch.tensor([0, 1, 0]))
    sizes, degrees = graph_groups(graphs, results("classification", np.array([0, 1, 1])))
    assert [(row["bin"], row["score"]) for row in sizes.bins] == [("0", 0), ("2", 1), ("3", 0)]
    assert [row["bin"] for row in degrees.bins] == ["0", "1", "2"]
