"""The sum over several propagation steps, as one operation on the CPU.

A chain of `lgcn.ops.spmm` and sums gives the same, bit for bit. There, each step has memory of its
own, which takes longer than the arithmetic where features are many.
"""

from typing import Any

import torch
from torch import Tensor

from lgcn.ops.cpu import launch
from lgcn.ops.spmm import check_factors


def can_diffuse(value: Tensor, x: Tensor) -> bool:
    """Whether `diffuse` computes this: on the CPU, if only x has a gradient and nothing traces."""
    if not x.is_cpu or x.dtype not in (torch.float32, torch.float64) or value.requires_grad:
        return False
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return not torch.is_autocast_enabled("cpu")


def diffuse(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, hops: int) -> Tensor:
    r"""Returns $X + A X + A^2 X + \dots + A^K X$, computed as x + A (x + A (x + ...)).

    Args:
        rowptr, col, value: A square sparse matrix in CSR form.
        x: The matrix, [N, C].
        hops: The number of steps K.
    """
    check_factors(rowptr, col, value, x)
    out: Tensor = _Diffuse.apply(x, rowptr, col, value, hops)  # type: ignore[no-untyped-call]
    return out


class _Diffuse(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, hops: int
    ) -> Tensor:
        ctx.save_for_backward(rowptr, col, value)
        ctx.hops = hops
        return launch.diffuse(rowptr, col, value, x, hops)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        found = _Gradient.apply(grad, *ctx.saved_tensors, ctx.hops)  # type: ignore[no-untyped-call]
        return found, None, None, None, None


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, hops: int
    ) -> Tensor:
        ctx.save_for_backward(rowptr, col, value)
        ctx.hops = hops
        return launch.diffuse_grad(rowptr, col, value, grad, hops)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        found = _Diffuse.apply(outer, *ctx.saved_tensors, ctx.hops)  # type: ignore[no-untyped-call]
        return found, None, None, None, None
