"""Sums over rows in Triton: sparse times dense, and the backward pass of the selection.

Every sum is taken by one program in one order, without atomics, so the same input gives the same
bits. Long rows are cut into parts, whose sums are summed.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

import triton
import triton.language as tl


@triton.jit
def sum_rows(
    ptr, index, weight, weight_at, dense, part_row, part_first, out, out_row, C, stride,
    PART: tl.constexpr, PARTS: tl.constexpr, T: tl.constexpr, WIDTH: tl.constexpr,
    WEIGHTED: tl.constexpr, INDIRECT: tl.constexpr, SELECTED: tl.constexpr,
    ADD: tl.constexpr, MAPPED: tl.constexpr,
):  # fmt: skip
    """out[i] = sum of weight * dense[index] over the entries of row i, or of part i of a long row.

    The weight of entry e is weight[e], or weight[weight_at[e]] if INDIRECT. SELECTED says that a
    zero in dense was not selected, and stays zero whatever the weight. Rows of `out` are `stride`
    apart. If MAPPED, row i goes to row out_row[i] of `out`; if ADD, it is added to what is there.
    """
    i = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    if PARTS:
        row = tl.load(part_row + i).to(tl.int64)
        start = tl.load(ptr + row).to(tl.int64) + tl.load(part_first + i).to(tl.int64)
        end = tl.minimum(tl.load(ptr + row + 1).to(tl.int64), start + PART)
    else:
        start = tl.load(ptr + i).to(tl.int64)
        end = tl.load(ptr + i + 1).to(tl.int64)
    if PARTS or end - start <= PART:
        total = tl.zeros([T, WIDTH], tl.float32)
        for first in range(start, end, T):
            e = first + tl.arange(0, T)
            j = tl.load(index + e, mask=e < end, other=0).to(tl.int64)
            place = j[:, None] * C + c[None, :]
            inside = (e < end)[:, None] & (c < C)[None, :]
            value = tl.load(dense + place, mask=inside, other=0.0).to(tl.float32)
            if WEIGHTED:
                if INDIRECT:
                    e = tl.load(weight_at + e, mask=e < end, other=0).to(tl.int64)
                    factor = tl.load(weight + e)
                else:
                    factor = tl.load(weight + e, mask=e < end, other=0.0)
                product = value * factor.to(tl.float32)[:, None]
                value = tl.where(value == 0, 0.0, product) if SELECTED else product
            total += value
        value = tl.sum(total, axis=0)
        if MAPPED:
            i = tl.load(out_row + i).to(tl.int64)
        at = out + i * stride + c
        if ADD:
            value += tl.load(at, mask=c < C, other=0.0).to(tl.float32)
        tl.store(at, value.to(out.dtype.element_ty), mask=c < C)


@triton.jit
def spread(
    grad, every, chosen, rowptr, message, C, first_c, width, k: tl.constexpr,
    FIRST: tl.constexpr, SLOTS: tl.constexpr, K: tl.constexpr, T: tl.constexpr,
    WIDTH: tl.constexpr, EVERY: tl.constexpr,
):  # fmt: skip
    """message[e] = the gradient of what was selected from entry e, zero for the other features.

    If EVERY, `every` [rows, C] is added for each entry of the row, selected or not.

    `message` has the features from first_c to first_c + width. A position is selected at most
    once for a feature, so no two writes meet. The row is written T entries at a time, so that the
    zeros are still in the cache when they are overwritten.
    """
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    start = tl.load(rowptr + row).to(tl.int64)
    degree = (tl.load(rowptr + row + 1).to(tl.int64) - start).to(tl.int32)
    s = tl.arange(0, K)[:, None]
    inside = (s < tl.minimum(degree, k)) & (c < width)
    position = tl.load(chosen + (row * k + s) * C + first_c + c, mask=inside, other=-1).to(tl.int32)
    value = tl.load(grad + (row * SLOTS + FIRST + s) * C + first_c + c, mask=inside)
    zero = tl.zeros([T, WIDTH], message.dtype.element_ty)
    if EVERY:
        more = tl.load(every + row * C + first_c + c, mask=c < width, other=0.0).to(tl.float32)
        zero = (zero.to(tl.float32) + more).to(message.dtype.element_ty)
        value = (value.to(tl.float32) + more).to(message.dtype.element_ty)
    for first in range(0, degree, T):
        p = first + tl.arange(0, T)[:, None]
        tl.store(message + (start + p) * width + c, zero, mask=(p < degree) & (c < width))
        tl.debug_barrier()  # the zeros may have been written by other threads
        here = inside & (position >= first) & (position < first + T)
        tl.store(message + (start + position) * width + c, value, mask=here)


@triton.jit
def dot_entries(
    left, left_at, right, right_at, out, num_entries, C,
    T: tl.constexpr, WIDTH: tl.constexpr, DIRECT: tl.constexpr,
):  # fmt: skip
    """out[e] = left[left_at[e]] . right[right_at[e]]; left[e] . right[right_at[e]] if DIRECT.

    If DIRECT a zero on the left was not selected, and stays zero whatever is on the right.
    """
    e = tl.program_id(0).to(tl.int64) * T + tl.arange(0, T)
    known = e < num_entries
    i = e
    if not DIRECT:
        i = tl.load(left_at + e, mask=known, other=0).to(tl.int64)
    j = tl.load(right_at + e, mask=known, other=0).to(tl.int64)
    total = tl.zeros([T, WIDTH], tl.float32)
    for first in range(0, C, WIDTH):
        c = first + tl.arange(0, WIDTH)[None, :]
        inside = known[:, None] & (c < C)
        a = tl.load(left + i[:, None] * C + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(right + j[:, None] * C + c, mask=inside, other=0.0).to(tl.float32)
        product = a * b
        total += tl.where(a == 0, 0.0, product) if DIRECT else product
    tl.store(out + e, tl.sum(total, axis=1).to(out.dtype.element_ty), mask=known)


@triton.jit
def add_selected(
    grad, chosen, rowptr, col, weight, grad_x, C, k: tl.constexpr, FIRST: tl.constexpr,
    SLOTS: tl.constexpr, WIDTH: tl.constexpr, WEIGHTED: tl.constexpr, NODE_IDS: tl.constexpr,
):  # fmt: skip
    """Adds the gradient of every selected value to the feature it came from, with atomics."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    start = tl.load(rowptr + row).to(tl.int64)
    degree = (tl.load(rowptr + row + 1).to(tl.int64) - start).to(tl.int32)
    for s in range(tl.minimum(degree, k)):
        p = tl.load(chosen + (row * k + s) * C + c, mask=c < C, other=-1).to(tl.int64)
        found = p >= 0
        value = tl.load(grad + (row * SLOTS + FIRST + s) * C + c, mask=found, other=0.0)
        value = value.to(tl.float32)
        if WEIGHTED:
            value = value * tl.load(weight + start + p, mask=found, other=0.0).to(tl.float32)
        if not NODE_IDS:
            p = tl.load(col + start + p, mask=found, other=0).to(tl.int64)
        tl.atomic_add(grad_x + p * C + c, value, mask=found, sem="relaxed")
