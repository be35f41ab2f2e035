"""Who computes a sub-graph does not change what it is."""

from dataclasses import replace

import pytest
import torch

from lgcn import SubgraphLoader, load_dataset
from lgcn.graph import Graph
from lgcn.training.dealing import Dealer


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset("synthetic", num_nodes=300, num_features=4, labels_per_class=10)


def loader(graph: Graph, seed: int = 0) -> SubgraphLoader:
    return SubgraphLoader(graph, n_init=6, max_nodes=40, seed=seed, num_workers=0)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_steps_of_one_sequence_are_dealt_out(graph: Graph, workers: int) -> None:
    one = loader(graph)
    width, steps = 3, -(-len(one) // 3)
    wanted = {number: batch.n_id.tolist() for number, batch in enumerate(one.epoch(2))}
    found: dict[int, list[int]] = {}
    for rank in range(workers):
        mine = range(rank, width, workers)
        dealer = Dealer({0: loader(graph)}, width, steps, mine, partitioned=False)
        assert len(dealer) == steps
        for step, units in enumerate(dealer.epoch(2)):
            for unit in units:
                assert unit.number // width == step
                assert unit.number % width in mine
                found[unit.number] = unit.graph.n_id.tolist()
    assert found == wanted


def test_a_step_takes_one_sub_graph_of_each_part(graph: Graph) -> None:
    few = torch.zeros(graph.num_nodes, dtype=torch.bool)
    few[:7] = True
    parts = {0: loader(graph, 1), 2: loader(replace(graph, train_mask=few), 2)}
    steps = len(parts[0])
    assert len(parts[2]) == 2 < steps
    dealer = Dealer(parts, 3, steps, range(3), partitioned=True)
    every = list(dealer.epoch(0))
    assert [[unit.number for unit in units] for units in every] == [
        [3 * step] + ([3 * step + 2] if step < 2 else []) for step in range(steps)
    ]
    first = next(parts[2].epoch(0)).n_id.tolist()
    assert every[0][1].graph.n_id.tolist() == first
