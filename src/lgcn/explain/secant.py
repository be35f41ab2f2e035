"""The chain rule for differences, by which contributions add up exactly.

Tensors here have a leading dimension of *worlds*. World 0 is what is; each other world is compared
with one before it, its reference: the same nodes without features with world 0, for example. The
backward pass sends differences instead of derivatives: what reaches an input, times the difference
of that input between a world and its reference, sums to the difference of the output. It holds
exactly, however large the differences are, because each step does it: linear maps as they are, a
function of one variable by its secant, a product by the mean of the other factor. For activations
this is the rescale rule of ["Learning Important Features Through Propagating Activation
Differences"](https://arxiv.org/abs/1704.02685).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Function = Callable[[Tensor], Tensor]
# Functions of positive numbers that look alike at any scale: near zero they bend sharply.
POWERS = (torch.log, torch.rsqrt, torch.reciprocal)


class _Secant(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, reference: Tensor, function: Function, width: float | None
    ) -> Tensor:
        out = function(z)
        ctx.save_for_backward(z, out, reference)
        ctx.function, ctx.width = function, width
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        z, out, reference = ctx.saved_tensors
        before = z[reference]
        change, rise = z - before, out - out[reference]
        # Rounding makes the quotient of two small differences useless; the tangent is exact there.
        small = torch.finfo(z.dtype).eps ** (1 / 3)
        limit = 0 if ctx.width is None else small * (ctx.width + before.abs())
        near = change.abs() <= limit
        slope = rise / torch.where(near, 1, change)
        if bool(near.any()):
            with torch.enable_grad():
                middle = (z + before).div_(2).requires_grad_()
                (tangent,) = torch.autograd.grad(ctx.function(middle).sum(), middle)
            slope = torch.where(near, tangent, slope)
        return grad * slope, None, None, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, reference: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, reference)
        return left * right

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        left, right, reference = ctx.saved_tensors
        of_left = of_right = None
        if ctx.needs_input_grad[0]:
            of_left = (grad * (right + right[reference])).sum_to_size(left.shape) / 2
        if ctx.needs_input_grad[1]:
            of_right = (grad * (left + left[reference])).sum_to_size(right.shape) / 2
        return of_left, of_right, None


def leaky_relu(z: Tensor) -> Tensor:
    """The function that attention uses."""
    return F.leaky_relu(z, 0.2)


class Differences:
    """Functions of tensors [worlds, ...] whose gradients are differences.

    Args:
        reference: The world that each world is compared with, [worlds].
    """

    def __init__(self, reference: Tensor) -> None:
        self.reference = reference

    def secant(self, function: Function, z: Tensor) -> Tensor:
        """A function of each value, whose gradient is its secant.

        Args:
            function: Maps a tensor to one of the same shape, each value on its own.
            z: [worlds, ...]
        """
        # The width of what a tangent fits: none at a corner, in proportion to z for a power.
        width = 0.0 if function in POWERS else 1.0
        has_corner = function in (F.relu, leaky_relu)
        apply: Any = _Secant.apply
        out: Tensor = apply(z, self.reference, function, None if has_corner else width)
        return out

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """The product of two tensors, whose gradients are means of two worlds."""
        apply: Any = _Product.apply
        out: Tensor = apply(left, right, self.reference)
        return out

    def layer_norm(self, z: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        """`torch.nn.functional.layer_norm` over the last dimension."""
        centred = z - z.mean(-1, keepdim=True)
        variance = self.product(centred, centred).mean(-1, keepdim=True)
        inverse = self.secant(torch.rsqrt, variance + eps)
        return self.product(centred, inverse) * weight + bias

    def log_sum_exp(self, z: Tensor) -> Tensor:
        """`torch.logsumexp` over the last dimension, which stays."""
        mean = z.mean(-1, keepdim=True)  # without it worlds differ less, and exp stays in range
        z = z - mean
        shift = z.detach().amax((0, -1), keepdim=True)  # the same in all worlds
        total = self.secant(torch.exp, z - shift).sum(-1, keepdim=True)
        return self.secant(torch.log, total) + shift + mean

    def softmax(self, z: Tensor) -> Tensor:
        """`torch.softmax` over the last dimension."""
        return self.secant(torch.exp, z - self.log_sum_exp(z))


class Derivatives(Differences):
    """The same functions with ordinary gradients: no world is compared with another."""

    def __init__(self) -> None:
        super().__init__(torch.empty(0, dtype=torch.long))

    def secant(self, function: Function, z: Tensor) -> Tensor:
        return function(z)

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        return left * right


# Compared with itself, a world has ordinary gradients.
ONE_WORLD = Differences(torch.zeros(1, dtype=torch.long))
