"""The rest of a graph: classes, masks, labels, copies, and how it is shown."""

import copy
import pickle

import pytest
import torch

from lgcn import Graph, k_largest

from .graphs import PATH, RandomGraph


@pytest.mark.parametrize(
    ("fields", "num_classes", "multi_label"),
    [
        ({}, 0, False),
        ({"y": torch.tensor([0, -1, 4, 1])}, 5, False),
        ({"y": torch.zeros(4, 7)}, 7, True),
        ({"y": torch.zeros(4).long(), "label_names": ("a", "b")}, 2, False),
    ],
)
def test_classes(fields: dict[str, object], num_classes: int, multi_label: bool) -> None:
    graph = Graph.as_given(PATH, **fields)
    assert graph.num_classes == num_classes
    assert graph.multi_label is multi_label


def test_a_graph_without_nodes_has_no_classes(random_graph: RandomGraph) -> None:
    empty = random_graph().subgraph(torch.tensor([], dtype=torch.long))
    assert empty.num_classes == 0
    assert "num_nodes=0" in repr(empty)


def test_repr() -> None:
    graph = Graph.as_given(PATH, x=torch.zeros(4, 2), y=torch.tensor([0, 1, 0, 1]), name="p")
    shown = "name='p', num_nodes=4, num_edges=3, num_features=2, num_classes=2"
    assert repr(graph) == f"Graph({shown})"
    both = Graph.concat([graph, graph])
    assert repr(both).endswith("num_classes=2, num_graphs=2)")


def test_mask_by_name(random_graph: RandomGraph) -> None:
    mask = torch.arange(12) < 3
    graph = random_graph(val_mask=mask)
    assert graph.mask("val") is mask
    assert graph.mask("test") is None
    with pytest.raises(ValueError, match=r"split must .*train, val, test, got 'dev'"):
        graph.mask("dev")


def test_a_used_graph_can_be_pickled_and_copied(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    adjacency = graph.adjacency(normalize=True)
    expected, _ = k_largest(graph.x, *adjacency[:2], 3, edge_weight=adjacency.weight)
    graph.subgraph(torch.tensor([0]))
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        rowptr, col, weight = again.adjacency(normalize=True)
        assert torch.equal(k_largest(again.x, rowptr, col, 3, edge_weight=weight)[0], expected)
        assert again.col is not graph.col


def test_moving_to_where_it_is_gives_the_graph_itself(random_graph: RandomGraph) -> None:
    graph = random_graph()
    assert graph.to("cpu") is graph


def test_nodes_without_a_known_label() -> None:
    mask = torch.tensor([True, False, False, False])
    graph = Graph.as_given(PATH, y=torch.tensor([0, -1, 1, 0]), train_mask=mask)
    assert graph.unlabelled().tolist() == [False, True, False, False]
    y = torch.tensor([[0, 0], [0, 1], [0, 0], [1, 1]])
    several = Graph.as_given(PATH, y=y, train_mask=mask)
    assert several.unlabelled().tolist() == [False, False, True, False]
    assert Graph.as_given(PATH, y=y).unlabelled().tolist() == [True, False, True, False]
    assert Graph.as_given(PATH).unlabelled().all()
