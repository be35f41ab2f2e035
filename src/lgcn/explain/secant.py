"""The chain rule for differences, by which contributions add up exactly.

Tensors here have a leading dimension of *worlds*. World 0 is what is; the others are what it is
compared with, such as the same nodes without features. The backward pass sends differences instead
of derivatives: what reaches an input, times the difference of that input between world 0 and
another world, sums to the difference of the output. It holds exactly, however large the
differences are, because each step does it: linear maps as they are, a function of one variable by
its secant, a product by the mean of the other factor. For activations this is the rescale rule of
["Learning Important Features Through Propagating Activation
Differences"](https://arxiv.org/abs/1704.02685).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Function = Callable[[Tensor], Tensor]


class _Secant(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, function: Function, smooth: bool) -> Tensor:
        out = function(z)
        ctx.save_for_backward(z, out)
        ctx.function, ctx.smooth = function, smooth
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        z, out = ctx.saved_tensors
        change, rise = z - z[:1], out - out[:1]
        # Rounding makes the quotient of two small differences useless; the tangent is exact there.
        limit = torch.finfo(z.dtype).eps ** (1 / 3) * (1 + z[:1].abs()) if ctx.smooth else 0
        near = change.abs() <= limit
        slope = rise / torch.where(near, 1, change)
        if bool(near.any()):
            with torch.enable_grad():
                middle = (z + z[:1]).div_(2).requires_grad_()
                (tangent,) = torch.autograd.grad(ctx.function(middle).sum(), middle)
            slope = torch.where(near, tangent, slope)
        return grad * slope, None, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        left, right = ctx.saved_tensors
        of_left = of_right = None
        if ctx.needs_input_grad[0]:
            of_left = (grad * (right + right[:1])).sum_to_size(left.shape) / 2
        if ctx.needs_input_grad[1]:
            of_right = (grad * (left + left[:1])).sum_to_size(right.shape) / 2
        return of_left, of_right


def secant(function: Function, z: Tensor) -> Tensor:
    """A function of each value, whose gradient is its secant from world 0.

    Args:
        function: Maps a tensor to one of the same shape, each value on its own.
        z: [worlds, ...]
    """
    smooth = function not in (F.relu, leaky_relu)
    out: Tensor = _Secant.apply(z, function, smooth)  # type: ignore[no-untyped-call]
    return out


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two tensors [worlds, ...], whose gradients are means of two worlds."""
    out: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return out


def leaky_relu(z: Tensor) -> Tensor:
    """The function that attention uses."""
    return F.leaky_relu(z, 0.2)


def layer_norm(z: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """`torch.nn.functional.layer_norm` over the last dimension."""
    centred = z - z.mean(-1, keepdim=True)
    variance = product(centred, centred).mean(-1, keepdim=True)
    return product(centred, secant(lambda v: (v + eps).rsqrt(), variance)) * weight + bias


def log_softmax(z: Tensor) -> Tensor:
    """`torch.log_softmax` over the last dimension."""
    z = z - z.mean(-1, keepdim=True)  # worlds differ less then, and exp stays in range
    shift = z.detach().amax((0, -1), keepdim=True)  # the same in all worlds
    total = secant(torch.exp, z - shift).sum(-1, keepdim=True)
    return z - shift - secant(torch.log, total)


def softmax(z: Tensor) -> Tensor:
    """`torch.softmax` over the last dimension."""
    return secant(torch.exp, log_softmax(z))
