"""The CPU kernels, in Numba.

They share three habits. Work is split so that threads never write to the same memory and every
number is summed in one fixed order, hence the result does not depend on the number of threads.
Rows are dealt out in chunks of about equal numbers of edges, because degrees are skewed. The
innermost loop runs over features, which lie side by side in memory, so that it becomes SIMD code.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from lgcn.ops.reference import compute_dtype

# Numba and torch share one OpenMP, and Numba sets its number of threads when it starts its own.
# That would change how torch adds up, and so the last bits of all that follows; so it starts here.
_torch_threads = torch.get_num_threads()
numba.get_num_threads()
torch.set_num_threads(_torch_threads)

# Features that one task of a scatter owns: a cache line of float32, so tasks do not share lines.
SCATTER_WIDTH = 16

POSITION_TYPES: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32}

_jit = numba.njit(nogil=True, cache=True)
_jit_parallel = numba.njit(nogil=True, cache=True, parallel=True)


@_jit_parallel
def _k_largest(
    x: Any,
    rowptr: Any,
    col: Any,
    weight: Any,
    k: int,
    compete: bool,
    chunks: Any,
    largest_key: Any,
    own_bits: Any,
    value_bits: Any,
    chosen: Any,
    node_ids: bool,
) -> None:
    """Keeps the k best of every row in sorted slots, by integer keys of the same order.

    A float's bits, read as a signed integer with the lower bits of negative numbers flipped, sort
    as the float does; with NaN as the largest key, one integer comparison is the whole ranking.
    """
    integer = value_bits.dtype.type
    sign_shift = integer(8 * value_bits.itemsize - 1)
    weighted = weight.shape[0] > 0
    first = value_bits.shape[1] - k
    for chunk in numba.prange(chunks.shape[0] - 1):
        channels = x.shape[1]
        product = np.empty(channels, x.dtype)
        product_bits = product.view(value_bits.dtype)
        key = np.empty(channels, value_bits.dtype)
        slots = np.empty((k, channels), value_bits.dtype)
        where = np.empty((k, channels), value_bits.dtype)
        for i in range(chunks[chunk], chunks[chunk + 1]):
            start, degree = rowptr[i], rowptr[i + 1] - rowptr[i]
            for entry in range(degree):
                p = integer(entry)
                j = col[start + entry]
                w = weight[start + entry] if weighted else x.dtype.type(1)
                for c in range(channels):
                    product[c] = w * x[j, c] + x.dtype.type(0)  # -0 becomes 0, they are a tie
                for c in range(channels):
                    bits = product_bits[c]
                    ordered = bits ^ ((bits >> sign_shift) & largest_key)
                    key[c] = ordered if product[c] == product[c] else largest_key
                s = min(entry, k - 1)
                if entry < k:
                    for c in range(channels):
                        slots[s, c] = ~largest_key
                        where[s, c] = p
                else:
                    entering = 0
                    for c in range(channels):
                        entering += key[c] > slots[s, c]
                    if entering == 0:
                        continue
                while s > 0:
                    _insert(key, p, slots, where, s)
                    s -= 1
                for c in range(channels):
                    here, here_where = slots[0, c], where[0, c]
                    slots[0, c] = key[c] if key[c] > here else here
                    where[0, c] = p if key[c] > here else here_where
            for s in range(first):
                for c in range(channels):
                    value_bits[i, s, c] = own_bits[i, c]
            neighbors = col[start : start + degree]
            for s in range(min(degree, k)):
                for c in range(channels):
                    ordered = slots[s, c]
                    dropped = compete & (ordered < 0)
                    bits = ordered ^ ((ordered >> sign_shift) & largest_key)
                    value_bits[i, first + s, c] = integer(0) if dropped else bits
                if node_ids:
                    for c in range(channels):
                        found = neighbors[np.uint64(where[s, c])]
                        chosen[i, s, c] = -1 if compete & (slots[s, c] < 0) else found
                else:
                    for c in range(channels):
                        chosen[i, s, c] = -1 if compete & (slots[s, c] < 0) else where[s, c]
            for s in range(min(degree, k), k):
                for c in range(channels):
                    value_bits[i, first + s, c] = 0
                    chosen[i, s, c] = -1


@_jit
def _insert(key: Any, p: Any, slots: Any, where: Any, s: int) -> None:
    """Slot s takes its upper neighbour, the candidate or what it holds, for all features at once.

    As the slots are sorted, this is a median of three. It stands in a function of its own because
    Numba makes SIMD code of it here, and does not when it is nested in the loops over rows.
    """
    for c in range(key.shape[0]):
        candidate, upper, here = key[c], slots[s - 1, c], slots[s, c]
        upper_where, here_where = where[s - 1, c], where[s, c]
        entering = upper_where if candidate > upper else p
        where[s, c] = entering if candidate > here else here_where
        lower = upper if upper < candidate else candidate
        slots[s, c] = here if here > lower else lower


@_jit_parallel
def _neighbor_at(position: Any, rowptr: Any, col: Any, index: Any) -> None:
    num_rows, k, channels = position.shape
    for i in numba.prange(num_rows):
        for s in range(k):
            for c in range(channels):
                p = position[i, s, c]
                index[i, s, c] = col[rowptr[i] + p] if p >= 0 else -1


@_jit_parallel
def _k_largest_grad_x(
    grad: Any,
    chosen: Any,
    node_ids: bool,
    rowptr: Any,
    col: Any,
    weight: Any,
    grad_x: Any,
) -> None:
    num_rows, k, channels = chosen.shape
    own_slots = grad.shape[1] - k
    weighted = weight.shape[0] > 0
    for task in numba.prange((channels + SCATTER_WIDTH - 1) // SCATTER_WIDTH):
        first = task * SCATTER_WIDTH
        last = min(first + SCATTER_WIDTH, channels)
        for i in range(num_rows):
            start = rowptr[i]
            for s in range(min(k, rowptr[i + 1] - start)):
                for c in range(first, last):
                    p = chosen[i, s, c]
                    if p >= 0:
                        g = grad[i, own_slots + s, c]
                        if weighted:
                            g *= weight[start + p]
                        grad_x[p if node_ids else col[start + p], c] += g


@_jit_parallel
def _k_largest_grad_weight(
    grad: Any, position: Any, x: Any, rowptr: Any, col: Any, chunks: Any, grad_weight: Any
) -> None:
    _, k, channels = position.shape
    first = grad.shape[1] - k
    for chunk in numba.prange(chunks.shape[0] - 1):
        for i in range(chunks[chunk], chunks[chunk + 1]):
            start = rowptr[i]
            for s in range(min(k, rowptr[i + 1] - start)):
                for c in range(channels):
                    p = position[i, s, c]
                    if p >= 0:
                        grad_weight[start + p] += grad[i, first + s, c] * x[col[start + p], c]


@_jit_parallel
def _spmm(rowptr: Any, col: Any, value: Any, dense: Any, chunks: Any, out: Any) -> None:
    channels = dense.shape[1]
    for chunk in numba.prange(chunks.shape[0] - 1):
        for i in range(chunks[chunk], chunks[chunk + 1]):
            for c in range(channels):
                out[i, c] = 0
            for e in range(rowptr[i], rowptr[i + 1]):
                v, j = value[e], col[e]
                for c in range(channels):
                    out[i, c] += v * dense[j, c]


@_jit_parallel
def _spmm_grad_value(
    grad: Any, rowptr: Any, col: Any, dense: Any, chunks: Any, grad_value: Any
) -> None:
    channels = dense.shape[1]
    for chunk in numba.prange(chunks.shape[0] - 1):
        for i in range(chunks[chunk], chunks[chunk + 1]):
            for e in range(rowptr[i], rowptr[i + 1]):
                j = col[e]
                total = grad_value[e]
                for c in range(channels):
                    total += grad[i, c] * dense[j, c]
                grad_value[e] = total


@_jit_parallel
def _spmm_grad_dense(grad: Any, rowptr: Any, col: Any, value: Any, grad_dense: Any) -> None:
    num_rows, channels = grad.shape
    for task in numba.prange((channels + SCATTER_WIDTH - 1) // SCATTER_WIDTH):
        first = task * SCATTER_WIDTH
        last = min(first + SCATTER_WIDTH, channels)
        for i in range(num_rows):
            for e in range(rowptr[i], rowptr[i + 1]):
                v, j = value[e], col[e]
                for c in range(first, last):
                    grad_dense[j, c] += v * grad[i, c]


@_jit
def _row_chunks(rowptr: Any, count: int) -> Any:
    """Boundaries of ``count`` runs of rows with about equal numbers of rows plus edges."""
    num_rows = rowptr.shape[0] - 1
    total = num_rows + rowptr[num_rows]
    chunks = np.empty(count + 1, np.int64)
    for chunk in range(count + 1):
        target = total * chunk // count
        low, high = 0, num_rows
        while low < high:
            middle = (low + high) // 2
            if middle + rowptr[middle] < target:
                low = middle + 1
            else:
                high = middle
        chunks[chunk] = low
    return chunks


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _float_array(tensor: Tensor) -> Any:
    return _array(tensor.detach().to(compute_dtype(tensor.dtype)))


def _weight_array(edge_weight: Tensor | None, like: Any) -> Any:
    return np.empty(0, like.dtype) if edge_weight is None else _float_array(edge_weight)


def _chunks(rowptr: Any) -> Any:
    # Several chunks a thread even out what equal numbers of edges do not.
    return _row_chunks(rowptr, min(rowptr.shape[0], 8 * numba.get_num_threads()))


def k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int = 32,
    own: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See :func:`lgcn.ops.reference.k_largest`."""
    features, starts, neighbors = _float_array(x), _array(rowptr), _array(col)
    integer = np.int32 if features.itemsize == 4 else np.int64
    # NumPy asks for huge pages, torch does not: fewer page faults for these large results.
    num_rows, channels = rowptr.numel() - 1, x.size(1)
    values = np.empty((num_rows, k + (own is not None), channels), features.dtype)
    chosen = np.empty((num_rows, k, channels), POSITION_TYPES.get(position_bits, neighbors.dtype))
    own_features = features[:0] if own is None else _float_array(own)
    _k_largest(
        features,
        starts,
        neighbors,
        _weight_array(edge_weight, features),
        k,
        compete,
        _chunks(starts),
        integer(np.iinfo(integer).max),
        own_features.view(integer),
        values.view(integer),
        chosen,
        position_bits == 0,
    )
    return torch.from_numpy(values).to(x.dtype), torch.from_numpy(chosen)


def neighbor_at(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    """See :func:`lgcn.ops.reference.neighbor_at`."""
    index = np.empty(position.shape, _array(col).dtype)
    _neighbor_at(_array(position), _array(rowptr), _array(col), index)
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
    """See :func:`lgcn.ops.reference.k_largest_grad_x`."""
    gradient = _float_array(grad)
    grad_x = torch.zeros(num_sources, grad.size(2), dtype=compute_dtype(grad.dtype))
    _k_largest_grad_x(
        gradient,
        _array(chosen),
        node_ids,
        _array(rowptr),
        _array(col),
        _weight_array(edge_weight, gradient),
        grad_x.numpy(),
    )
    return grad_x.to(grad.dtype)


def k_largest_grad_weight(
    grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor
) -> Tensor:
    """See :func:`lgcn.ops.reference.k_largest_grad_weight`."""
    grad_weight = torch.zeros(col.numel(), dtype=compute_dtype(grad.dtype))
    starts = _array(rowptr)
    _k_largest_grad_weight(
        _float_array(grad),
        _array(position),
        _float_array(x),
        starts,
        _array(col),
        _chunks(starts),
        grad_weight.numpy(),
    )
    return grad_weight.to(grad.dtype)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """See :func:`lgcn.ops.reference.spmm`."""
    starts = _array(rowptr)
    out = torch.empty(rowptr.numel() - 1, dense.size(1), dtype=compute_dtype(dense.dtype))
    _spmm(
        starts,
        _array(col),
        _float_array(value),
        _float_array(dense),
        _chunks(starts),
        out.numpy(),
    )
    return out.to(dense.dtype)


def spmm_grad_value(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    """See :func:`lgcn.ops.reference.spmm_grad_value`."""
    grad_value = torch.zeros(col.numel(), dtype=compute_dtype(grad.dtype))
    starts = _array(rowptr)
    _spmm_grad_value(
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
    """See :func:`lgcn.ops.reference.spmm_grad_dense`."""
    grad_dense = torch.zeros(num_sources, grad.size(1), dtype=compute_dtype(grad.dtype))
    _spmm_grad_dense(
        _float_array(grad),
        _array(rowptr),
        _array(col),
        _float_array(value),
        grad_dense.numpy(),
    )
    return grad_dense.to(grad.dtype)
