"""Random walks: what they visit, and that the weights make up for what they visit often."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.sampling import RandomWalkLoader
from lgcn.sampling.alternatives.walks import _walk

RandomGraph = Callable[..., Graph]


@pytest.fixture
def star() -> Graph:
    """Training node 0 joined with the training nodes 1 to 20 and with ten others."""
    ends = torch.arange(1, 31)
    edge_index = torch.stack([torch.zeros_like(ends), ends])
    mask = torch.arange(31) <= 20
    return Graph.from_edge_index(edge_index, x=torch.rand(31, 3), train_mask=mask)


def test_walks_follow_edges(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.05)
    rowptr, col = graph.rowptr.numpy(), graph.col.numpy()
    for seed in range(20):
        visited = _walk(rowptr, col, np.array([seed]), 3, np.uint64(seed))
        reached, new = {seed}, {seed}
        for _ in range(3):
            new = {int(c) for i in new for c in col[rowptr[i] : rowptr[i + 1]]}
            reached |= new
        assert set(visited) <= reached
        assert all(j in {i, *col[rowptr[i] : rowptr[i + 1]]} for i, j in pairwise(visited))


def test_all_neighbours_are_as_likely(star: Graph) -> None:
    arrays = star.rowptr.numpy(), star.col.numpy()
    ends = [_walk(*arrays, np.array([0]), 1, np.uint64(seed))[1] for seed in range(6000)]
    counts = np.bincount(ends, minlength=31)[1:]
    assert ((counts - 200) ** 2 / 200).sum() < 67  # 29 degrees of freedom: once in 10,000 times


def test_a_node_without_neighbours_stays_alone() -> None:
    graph = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 3)
    assert [batch.n_id.tolist() for batch in RandomWalkLoader(graph, n_init=1)] != []
    assert all(batch.num_nodes == 1 for batch in RandomWalkLoader(graph, n_init=1))


def test_each_root_starts_a_walk_in_every_epoch(star: Graph) -> None:
    loader = RandomWalkLoader(star, n_init=5, walk_length=0)
    for epoch in range(2):
        served = torch.cat([batch.n_id for batch in loader.epoch(epoch)])
        assert served.sort().values.tolist() == list(range(21))
    assert len(loader) == 5


@pytest.mark.parametrize("options", [{}, {"batch_size": 2}])
def test_the_expected_loss_is_the_mean_over_the_training_nodes(
    star: Graph, options: dict[str, int]
) -> None:
    losses = torch.zeros(31)
    losses[0], losses[21:] = 21.0, 1e9  # node 0 is met in nearly every sub-graph
    loader = RandomWalkLoader(star, n_init=3, walk_length=1, num_workers=0, **options)
    epochs = [
        np.mean([float((b.node_weight * losses[b.n_id]).sum()) for b in loader.epoch(epoch)])
        for epoch in range(100)
    ]
    assert np.mean(epochs) == pytest.approx(1.0, abs=0.02)
    inclusion = loader.inclusion()
    assert inclusion[0] > 5  # of 7 sub-graphs
    assert inclusion.min() >= 1


@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_do_not_change_the_sequence(star: Graph, num_workers: int) -> None:
    alone, others = (
        RandomWalkLoader(star, n_init=4, walk_length=2, seed=3, num_workers=n)
        for n in (0, num_workers)
    )
    for _ in range(2):
        for batch, other in zip(alone, others, strict=True):
            assert torch.equal(batch.n_id, other.n_id)
            assert torch.equal(batch.node_weight, other.node_weight)
            assert torch.equal(batch.x, star.x[batch.n_id])


def test_walks_fill_a_subgraph_at_most(star: Graph) -> None:
    loader = RandomWalkLoader(star, max_nodes=10, walk_length=4)
    assert loader.n_init == 2
    assert all(batch.num_nodes <= 10 for batch in loader)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"walk_length": -1}, r"walk_length must .* got -1"),
        (
            {"n_init": 5, "max_nodes": 10, "walk_length": 4},
            "max_nodes=10 has room for 2 .* n_init=5",
        ),
        ({"max_nodes": 4, "walk_length": 4}, "max_nodes=4 has room for 0 .* n_init=1"),
        ({"roots": [3, 31]}, "roots must lie between 0 and 30, got 3 to 31"),
    ],
)
def test_wrong_options_are_named(star: Graph, options: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, UsageError), match=message):
        RandomWalkLoader(star, **options)
