"""The neighbours of sampled nodes and their shares."""

import numpy as np
import torch

from lgcn import Graph
from lgcn.report.neighbourhoods import MAX_NEIGHBOURS, LayerShares, neighbourhoods


def star(size: int) -> Graph:
    """Node 0 has all others as neighbours."""
    ends = torch.stack([torch.zeros(size - 1, dtype=torch.long), torch.arange(1, size)])
    return Graph.from_edge_index(ends, size + 1)  # the last node is isolated


def test_a_node_comes_before_its_neighbours_and_the_most_selected_first() -> None:
    layer = LayerShares(
        "LGCL 1", np.array([0, 0, 0, 2]), np.array([3, 0, 1, 0]), np.array([0.5, 0.2, 0.3, 1.0])
    )
    found = neighbourhoods(star(4), np.array([0, 2, 4]), [layer])
    assert found.ptr.tolist() == [0, 4, 6, 7]
    assert found.neighbour.tolist() == [0, 3, 1, 2, 2, 0, 4]
    assert found.shares[0].tolist() == [0.2, 0.5, 0.3, 0.0, 0.0, 1.0, 0.0]
    assert found.degree.tolist() == [3, 1, 0]
    assert found.layers == ["LGCL 1"]
    np.testing.assert_allclose(found.empty[0], [0.0, 0.0, 1.0], atol=1e-12)


def test_many_neighbours_are_cut_and_counted() -> None:
    size = 10 * MAX_NEIGHBOURS
    chosen = np.array([size - 1, 7])  # selected, though far back in the row
    layer = LayerShares("LGCL 1", np.zeros(2, dtype=int), chosen, np.array([0.6, 0.4]))
    found = neighbourhoods(star(size), np.array([0]), [layer])
    assert found.degree.tolist() == [size - 1]
    assert len(found.neighbour) == MAX_NEIGHBOURS + 1
    assert found.neighbour[1:3].tolist() == chosen.tolist()


def test_without_layers_the_neighbours_are_listed_by_number() -> None:
    found = neighbourhoods(star(4), np.array([0]), [])
    assert found.neighbour.tolist() == [0, 1, 2, 3]
    assert found.shares == []


def test_a_layer_that_selects_nothing_is_all_zeros() -> None:
    none = np.zeros(0, dtype=np.int64)
    found = neighbourhoods(star(3), np.array([3]), [LayerShares("LGCL 1", none, none, none)])
    assert found.neighbour.tolist() == [3]
    assert found.empty[0].tolist() == [1.0]
