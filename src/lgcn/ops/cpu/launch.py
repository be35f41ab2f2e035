"""The operators on the CPU: tensors are converted to arrays, and the kernels are called.

The functions are those of `lgcn.ops.reference`.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from lgcn.ops import reference
from lgcn.ops.cpu import kernels, select, simd
from lgcn.ops.cpu.simd import CACHE_LINE
from lgcn.ops.reference import add_by_columns, compute_dtype, first_slot
from lgcn.ops.structure import max_degree, transpose
from lgcn.utils.limits import MAX_INT32

# Bits in which the selection carries positions, and where there is room for both, node ids.
POSITION_BITS = 31
# A larger result is stored past the caches, which then need not read its memory first. A smaller
# one stays there for what comes next.
STREAM_BYTES = 1 << 23

POSITION_TYPES: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32}


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _float_array(tensor: Tensor) -> Any:
    return _array(tensor.detach().to(compute_dtype(tensor.dtype)))


def _empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array aligned to a cache line, so that no vector is stored across two lines.

    NumPy asks for huge pages and torch does not: these large results have fewer page faults.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % CACHE_LINE
    return buffer[start : start + size].view(dtype).reshape(shape)


class Overwritten:
    """Memory for the results of a call, until the next call overwrites them.

    It stays in the caches, and its pages are mapped once. It is for callers that are done with one
    block of rows before they select the next.
    """

    def __init__(self) -> None:
        self._buffers: dict[Any, Any] = {}

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """As `_empty`, with one buffer for each dtype."""
        size = math.prod(shape)
        buffer = self._buffers.get(dtype)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[dtype] = _empty((size,), dtype)
        return buffer[:size].reshape(shape)


def _weight_array(edge_weight: Tensor | None, like: Any) -> Any:
    return np.empty(0, like.dtype) if edge_weight is None else _float_array(edge_weight)


def _bits(tensor: Tensor | None, like: Any, integer: Any) -> Any:
    return (like[:0] if tensor is None else _float_array(tensor)).reshape(-1).view(integer)


def _chunks(rowptr: Any) -> Any:
    # Several chunks per thread balance what equal numbers of edges do not.
    return kernels.row_chunks(rowptr, min(rowptr.shape[0], 8 * numba.get_num_threads()))


@contextlib.contextmanager
def _needs_memory(k: int) -> Iterator[None]:
    """Says what the memory was for, and what helps."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"not enough memory to select with k = {k}: use a smaller k") from error


def k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int = 32,
    own: Tensor | None = None,
    last: Tensor | None = None,
    memory: Overwritten | None = None,
) -> tuple[Tensor, Tensor]:
    """See `lgcn.ops.reference.k_largest`. The results are in `memory`, if it is given."""
    if col.numel() > MAX_INT32 and max_degree(rowptr, col) > MAX_INT32:
        raise ValueError(
            f"a row must have at most {MAX_INT32} entries to select from, "
            f"got {max_degree(rowptr, col)}"
        )
    features, starts, neighbors = _float_array(x), _array(rowptr), _array(col)
    integer = np.int32 if features.itemsize == 4 else np.int64
    num_rows, channels = rowptr.numel() - 1, x.size(1)
    others = [other for other in (own, last) if other is not None]
    empty = _empty if memory is None else memory.empty
    values = empty((num_rows, len(others) + k, channels), features.dtype)
    chosen = empty((num_rows, k, channels), POSITION_TYPES.get(position_bits, neighbors.dtype))
    if values.size == 0:  # a loop over a large k would take its time
        return torch.from_numpy(values).to(x.dtype), torch.from_numpy(chosen)
    fits_beside = 2 * channels * features.itemsize <= CACHE_LINE
    kernel = select.k_largest_narrow if fits_beside else select.k_largest
    id_bits = (x.size(0) - 1).bit_length() if position_bits == 0 else 0
    with _needs_memory(k):
        kernel(
            features.reshape(-1),
            channels,
            starts,
            neighbors,
            _weight_array(edge_weight, features),
            k,
            compete,
            _chunks(starts),
            _bits(own, features, integer),
            _bits(last, features, integer),
            values.reshape(-1).view(integer),
            chosen.reshape(-1).view(np.uint8),
            chosen.itemsize,
            position_bits == 0,
            id_bits,
            (1 << POSITION_BITS) >> id_bits if position_bits == 0 else 0,
            integer(np.iinfo(integer).min),
            values.nbytes + chosen.nbytes > STREAM_BYTES,
        )
    return torch.from_numpy(values).to(x.dtype), torch.from_numpy(chosen)


def k_largest_and_sum(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int,
    own: Tensor,
    divisor: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """See `lgcn.ops.reference.k_largest_and_sum`."""
    return reference.k_largest_and_sum(
        x, rowptr, col, k, edge_weight, compete, position_bits, own, divisor, k_largest, spmm
    )


def k_largest_values(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    own: Tensor | None,
    last: Tensor | None,
    with_sum: bool = False,
    divisor: Tensor | None = None,
) -> Tensor:
    """See `lgcn.ops.reference.k_largest_values`."""
    return reference.k_largest_values(
        x, rowptr, col, k, edge_weight, compete, own, last, with_sum, divisor,
        k_largest, k_largest_and_sum,
    )  # fmt: skip


def neighbor_at(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    """See `lgcn.ops.reference.neighbor_at`."""
    index = np.empty(position.shape, _array(col).dtype)
    kernels.neighbor_at(_array(position), _array(rowptr), _array(col), index)
    return torch.from_numpy(index)


def k_largest_grad_x(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool = False,
) -> Tensor:
    """See `lgcn.ops.reference.k_largest_grad_x`."""
    gradient, starts = _float_array(grad), _array(rowptr)
    k, channels = chosen.size(1), grad.size(2)
    # Few features make few tasks. Parts of the rows make more, if there are enough edges for a sum
    # each. Their number does not depend on the threads, so that results do not either.
    blocks = -(-channels * gradient.itemsize // simd.VECTOR_BYTES)
    num_sums = max(1, min(4 // max(blocks, 1), col.numel() // max(num_sources, 1)))
    sums = torch.zeros(num_sums, num_sources * channels, dtype=compute_dtype(grad.dtype))
    with _needs_memory(k):
        kernels.k_largest_grad_x(
            gradient.reshape(-1),
            grad.size(1),
            first_slot(grad, chosen),
            _array(chosen).reshape(-1),
            node_ids,
            k,
            starts,
            _array(col),
            _weight_array(edge_weight, gradient),
            kernels.row_chunks(starts, num_sums),
            channels,
            sums.numpy(),
        )
    return (sums[0] if num_sums == 1 else sums.sum(0)).view(num_sources, channels).to(grad.dtype)


def add_grad_x(
    total: Tensor,
    columns: Tensor | None,
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    every: Tensor | None = None,
) -> None:
    """See `lgcn.ops.reference.add_grad_x`."""
    add_by_columns(
        total, columns, grad, chosen, rowptr, col, edge_weight, every,
        k_largest_grad_x, spmm_grad_dense,
    )  # fmt: skip


def k_largest_grad_weight(
    grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor
) -> Tensor:
    """See `lgcn.ops.reference.k_largest_grad_weight`."""
    grad_weight = torch.zeros(col.numel(), dtype=compute_dtype(grad.dtype))
    starts = _array(rowptr)
    kernels.k_largest_grad_weight(
        _float_array(grad),
        first_slot(grad, position),
        _array(position),
        _float_array(x),
        starts,
        _array(col),
        _chunks(starts),
        grad_weight.numpy(),
    )
    return grad_weight.to(grad.dtype)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """See `lgcn.ops.reference.spmm`."""
    out = torch.empty(rowptr.numel() - 1, dense.size(1), dtype=compute_dtype(dense.dtype))
    _spmm_into(out, rowptr, col, value, dense)
    return out.to(dense.dtype)


def _spmm_into(out: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> None:
    starts = _array(rowptr)
    kernels.spmm(
        starts,
        _array(col),
        _float_array(value),
        _float_array(dense).reshape(-1),
        dense.size(1),
        _chunks(starts),
        out.view(-1).numpy(),
    )


def diffuse(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, hops: int) -> Tensor:
    """See `lgcn.ops.diffusion.diffuse`. Two matrices take turns."""
    x = x.detach().contiguous()
    total, out, spare = x, torch.empty_like(x), torch.empty_like(x)
    for _ in range(hops):
        _spmm_into(out, rowptr, col, value, total)
        out += x
        total, out, spare = out, spare, out
    return total.clone() if total is x else total


def diffuse_grad(rowptr: Tensor, col: Tensor, value: Tensor, grad: Tensor, hops: int) -> Tensor:
    """The gradient of `diffuse`: added up in the order of a chain of products and sums."""
    columns = transpose(rowptr, col, grad.size(0))
    value = value.index_select(0, columns.entry)
    power = grad.detach().contiguous()
    total, out, spare = power.clone(), torch.empty_like(power), torch.empty_like(power)
    for _ in range(hops):
        _spmm_into(out, columns.colptr, columns.row, value, power)
        total += out
        power, out, spare = out, spare, out
    return total


def spmm_grad_value(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    """See `lgcn.ops.reference.spmm_grad_value`."""
    grad_value = torch.zeros(col.numel(), dtype=compute_dtype(grad.dtype))
    starts = _array(rowptr)
    kernels.spmm_grad_value(
        _float_array(grad),
        starts,
        _array(col),
        _float_array(dense),
        _chunks(starts),
        grad_value.numpy(),
    )
    return grad_value.to(grad.dtype)


def spmm_grad_dense(
    grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, num_sources: int
) -> Tensor:
    """See `lgcn.ops.reference.spmm_grad_dense`."""
    columns = transpose(rowptr, col, num_sources)
    return spmm(columns.colptr, columns.row, value.index_select(0, columns.entry), grad)
