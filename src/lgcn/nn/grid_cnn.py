"""The CNNs of an LGCL, for grids that are stored as [N, positions, channels].

The modules take and return [N, channels, positions], as torch's do, but as views of that storage.
Weights have the names and shapes of `torch.nn.Conv1d`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Conv1d, Dropout, Module, Parameter, Sequential
from torch.nn.parameter import UninitializedParameter, is_lazy

from lgcn.ops.dropout import dropout

# Entries of a convolution's matrix up to which one matrix product is faster than a convolution on
# the CPU: clearly so for the paper's widths (43 thousand); at twice the limit they are equal.
MAX_MATRIX = 2**18
# On a GPU (an H200), in float32: from this number of nodes, and up to this number of entries, the
# product is as fast as cuDNN's deterministic convolution, or many times faster if cuDNN has no good
# kernel for the width. In half precision the product is always faster for that many nodes.
MIN_NODES_GPU = 2**16
MAX_MATRIX_GPU = 40_000

KEEP_WIDTH = ("shared", "depthwise")  # CNNs that have as many output channels as input channels


class GridCNN(Sequential):
    """Convolutions over the positions of a grid.

    At inference, two convolutions with the identity between them are one linear map. They are
    folded into one on every call, which costs little compared with N rows, and cannot go stale as a
    stored one could. The inner modules are not called then.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training or not self._is_linear():
            out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return out
        return grid_convolution(x, *self.folded())

    def prepared(self) -> Callable[[Tensor], Tensor]:
        """This function of a grid, for many grids in turn without gradients.

        What depends on the weights alone is computed here, once.
        """
        drops = self.training and any(isinstance(m, Dropout) and m.p > 0 for m in self)
        if drops or not self._is_linear():
            return self
        weight, bias = self.folded()
        return partial(_product, matrix=convolution_matrix(weight, weight.size(2)), bias=bias)

    def folded(self) -> tuple[Tensor, Tensor]:
        """Weight [D, C, k + 1] and bias of one convolution that equals all of them in sequence."""
        convolutions = [module for module in self if isinstance(module, GridConv)]
        weight, bias = convolutions[0].weight, convolutions[0].bias
        assert bias is not None
        for convolution in convolutions[1:]:
            # The kernel of two convolutions is their kernels convolved, as "transposed" does.
            weight = F.conv_transpose1d(convolution.weight, weight)
            bias = convolution.weight.sum(2) @ bias
            if convolution.bias is not None:
                bias = bias + convolution.bias
        return weight, bias

    def _is_linear(self) -> bool:
        return all(
            isinstance(module, (GridConv, GridDropout))
            or (isinstance(module, Activation) and module.function is None)
            for module in self
        )


def make_cnn(
    name: str,
    in_channels: int,
    out_channels: int,
    positions: int,
    dropout: float,
    activation: Callable[[Tensor], Tensor] | None,
    last: bool = False,
) -> Module:
    """The CNN of that name: `"double"`, `"single"`, `"shared"` or `"depthwise"`.

    Args:
        name, in_channels, out_channels, dropout, activation: See `lgcn.LGConv`.
        positions: Positions of the grid.
        last: Whether the last position is the mean or the sum over all neighbours.
            (default: `False`)
    """
    if name == "double":
        return double_cnn(in_channels, out_channels, positions, dropout, activation)
    if name == "single":
        return single_cnn(in_channels, out_channels, positions)
    if name not in KEEP_WIDTH:
        raise ValueError(
            "cnn must be 'double', 'single', 'shared', 'depthwise' or a module, got " + repr(name)
        )
    if out_channels != in_channels:
        raise ValueError(
            f"out_channels must equal in_channels ({in_channels}) with cnn={name!r}, "
            f"got {out_channels}"
        )
    if name == "shared":
        return SharedKernel(positions)
    return DepthwiseKernel(positions, in_channels, last)


def draw_weights(cnn: Module) -> None:
    """Draws the weights of convolutions by Glorot initialisation."""
    for module in cnn.modules():
        if isinstance(module, Conv1d):
            torch.nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)


def single_cnn(in_channels: int, out_channels: int, positions: int) -> GridCNN:
    """One convolution over all positions."""
    return GridCNN(GridConv(in_channels, out_channels, positions))


def double_cnn(
    in_channels: int,
    out_channels: int,
    positions: int,
    dropout: float,
    activation: Callable[[Tensor], Tensor] | None,
) -> GridCNN:
    """Two convolutions that reduce all positions, two or more, to one.

    For even k both kernels have k / 2 + 1 positions, as in the paper. The second has no bias, as in
    the released program: with the identity between them, it would add nothing.
    """
    hidden = max(1, (in_channels + out_channels) // 2)
    return GridCNN(
        GridConv(in_channels, hidden, positions // 2 + 1),
        Activation(activation),
        GridDropout(dropout),
        GridConv(hidden, out_channels, (positions + 1) // 2, bias=False),
    )


def leave_open(cnn: Module) -> None:
    """Lets the parameters of convolutions wait for the number of input channels."""
    for module in cnn.modules():
        if isinstance(module, GridConv):
            module.in_channels = -1
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    setattr(module, name, UninitializedParameter())


def close(cnn: Module, made: Module) -> None:
    """Gives parameters that wait the sizes and values of those in a CNN of the same form."""
    for module, other in zip(cnn.modules(), made.modules(), strict=True):
        if isinstance(module, GridConv) and isinstance(other, GridConv):
            module.in_channels, module.out_channels = other.in_channels, other.out_channels
            for name, new in other.named_parameters():
                waiting: Any = getattr(module, name)
                if is_lazy(waiting):
                    waiting.materialize(new.shape)
                    with torch.no_grad():
                        waiting.copy_(new)


class SharedKernel(Module):
    """One kernel over all positions, shared by all channels, without mixing channels.

    The weight of position p is 1 + w[p]. It starts as the sum over the positions, and L2
    regularisation of w keeps it close to that. With the normalised ranking, the sum is a
    propagation step over the node's k largest neighbours.
    """

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.empty(positions))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        kernel = (1 + self.weight).to(x.dtype)
        if not x.is_cpu:
            return x @ kernel
        # One product per node reads the grid as it is stored. A single product would copy the grid
        # to another order, and its gradient back, which takes longer than the products.
        return torch.bmm(kernel.expand(x.size(0), 1, -1), x.transpose(1, 2)).squeeze(1)

    def extra_repr(self) -> str:
        return f"positions={self.weight.numel()}"


class DepthwiseKernel(Module):
    """One kernel over all positions for each channel, without mixing channels.

    The weight of position p and channel c is start[p] + w[p, c]. L2 regularisation of w, which is
    zero at first, keeps the kernel close to its start: the last position alone, if that is the mean
    or the sum over all neighbours, else the average of all positions.

    Args:
        positions: Positions of the grid.
        channels: Channels of the grid.
        last: Whether to start as the last position alone.
    """

    def __init__(self, positions: int, channels: int, last: bool) -> None:
        super().__init__()
        self.last = last
        self.weight = Parameter(torch.empty(positions, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        # In the order of the grid's memory. Autocast would return float32.
        return (x.transpose(1, 2) * self.kernel().to(x.dtype)).sum(1).to(x.dtype)

    def kernel(self) -> Tensor:
        """The weights of all positions and channels."""
        if self.last:
            return torch.cat([self.weight[:-1], self.weight[-1:] + 1])
        return self.weight + 1 / self.weight.size(0)

    def extra_repr(self) -> str:
        positions, channels = self.weight.shape
        return f"{channels}, positions={positions}"


class GridConv(Conv1d):
    """A convolution with stride one and no padding."""

    def forward(self, x: Tensor) -> Tensor:
        return grid_convolution(x, self.weight, self.bias)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """As torch's lazy modules do it: parameters that wait for their size are stored as such."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                as_it_is = keep_vars or is_lazy(parameter)
                destination[prefix + name] = parameter if as_it_is else parameter.detach()


class GridDropout(Dropout):
    """Dropout that keeps the grid's memory layout."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x.transpose(1, 2), self.p, self.training).transpose(1, 2)


class Activation(Module):
    """A function as a module; `None` is the identity."""

    def __init__(self, function: Callable[[Tensor], Tensor] | None) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return x if self.function is None else self.function(x)

    def extra_repr(self) -> str:
        return "identity" if self.function is None else self.function.__name__


def grid_convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.conv1d` in the form that is fastest for a grid.

    It is a matrix product, or a two-dimensional convolution: only for these does torch use the
    grid's memory layout as it is.
    """
    num_nodes, in_channels, positions = x.shape
    out_channels, _, taps = weight.shape
    steps = positions - taps + 1
    if not _as_product(x, weight, steps):
        return F.conv2d(x.unsqueeze(2), weight.unsqueeze(2), bias).squeeze(2)
    matrix = convolution_matrix(weight, positions)
    flat = x.transpose(1, 2).reshape(num_nodes, positions * in_channels)
    out = flat @ matrix if bias is None else torch.addmm(bias.repeat(steps), flat, matrix)
    return out.view(num_nodes, steps, out_channels).transpose(1, 2)


def _product(x: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
    """The convolution over all positions, given its `convolution_matrix`."""
    flat = x.transpose(1, 2).reshape(x.size(0), -1)
    return torch.addmm(bias, flat, matrix).unsqueeze(2)


def _as_product(x: Tensor, weight: Tensor, steps: int) -> bool:
    if steps == 1:  # the matrix is the weight; with more steps, about half of it is zeros
        return True
    num_nodes, _, positions = x.shape
    entries = positions * steps * weight.size(0) * weight.size(1)
    if x.is_cpu:
        return entries <= MAX_MATRIX
    if torch.compiler.is_exporting():  # for any number of nodes
        return False
    # In float32, torch lets convolutions use TensorFloat-32, but not products: large ones lose.
    largest = MAX_MATRIX_GPU if x.dtype == torch.float32 else x.numel()
    return num_nodes >= MIN_NODES_GPU and entries <= largest


class _ConvolutionMatrix(torch.autograd.Function):
    """Copies the weight to the place of each step; autograd would need far more operations."""

    @staticmethod
    def forward(weight: Tensor, positions: int) -> Tensor:
        out_channels, in_channels, taps = weight.shape
        steps = positions - taps + 1
        matrix = weight.new_zeros(positions, in_channels, steps, out_channels)
        for step in range(steps):
            matrix[step : step + taps, :, step] = weight.permute(2, 1, 0)
        return matrix.view(positions * in_channels, steps * out_channels)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        weight, ctx.positions = inputs
        ctx.shape = weight.shape

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        out_channels, in_channels, taps = ctx.shape
        steps = ctx.positions - taps + 1
        blocks = grad.reshape(ctx.positions, in_channels, steps, out_channels)
        parts = [blocks[step : step + taps, :, step] for step in range(steps)]
        return torch.stack(parts).sum(0).permute(2, 1, 0), None


def convolution_matrix(weight: Tensor, positions: int) -> Tensor:
    """The matrix [positions C, steps D] by which the convolution multiplies flattened grids.

    Block (p, s) is the weight's tap p - s, or zero if there is no such tap.
    """
    if weight.size(2) == positions:
        return weight.permute(2, 1, 0).reshape(-1, weight.size(0))
    if not weight.requires_grad:  # autograd's call takes longer than the copy
        return _ConvolutionMatrix.forward(weight, positions)
    matrix: Tensor = _ConvolutionMatrix.apply(weight, positions)  # type: ignore[no-untyped-call]
    return matrix
