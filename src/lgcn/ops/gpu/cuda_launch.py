"""The kernels in CUDA C++ (`cuda/*.cu`), which are for float32: how to launch them.

Each function returns `None`, and does nothing, where its kernel cannot be used.
"""

from typing import Any

import torch
from torch import Tensor

from lgcn.ops.gpu import nvrtc
from lgcn.ops.reference import first_slot
from lgcn.ops.structure import Parts, Transpose, long_rows, max_degree
from lgcn.utils.out_of_memory import empty

INDEX_TYPES = {torch.int32: "int", torch.int64: "long long"}
CHOSEN_TYPES = {torch.int8: "signed char", torch.int16: "short", torch.int32: "int"}

# Slots of a thread that selects: more do not fit into its registers.
MAX_SLOTS = 32
# Entries that one thread selects from. Longer rows are shared by WARPS warps.
SELECT_PART = 1024
WARPS = 8
# Threads that sort the gradients of a row, for up to so many values.
ROW_THREADS = {1024: 32, 6144: 256}
# Bytes of shared memory, per such thread, for what is known of the entries: most rows need no more.
MAX_KNOWN = 64
# Features of a run, and its bytes, see grad_by_columns.cu.
RUN_FEATURES = 96
RUN_BYTES = 16


def select_values(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    own: Tensor | None,
    last: Tensor | None,
    with_sum: bool,
    divisor: Tensor | None,
) -> Tensor | None:
    """See `lgcn.ops.reference.k_largest_values`."""
    if k > MAX_SLOTS or x.dtype != torch.float32:
        return None
    num_rows, channels = rowptr.numel() - 1, x.size(1)
    options: dict[str, Any] = {
        "INDEX": INDEX_TYPES[col.dtype],
        "K": max(8, 1 << (k - 1).bit_length()),
        "WEIGHTED": int(edge_weight is not None),
        "COMPETE": int(compete),
        "OWN": int(own is not None),
        "LAST": int(last is not None),
        "SUM": int(with_sum),
        "MEAN": int(divisor is not None),
        "PART": SELECT_PART,
        "WARPS": WARPS,
    }
    with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
        select = nvrtc.kernel("select_values", "select_values.cu", x.device, **options)
        select_long = nvrtc.kernel("select_long_rows", "select_values.cu", x.device, **options)
        if select is None or select_long is None:
            return None
        slots = sum(other is not None for other in (own, last)) + k + with_sum
        values = empty("the selected values [nodes, k, features]", (num_rows, slots, channels), x)
        if values.numel() == 0:
            return values
        x = x.contiguous()
        others = [
            x if other is None else other.contiguous()
            for other in (edge_weight, own, last, divisor)
        ]
        arguments = [x, rowptr.contiguous(), col.contiguous(), *others, values]
        select(
            grid=(-(-num_rows * channels // 256), 1, 1),
            block=(256, 1, 1),
            args=[*arguments, num_rows, channels, k],
        )
        if max_degree(rowptr, col) > SELECT_PART:
            rows = long_rows(rowptr, SELECT_PART).long_row
            select_long(
                grid=(rows.numel(), -(-channels // 32), 1),
                block=(32 * WARPS, 1, 1),
                args=[*arguments, rows, channels, k],
            )
    return values


def sum_runs(
    total: Tensor,
    rows: Tensor | None,
    grad: Tensor,
    every: Tensor | None,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    columns: Transpose,
    parts: Parts,
    part: int,
    add: bool,
) -> Tensor | None:
    """Sums the gradients of what was selected by columns: see `lgcn.ops.reference.add_grad_x`.

    Returns the sums of the parts of columns with more than `part` entries, which are not written
    to `total`.

    Args:
        total: The sums.
        rows: The row of `total` for each column. (`None`: the column's number)
        grad: The gradient of the grid.
        every: A gradient of each of a row's products, selected or not.
        chosen: What was selected, as positions.
        rowptr, col, edge_weight: The structure.
        columns: Its transpose.
        parts: The long columns in parts.
        part: Entries of a part.
        add: Whether to add to what is in `total`.
    """
    channels, k = grad.size(2), chosen.size(1)
    if not grad.dtype == total.dtype == torch.float32 or k * channels > max(ROW_THREADS):
        return None
    # Words of 32 features, dealt out evenly to as few runs as possible.
    words, runs_per_entry = -(-channels // 32), -(-channels // RUN_FEATURES)
    size = k * channels
    threads = next(threads for most, threads in ROW_THREADS.items() if size <= most)
    block = max(128, threads)
    options: dict[str, Any] = {
        "INDEX": INDEX_TYPES[col.dtype],
        "CHOSEN": CHOSEN_TYPES[chosen.dtype],
        "CHANNELS": channels,
        "SLOTS": k,
        "WORDS": -(-words // runs_per_entry),
        "THREADS": threads,
        "BLOCK": block,
    }
    flags = {
        "WEIGHTED": int(edge_weight is not None),
        "EVERY": int(every is not None),
        "MAPPED": int(rows is not None),
        "ADD": int(add),
        "PARTS": 0,
    }
    file, device = "grad_by_columns.cu", grad.device
    with torch.cuda.device_of(grad):  # type: ignore[no-untyped-call]
        pack = nvrtc.kernel("pack_rows", file, device, **options, **dict.fromkeys(flags, 0))
        if pack is None:
            return None
        grad, chosen = grad.contiguous(), chosen.contiguous()
        packed = empty("the gradients by entry [nodes, k, features]", chosen.shape, grad)
        shape = (col.numel(), runs_per_entry, RUN_BYTES // 4)
        runs = empty("the runs of all entries", shape, grad, torch.int32)
        chunk = min(max_degree(rowptr, col), max(1, MAX_KNOWN * threads // (8 * words)))
        num_rows = rowptr.numel() - 1
        pack(
            grid=(-(-num_rows * threads // block), 1, 1),
            block=(block, 1, 1),
            args=[
                grad, chosen, rowptr.contiguous(), packed, runs, num_rows,
                first_slot(grad, chosen), grad.size(1), chunk,
            ],
            shared_mem=4 * (2 * words * chunk + size) * (block // threads),
        )  # fmt: skip
        weight = grad if edge_weight is None else edge_weight.contiguous()
        every = grad if every is None else every.contiguous()
        out_row = columns.entry if rows is None else rows
        partial = grad.new_empty(parts.row.numel(), channels)
        whole = (columns.colptr, columns.colptr, total, columns.colptr.numel() - 1, flags)
        in_parts = flags | {"PARTS": 1, "MAPPED": 0, "ADD": 0}
        of_parts = (parts.row, parts.first, partial, parts.row.numel(), in_parts)
        for part_column, part_first, out, count, kind in (whole, of_parts):
            if count == 0:
                continue
            add_up = nvrtc.kernel("sum_columns", file, device, **options, **kind)
            assert add_up is not None  # its file has compiled
            add_up(
                grid=(-(-count * runs_per_entry // 4), 1, 1),
                block=(128, 1, 1),
                args=[
                    columns.colptr, columns.entry, columns.row, packed, runs, weight, every,
                    part_column, part_first, out_row, out, count, part, out.stride(0),
                ],
            )  # fmt: skip
    return partial
