"""Checks of a graph's fields that take more than a line."""

from torch import Tensor

from lgcn.graph.csr import INTEGER_DTYPES
from lgcn.ops.structure import check_range, csr_parts


def check_sparse_features(x: Tensor) -> None:
    """Checks the indices of sparse features, which torch trusts."""
    rowptr, col, _ = csr_parts(x)
    if rowptr.numel() != x.size(0) + 1:
        raise ValueError(
            f"x must have an offset per row and one more ({x.size(0) + 1}), got {rowptr.numel()}"
        )
    try:
        check_range(rowptr, col, x.size(1))
    except ValueError as error:
        raise ValueError(f"x has wrong indices: {error}") from error


def check_edge_attr(edge_attr: Tensor, col: Tensor) -> None:
    """Checks shape, type and device of edge features; O(1)."""
    if edge_attr.dim() != 2 or edge_attr.size(0) != col.numel():
        raise ValueError(
            f"edge_attr must have one row per entry of col ({col.numel()}), got shape "
            f"{list(edge_attr.shape)}; of single numbers, make a column with unsqueeze(1)"
        )
    if not edge_attr.is_floating_point():
        raise ValueError(
            f"edge_attr must hold floating-point numbers, got {edge_attr.dtype}: use .float(), or "
            "one_hot for categories"
        )
    if edge_attr.device != col.device:
        raise ValueError(
            f"edge_attr must be on the device of col ({col.device}), got {edge_attr.device}"
        )


def given_edge_attr(edge_attr: Tensor, num_edges: int, *, sparse: bool) -> Tensor:
    """A user's edge features, checked, as floating-point numbers of shape [E, D].

    Args:
        edge_attr: As they are given, one row per edge.
        num_edges: Number of edges.
        sparse: Whether the edges are a sparse adjacency, whose entries have no order of the user's.
    """
    if not isinstance(edge_attr, Tensor):
        raise ValueError(f"edge_attr must be a tensor, got {type(edge_attr).__name__}")
    if sparse:
        raise ValueError(
            "edge_attr must be None with a sparse adjacency, got features: give the edges as an "
            "edge_index of shape [2, edges]"
        )
    if edge_attr.dim() not in (1, 2) or edge_attr.size(0) != num_edges:
        raise ValueError(
            f"edge_attr must have one row per edge ({num_edges}), got shape {list(edge_attr.shape)}"
        )
    if edge_attr.is_complex():
        raise ValueError(f"edge_attr must hold real numbers, got {edge_attr.dtype}")
    if not edge_attr.is_floating_point():
        edge_attr = edge_attr.float()
    if not bool(edge_attr.isfinite().all()):
        raise ValueError(
            "edge_attr must be finite, some are NaN or inf: fill in missing values, for example "
            "with their mean"
        )
    if edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(1)
    return edge_attr


def covers(ptr: Tensor, num_nodes: int) -> bool:
    """Whether the offsets of separate graphs rise from 0 to the number of nodes."""
    if ptr.dim() != 1 or ptr.dtype not in INTEGER_DTYPES:
        return False
    bounds = ptr.tolist()
    return bounds[:1] == [0] and bounds[-1] == num_nodes and bounds == sorted(bounds)
