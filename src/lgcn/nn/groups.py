"""Rows in groups, such as the nodes of graphs, as a CSR structure: row i lists those of group i."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from lgcn.graph.csr import CSR
from lgcn.ops.structure import state_of

# Offsets -> (their state, their storage, the node numbers). The operators check a structure once
# per pair of tensors, and all read-outs of a batch share it.
_known: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def rows_of_graphs(ptr: Tensor, num_nodes: int) -> CSR:
    """Each graph as a neighbourhood: row i lists the nodes of graph i.

    Args:
        ptr: Node offsets of the graphs.
        num_nodes: Number of nodes of all graphs.
    """
    if torch.compiler.is_compiling() or ptr.is_inference():  # no state could be compared
        return CSR(ptr, torch.arange(num_nodes, dtype=ptr.dtype, device=ptr.device))
    state = state_of(ptr)
    known = _known.get(ptr)
    if known is None or known[0] != state:
        if ptr.dim() != 1 or ptr.numel() == 0 or int(ptr[-1]) != num_nodes:
            raise ValueError(
                f"ptr must rise from 0 to the number of rows of x ({num_nodes}), got {ptr}"
            )
        col = torch.arange(num_nodes, dtype=ptr.dtype, device=ptr.device)
        known = _known[ptr] = (state, ptr.untyped_storage(), col)
    if known[2].numel() != num_nodes:
        raise ValueError(
            f"x must have one row per node of the graphs ({known[2].numel()}), got {num_nodes}"
        )
    return CSR(ptr, known[2])


def rows_of_groups(index: Tensor, dim_size: int | None = None) -> CSR:
    """The same for rows in any order.

    Args:
        index: The group of each row, of any integer type.
        dim_size: Number of groups. (default: the largest number in `index` plus one)
    """
    index = index.long()
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() else 0
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < dim_size:
        raise ValueError(
            f"index must lie between 0 and {dim_size - 1}, "
            f"got {int(index.min())} to {int(index.max())}"
        )
    index, rows = index.sort(stable=True)
    ptr = torch.searchsorted(index, torch.arange(dim_size + 1, device=index.device))
    return CSR(ptr, rows)
