"""Many graphs as one: `lgcn.graph.GraphSet`."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lgcn.graph import Graph, GraphSet


def one_graph(size: int, generator: torch.Generator) -> Graph:
    edges = torch.randint(0, max(size, 1), (2, 2 * size), generator=generator)
    x = torch.randn(size, 3, generator=generator)
    return Graph.from_edge_index(edges[:, : 2 * size], size, x=x)


def make_set(sizes: list[int], seed: int = 0) -> tuple[GraphSet, list[Graph]]:
    generator = torch.Generator().manual_seed(seed)
    graphs = [one_graph(size, generator) for size in sizes]
    joined = graphs[0] if len(graphs) == 1 else Graph.concat(graphs)
    y = torch.arange(len(sizes)) % 2
    ids = [f"g{number}" for number in range(len(sizes))]
    return GraphSet.create(joined, y=y, train_mask=y == 0, ids=ids, label_names=("a", "b")), graphs


def entries(graph: Graph) -> list[list[int]]:
    bounds = graph.rowptr.tolist()
    return [graph.col[a:b].tolist() for a, b in pairwise(bounds)]


@given(data=st.data(), sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8))
@pytest.mark.hypothesis
def test_chosen_graphs_are_those_that_were_joined(data: st.DataObject, sizes: list[int]) -> None:
    graphs, single = make_set(sizes)
    numbers = data.draw(st.lists(st.integers(0, len(sizes) - 1), unique=True))
    chosen = graphs.select(numbers)
    assert chosen.num_graphs == len(chosen) == len(numbers)
    assert chosen.sizes.tolist() == [sizes[number] for number in numbers]
    assert chosen.y is not None
    assert chosen.y.tolist() == [number % 2 for number in numbers]
    assert chosen.targets.node_ids is not None
    assert chosen.targets.node_ids.tolist() == [f"g{number}" for number in numbers]
    bounds = chosen.ptr.tolist()
    for place, number in enumerate(numbers):
        first, last = bounds[place], bounds[place + 1]
        shifted = [[node + first for node in row] for row in entries(single[number])]
        assert entries(chosen.graph)[first:last] == shifted
        assert chosen.graph.x is not None
        assert torch.equal(chosen.graph.x[first:last], single[number].features())


def test_weights_degrees_and_numbers_of_nodes_come_along() -> None:
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])
    weight = torch.tensor([0.5, 2.0, 3.0])
    graph = Graph.from_edge_index(edges, 5, edge_weight=weight, ptr=torch.tensor([0, 3, 5]))
    chosen = GraphSet.create(graph).select([1]).graph
    assert chosen.edge_weight is not None
    assert chosen.edge_weight.tolist() == [3.0, 3.0]
    assert chosen.n_id is not None
    assert chosen.n_id.tolist() == [3, 4]


def test_a_mask_chooses_graphs() -> None:
    graphs, _ = make_set([2, 3, 4])
    assert graphs.select(torch.tensor([True, False, True])).sizes.tolist() == [2, 4]
    with pytest.raises(ValueError, match="between 0 and 2, got 3"):
        graphs.select([3])


def test_graphs_are_taken_one_by_one() -> None:
    graphs, single = make_set([2, 0, 4])
    assert [one.num_nodes for one in graphs] == [2, 0, 4]  # type: ignore[attr-defined]
    assert graphs[-1].ptr is None
    assert entries(graphs[2]) == entries(single[2])
    with pytest.raises(IndexError, match="below 3, got 3"):
        graphs[3]


def test_sets_are_joined() -> None:
    graphs, _ = make_set([2, 0, 4])
    again = GraphSet.concat([graphs.select([0]), graphs.select([1, 2])])
    assert again.sizes.tolist() == [2, 0, 4]
    assert again.ptr.tolist() == graphs.ptr.tolist()
    assert torch.equal(again.graph.col, graphs.graph.col)
    assert again.targets.node_ids is not None
    assert again.targets.node_ids.tolist() == ["g0", "g1", "g2"]
    assert again.mask("train") is not None


def test_one_graph_is_a_set_of_one() -> None:
    graphs = GraphSet.create(Graph.from_edge_index(torch.tensor([[0], [1]]), 2))
    assert graphs.num_graphs == 1
    assert graphs.ptr.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("y", "task", "outputs"),
    [
        (torch.tensor([0, 2]), "classification", 3),
        (torch.tensor([0.5, 2.0]), "regression", 1),
        (torch.eye(2), "multilabel", 2),
    ],
)
def test_the_labels_say_what_is_asked(y: Tensor, task: str, outputs: int) -> None:
    graphs, _ = make_set([1, 2])
    graphs = graphs.with_targets(y=y, label_names=None)
    assert (graphs.task, graphs.num_outputs) == (task, outputs)
    assert task == "classification" or repr(graphs)


def test_wrong_sets_are_refused() -> None:
    graphs, _ = make_set([2, 3])
    with pytest.raises(ValueError, match="ptr"):
        GraphSet(Graph.from_edge_index(torch.tensor([[0], [1]]), 2), graphs.targets)
    with pytest.raises(ValueError, match=r"one node per graph \(1\), got 2"):
        GraphSet(graphs.select([0]).graph, graphs.targets)
    across = Graph.from_edge_index(torch.tensor([[1], [2]]), 4, ptr=torch.tensor([0, 2, 4]))
    with pytest.raises(ValueError, match="of graph 1 to node 1 of graph 0"):
        GraphSet.create(across)
