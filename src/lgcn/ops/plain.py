"""The operators in standard operations of fixed shapes, for formats that have no others: ONNX.

`reference.py` has the definitions; here nothing depends on the contents of tensors, and only the
forward pass is needed.
"""

import torch
from torch import Tensor

from lgcn.ops.reference import compute_dtype


def exports_to_onnx() -> bool:
    """Whether `torch.onnx.export` is tracing."""
    return torch.onnx.is_in_onnx_export()


# What torch.compiler.assume_constant_result does, whose import takes a second. Without it, the
# tracer of torch.compile, which ONNX export uses as well, takes the answer for False.
exports_to_onnx._dynamo_marked_constant = True  # type: ignore[attr-defined]


def stable_sort(x: Tensor, *, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sorts along the first dimension; equal values keep their order. Returns values and order."""
    if exports_to_onnx():  # becomes TopK, which prefers the lower index among equal values
        return torch.sort(x, dim=0, descending=descending)
    return torch.sort(x, dim=0, descending=descending, stable=True)


def k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    own: Tensor | None,
    last: Tensor | None,
) -> Tensor:
    """The values of `lgcn.ops.reference.k_largest`, which describes the arguments."""
    dtype = compute_dtype(x.dtype)
    products = x.to(dtype)[col]
    if edge_weight is not None:
        products = products * edge_weight.to(dtype).unsqueeze(1)
    if compete:
        products = products.clamp(min=0)
    row = row_of_entry(rowptr, col)
    # Two stable sorts leave the entries by row, within a row by value.
    products, order = stable_sort(products, descending=True)
    products = products.gather(0, stable_sort(row[order])[1])
    # A row with fewer than k entries is filled from a row of zeros behind the last entry.
    products = torch.cat([products, products.new_zeros(1, x.size(1))])
    entry = rowptr[:-1].unsqueeze(1) + torch.arange(k, device=col.device)
    entry = torch.where(entry < rowptr[1:].unsqueeze(1), entry, col.size(0))
    values = products[entry].to(x.dtype)
    parts = [None if own is None else own.unsqueeze(1), values]
    parts.append(None if last is None else last.unsqueeze(1))
    return torch.cat([part for part in parts if part is not None], dim=1)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """Sparse (CSR) times dense, as `lgcn.ops.reference.spmm`."""
    dtype = compute_dtype(dense.dtype)
    products = dense.to(dtype)[col] * value.to(dtype).unsqueeze(1)
    row = row_of_entry(rowptr, col).unsqueeze(1).expand_as(products)
    out = products.new_zeros(rowptr.size(0) - 1, dense.size(1))
    return out.scatter_add(0, row, products).to(dense.dtype)


def row_of_entry(rowptr: Tensor, col: Tensor) -> Tensor:
    """The row that each entry belongs to: how many rows ended before it."""
    # An offset at the end, of an empty last row, counts for an entry that is cut off.
    ended = torch.zeros(col.size(0) + 1, dtype=torch.long, device=col.device)
    ends = rowptr[1:-1].long()
    return ended.scatter_add(0, ends, torch.ones_like(ends)).cumsum(0)[:-1]
