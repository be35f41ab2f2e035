"""Random walks: they follow edges, all neighbours are as likely, threads change nothing."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.paper.baselines.random_walks import walk_passes

RandomGraph = Callable[..., Graph]


def random_walks(graph: Graph, walks_per_node: int, length: int, seed: int = 0) -> Any:
    """The walks of all passes, one per row."""
    return np.concatenate(list(walk_passes(graph, walks_per_node, length, seed)))


def neighbours(graph: Graph) -> list[set[int]]:
    bounds = pairwise(graph.rowptr.tolist())
    return [set(graph.col[start:stop].tolist()) for start, stop in bounds]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_every_step_is_an_edge_and_only_a_node_without_any_ends_a_walk(
    random_graph: RandomGraph, dtype: torch.dtype
) -> None:
    found = random_graph(200, 0.01)  # directed, so that walks end anywhere
    graph = Graph(found.rowptr.to(dtype), found.col.to(dtype))
    reach = neighbours(graph)
    assert any(not row for row in reach)
    for walk in random_walks(graph, 3, 12).tolist():
        for node, after in pairwise(walk):
            assert after in reach[node] if node >= 0 and reach[node] else after == -1


def test_every_node_starts_a_walk_in_each_pass(random_graph: RandomGraph) -> None:
    walks = random_walks(random_graph(130, 0.05), 4, 6)
    assert walks.shape == (520, 6)
    assert walks.dtype == np.int32
    orders = walks[:, 0].reshape(4, 130)
    assert (np.sort(orders, axis=1) == np.arange(130)).all()
    assert not (orders[0] == orders[1]).all()


def test_steps_are_those_of_the_transition_matrix() -> None:
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 5)]
    graph = Graph.from_edge_index(torch.tensor(edges).t(), 6)
    walks = random_walks(graph, 4000, 5, seed=3)
    # Steps that follow one another are drawn apart: each of them is tested by itself.
    for step in range(4):
        counts = np.zeros((6, 6))
        np.add.at(counts, (walks[:, step], walks[:, step + 1]), 1)
        for node, reach in enumerate(neighbours(graph)):
            seen = counts[node, sorted(reach)]
            expected = seen.sum() / len(reach)
            # At most 3 degrees of freedom: once in 10,000 times.
            assert ((seen - expected) ** 2 / expected).sum() < 21.1
            assert counts[node].sum() == seen.sum()


def test_weights_do_not_count(random_graph: RandomGraph) -> None:
    graph = random_graph(20, 0.2, weighted=True)
    plain = Graph(graph.rowptr, graph.col)
    assert (random_walks(graph, 2, 5) == random_walks(plain, 2, 5)).all()


def test_threads_and_passes_do_not_change_the_walks(random_graph: RandomGraph) -> None:
    graph = random_graph(300, 0.03)
    expected = random_walks(graph, 3, 9, seed=5)
    assert (random_walks(graph, 2, 9, seed=5) == expected[:600]).all()
    assert not (random_walks(graph, 3, 9, seed=6) == expected).all()
    try:
        numba.set_num_threads(2)
        assert random_walks(graph, 3, 9, seed=5).tobytes() == expected.tobytes()
    finally:
        numba.set_num_threads(1)


def test_nodes_without_neighbours_and_empty_graphs() -> None:
    lonely = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 3)
    walks = random_walks(lonely, 2, 4)
    assert sorted(walks[:, 0].tolist()) == [0, 0, 1, 1, 2, 2]
    assert (walks[:, 1:] == -1).all()
    empty = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 0)
    assert random_walks(empty, 2, 4).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"walks_per_node": 0}, r"walks_per_node must .*1, got 0"),
        ({"length": 0}, "length must be at least 1, got 0"),
        ({"seed": -1}, "seed must not be negative, got -1"),
    ],
)
def test_wrong_options_are_named(
    random_graph: RandomGraph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        walk_passes(random_graph(), **{"walks_per_node": 1, "length": 2, **options})
