"""The k-largest node selection g(X, A, k) of the paper, as a differentiable torch operator."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lgcn.ops import plain, reference
from lgcn.ops.backend import backend
from lgcn.ops.cpu import launch as cpu
from lgcn.ops.cpu.launch import Overwritten
from lgcn.ops.structure import (
    FLOAT_DTYPES,
    INDEX_DTYPES,
    check_layout,
    check_range,
    check_shape,
    max_degree,
    structure,
)
from lgcn.utils.limits import MAX_INT32

Zeros = Literal["pad", "compete"]


def k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
) -> tuple[Tensor, Tensor]:
    r"""Selects the k largest values among the neighbours of each node, separately per feature.

    From the paper [Large-Scale Learnable Graph Convolutional
    Networks](https://arxiv.org/abs/1808.03965):

    $$
    \mathrm{values}_{i, 1..k, c} =
    \mathrm{largest}_k \{ w_{ij} \, x_{jc} : j \in \mathcal{N}(i) \}
    $$

    in descending order, where $\mathcal{N}(i)$ is row $i$ of the CSR structure. Ties go to the
    earlier position in the row, and NaN ranks above all numbers, so the result is deterministic.
    It takes at most $O(E C k)$ time and $O(N k C)$ memory. The checks of `rowptr` and `col` that
    cost $O(E)$ run once per pair of tensors.

    Args:
        x: Features of the source nodes (float32, float64, bfloat16 or float16).
        rowptr: Row offsets: row i holds the entries `rowptr[i]` to `rowptr[i + 1]` of `col`.
        col: Numbers of the neighbours, which are rows of `x` (int32 or int64, like `rowptr`).
        k: Number of values to select, at least 1.
        edge_weight: One factor per entry of `col`, of the dtype of `x`. (default: no factors)
        zeros: `"pad"` fills rows with fewer than k neighbours with zeros at the end, as in the
            paper. With `"compete"`, zeros take part in the ranking, as in the released program, so
            that no negative value is ever selected. (default: `"pad"`)

    Shapes:
        - **input:** x $(M, C)$, rowptr $(N + 1)$, col $(E)$, edge_weight $(E)$
        - **output:** values $(N, k, C)$; index $(N, k, C)$, the selected rows of `x`, -1 for a
          zero that was filled in
    """
    if plain.exports_to_onnx():
        raise ValueError("ONNX has no operator for the index of a selection: use its values alone")
    # On a GPU the deterministic backward goes by positions.
    if edge_weight is None and not (x.is_cuda and x.requires_grad):
        return _select(x, rowptr, col, k, None, zeros, node_ids=True)
    values, position = _select(x, rowptr, col, k, edge_weight, zeros)
    return values, _neighbor_at(position, rowptr, col)


def k_largest_values(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
) -> Tensor:
    """Returns only the values of `k_largest`; the index is not computed."""
    return _values(x, rowptr, col, k, edge_weight, zeros)


def k_largest_grid(
    x: Tensor,
    own: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
    last: Tensor | None = None,
) -> Tensor:
    """The grid of an LGCL in one tensor: own features, then the values of `k_largest`.

    Shapes:
        - **input:** as `k_largest`; own $(N, C)$, `None` for zeros; last
          $(N, C)$, what follows the values, `None` for nothing
        - **output:** $(N, k + 1, C)$; with last, $(N, k + 2, C)$
    """
    if own is None:
        own = x.new_zeros(rowptr.numel() - 1, *x.shape[1:])
    return _values(x, rowptr, col, k, edge_weight, zeros, own, last)


def k_largest_grid_within(
    memory: Overwritten,
    x: Tensor,
    own: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
    last: Tensor | None = None,
) -> Tensor:
    """As `k_largest_grid` on a CPU, in memory that the next call overwrites.

    No gradients flow through it, and nothing can trace it.
    """
    if own is None:
        own = x.new_zeros(rowptr.numel() - 1, *x.shape[1:])
    bits = _position_bits(rowptr, col)
    _check(x, rowptr, col, k, edge_weight, bits, own, last)
    check_range(rowptr, col, x.size(0))
    compete = zeros == "compete"
    grid, _ = cpu.k_largest(x, rowptr, col, k, edge_weight, compete, bits, own, last, memory)
    return grid


def k_largest_grid_from(
    x: Tensor,
    own: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
    last: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """As `k_largest_grid`, with the index of `k_largest`: the row of `x` behind each value."""
    if plain.exports_to_onnx():
        raise ValueError("ONNX has no operator for the index of a selection: use its values alone")
    if own is None:
        own = x.new_zeros(rowptr.numel() - 1, *x.shape[1:])
    grid, position = _select(x, rowptr, col, k, edge_weight, zeros, own=own, last=last)
    return grid, _neighbor_at(position, rowptr, col)


def k_largest_grid_values(
    x: Tensor,
    own: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
    with_sum: bool = False,
    divisor: Tensor | None = None,
) -> Tensor:
    """As `k_largest_grid`, where nothing learns: no gradients flow through it.

    Args:
        x, own, rowptr, col, k, edge_weight, zeros: As in `k_largest_grid`.
        with_sum: Whether the sum over each row follows the values; a GPU reads x once for both.
        divisor: What the sum is divided by, [N, 1]. (default: nothing)
    """
    if own is None:
        own = x.new_zeros(rowptr.numel() - 1, *x.shape[1:])
    _check_options(k, zeros)
    with torch.no_grad():
        values: Tensor = _select_values(
            x, rowptr, col, int(k), edge_weight, zeros == "compete", own, None, with_sum, divisor
        )
    return values


def k_largest_grid_chosen(
    x: Tensor,
    own: Tensor | None,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    *,
    edge_weight: Tensor | None = None,
    zeros: Zeros = "pad",
    with_sum: bool = False,
    divisor: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """As `k_largest_grid_values`, with the positions in the rows behind each value.

    Positions are what `add_grad_x` and `grad_weight` take, for callers that keep no autograd graph.
    """
    if own is None:
        own = x.new_zeros(rowptr.numel() - 1, *x.shape[1:])
    if not with_sum:
        return _select(x, rowptr, col, k, edge_weight, zeros, own=own)
    bits = _position_bits(rowptr, col)
    _check(x, rowptr, col, k, edge_weight, bits, own, None)
    check_range(rowptr, col, x.size(0))
    _check_divisor(divisor, rowptr, x)
    with torch.no_grad():
        values, chosen = backend(x).k_largest_and_sum(
            x, rowptr, col, k, edge_weight, zeros == "compete", bits, own, divisor
        )
    return values, chosen


def add_grad_x(
    total: Tensor,
    columns: Tensor | None,
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None = None,
    every: Tensor | None = None,
) -> None:
    """Adds the gradient of `x` in `k_largest_grid_chosen` to `total`. No gradients flow through it.

    Args:
        total: Gradients of all sources, [M, C]; at least in float32, as sums over many calls are.
        columns: The row of `total` that each column adds to; rows do not occur twice.
            (default: the column's number)
        grad: The gradient of the grid.
        chosen: The positions.
        rowptr: Row offsets.
        col: Columns.
        edge_weight: As in the selection. (default: none)
        every: A gradient [N, C] of each of a row's products, selected or not. (default: none)
    """
    _check_grad(grad, chosen, "chosen", rowptr, col)
    check_range(rowptr, col, total.size(0) if columns is None else columns.numel())
    for name, other in (("edge_weight", edge_weight), ("every", every)):
        if other is not None:
            shape = col.shape if name == "edge_weight" else (grad.size(0), grad.size(2))
            check_shape(name, other, tuple(shape), "grad", grad)
    backend(grad).add_grad_x(total, columns, grad, chosen, rowptr, col, edge_weight, every)


def grad_weight(grad: Tensor, chosen: Tensor, x: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    """The gradient of `edge_weight` in `k_largest_grid_chosen`."""
    found: Tensor = _grad_weight(grad, chosen, x, rowptr, col)
    return found


def _values(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    zeros: str,
    own: Tensor | None = None,
    last: Tensor | None = None,
) -> Tensor:
    if plain.exports_to_onnx():  # which has no operators of ours
        return plain.k_largest(x, rowptr, col, k, edge_weight, zeros == "compete", own, last)
    if x.is_cuda and not _learns(x, edge_weight, own, last):  # half the work there
        _check_options(k, zeros)
        values: Tensor = _select_values(
            x, rowptr, col, int(k), edge_weight, zeros == "compete", own, last, False, None
        )
        return values
    return _select(x, rowptr, col, k, edge_weight, zeros, own=own, last=last)[0]


def _learns(*tensors: Tensor | None) -> bool:
    """Whether a gradient may be asked for."""
    if torch._C._are_functorch_transforms_active():
        return True
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _check_options(k: int, zeros: str) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise ValueError(f"k must be an integer of at least 1, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if zeros not in ("pad", "compete"):
        raise ValueError(f"zeros must be 'pad' or 'compete', got {zeros!r}")


def _select(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    zeros: str,
    *,
    node_ids: bool = False,
    own: Tensor | None = None,
    last: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    _check_options(k, zeros)
    check_layout(rowptr, col)
    position_bits = 0 if node_ids else _position_bits(rowptr, col)
    values, chosen = _k_largest(
        x, rowptr, col, int(k), edge_weight, zeros == "compete", position_bits, own, last
    )
    return values, chosen


def _position_bits(rowptr: Tensor, col: Tensor) -> int:
    """Bits of the smallest integer that holds every position in a row."""
    if torch.compiler.is_compiling() or rowptr.is_meta:  # the contents of tensors are not known
        return 32
    largest = max_degree(rowptr, col) - 1
    if largest > MAX_INT32:
        raise ValueError(
            f"a row must have at most {MAX_INT32 + 1} entries to select from, got {largest + 1}"
        )
    return 8 if largest < 1 << 7 else 16 if largest < 1 << 15 else 32


def _check(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    position_bits: int,
    own: Tensor | None,
    last: Tensor | None,
) -> None:
    """Checks all that can be seen without the contents of tensors."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if position_bits not in (0, *reference.POSITION_DTYPES):
        raise ValueError(f"position_bits must be 0, 8, 16 or 32, got {position_bits}")
    if x.dim() != 2:
        raise ValueError(f"x must have shape [nodes, features], got {tuple(x.shape)}")
    if x.dtype not in FLOAT_DTYPES:
        raise ValueError(f"x must be float32, float64, bfloat16 or float16, got {x.dtype}")
    check_layout(rowptr, col)
    if x.device != col.device:
        raise ValueError(
            f"x and col must be on one device, got x on {x.device}, col on {col.device}"
        )
    if edge_weight is not None:
        if edge_weight.shape != col.shape:
            raise ValueError(
                f"edge_weight must have one entry per entry of col ({col.numel()}), "
                f"got shape {tuple(edge_weight.shape)}"
            )
        if edge_weight.dtype != x.dtype:
            raise ValueError(
                f"edge_weight must have the dtype of x ({x.dtype}), got {edge_weight.dtype}"
            )
        if edge_weight.device != x.device:
            raise ValueError(
                f"edge_weight must be on the device of x ({x.device}), got {edge_weight.device}"
            )
    if position_bits == 0 and edge_weight is not None:
        raise ValueError("position_bits must not be 0 with edge_weight, whose place is needed")
    for name, other in (("own", own), ("last", last)):
        if other is not None:
            check_shape(name, other, (rowptr.size(0) - 1, x.size(1)), "x", x)


# What was chosen is kept for the backward as a position in the row, which mostly fits in one byte
# and, with parallel edges, tells which weight the gradient belongs to. If there are no weights
# and the node ids are wanted anyway, they serve as well, and no second array is made.
@torch.library.custom_op("lgcn::k_largest", mutates_args=())
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
) -> tuple[Tensor, Tensor]:
    _check(x, rowptr, col, k, edge_weight, position_bits, own, last)
    check_range(rowptr, col, x.size(0))
    if position_bits > 0 and max_degree(rowptr, col) > 1 << (position_bits - 1):
        raise ValueError(
            f"position_bits must hold positions in a row of {max_degree(rowptr, col)} entries, "
            f"got {position_bits}"
        )
    values, chosen = backend(x).k_largest(
        x, rowptr, col, k, edge_weight, compete, position_bits, own, last
    )
    return values, chosen


@_k_largest.register_fake
def _(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int,
    own: Tensor | None,
    last: Tensor | None,
) -> tuple[Tensor, Tensor]:
    _check(x, rowptr, col, k, edge_weight, position_bits, own, last)
    num_rows, channels = rowptr.size(0) - 1, x.size(1)
    chosen = col.new_empty(
        (num_rows, k, channels), dtype=reference.POSITION_DTYPES.get(position_bits, col.dtype)
    )
    positions = k + sum(other is not None for other in (own, last))
    return x.new_empty(num_rows, positions, channels), chosen


def _check_divisor(divisor: Tensor | None, rowptr: Tensor, x: Tensor) -> None:
    if divisor is not None:
        check_shape("divisor", divisor, (rowptr.size(0) - 1, 1), "x", x)


# The same without what was chosen, where no gradient needs it.
@torch.library.custom_op("lgcn::k_largest_values", mutates_args=())
def _select_values(
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
) -> Tensor:
    _check(x, rowptr, col, k, edge_weight, 32, own, last)
    _check_divisor(divisor, rowptr, x)
    if with_sum and (own is None or last is not None):
        raise ValueError("with_sum needs own features, and takes the place of last")
    check_range(rowptr, col, x.size(0))
    values: Tensor = backend(x).k_largest_values(
        x, rowptr, col, k, edge_weight, compete, own, last, with_sum, divisor
    )
    return values


@_select_values.register_fake
def _(
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
) -> Tensor:
    _check(x, rowptr, col, k, edge_weight, 32, own, last)
    positions = k + with_sum + sum(other is not None for other in (own, last))
    return x.new_empty(rowptr.size(0) - 1, positions, x.size(1))


def _check_chosen(name: str, chosen: Tensor, rowptr: Tensor, col: Tensor) -> None:
    """What was chosen; that it is in the row is left to the kernels, which skip what is not."""
    check_layout(rowptr, col)
    structure(rowptr, col)
    if chosen.dtype not in (torch.int8, torch.int16, *INDEX_DTYPES):
        raise ValueError(f"{name} must be int8, int16, int32 or int64, got {chosen.dtype}")
    if chosen.dim() != 3 or chosen.size(0) != rowptr.numel() - 1:
        raise ValueError(
            f"{name} must have shape [rows, k, features] with {rowptr.numel() - 1} rows, "
            f"got {tuple(chosen.shape)}"
        )
    if chosen.device != col.device:
        raise ValueError(f"{name} must be on the device {col.device}, got {chosen.device}")


def _check_grad(grad: Tensor, chosen: Tensor, name: str, rowptr: Tensor, col: Tensor) -> None:
    _check_chosen(name, chosen, rowptr, col)
    if grad.dtype not in FLOAT_DTYPES:
        raise ValueError(f"grad must be float32, float64, bfloat16 or float16, got {grad.dtype}")
    rows, k, channels = chosen.shape
    if grad.dim() != 3 or grad.shape not in [(rows, k + more, channels) for more in range(3)]:
        raise ValueError(
            f"grad must have shape {(rows, k, channels)}, or one or two more along k, "
            f"got {tuple(grad.shape)}"
        )
    if grad.device != col.device:
        raise ValueError(f"grad must be on the device {col.device}, got {grad.device}")


@torch.library.custom_op("lgcn::neighbor_at", mutates_args=())
def _neighbor_at(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    _check_chosen("position", position, rowptr, col)
    index: Tensor = backend(position).neighbor_at(position, rowptr, col)
    return index


@_neighbor_at.register_fake
def _(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    return torch.empty_like(position, dtype=col.dtype)


@torch.library.custom_op("lgcn::k_largest_grad_x", mutates_args=())
def _grad_x(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool,
) -> Tensor:
    _check_grad(grad, chosen, "chosen", rowptr, col)
    check_range(rowptr, col, num_sources)
    if edge_weight is not None:
        check_shape("edge_weight", edge_weight, tuple(col.shape), "grad", grad)
    grad_x: Tensor = backend(grad).k_largest_grad_x(
        grad, chosen, rowptr, col, edge_weight, num_sources, node_ids
    )
    return grad_x


@_grad_x.register_fake
def _(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool,
) -> Tensor:
    return grad.new_empty(num_sources, grad.size(2))


@torch.library.custom_op("lgcn::k_largest_grad_weight", mutates_args=())
def _grad_weight(grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    _check_grad(grad, position, "position", rowptr, col)
    check_shape("x", x, (*x.shape[:1], grad.size(2)), "grad", grad)
    check_range(rowptr, col, x.size(0))
    grad_weight: Tensor = backend(grad).k_largest_grad_weight(grad, position, x, rowptr, col)
    return grad_weight


@_grad_weight.register_fake
def _(grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    return grad.new_empty(col.size(0))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, rowptr, col, _, edge_weight, _, position_bits, _, _ = inputs
    chosen = output[1]
    ctx.mark_non_differentiable(chosen)
    ctx.set_materialize_grads(False)  # else autograd makes zeros of the size of chosen
    ctx.num_sources = x.size(0)
    ctx.node_ids = position_bits == 0
    learns_weight = edge_weight is not None and edge_weight.requires_grad
    ctx.save_for_backward(chosen, rowptr, col, edge_weight, x if learns_weight else None)


def _backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 9
    chosen, rowptr, col, edge_weight, x = ctx.saved_tensors
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        grad_x = _grad_x(grad, chosen, rowptr, col, edge_weight, ctx.num_sources, ctx.node_ids)
    if ctx.needs_input_grad[4]:
        grad_weight = _grad_weight(grad, chosen, x, rowptr, col)
    grad_own = grad[:, 0] if ctx.needs_input_grad[7] else None
    grad_last = grad[:, -1] if ctx.needs_input_grad[8] else None
    return grad_x, None, None, None, grad_weight, None, None, grad_own, grad_last


_k_largest.register_autograd(_backward, setup_context=_setup_context)


# Both gradients are linear in each of their factors. With what was chosen given, theirs are the
# same two sums and one gather.


def _gather(
    x: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor | None,
    node_ids: bool,
    like: Tensor,
) -> Tensor:
    """The products that were chosen, in the slots of `like`; zeros in the other slots."""
    if col.numel() == 0 or x.size(1) == 0:
        return torch.zeros_like(like)
    place = chosen.long().clamp(min=0)
    node, factor = place, None
    if not node_ids:
        # An empty last row starts at E; nothing is chosen there, so any entry will do.
        entry = (rowptr.long()[:-1, None, None] + place).clamp(max=col.numel() - 1)
        node = col.long()[entry]
        factor = None if weight is None else weight[entry]
    values = x[node, torch.arange(x.size(1), device=x.device)]
    values = torch.where(chosen < 0, 0, values if factor is None else values * factor)
    before = reference.first_slot(like, chosen)
    after = like.size(1) - chosen.size(1) - before
    return torch.nn.functional.pad(values, (0, 0, before, after))


def _setup_grad_x(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad, chosen, rowptr, col, edge_weight, _, ctx.node_ids = inputs
    ctx.save_for_backward(grad, chosen, rowptr, col, edge_weight)


def _backward_grad_x(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
    grad, chosen, rowptr, col, edge_weight = ctx.saved_tensors
    of_grad = of_weight = None
    if ctx.needs_input_grad[0]:
        of_grad = _gather(outer, chosen, rowptr, col, edge_weight, ctx.node_ids, grad)
    if ctx.needs_input_grad[4]:
        of_weight = _grad_weight(grad, chosen, outer, rowptr, col)
    return of_grad, None, None, None, of_weight, None, None


def _setup_grad_weight(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_grad_weight(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
    grad, position, x, rowptr, col = ctx.saved_tensors
    of_grad = of_x = None
    if ctx.needs_input_grad[0]:
        of_grad = _gather(x, position, rowptr, col, outer, False, grad)
    if ctx.needs_input_grad[2]:
        of_x = _grad_x(grad, position, rowptr, col, outer, x.size(0), False)
    return of_grad, None, of_x, None, None


_grad_x.register_autograd(_backward_grad_x, setup_context=_setup_grad_x)
_grad_weight.register_autograd(_backward_grad_weight, setup_context=_setup_grad_weight)
