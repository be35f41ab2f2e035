"""Graphs from what PyG users have, and back: `edge_index`, sparse adjacencies, `Data`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from operator import index
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgcn.graph.checks import given_edge_attr
from lgcn.graph.csr import CSR, as_edge_index, check_edge_index, to_csr
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import check_range

if TYPE_CHECKING:
    from lgcn.graph.graph import Graph

FOUND_NODES = 2**27  # more nodes than this need many edges, else it is taken for a mistake
MAX_SQUARED = 3_037_000_499  # the largest number whose square fits in int64
NODE_DATA = ("x", "y", "train_mask", "val_mask", "test_mask", "ptr", "n_id")


def simple_adjacency(
    edge_index: Tensor,
    num_nodes: int | None = None,
    *,
    x: Any = None,
    edge_weight: Tensor | None = None,
    edge_attr: Tensor | None = None,
    directed: bool = False,
) -> tuple[CSR, Tensor | None]:
    """The adjacency and edge features of `lgcn.Graph.from_edge_index`, which has the arguments."""
    edge_index, num_nodes = _counted(edge_index, num_nodes, x)
    sparse = _is_sparse(edge_index)
    if edge_attr is not None:
        edge_attr = given_edge_attr(edge_attr, edge_index.size(1), sparse=sparse)
    if sparse:
        matrix = to_csr(edge_index, num_nodes, num_nodes, edge_weight)
        check_range(matrix.rowptr, matrix.col, num_nodes)
        edge_index = torch.stack([matrix.col.long(), row_of_entry(matrix.rowptr)])
        edge_weight = matrix.weight
    check_edge_index(edge_index, num_nodes, num_nodes, edge_weight)
    return _simple_rows(edge_index, edge_weight, edge_attr, num_nodes, directed)


def adjacency_as_given(
    edge_index: Tensor,
    num_nodes: int | None = None,
    *,
    x: Any = None,
    edge_weight: Tensor | None = None,
    edge_attr: Tensor | None = None,
) -> tuple[CSR, Tensor | None]:
    """The adjacency and edge features of `lgcn.Graph.as_given`."""
    edge_index, num_nodes = _counted(edge_index, num_nodes, x)
    matrix = to_csr(edge_index, num_nodes, num_nodes, edge_weight)
    if edge_attr is not None:
        edge_attr = given_edge_attr(edge_attr, edge_index.size(1), sparse=_is_sparse(edge_index))
        edge_attr = edge_attr[edge_index[1].sort(stable=True).indices]  # the order of to_csr
    return matrix, edge_attr


def arguments_from_pyg(data: Data, keys: Sequence[str] = NODE_DATA) -> dict[str, Any]:
    """The arguments of `lgcn.Graph.from_edge_index` for PyG's `Data` or `Batch`.

    Args:
        data: With `edge_index` or `adj_t`.
        keys: What is read besides the edges. (default: all that `lgcn.Graph` knows)
    """
    if not isinstance(data, Data):
        raise ValueError(f"data must be PyG's Data or Batch, got {type(data).__name__}")
    adjacency = data.edge_index if data.edge_index is not None else data.get("adj_t")
    if adjacency is None:
        raise ValueError("data must have edge_index or adj_t, got neither")
    sparse = _is_sparse(adjacency)
    if not sparse:
        adjacency = as_edge_index(adjacency)
    if data.edge_index is not None and not sparse:
        data = copy(data)  # PyG cannot count nodes in every integer type
        data.edge_index = adjacency
    edge_weight = None if sparse else data.get("edge_weight")
    edge_attr = data.get("edge_attr")
    node_data = {key: data.get(key) for key in keys if data.get(key) is not None}
    given = {**node_data, "edge_weight": edge_weight, "edge_attr": edge_attr}
    for key, value in given.items():
        if not isinstance(value, Tensor | None):  # PyG takes numbers, lists and arrays, too
            raise ValueError(f"{key} must be a tensor, got {type(value).__name__}")
    y = node_data.get("y")
    if y is not None and y.dim() == 2 and y.size(1) == 1:
        node_data["y"] = y.squeeze(1)
    return {
        "edge_index": adjacency,
        "num_nodes": data.num_nodes,
        "edge_weight": edge_weight,
        "edge_attr": edge_attr,
        **node_data,
    }


def to_pyg(graph: Graph) -> Data:
    """See `lgcn.Graph.to_pyg`."""
    data = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    if graph.x is not None:
        data["x"] = graph.features()
    keys = ("y", "train_mask", "val_mask", "test_mask", "edge_weight", "edge_attr", "ptr", "n_id")
    for key in keys:
        if getattr(graph, key) is not None:
            data[key] = getattr(graph, key)
    return data


def _is_sparse(edge_index: Tensor) -> bool:
    return isinstance(edge_index, Tensor) and edge_index.layout != torch.strided


def _counted(edge_index: Tensor, num_nodes: int | None, x: Any) -> tuple[Tensor, int]:
    """The edges, checked, and the number of nodes: as given, else of `x`, else of the edges."""
    sparse = _is_sparse(edge_index)
    if not sparse:
        edge_index = as_edge_index(edge_index)
    if num_nodes is not None:
        return edge_index, index(num_nodes)
    if x is not None:
        return edge_index, int(x.shape[0])
    return edge_index, edge_index.size(0) if sparse else _found_nodes(edge_index)


def _found_nodes(edge_index: Tensor) -> int:
    """The largest node number plus one. A number that cannot be a node number is refused."""
    if edge_index.numel() == 0:
        return 0
    smallest, largest = int(edge_index.min()), int(edge_index.max())
    if smallest < 0:
        raise ValueError(f"edge_index must number the nodes from 0 on, got node {smallest}")
    if largest > max(FOUND_NODES, 1000 * edge_index.size(1)):
        raise ValueError(
            f"edge_index must number the nodes from 0 on, got node {largest} in "
            f"{edge_index.size(1)} edges. If there are that many nodes, give num_nodes"
        )
    return largest + 1


def _simple_rows(
    edge_index: Tensor,
    weight: Tensor | None,
    attr: Tensor | None,
    num_nodes: int,
    directed: bool,
) -> tuple[CSR, Tensor | None]:
    """The sorted rows of the edges, or of the edges and their reverses, and the edge features.

    Self-loops are left out. Duplicates are merged; the largest weight wins, and features are
    averaged, so that the order of the edges does not matter.
    """
    between = edge_index[0] != edge_index[1]
    edge_index = edge_index[:, between]
    weight = None if weight is None else weight[between]
    attr = None if attr is None else attr[between]
    col, row = edge_index
    if not directed:
        row, col = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        weight = None if weight is None else weight.repeat(2)
        attr = None if attr is None else attr.repeat(2, 1)
    order = _sorted_order(row, col, num_nodes)
    row, col = row[order], col[order]
    new = torch.ones_like(row, dtype=torch.bool)
    new[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    if weight is not None:
        weight = weight[order]
        largest = weight.new_empty(int(new.sum()))
        weight = largest.scatter_reduce(0, new.cumsum(0) - 1, weight, "amax", include_self=False)
    if attr is not None:
        attr = merged_attr(attr[order], new.cumsum(0) - 1, int(new.sum()))
    rows = torch.arange(num_nodes + 1, device=row.device)
    return CSR(torch.searchsorted(row[new], rows), col[new], weight), attr


def merged_attr(attr: Tensor, entry: Tensor, num_entries: int) -> Tensor:
    """The mean of the features of all edges that became one entry of the adjacency.

    Args:
        attr: Features of edges, [E, D].
        entry: The entry that each edge became.
        num_entries: Number of entries, each of at least one edge.
    """
    count = torch.bincount(entry, minlength=num_entries).to(attr.dtype)
    total = attr.new_zeros(num_entries, attr.size(1)).index_add(0, entry, attr)
    return total / count.unsqueeze(1)


def _sorted_order(row: Tensor, col: Tensor, num_nodes: int) -> Tensor:
    """The order of entries by row, then column."""
    if num_nodes <= MAX_SQUARED:
        return (row * num_nodes + col).sort(stable=True).indices
    order = col.sort(stable=True).indices
    return order[row[order].sort(stable=True).indices]
