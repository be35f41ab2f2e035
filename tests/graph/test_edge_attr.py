"""Features of edges, and everything that keeps edges."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.graph import GraphSet
from lgcn.sampling import NeighborLoader, SubgraphLoader
from lgcn.store.write_store import write_store

from .graphs import PATH, RandomGraph

ATTR = torch.tensor([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]])


def named(graph: Graph) -> dict[tuple[int, int], list[float]]:
    """The features of each entry by its two nodes, with the numbers of the original graph."""
    assert graph.edge_attr is not None
    ids = torch.arange(graph.num_nodes) if graph.n_id is None else graph.n_id
    ends = ids[graph.edge_index].t().tolist()
    return {(s, t): row.tolist() for (s, t), row in zip(ends, graph.edge_attr, strict=True)}


@pytest.fixture
def labelled(random_graph: RandomGraph) -> Graph:
    """A graph whose edges have the numbers of their nodes as features."""
    graph = random_graph(weighted=True, train_mask=torch.arange(12) < 6)
    return replace(graph, edge_attr=graph.edge_index.t().float())


def holds_its_nodes(graph: Graph) -> bool:
    return all([float(s), float(t)] == row for (s, t), row in named(graph).items())


def test_rows_follow_the_edges_into_the_order_of_the_adjacency() -> None:
    edges = PATH.flip(1)
    given = Graph.as_given(edges, edge_attr=ATTR)
    assert named(given) == {(2, 3): [1, -1], (1, 2): [2, -2], (0, 1): [3, -3]}
    assert given.num_edge_features == 2
    assert Graph.as_given(edges).num_edge_features == 0
    directed = Graph.from_edge_index(edges, edge_attr=ATTR, directed=True)
    assert named(directed) == named(given)


def test_both_directions_of_an_edge_have_its_features() -> None:
    graph = Graph.from_edge_index(PATH, edge_attr=ATTR)
    _, expected = to_undirected(PATH, ATTR, reduce="mean")
    edges = to_undirected(PATH)
    for (s, t), row in zip(edges.t().tolist(), expected.tolist(), strict=True):
        assert named(graph)[s, t] == named(graph)[t, s] == row


def test_features_of_duplicate_edges_are_averaged() -> None:
    edges = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]])
    attr = torch.tensor([1.0, 3.0, 8.0, 100.0, 5.0])
    weight = torch.tensor([1.0, 9.0, 2.0, 1.0, 1.0])
    graph = Graph.from_edge_index(edges, edge_attr=attr, edge_weight=weight)
    assert named(graph) == {(0, 1): [4.0], (1, 0): [4.0], (1, 2): [5.0], (2, 1): [5.0]}
    assert graph.edge_weight.max() == 9
    directed = Graph.from_edge_index(edges, edge_attr=attr, directed=True)
    assert named(directed) == {(0, 1): [2.0], (1, 0): [8.0], (2, 1): [5.0]}
    kept = Graph.as_given(edges, edge_attr=attr)
    assert sorted(kept.edge_attr.flatten().tolist()) == sorted(attr.tolist())


def test_pyg_and_back() -> None:
    data = Data(edge_index=PATH, edge_attr=ATTR, num_nodes=4)
    graph = Graph.from_pyg(data)
    back = graph.to_pyg()
    assert torch.equal(back.edge_attr, graph.edge_attr)
    again = Graph.from_pyg(back, directed=True)
    assert torch.equal(again.edge_attr, graph.edge_attr)
    batch = Graph.from_pyg(Batch.from_data_list([data, data]))
    assert torch.equal(batch.edge_attr, graph.edge_attr.repeat(2, 1))
    types = Data(edge_index=PATH, edge_attr=torch.tensor([1, 0, 2]), num_nodes=4)
    assert Graph.from_pyg(types).edge_attr.dtype == torch.float32
    assert Graph.from_pyg(types).edge_attr.tolist() == [[1], [1], [0], [0], [2], [2]]


def test_all_that_keeps_edges_keeps_their_features(labelled: Graph) -> None:
    nodes = torch.tensor([7, 2, 9, 1, 4, 3, 0])
    part = labelled.subgraph(nodes)
    assert part.num_edges > 3
    assert holds_its_nodes(part)
    two = Graph.concat([labelled, part])
    assert torch.equal(two.edge_attr, torch.cat([labelled.edge_attr, part.edge_attr]))
    assert torch.equal(two.separate()[1].edge_attr, part.edge_attr)
    assert replace(labelled, y=None).edge_attr is labelled.edge_attr
    trusted = Graph._trusted(labelled.rowptr, labelled.col, edge_attr=labelled.edge_attr)
    assert trusted.to("meta").edge_attr.is_meta
    ptr = torch.tensor([0, 12, 19])
    graphs = GraphSet(replace(two, ptr=ptr), Graph.as_given(torch.empty(2, 0).long(), 2))
    assert torch.equal(graphs.select([1]).graph.edge_attr, part.edge_attr)
    assert torch.equal(graphs[0].edge_attr, labelled.edge_attr)


def test_sub_graphs_of_training_keep_features_of_edges(labelled: Graph) -> None:
    for batch in SubgraphLoader(labelled, max_nodes=6):
        assert holds_its_nodes(batch)
    for batch in NeighborLoader(labelled, n_init=2, fanout=(2, 2)):
        assert batch.num_edges
        assert holds_its_nodes(batch)


@pytest.mark.parametrize(
    ("attr", "message"),
    [
        (torch.ones(2, 1), r"edge_attr must .*edge \(3\), got shape \[2, 1\]"),
        (torch.ones(3, 1, 1), r"edge_attr must .*got shape \[3, 1, 1\]"),
        (torch.tensor([1.0, float("nan"), 0.0]), "edge_attr must be finite.*fill in"),
        (torch.ones(3, dtype=torch.cfloat), "edge_attr must hold real numbers.*complex"),
        ([1.0, 2.0, 3.0], "edge_attr must be a tensor, got list"),
    ],
)
def test_wrong_features_of_edges_are_refused(attr: Tensor, message: str) -> None:
    for make in (Graph.from_edge_index, Graph.as_given):
        with pytest.raises(ValueError, match=message):
            make(PATH, edge_attr=attr)


def test_a_graph_checks_the_features_of_its_edges(random_graph: RandomGraph) -> None:
    graph = random_graph()
    size = graph.num_edges
    for attr, message in [
        (torch.ones(size - 1, 2), rf"edge_attr must .*col \({size}\), got shape \[{size - 1}, 2\]"),
        (torch.ones(size), r"edge_attr must have one row.*unsqueeze"),
        (torch.ones(size, 2).long(), r"edge_attr must .*int64.*one_hot"),
        (torch.ones(size, 2, device="meta"), "edge_attr must be on the device .*cpu.*meta"),
    ]:
        with pytest.raises(ValueError, match=message):
            replace(graph, edge_attr=attr)


def test_graphs_with_different_features_of_edges_cannot_be_joined(labelled: Graph) -> None:
    narrow = replace(labelled, edge_attr=labelled.edge_attr[:, :1])
    with pytest.raises(ValueError, match=r"edge_attr must have as many columns .*\[2, 1\]"):
        Graph.concat([labelled, narrow])
    with pytest.raises(ValueError, match="edge_attr must be given for all graphs or for none"):
        Graph.concat([labelled, replace(labelled, edge_attr=None)])


def test_sparse_adjacencies_have_no_order_for_features_of_edges() -> None:
    for make in (Graph.from_edge_index, Graph.as_given):
        with pytest.raises(ValueError, match="edge_attr must be None with a sparse adjacency"):
            make(torch.eye(4).to_sparse_csr(), edge_attr=torch.ones(4, 1))


def test_a_store_cannot_hold_features_of_edges(labelled: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"store cannot hold edge features.*edge_attr=None"):
        write_store(tmp_path / "store", labelled)
    assert not (tmp_path / "store").exists()
