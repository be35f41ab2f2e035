"""Node features as the baselines take them: sparse ones stay sparse where a layer allows it."""

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense import Linear

from lgcn.ops import spmm
from lgcn.ops.dropout import dropout
from lgcn.ops.structure import csr_parts, with_values


def drop(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout of dense features, or of the values of sparse ones: zeros stay zeros."""
    if x.layout != torch.sparse_csr:
        return dropout(x, p, training)
    return with_values(x, dropout(csr_parts(x)[2], p, training))


def scale(x: Tensor, factor: float) -> Tensor:
    """Dense or sparse features times a number."""
    if factor == 1:
        return x
    if x.layout != torch.sparse_csr:
        return factor * x
    return with_values(x, factor * csr_parts(x)[2])


def dense(x: Tensor) -> Tensor:
    return x.to_dense() if x.layout == torch.sparse_csr else x


def glorot_linear(in_channels: int, out_channels: int, bias: bool = True) -> Linear:
    """A linear map with the initialisation that the papers have."""
    return Linear(
        in_channels, out_channels, bias, weight_initializer="glorot", bias_initializer="zeros"
    )


def apply_linear(linear: Linear, x: Tensor) -> Tensor:
    """A linear map of dense features, or of sparse ones at the cost of their non-zeros."""
    if x.layout != torch.sparse_csr:
        out: Tensor = linear(x)
        return out
    out = spmm(*csr_parts(x), linear.weight.t().contiguous())
    return out if linear.bias is None else out + linear.bias


class SparseLinear(Module):
    """A PyG layer's linear map, for sparse features too."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.linear = linear

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return apply_linear(self.linear, x)
