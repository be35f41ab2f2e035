"""Operations on dense or sparse node features. Sparse features stay sparse where possible."""

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense import Linear

from lgcn.ops import spmm
from lgcn.ops.dropout import dropout
from lgcn.ops.structure import csr_parts, with_values


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout of dense features, or of the non-zeros of sparse ones."""
    if x.layout != torch.sparse_csr:
        return dropout(x, p, training)
    return with_values(x, dropout(csr_parts(x)[2], p, training))


def scale(x: Tensor, factor: float) -> Tensor:
    """Features times a number."""
    if factor == 1:
        return x
    if x.layout != torch.sparse_csr:
        return factor * x
    return with_values(x, factor * csr_parts(x)[2])


def dense(x: Tensor) -> Tensor:
    """The features as a dense tensor."""
    return x.to_dense() if x.layout == torch.sparse_csr else x


def glorot_linear(in_channels: int, out_channels: int, bias: bool = True) -> Linear:
    """A linear map, initialised as in the papers."""
    return Linear(
        in_channels, out_channels, bias, weight_initializer="glorot", bias_initializer="zeros"
    )


def apply_linear(linear: Linear, x: Tensor) -> Tensor:
    """Applies a linear map. With sparse features, the cost depends on their non-zeros."""
    if x.layout != torch.sparse_csr:
        out: Tensor = linear(x)
        return out
    out = spmm(*csr_parts(x), linear.weight.t().contiguous())
    return out if linear.bias is None else out + linear.bias


class SparseLinear(Module):
    """The linear map of a PyG layer, which then takes sparse features as well."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.linear = linear

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return apply_linear(self.linear, x)
