"""Where nodes of pictures lie, by properties of the pictures."""

import networkx as nx
import numpy as np
import pytest

from lgcn.report.picture_layout import EDGE, nearest_part, picture_layout


def ends_of(graph: nx.Graph) -> np.ndarray:
    return np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)


def lengths(points: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1) / EDGE


def test_a_path_is_a_line_and_a_ring_is_round() -> None:
    path = nx.path_graph(12)
    points = picture_layout(12, ends_of(path))
    assert lengths(points, ends_of(path)) == pytest.approx(1, abs=0.03)
    steps = points - points[0]
    assert np.linalg.norm(steps, axis=1) / EDGE == pytest.approx(np.arange(12), rel=0.03)
    assert np.ptp(points[:, 0]) > np.ptp(points[:, 1])  # it lies, as pages are wide
    points = picture_layout(10, ends_of(nx.cycle_graph(10)))
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1)
    assert radius.max() < 1.05 * radius.min()


@pytest.mark.parametrize(
    "graph",
    [nx.star_graph(20), nx.grid_2d_graph(4, 5), nx.complete_graph(9), nx.balanced_tree(2, 4)],
    ids=["star", "grid", "clique", "tree"],
)
def test_near_nodes_lie_near_each_other_and_none_on_another(graph: nx.Graph) -> None:
    graph = nx.convert_node_labels_to_integers(graph)
    size = len(graph)
    points = picture_layout(size, ends_of(graph))
    apart = np.linalg.norm(points[:, None] - points, axis=2) / EDGE
    assert apart[~np.eye(size, dtype=bool)].min() > 0.1
    steps = nx.floyd_warshall_numpy(graph)
    means = [apart[steps == number].mean() for number in range(int(steps.max()) + 1)]
    assert means == sorted(means)
    again = picture_layout(size, ends_of(graph))
    assert (points == again).all()


def test_parts_of_a_graph_do_not_overlap() -> None:
    graph = nx.disjoint_union_all([nx.cycle_graph(6), nx.path_graph(9), nx.empty_graph(4)])
    points = picture_layout(19, ends_of(graph)) / EDGE
    parts = [sorted(part) for part in nx.connected_components(graph)]
    for first in range(len(parts)):
        for second in range(first):
            apart = np.linalg.norm(points[parts[first]][:, None] - points[parts[second]], axis=2)
            assert apart.min() > 0.9


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_tiny_graphs_have_a_picture(size: int) -> None:
    none = np.zeros((0, 2), dtype=np.int64)
    points = picture_layout(size, none)
    assert points.shape == (size, 2)
    assert len(np.unique(points, axis=0)) == size
    assert (nearest_part(size, none, 150, 800) == np.arange(size)).all()


def test_of_a_large_graph_the_part_around_its_largest_node_is_taken() -> None:
    graph = nx.disjoint_union(nx.star_graph(30), nx.path_graph(100))
    near = nearest_part(131, ends_of(graph), 40, 1000)
    assert len(near) == 40
    assert set(near) >= set(range(31))
    clique = nx.complete_graph(50)
    near = nearest_part(50, ends_of(clique), 150, 100)
    assert len(near) == 14  # 91 edges; 15 nodes would have 105
    assert (np.diff(near) > 0).all()
