"""Checks of a CSR structure: cheap ones on every call, those that cost O(E) once per graph."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

INDEX_DTYPES = (torch.int32, torch.int64)
FLOAT_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

# col -> (weak reference to rowptr, versions of both, largest column). Keyed by identity, so an
# entry goes with its tensor; a change in place shows in the version and is checked anew.
_checked: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def check_layout(rowptr: Tensor, col: Tensor) -> None:
    """Checks shapes, types and devices of a CSR structure. O(1), works under ``torch.compile``."""
    for name, index in (("rowptr", rowptr), ("col", col)):
        if index.dim() != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {tuple(index.shape)}")
        if index.dtype not in INDEX_DTYPES:
            raise ValueError(f"{name} must be int32 or int64, got {index.dtype}")
    if rowptr.numel() == 0:
        raise ValueError("rowptr must have one entry more than there are rows, got no entry")
    if rowptr.dtype != col.dtype:
        raise ValueError(
            f"rowptr and col must have one dtype, got rowptr {rowptr.dtype} and col {col.dtype}"
        )
    if rowptr.device != col.device:
        raise ValueError(
            f"rowptr and col must be on one device, got rowptr on {rowptr.device} "
            f"and col on {col.device}"
        )


def check_range(rowptr: Tensor, col: Tensor, num_cols: int) -> None:
    """Checks that ``rowptr`` rises from 0 to ``col.numel()`` and ``col`` lies in range(num_cols).

    The O(E) part runs once per pair of tensors and again only after they changed in place (seen
    through their version counters; a change through a NumPy view of the memory is not seen).
    """
    if rowptr.is_inference() or col.is_inference():  # these have no version counter
        versions = None
    else:
        versions = (rowptr._version, col._version)
        known = _checked.get(col)
        if known is not None and known[0]() is rowptr and known[1] == versions:
            _check_largest(known[2], num_cols)
            return
    largest = _check_contents(rowptr, col)
    _check_largest(largest, num_cols)
    if versions is not None:
        _checked[col] = (WeakIdRef(rowptr), versions, largest)


def _check_contents(rowptr: Tensor, col: Tensor) -> int:
    first, last = int(rowptr[0]), int(rowptr[-1])
    if first != 0:
        raise ValueError(f"rowptr must start with 0, got rowptr[0] = {first}")
    falls = torch.nonzero(rowptr[1:] < rowptr[:-1])
    if falls.numel() > 0:
        i = int(falls[0])
        raise ValueError(
            f"rowptr must not decrease, got rowptr[{i}] = {int(rowptr[i])} "
            f"before rowptr[{i + 1}] = {int(rowptr[i + 1])}"
        )
    if last != col.numel():
        raise ValueError(
            f"rowptr must end with the number of entries in col ({col.numel()}), "
            f"got rowptr[-1] = {last}"
        )
    if col.numel() == 0:
        return -1
    smallest, largest = (int(bound) for bound in torch.aminmax(col))
    if smallest < 0:
        raise ValueError(f"col must not be negative, got col.min() = {smallest}")
    return largest


def _check_largest(largest: int, num_cols: int) -> None:
    if largest >= num_cols:
        raise ValueError(
            f"col must be smaller than the number of rows of x ({num_cols}), "
            f"got col.max() = {largest}"
        )


# Sparse tensor -> (rowptr, col). ``crow_indices()`` makes a new object on every call, for which the
# check of the range would run each time. Its values, which would keep it alive, are not stored.
_parts: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def csr_parts(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(rowptr, col, values) of a sparse CSR tensor, rowptr and col the same objects every time."""
    if matrix not in _parts:
        _parts[matrix] = (matrix.crow_indices(), matrix.col_indices())
    rowptr, col = _parts[matrix]
    return rowptr, col, matrix.values()
