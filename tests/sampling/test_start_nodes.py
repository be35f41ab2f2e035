"""Start nodes that are not uniform: how often they are drawn, and that the loss makes up for it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph, SubgraphLoader
from lgcn.errors import UsageError
from lgcn.sampling.start_nodes import draw, expected_counts, root_weights, start_weights

RandomGraph = Callable[..., Graph]


@pytest.fixture
def graph(random_graph: RandomGraph) -> Graph:
    """Classes of 20, 8 and 2 training nodes, and an isolated one among them."""
    made = random_graph(60, 0.06, undirected=True)
    y = torch.zeros(60, dtype=torch.long)
    y[20:28], y[28:30] = 1, 2
    entries = made.edge_index[:, (made.edge_index != 29).all(0)]
    mask = torch.arange(60) < 30
    return Graph.as_given(entries, 60, x=made.x, y=y, train_mask=mask)


def test_classes_are_drawn_equally_often(graph: Graph) -> None:
    counts = expected_counts(graph, torch.arange(30), "balanced")
    per_class = [counts[:20].sum(), counts[20:28].sum(), counts[28:].sum()]
    assert per_class == pytest.approx([10, 10, 10])
    assert counts[28:] == pytest.approx([5, 5])


def test_draws_in_proportion_to_neighbours_and_one(graph: Graph) -> None:
    counts = expected_counts(graph, torch.arange(30), "degree")
    degree = graph.rowptr.diff()[:30].numpy()
    assert counts.sum() == pytest.approx(30)
    assert counts / counts[29] == pytest.approx(degree + 1)  # the isolated one is drawn too


@settings(max_examples=100)
@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=30), st.integers(0, 99))
def test_counts_are_met_up_to_rounding(shares: list[float], seed: int) -> None:
    counts = np.array(shares) * (len(shares) / sum(shares))
    drawn = np.bincount(draw(counts, np.random.default_rng(seed)), minlength=len(shares))
    assert drawn.sum() == len(shares)
    assert (np.abs(drawn - counts) < 1 + 1e-6).all()


def test_the_mean_of_many_draws_is_what_was_expected() -> None:
    counts = np.array([0.1, 0.4, 2.5, 1.0, 1.0])
    rng = np.random.default_rng(0)
    drawn = sum(np.bincount(draw(counts, rng), minlength=5) for _ in range(2000)) / 2000
    assert drawn == pytest.approx(counts, abs=0.05)


@pytest.mark.parametrize("kind", ["balanced", "degree"])
@pytest.mark.parametrize("options", [{}, {"batch_size": 2}, {"max_hops": 0}])
def test_the_expected_loss_is_the_mean_over_the_training_nodes(
    graph: Graph, kind: str, options: dict[str, int]
) -> None:
    losses = torch.arange(30).float() ** 2  # those of the rare classes are the largest
    losses = torch.cat([losses, torch.full((30,), 1e9)])  # no other node has a weight
    loader = SubgraphLoader(
        graph, n_init=8, max_nodes=20, start_nodes=kind, num_workers=0, **options
    )
    found = [
        float((batch.node_weight * losses[batch.n_id]).sum())
        for epoch in range(300)
        for batch in loader.epoch(epoch)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(float(losses[:30].mean()), abs=4 * error)
    assert error < 8  # of 285: the test would see a bias
    unweighted = np.mean([float(losses[b.n_id][b.node_weight > 0].mean()) for b in loader.epoch(0)])
    assert abs(unweighted - float(losses[:30].mean())) > 20


def test_equal_counts_weigh_as_the_mean() -> None:
    weight = start_weights(torch.tensor([2, 3, 5, 9]), np.array([9, 3]), np.ones(2), 2)
    assert weight.tolist() == [0, 0.5, 0, 0.5]


def test_a_node_drawn_twice_counts_twice() -> None:
    weight = start_weights(torch.tensor([2, 3]), np.array([3, 3]), np.array([4.0, 4.0]), 2)
    assert weight.tolist() == [0, 0.25]


def test_roots_have_their_weight_and_other_nodes_none() -> None:
    weight = root_weights(torch.tensor([0, 3, 9, 4]), np.array([3, 4, 8]), np.array([1, 2, 4]))
    assert weight.tolist() == [0, 1, 0, 2]


def test_uniform_starts_have_no_weights(graph: Graph) -> None:
    assert all(batch.node_weight is None for batch in SubgraphLoader(graph, n_init=8))


@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_do_not_change_the_weights(graph: Graph, num_workers: int) -> None:
    options = {"n_init": 4, "max_nodes": 12, "start_nodes": "degree", "seed": 5}
    alone = list(SubgraphLoader(graph, **options, num_workers=0))
    for batch, other in zip(
        SubgraphLoader(graph, **options, num_workers=num_workers), alone, strict=True
    ):
        assert torch.equal(batch.n_id, other.n_id)
        assert torch.equal(batch.node_weight, other.node_weight)


def test_what_cannot_be_balanced_is_named(graph: Graph) -> None:
    with pytest.raises(UsageError, match=r"balanced .* graph has several labels"):
        SubgraphLoader(replace(graph, y=torch.ones(60, 3)), start_nodes="balanced")
    with pytest.raises(UsageError, match=r"balanced .* graph has no labels"):
        SubgraphLoader(replace(graph, y=None), start_nodes="balanced")
    with pytest.raises(ValueError, match="one of uniform, balanced, degree, got 'often'"):
        SubgraphLoader(graph, start_nodes="often")
