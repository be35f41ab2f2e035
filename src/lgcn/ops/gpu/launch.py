"""The operators on the GPU: which Triton kernel to launch for which input.

The functions are those of `lgcn.ops.reference`, which is used for a k above 128, with a
warning. `lgcn.ops.backend` has selected by type before.
"""

import functools
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lgcn.ops import backend, reference
from lgcn.ops.gpu import cuda_launch, triton_select, triton_sum
from lgcn.ops.gpu.triton_cache import ensure_triton_cache
from lgcn.ops.reference import POSITION_DTYPES, first_slot, row_of_entry
from lgcn.ops.structure import Parts, long_rows, max_degree, transpose
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.out_of_memory import empty

ensure_triton_cache()

MAX_K = 128
# Entries that one program sums. With longer rows, one program would still run when all others have
# finished.
SUM_PART = 2048
# Where a gradient is added up block by block: gradients of entries that are held at a time, for
# each value of the block's grid. The more features are taken at once, the fewer times the columns
# are gone through.
MESSAGES_PER_VALUE = 4


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
) -> tuple[Tensor, Tensor]:
    """See `lgcn.ops.reference.k_largest`."""
    if k > MAX_K:
        _warn_of_large_k()
        return reference.k_largest(
            x, rowptr, col, k, edge_weight, compete, position_bits, own, last
        )
    return _k_largest(x, rowptr, col, k, edge_weight, compete, position_bits, own, last)


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
    """See `lgcn.ops.reference.k_largest_and_sum`. Neighbours are read once for both."""
    if k > MAX_K or x.size(1) == 0:
        return reference.k_largest_and_sum(
            x, rowptr, col, k, edge_weight, compete, position_bits, own, divisor, k_largest, spmm
        )
    return _k_largest(
        x, rowptr, col, k, edge_weight, compete, position_bits, own, None, True, divisor
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
    _check_sizes(rowptr, col)
    found = cuda_launch.select_values(
        x, rowptr, col, k, edge_weight, compete, own, last, with_sum, divisor
    )
    if found is not None:
        return found
    return reference.k_largest_values(
        x, rowptr, col, k, edge_weight, compete, own, last, with_sum, divisor,
        k_largest, k_largest_and_sum,
    )  # fmt: skip


def _check_sizes(rowptr: Tensor, col: Tensor) -> int:
    """Returns the number of entries of the longest row."""
    longest, num_rows = max_degree(rowptr, col), rowptr.numel() - 1
    if longest > MAX_INT32 or num_rows > MAX_INT32:
        raise ValueError(
            f"a GPU selects among at most {MAX_INT32} entries of at most {MAX_INT32} rows, got "
            f"{longest} entries and {num_rows} rows: select for blocks of rows, one after the other"
        )
    return longest


def _k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int,
    own: Tensor | None,
    last: Tensor | None,
    with_sum: bool = False,
    divisor: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    x = x.contiguous()
    num_rows, channels = rowptr.numel() - 1, x.size(1)
    first = 0 if own is None else 1
    slots = first + k + (with_sum or last is not None)
    shape = (num_rows, slots, channels)
    values = empty("the selected values [nodes, k, features]", shape, x)
    dtype = POSITION_DTYPES.get(position_bits, col.dtype)
    shape = (num_rows, k, channels)
    chosen = empty("the selected positions [nodes, k, features]", shape, x, dtype)
    if values.numel() == 0:
        return values, chosen
    if last is not None:
        values[:, -1].copy_(last)

    log_k = max(3, (k - 1).bit_length())
    log_t, width, part, registers = _tuning(log_k, channels)
    longest = _check_sizes(rowptr, col)
    weight = x if edge_weight is None else edge_weight.contiguous()
    select: dict[str, Any] = {
        "LOG_K": log_k,
        "LOG_T": log_t,
        "PART": part,
        "WIDTH": width,
        "WEIGHTED": edge_weight is not None,
        "COMPETE": compete,
        "EXACT": x.dtype != torch.float32 and edge_weight is None,
        "SUM": with_sum,
        "num_warps": 1,
        "maxnreg": registers,
    }
    store = {
        "NODE_IDS": position_bits == 0,
        "OWN": first,
        "SLOTS": slots,
        "MEAN": divisor is not None,
    }
    divisor = x if divisor is None else divisor.contiguous()
    blocks = -(-channels // width)
    with _on(x):
        triton_select.select_rows[(num_rows, blocks)](
            x, rowptr, col, weight, x if own is None else own.contiguous(), divisor, values,
            chosen, channels, k, **select, **store,
        )  # fmt: skip
        if longest > part:
            parts = long_rows(rowptr, part)
            shape = (parts.row.numel(), k, channels)
            partial = empty("the parts of long rows", shape, x, torch.int64)
            sums = x.new_empty(parts.row.numel() if with_sum else 0, channels, dtype=torch.float32)
            triton_select.select_parts[(parts.row.numel(), blocks)](
                x, rowptr, col, weight, parts.row, parts.first, partial, sums, channels, k, **select
            )
            triton_select.merge_parts[(parts.long_row.numel(), -(-channels // 32))](
                partial, sums, divisor, parts.long_row, parts.ptr, rowptr, col, values, chosen,
                channels, k, LOG_K=log_k, WIDTH=32, SUM=with_sum, num_warps=1, **store,
            )  # fmt: skip
    return values, chosen


class _Tuning(NamedTuple):
    """How the selection is cut up, measured on an H200 (docs/evidence/performance.md)."""

    log_t: int  # log2 of the neighbours taken in at once
    width: int  # features of a program; below 32 the slots of a feature lie in several threads
    part: int  # entries of a part of a long row
    registers: int  # at most, for a thread: more threads at a time hide more waiting


def _tuning(log_k: int, channels: int) -> _Tuning:
    if log_k == 3:
        return _Tuning(3, 64, 1024, 72) if channels > 32 else _Tuning(3, 32, 1024, 56)
    if log_k == 4:
        return _Tuning(4, 32, 1024, 80)
    if log_k == 5:
        return _Tuning(4, 16, 1024, 96)
    return _Tuning(4, 16, 2048, 128) if log_k == 6 else _Tuning(4, 8, 2048, 128)


neighbor_at = reference.neighbor_at


def k_largest_grad_x(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool = False,
) -> Tensor:
    """See `lgcn.ops.reference.k_largest_grad_x`.

    The gradients of each row are first sorted by entry, then summed by columns, which gives the
    same bits each time. That needs as much memory as `grad`, and 16 bytes per entry and 96
    features. Atomics need no such memory, and the order of their sums is left to chance.
    """
    channels = grad.size(2)
    if num_sources * channels == 0 or col.numel() == 0:
        return grad.new_zeros(num_sources, channels)
    if node_ids or backend.atomics_allowed():
        return _add(grad, chosen, rowptr, col, edge_weight, num_sources, node_ids)
    total = grad.new_empty(num_sources, channels)
    if _sum_runs(total, None, grad, None, chosen, rowptr, col, edge_weight):
        return total
    selected = grad.size(0) * (first_slot(grad, chosen) + chosen.size(1)) * channels
    _sum_messages(total, None, grad, None, chosen, rowptr, col, edge_weight, selected)
    return total


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
    """See `lgcn.ops.reference.add_grad_x`.

    What is summed by columns already lies at each entry, so that `every` costs no reading of its
    own. Sums go straight to their rows of `total`.
    """
    if backend.atomics_allowed() or grad.numel() == 0:
        reference.add_by_columns(
            total, columns, grad, chosen, rowptr, col, edge_weight, every,
            k_largest_grad_x, spmm_grad_dense,
        )  # fmt: skip
    elif col.numel() > 0 and not _sum_runs(
        total, columns, grad, every, chosen, rowptr, col, edge_weight, add=True
    ):
        most = MESSAGES_PER_VALUE * grad.numel()
        _sum_messages(total, columns, grad, every, chosen, rowptr, col, edge_weight, most, add=True)


def _sum_runs(
    total: Tensor,
    rows: Tensor | None,
    grad: Tensor,
    every: Tensor | None,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    *,
    add: bool = False,
) -> bool:
    """Sums gradients by columns; does nothing and says False if there is no kernel for it.

    Column j goes to row j of `total`, or to row rows[j].
    """
    columns = transpose(rowptr, col, total.size(0) if rows is None else rows.numel())
    parts = long_rows(columns.colptr, SUM_PART)
    partial = cuda_launch.sum_runs(
        total, rows, grad, every, chosen, rowptr, col, edge_weight, columns, parts, SUM_PART, add
    )
    if partial is None:
        return False
    if parts.row.numel() > 0:
        _put_parts(parts, partial, total, rows, add=add)
    return True


def _put_parts(
    parts: Parts, partial: Tensor, out: Tensor, rows: Tensor | None, *, add: bool
) -> None:
    """Writes the sums of long rows from those of their parts."""
    every = torch.arange(parts.row.numel(), device=partial.device)
    total = _sum(parts.ptr, None, every, None, None, partial)
    place = parts.long_row.long()
    place = place if rows is None else rows[place]
    if add:
        total = total + out[place]
    out.index_copy_(0, place, total.to(out.dtype))


def _sum_messages(
    total: Tensor,
    rows: Tensor | None,
    grad: Tensor,
    every: Tensor | None,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    most: int,
    *,
    add: bool = False,
) -> None:
    """Spreads gradients over the entries and sums them by columns, at most `most` at a time.

    This is for types that `_sum_runs` does not know. To give the same bits each time, features are
    taken in blocks, but at least 16 at a time, below which memory is read in too small pieces.
    """
    grad, channels = grad.contiguous(), grad.size(2)
    columns = transpose(rowptr, col, total.size(0) if rows is None else rows.numel())
    at_once = max(16, most // col.numel() // 16 * 16)
    for first in range(0, channels, at_once):
        width = min(at_once, channels - first)
        message = _spread(grad, chosen, rowptr, col, first, width, every)
        _sum(
            columns.colptr, None, columns.entry, edge_weight, columns.entry, message, True,
            out=total[:, first : first + width], rows=rows, add=add,
        )  # fmt: skip
        del message  # before the next one is made


def _add(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool,
) -> Tensor:
    k, channels = chosen.size(1), grad.size(2)
    total = torch.zeros(num_sources, channels, dtype=torch.float32, device=grad.device)
    # Blocks of features come one after the other: those of all nodes stay in the cache meanwhile.
    with _on(grad):
        triton_sum.add_selected[(rowptr.numel() - 1, -(-channels // 32))](
            grad.contiguous(), chosen, rowptr, col, grad if edge_weight is None else edge_weight,
            total, channels, k, FIRST=first_slot(grad, chosen), SLOTS=grad.size(1), WIDTH=32,
            WEIGHTED=edge_weight is not None, NODE_IDS=node_ids, num_warps=1,
        )  # fmt: skip
    return total.to(grad.dtype)


def k_largest_grad_weight(
    grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor
) -> Tensor:
    """See `lgcn.ops.reference.k_largest_grad_weight`."""
    if col.numel() == 0 or grad.numel() == 0:
        return grad.new_zeros(col.numel())
    message = _spread(grad.contiguous(), position, rowptr, col, 0, grad.size(2))
    return _dot(message, None, x, col)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """See `lgcn.ops.reference.spmm`."""
    return _sum(rowptr, max_degree(rowptr, col), col, value, None, dense)


def spmm_grad_value(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    """See `lgcn.ops.reference.spmm_grad_value`."""
    return _dot(grad, row_of_entry(rowptr), dense, col)


def spmm_grad_dense(
    grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, num_sources: int
) -> Tensor:
    """See `lgcn.ops.reference.spmm_grad_dense`."""
    columns = transpose(rowptr, col, num_sources)
    return _sum(columns.colptr, None, columns.row, value, columns.entry, grad)


def _spread(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    first: int,
    width: int,
    every: Tensor | None = None,
) -> Tensor:
    """The gradient of every entry of the graph, features first to first + width."""
    message = empty("the gradients of all edges [edges, features]", (col.numel(), width), grad)
    k = chosen.size(1)
    block = 32
    with _on(grad):
        triton_sum.spread[(rowptr.numel() - 1, -(-width // block))](
            grad, grad if every is None else every.contiguous(), chosen, rowptr, message,
            grad.size(2), first, width, k, FIRST=first_slot(grad, chosen), SLOTS=grad.size(1),
            K=_power_of_two(k), T=32, WIDTH=block, EVERY=every is not None, num_warps=1,
        )  # fmt: skip
    return message


def _sum(
    ptr: Tensor,
    longest: int | None,
    index: Tensor,
    weight: Tensor | None,
    weight_at: Tensor | None,
    dense: Tensor,
    selected: bool = False,
    *,
    out: Tensor | None = None,
    rows: Tensor | None = None,
    add: bool = False,
) -> Tensor:
    """The sum over each row of ptr; `longest` is its number of entries if that is known.

    `selected` says that zeros in `dense` were not selected and have no part in the sum. The sums
    are written to the rows of `out`, or to those that `rows` names, or added to them.
    """
    num_rows, channels = ptr.numel() - 1, dense.size(1)
    if out is None:
        out = dense.new_empty(num_rows, channels)
    if num_rows == 0 or channels == 0:
        return out
    dense = dense.contiguous()
    width = min(128, max(16, _power_of_two(channels)))
    options: dict[str, Any] = {
        "PART": SUM_PART,
        "T": 8,
        "WIDTH": width,
        "WEIGHTED": weight is not None,
        "INDIRECT": weight_at is not None,
        "SELECTED": selected,
        "num_warps": 1,
    }
    weight = dense if weight is None else weight.contiguous()
    weight_at = index if weight_at is None else weight_at
    blocks = -(-channels // width)
    with _on(dense):
        triton_sum.sum_rows[(num_rows, blocks)](
            ptr, index, weight, weight_at, dense, ptr, ptr, out, ptr if rows is None else rows,
            channels, out.stride(0), PARTS=False, ADD=add, MAPPED=rows is not None, **options,
        )  # fmt: skip
        if longest is None or longest > SUM_PART:
            parts = long_rows(ptr, SUM_PART)
            if parts.row.numel() > 0:
                partial = torch.empty(
                    parts.row.numel(), channels, dtype=torch.float32, device=dense.device
                )
                triton_sum.sum_rows[(parts.row.numel(), blocks)](
                    ptr, index, weight, weight_at, dense, parts.row, parts.first, partial, ptr,
                    channels, channels, PARTS=True, ADD=False, MAPPED=False, **options,
                )  # fmt: skip
                _put_parts(parts, partial, out, rows, add=add)
    return out


def _dot(left: Tensor, left_at: Tensor | None, right: Tensor, right_at: Tensor) -> Tensor:
    num_entries, channels = right_at.numel(), left.size(1)
    out = left.new_zeros(num_entries)
    if num_entries == 0 or channels == 0:
        return out
    with _on(left):
        triton_sum.dot_entries[(-(-num_entries // 16),)](
            left.contiguous(), right_at if left_at is None else left_at, right.contiguous(),
            right_at, out, num_entries, channels,
            T=16, WIDTH=min(128, max(16, _power_of_two(channels))), DIRECT=left_at is None,
            num_warps=2,
        )  # fmt: skip
    return out


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _on(tensor: Tensor) -> Any:
    """Triton launches on the current device, which need not be that of the tensors."""
    return torch.cuda.device_of(tensor)  # type: ignore[no-untyped-call]


@functools.cache
def _warn_of_large_k() -> None:
    warnings.warn(f"a k above {MAX_K} has no GPU kernel and uses the slow path", stacklevel=2)
