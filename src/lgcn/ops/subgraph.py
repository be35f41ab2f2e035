"""Cutting a sub-graph out of a CSR adjacency, at the cost of the nodes and edges it touches."""

# mypy: disable-error-code="untyped-decorator"

import threading
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

_jit = numba.njit(nogil=True, cache=True)
_local = threading.local()


def marker(num_nodes: int) -> tuple[Any, int]:
    """This thread's scratch array of at least num_nodes entries, and a stamp no entry carries.

    An entry below ``stamp << 32`` is unmarked, so the array need not be cleared between calls.
    """
    if getattr(_local, "marks", None) is None or _local.marks.shape[0] < num_nodes:
        _local.marks = np.zeros(num_nodes, np.int64)
        _local.stamp = 0
    _local.stamp = (_local.stamp + 1) % (1 << 31)
    if _local.stamp == 0:
        _local.marks[:] = 0
        _local.stamp = 1
    return _local.marks, _local.stamp


def induced_subgraph(rowptr: Tensor, col: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The adjacency among ``nodes``: (rowptr, col, entry), entry being the place in ``col``."""
    index = nodes.cpu().numpy().astype(np.int64)
    num_nodes = rowptr.numel() - 1
    if index.size and not 0 <= index.min() <= index.max() < num_nodes:
        raise ValueError(
            f"nodes must lie between 0 and {num_nodes - 1}, got {index.min()} to {index.max()}"
        )
    marks, stamp = marker(num_nodes)
    new_rowptr, new_col, entry, twice = _induced(
        rowptr.cpu().numpy(), col.cpu().numpy(), index, marks, stamp
    )
    if twice >= 0:
        raise ValueError(f"nodes must be distinct, got {twice} twice")
    device = rowptr.device
    return (
        torch.from_numpy(new_rowptr).to(device, rowptr.dtype),
        torch.from_numpy(new_col).to(device, col.dtype),
        torch.from_numpy(entry).to(device),
    )


@_jit
def _induced(rowptr: Any, col: Any, nodes: Any, marks: Any, stamp: int) -> Any:
    twice = -1
    for new, node in enumerate(nodes):
        if marks[node] >> 32 == stamp:
            twice = node
        marks[node] = (stamp << 32) | new
    new_rowptr = np.zeros(nodes.shape[0] + 1, np.int64)
    for new, node in enumerate(nodes):
        count = 0
        for e in range(rowptr[node], rowptr[node + 1]):
            count += marks[col[e]] >> 32 == stamp
        new_rowptr[new + 1] = new_rowptr[new] + count
    new_col = np.empty(new_rowptr[-1], np.int64)
    entry = np.empty(new_rowptr[-1], np.int64)
    at = 0
    for node in nodes:
        for e in range(rowptr[node], rowptr[node + 1]):
            mark = marks[col[e]]
            if mark >> 32 == stamp:
                new_col[at] = mark & 0xFFFFFFFF
                entry[at] = e
                at += 1
    return new_rowptr, new_col, entry, twice
