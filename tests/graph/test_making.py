"""Graphs from edges, sparse matrices and PyG, and fields that are wrong."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from lgcn import Graph

from .graphs import PATH, RandomGraph, dense


def test_rows_are_targets_and_columns_sources() -> None:
    graph = Graph.from_edge_index(PATH)
    assert graph.rowptr.tolist() == [0, 0, 1, 2, 3]
    assert graph.col.tolist() == [0, 1, 2]
    assert graph.edge_index.tolist() == PATH.tolist()
    assert (graph.num_nodes, graph.num_edges) == (4, 3)


def test_a_row_keeps_the_order_of_its_edges() -> None:
    edge_index = torch.tensor([[3, 1, 0, 2, 1], [0, 2, 0, 0, 0]])
    weight = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    graph = Graph.from_edge_index(edge_index, edge_weight=weight)
    assert graph.col.tolist() == [3, 0, 2, 1, 1]
    assert graph.edge_weight.tolist() == [0.0, 2.0, 3.0, 4.0, 1.0]


def test_undirected_adds_reverses_and_removes_duplicates_and_self_loops() -> None:
    edge_index = torch.tensor([[2, 1, 1, 0, 0], [0, 0, 0, 1, 0]])
    graph = Graph.from_edge_index(edge_index, undirected=True)
    assert graph.rowptr.tolist() == [0, 2, 3, 4]
    assert graph.col.tolist() == [1, 2, 0, 0]


def test_undirected_takes_the_largest_of_several_weights() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])
    weight = torch.tensor([3.0, 5.0, 2.0])
    graph = Graph.from_edge_index(edge_index, edge_weight=weight, undirected=True)
    assert dense(graph.adjacency()).tolist() == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("undirected", [False, True])
def test_sparse_adjacency_has_targets_as_rows(layout: torch.layout, undirected: bool) -> None:
    matrix = torch.tensor([[4.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    graph = Graph.from_edge_index(matrix.to_sparse(layout=layout), undirected=undirected)
    if undirected:
        matrix = torch.maximum(matrix, matrix.t()).fill_diagonal_(0)
    assert dense(graph.adjacency()).tolist() == matrix.tolist()


def test_number_of_nodes_is_given_or_read_from_x_or_the_edges() -> None:
    assert Graph.from_edge_index(PATH, 9).num_nodes == 9
    assert Graph.from_edge_index(PATH, x=torch.zeros(7, 1)).num_nodes == 7
    assert Graph.from_edge_index(PATH).num_nodes == 4
    assert Graph.from_edge_index(PATH[:, :0]).num_nodes == 0


def test_pyg_data_round_trip(random_graph: RandomGraph) -> None:
    masks = {f"{split}_mask": torch.arange(12) % 3 == i for i, split in enumerate(("train", "val"))}
    graph = random_graph(weighted=True, n_id=torch.arange(12) + 100, **masks)
    data = graph.to_pyg()
    assert data.validate()
    again = Graph.from_pyg(data, name="again")
    for key in ("rowptr", "col", "x", "y", "train_mask", "val_mask", "edge_weight", "n_id"):
        assert torch.equal(getattr(again, key), getattr(graph, key)), key
    assert again.test_mask is None
    assert again.name == "again"


def test_pyg_batch_keeps_its_ptr() -> None:
    parts = [Data(edge_index=PATH, x=torch.ones(4, 2)), Data(edge_index=PATH, x=torch.zeros(5, 2))]
    graph = Graph.from_pyg(Batch.from_data_list(parts))
    assert graph.ptr.tolist() == [0, 4, 9]
    assert graph.num_graphs == 2
    assert graph.to_pyg().ptr.tolist() == [0, 4, 9]


def test_pyg_adj_t_and_labels_in_a_column() -> None:
    adj_t = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse_csr()
    graph = Graph.from_pyg(Data(adj_t=adj_t, y=torch.tensor([[1], [0]]), num_nodes=2))
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.edge_weight.tolist() == [2.0]
    assert graph.y.tolist() == [1, 0]


def test_pyg_data_without_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="edge_index or adj_t"):
        Graph.from_pyg(Data(x=torch.zeros(3, 1)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": torch.zeros(3, 2)}, r"x must have one row per node \(4\), got shape \(3, 2\)"),
        ({"x": torch.zeros(4)}, r"x must have shape \[nodes, features\], got \(4,\)"),
        ({"y": torch.zeros(5)}, r"y must have one row per node \(4\), got shape \(5,\)"),
        ({"n_id": torch.zeros(1)}, r"n_id must have one row per node \(4\), got shape \(1,\)"),
        ({"node_ids": np.zeros(2)}, r"node_ids must have one row per node \(4\)"),
        ({"edge_weight": torch.ones(2)}, r"edge_weight must have one entry .* \(3\), got .*\(2,\)"),
        ({"train_mask": torch.ones(2) > 0}, r"train_mask must have one row per node \(4\)"),
        ({"val_mask": torch.ones(4)}, r"val_mask must be .* boolean mask, got torch.float32"),
        ({"test_mask": torch.ones(4, 2) > 0}, r"test_mask must be a one-dim.* shape \(4, 2\)"),
        ({"col": torch.tensor([0, 1, 4])}, r"col must be smaller .*\(4\), got col.max\(\) = 4"),
        ({"col": torch.tensor([0, 1, -1])}, r"col must not be negative, got col.min\(\) = -1"),
        ({"rowptr": torch.tensor([0, 2, 1, 2, 3])}, r"rowptr must not decrease, .*\[1\] = 2"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Tensor], message: str) -> None:
    path = Graph.from_edge_index(PATH)
    with pytest.raises(ValueError, match=message):
        Graph(**{"rowptr": path.rowptr, "col": path.col, **fields})


@pytest.mark.parametrize(
    ("edge_index", "edge_weight", "message"),
    [
        (torch.zeros(3, 2).long(), None, r"edge_index must hold .*int64 in shape \[3, 2\]"),
        (torch.zeros(2, 2), None, r"edge_index must hold integers .* got torch.float32"),
        (torch.tensor([[0, 4], [1, 0]]), None, "name sources from 0 to 3, got 0 to 4"),
        (torch.tensor([[0, 1], [1, -2]]), None, "name targets from 0 to 3, got -2 to 1"),
        (PATH, torch.ones(2), r"edge_weight must have one entry an edge \(3\), got shape \[2\]"),
        (torch.eye(3).to_sparse(), None, r"\[targets, sources\] = \[4, 4\], got \[3, 3\]"),
        (torch.eye(4).to_sparse(), torch.ones(4), "edge_weight must be None with a sparse"),
    ],
)
def test_wrong_edges_are_named(
    edge_index: Tensor, edge_weight: Tensor | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edge_index(edge_index, 4, edge_weight=edge_weight)


@pytest.mark.parametrize("ptr", [[0, 2], [1, 4], [0, 3, 2, 4]])
def test_ptr_must_cover_the_nodes(ptr: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ptr must rise from 0 to the number of nodes \(4\)"):
        Graph.from_edge_index(torch.tensor([[0], [1]]), 4, ptr=torch.tensor(ptr))


def test_a_trusted_graph_is_not_read_also_when_it_is_changed() -> None:
    rowptr, col = torch.tensor([0, 1, 1]), torch.tensor([7], dtype=torch.int32)
    graph = Graph._trusted(rowptr, col)  # wrong, which a look at col would show
    assert replace(graph, y=torch.tensor([0, 1])).num_classes == 2
    with pytest.raises(ValueError, match="one row per node"):
        replace(graph, y=torch.tensor([0]))
    with pytest.raises(ValueError, match="vector of int32 or int64"):
        Graph._trusted(rowptr, col.float())
