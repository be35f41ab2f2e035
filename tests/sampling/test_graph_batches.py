"""Mini-batches of whole graphs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcn.graph import Graph, GraphSet
from lgcn.sampling.graph_batches import GraphSetLoader, batches_in_order, cut


def empty_graphs(sizes: list[int]) -> GraphSet:
    """Graphs without edges, whose feature is the number of the node."""
    nodes = sum(sizes)
    graph = Graph(
        torch.zeros(nodes + 1, dtype=torch.long),
        torch.empty(0, dtype=torch.long),
        x=torch.arange(nodes)[:, None].float(),
        ptr=torch.tensor([0, *np.cumsum(sizes)]),
    )
    return GraphSet.create(graph, y=torch.arange(len(sizes)))


@pytest.mark.hypothesis
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    batch_size=st.integers(1, 7),
    max_nodes=st.none() | st.integers(1, 12),
)
def test_batches_hold_each_graph_once_within_the_limits(
    sizes: list[int], batch_size: int, max_nodes: int | None
) -> None:
    parts = cut(np.arange(len(sizes)), np.array(sizes), batch_size, max_nodes)
    assert [number for part in parts for number in part] == list(range(len(sizes)))
    for part in parts:
        assert 1 <= len(part) <= batch_size
        if max_nodes is not None and len(part) > 1:
            assert sum(sizes[number] for number in part) <= max_nodes


def test_batches_without_a_limit_of_nodes_are_alike_in_size() -> None:
    parts = cut(np.arange(33), np.ones(33), 32, None)
    assert [len(part) for part in parts] == [17, 16]


def test_an_epoch_holds_each_graph_once_in_an_order_of_its_own() -> None:
    graphs = empty_graphs([3, 0, 2, 5, 1])
    loader = GraphSetLoader(graphs, batch_size=2, seed=4)

    def seen(epoch: int) -> list[int]:
        found = []
        for batch in loader.epoch(epoch):
            assert batch.y is not None
            found += batch.y.tolist()
        return found

    assert sorted(seen(1)) == [0, 1, 2, 3, 4]
    assert seen(1) == seen(1)
    assert any(seen(1) != seen(epoch) for epoch in range(2, 6))
    assert len(loader) == 3
    assert [len(batch) for batch in loader] == [2, 2, 1]


@pytest.mark.parametrize("num_workers", [0, 3])
def test_any_number_of_threads_gives_the_same_batches(num_workers: int) -> None:
    graphs = empty_graphs([3, 0, 2, 5, 1, 4])
    one = GraphSetLoader(graphs, batch_size=2, max_nodes=6, num_workers=num_workers)
    other = GraphSetLoader(graphs, batch_size=2, max_nodes=6, num_workers=1)
    for a, b in zip(one.epoch(3), other.epoch(3), strict=True):
        assert a.graph.x is not None
        assert b.graph.x is not None
        assert torch.equal(a.graph.x, b.graph.x)


def test_training_graphs_are_drawn_by_default() -> None:
    graphs = empty_graphs([1, 1, 1, 1])
    mask = torch.tensor([True, False, False, True])
    loader = GraphSetLoader(graphs.with_targets(train_mask=mask))
    assert loader.numbers.tolist() == [0, 3]
    assert GraphSetLoader(graphs, numbers=[2]).numbers.tolist() == [2]


def test_graphs_in_order_keep_it() -> None:
    graphs = empty_graphs([2, 0, 7, 1])
    batches = list(batches_in_order(graphs, 3, max_nodes=4))
    assert [batch.sizes.tolist() for batch in batches] == [[2, 0], [7, 1]] or [
        batch.sizes.tolist() for batch in batches
    ] == [[2, 0], [7], [1]]
    assert [number for batch in batches for number in batch.y.tolist()] == [0, 1, 2, 3]  # type: ignore[union-attr]


def test_wrong_limits_are_refused() -> None:
    graphs = empty_graphs([1, 2])
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        GraphSetLoader(graphs, batch_size=0)
    with pytest.raises(ValueError, match="max_nodes must be at least 1, got 0"):
        GraphSetLoader(graphs, max_nodes=0)
    with pytest.raises(ValueError, match="at least one graph, got none"):
        GraphSetLoader(graphs, numbers=[])
