"""The CPU kernels, in Numba, except for the selection, which is in `select.py`.

They have three things in common. Threads never write to the same memory, and every number is summed
in one fixed order, so the result does not depend on the number of threads. Rows are divided into
chunks of about equal numbers of edges, because degrees are skewed. The innermost loop runs over
features, which are adjacent in memory, so that it becomes SIMD code.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np

from lgcn.ops.cpu import simd
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.share import share

# Hash of simd.py. Numba recompiles a kernel only when this file changes, so a change of simd.py has
# to change this line.
SIMD_DIGEST = "c7f5fcabf092f2cd"


@jit_parallel
def neighbor_at(position: Any, rowptr: Any, col: Any, index: Any, part: Any) -> None:
    num_rows, k, channels = position.shape
    for i in share(num_rows, part):
        degree = rowptr[i + 1] - rowptr[i]
        for s in range(k):
            for c in range(channels):
                p = position[i, s, c]
                index[i, s, c] = col[rowptr[i] + p] if 0 <= p < degree else -1


@jit_parallel
def k_largest_grad_x(
    grad: Any,
    positions: int,
    first: int,
    chosen: Any,
    node_ids: bool,
    k: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    pieces: Any,
    channels: int,
    grad_x: Any,
    part: Any,
) -> None:
    """A task owns some features of all nodes in one of the sums, to which a piece of the rows goes.

    Node ids say where to add. Positions lead to the row's entries first, of which there are mostly
    few enough for the fastest memory, and whole vectors are added from there.
    """
    lanes = simd.VECTOR_BYTES // grad.itemsize
    weighted = weight.shape[0] > 0
    blocks = (channels + lanes - 1) // lanes
    num_sources = grad_x.shape[1] // max(channels, 1)
    short = 4 * max(k, 1)
    for task in share(blocks * (pieces.shape[0] - 1), part):
        piece, c = task // blocks, task % blocks * lanes
        width = min(lanes, channels - c)
        target = grad_x[piece, c:]
        entries = np.zeros(short * lanes, grad.dtype)
        zero = simd.load(entries, 0, lanes)
        for i in range(pieces[piece], pieces[piece + 1]):
            start, degree = rowptr[i], rowptr[i + 1] - rowptr[i]
            for s in range(min(k, degree)):
                grad_at = (i * positions + first + s) * channels + c
                chosen_at = (i * k + s) * channels + c
                g = simd.load(grad, grad_at, width)
                at = simd.load_as_many(chosen, chosen_at, width, g)
                if node_ids:
                    simd.add_at(target, at, num_sources, channels, width, g)
                elif degree <= short:
                    simd.put_at(entries, at, degree, lanes, width, g)
                else:
                    for lane in range(width):
                        p = chosen[chosen_at + lane]
                        if 0 <= p < degree:
                            w = weight[start + p] if weighted else grad.dtype.type(1)
                            target[col[start + p] * channels + lane] += w * grad[grad_at + lane]
            if not node_ids and degree <= short:
                for entry in range(degree):
                    j = col[start + entry]
                    w = weight[start + entry] if weighted else grad.dtype.type(1)
                    g = simd.load(entries, entry * lanes, lanes)
                    total = simd.add_product(simd.load(target, j * channels, width), g, w)
                    simd.store(target, j * channels, width, total)
                    simd.store(entries, entry * lanes, lanes, zero)


@jit_parallel
def k_largest_grad_weight(
    grad: Any,
    first: int,
    position: Any,
    x: Any,
    rowptr: Any,
    col: Any,
    chunks: Any,
    grad_weight: Any,
    part: Any,
) -> None:
    _, k, channels = position.shape
    for chunk in share(chunks.shape[0] - 1, part):
        for i in range(chunks[chunk], chunks[chunk + 1]):
            start, degree = rowptr[i], rowptr[i + 1] - rowptr[i]
            for s in range(min(k, degree)):
                for c in range(channels):
                    p = position[i, s, c]
                    if 0 <= p < degree:
                        grad_weight[start + p] += grad[i, first + s, c] * x[col[start + p], c]


@jit_parallel
def spmm(
    rowptr: Any,
    col: Any,
    value: Any,
    dense: Any,
    channels: int,
    chunks: Any,
    out: Any,
    part: Any,
) -> None:
    """Sums up a row in registers, as many features at a time as two vectors have. Flat arrays.

    Longer runs of memory per neighbour are read faster: half the time for 256 features.
    """
    lanes = simd.VECTOR_BYTES // dense.itemsize
    in_pairs = channels - channels % (2 * lanes)
    for chunk in share(chunks.shape[0] - 1, part):
        zero = simd.load(dense, 0, 0)
        for i in range(chunks[chunk], chunks[chunk + 1]):
            for c in range(0, in_pairs, 2 * lanes):
                first, second = zero, zero
                for e in range(rowptr[i], rowptr[i + 1]):
                    at, factor = col[e] * channels + c, simd.filled(zero, value[e])
                    first = simd.add_products(first, simd.load(dense, at, lanes), factor)
                    row = simd.load(dense, at + lanes, lanes)
                    second = simd.add_products(second, row, factor)
                simd.store(out, i * channels + c, lanes, first)
                simd.store(out, i * channels + c + lanes, lanes, second)
            for c in range(in_pairs, channels, lanes):
                width = min(lanes, channels - c)
                total = zero
                for e in range(rowptr[i], rowptr[i + 1]):
                    row = simd.load(dense, col[e] * channels + c, width)
                    total = simd.add_products(total, row, simd.filled(row, value[e]))
                simd.store(out, i * channels + c, width, total)


@jit_parallel
def spmm_grad_value(
    grad: Any, rowptr: Any, col: Any, dense: Any, chunks: Any, grad_value: Any, part: Any
) -> None:
    channels = dense.shape[1]
    for chunk in share(chunks.shape[0] - 1, part):
        for i in range(chunks[chunk], chunks[chunk + 1]):
            for e in range(rowptr[i], rowptr[i + 1]):
                j = col[e]
                total = grad_value[e]
                for c in range(channels):
                    total += grad[i, c] * dense[j, c]
                grad_value[e] = total


@jit
def row_chunks(rowptr: Any, count: int) -> Any:
    """Boundaries of `count` runs of rows with about equal numbers of rows plus edges."""
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
