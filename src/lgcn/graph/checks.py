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


def covers(ptr: Tensor, num_nodes: int) -> bool:
    """Whether the offsets of separate graphs rise from 0 to the number of nodes."""
    if ptr.dim() != 1 or ptr.dtype not in INTEGER_DTYPES:
        return False
    bounds = ptr.tolist()
    return bounds[:1] == [0] and bounds[-1] == num_nodes and bounds == sorted(bounds)
