"""Sparse times dense for CSR, as a differentiable torch operator.

`torch.sparse` has the forward pass, but its backward pass converts the matrix on every call, at
many times the cost of the forward pass, and cannot be compiled.
"""

from typing import Any

import torch
from torch import Tensor

from lgcn.ops import plain
from lgcn.ops.backend import backend
from lgcn.ops.structure import FLOAT_DTYPES, check_layout, check_range, check_shape


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """Multiplies a sparse matrix in CSR form with a dense one; differentiable in both.

    Shapes:
        - **input:** rowptr $(N + 1)$, col $(E)$, value $(E)$,
          dense $(M, C)$
        - **output:** $(N, C)$
    """
    if plain.exports_to_onnx():
        return plain.spmm(rowptr, col, value, dense)
    out: Tensor = _spmm(rowptr, col, value, dense)
    return out


def _check(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> None:
    check_layout(rowptr, col)
    if dense.dim() != 2:
        raise ValueError(f"dense must have two dimensions, got shape {tuple(dense.shape)}")
    if dense.dtype not in FLOAT_DTYPES:
        raise ValueError(f"dense must be float32, float64, bfloat16 or float16, got {dense.dtype}")
    if value.shape != col.shape:
        raise ValueError(
            f"value must have one entry per entry of col ({col.numel()}), "
            f"got shape {tuple(value.shape)}"
        )
    if value.dtype != dense.dtype:
        raise ValueError(f"value must have the dtype of dense ({dense.dtype}), got {value.dtype}")
    if not (dense.device == value.device == col.device):
        raise ValueError(
            f"all tensors must be on one device, got dense on {dense.device}, "
            f"value on {value.device}, col on {col.device}"
        )


def check_factors(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> None:
    """Raises ValueError if these cannot be multiplied; kernels rely on it."""
    _check(rowptr, col, value, dense)
    check_range(rowptr, col, dense.size(0))


@torch.library.custom_op("lgcn::spmm", mutates_args=())
def _spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    check_factors(rowptr, col, value, dense)
    out: Tensor = backend(dense).spmm(rowptr, col, value, dense)
    return out


@_spmm.register_fake
def _(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    _check(rowptr, col, value, dense)
    return dense.new_empty(rowptr.size(0) - 1, dense.size(1))


@torch.library.custom_op("lgcn::spmm_grad_value", mutates_args=())
def _grad_value(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    check_layout(rowptr, col)
    check_range(rowptr, col, dense.size(0))
    if dense.dim() != 2 or dense.dtype not in FLOAT_DTYPES:
        raise ValueError(f"dense must be a float matrix, got {dense.dtype} {tuple(dense.shape)}")
    check_shape("grad", grad, (rowptr.numel() - 1, *dense.shape[1:]), "dense", dense)
    grad_value: Tensor = backend(grad).spmm_grad_value(grad, rowptr, col, dense)
    return grad_value


@_grad_value.register_fake
def _(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    return grad.new_empty(col.size(0))


@torch.library.custom_op("lgcn::spmm_grad_dense", mutates_args=())
def _grad_dense(
    grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, num_sources: int
) -> Tensor:
    check_layout(rowptr, col)
    check_range(rowptr, col, num_sources)
    if grad.dim() != 2 or grad.dtype not in FLOAT_DTYPES:
        raise ValueError(f"grad must be a float matrix, got {grad.dtype} {tuple(grad.shape)}")
    check_shape("grad", grad, (rowptr.numel() - 1, grad.size(1)), "value", value)
    check_shape("value", value, tuple(col.shape), "grad", grad)
    grad_dense: Tensor = backend(grad).spmm_grad_dense(grad, rowptr, col, value, num_sources)
    return grad_dense


@_grad_dense.register_fake
def _(grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, num_sources: int) -> Tensor:
    return grad.new_empty(num_sources, grad.size(1))


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    rowptr, col, value, dense = inputs
    ctx.num_sources = dense.size(0)
    ctx.save_for_backward(rowptr, col, value, dense if value.requires_grad else None)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    rowptr, col, value, dense = ctx.saved_tensors
    grad_value = grad_dense = None
    if ctx.needs_input_grad[2]:
        grad_value = _grad_value(grad, rowptr, col, dense)
    if ctx.needs_input_grad[3]:
        grad_dense = _grad_dense(grad, rowptr, col, value, ctx.num_sources)
    return None, None, grad_value, grad_dense


_spmm.register_autograd(_backward, setup_context=_setup_context)


# The gradients are linear in each of their factors, so theirs are the same three products.


def _setup_value(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.num_sources = inputs[3].size(0)


def _backward_value(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
    grad, rowptr, col, dense = ctx.saved_tensors
    of_grad = of_dense = None
    if ctx.needs_input_grad[0]:
        of_grad = _spmm(rowptr, col, outer, dense)
    if ctx.needs_input_grad[3]:
        of_dense = _grad_dense(grad, rowptr, col, outer, ctx.num_sources)
    return of_grad, None, None, of_dense


def _setup_dense(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])


def _backward_dense(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
    grad, rowptr, col, value = ctx.saved_tensors
    of_grad = of_value = None
    if ctx.needs_input_grad[0]:
        of_grad = _spmm(rowptr, col, value, outer)
    if ctx.needs_input_grad[3]:
        of_value = _grad_value(grad, rowptr, col, outer)
    return of_grad, None, None, of_value, None


_grad_value.register_autograd(_backward_value, setup_context=_setup_value)
_grad_dense.register_autograd(_backward_dense, setup_context=_setup_dense)
