"""The k-largest node selection g(X, A, k) of the paper, as a differentiable torch operator."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lgcn.ops import reference
from lgcn.ops.backend import backend
from lgcn.ops.csr import FLOAT_DTYPES, check_layout, check_range, max_degree

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
    r"""Selects, for every node and each feature separately, the k largest values of its
    neighbours, from the `"Large-Scale Learnable Graph Convolutional Networks"
    <https://arxiv.org/abs/1808.03965>`_ paper.

    .. math::
        \mathrm{values}_{i, 1..k, c} =
        \mathrm{largest}_k \{ w_{ij} \, x_{jc} : j \in \mathcal{N}(i) \}

    in descending order, where :math:`\mathcal{N}(i)` is row :math:`i` of the CSR structure. Ties go
    to the earlier position in the row and NaN ranks above all numbers, so the result is
    deterministic. Time is :math:`O(E C k)` at worst and memory :math:`O(N k C)`.

    Args:
        x: Features of the source nodes (float32, float64, bfloat16 or float16).
        rowptr: Row i holds the entries ``rowptr[i]`` to ``rowptr[i + 1]`` of ``col``.
        col: Indices of the neighbours, rows of ``x`` (int32 or int64, as ``rowptr``).
        k: How many values to keep, at least 1.
        edge_weight: One factor an entry of ``col``, of the dtype of ``x``. (default: no factors)
        zeros: ``"pad"`` fills rows of fewer than k neighbours with zeros at the end, as the paper
            says; with ``"compete"`` zeros take part in the ranking, as in the released program, so
            that no negative value is ever selected. (default: ``"pad"``)

    Shapes:
        - **input:** x :math:`(M, C)`, rowptr :math:`(N + 1)`, col :math:`(E)`,
          edge_weight :math:`(E)`
        - **output:** values :math:`(N, k, C)`; index :math:`(N, k, C)`, the selected rows of ``x``,
          -1 where a zero was filled in

    The checks of ``rowptr`` and ``col`` that cost :math:`O(E)` run once per pair of tensors.
    """
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
    """The values of :func:`k_largest` alone, which spares making the index."""
    return _select(x, rowptr, col, k, edge_weight, zeros)[0]


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
    """The grid of an LGCL, made in one piece: own features, then the values of :func:`k_largest`.

    Shapes:
        - **input:** as :func:`k_largest`; own :math:`(N, C)`, ``None`` for zeros; last
          :math:`(N, C)`, what follows the values, ``None`` for nothing
        - **output:** :math:`(N, k + 1, C)`; with last, :math:`(N, k + 2, C)`
    """
    shape = (rowptr.numel() - 1, *x.shape[1:])
    if own is None:
        own = x.new_zeros(shape)
    for name, tensor in (("own", own), ("last", last)):
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(tensor.shape)}")
        if tensor.dtype != x.dtype:
            raise ValueError(f"{name} must have the dtype of x ({x.dtype}), got {tensor.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name} must be on the device of x ({x.device}), got {tensor.device}")
    return _select(x, rowptr, col, k, edge_weight, zeros, own=own, last=last)[0]


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
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise ValueError(f"k must be an integer of at least 1, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if zeros not in ("pad", "compete"):
        raise ValueError(f"zeros must be 'pad' or 'compete', got {zeros!r}")
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
    return 8 if largest < 1 << 7 else 16 if largest < 1 << 15 else 32


# What was chosen is kept for the backward as a position in the row, which mostly fits in one byte
# and, with parallel edges, tells which weight the gradient belongs to. Where there are no weights
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
    check_range(rowptr, col, x.size(0))
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
    num_rows, channels = rowptr.size(0) - 1, x.size(1)
    chosen = col.new_empty(
        (num_rows, k, channels), dtype=reference.POSITION_DTYPES.get(position_bits, col.dtype)
    )
    positions = k + sum(other is not None for other in (own, last))
    return x.new_empty(num_rows, positions, channels), chosen


@torch.library.custom_op("lgcn::neighbor_at", mutates_args=())
def _neighbor_at(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
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
