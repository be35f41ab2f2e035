"""An embedding of features that are propagated first, with nodes dropped."""

from collections.abc import Callable

import torch
from torch import Tensor

from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.edges import Edges
from lgcn.nn.rows import Rows
from lgcn.ops import spmm
from lgcn.ops.dropout import drop_rows
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.structure import csr_parts


class PropagatedEmbedding(Diffusion):
    r"""A hidden layer over propagated features, as in the
    ["Graph Random Neural Networks"](https://arxiv.org/abs/2005.11079) paper.

    $$
    X' = \mathrm{norm}\left(\sigma\left(\mathrm{dropout}\left(\mathrm{norm}\left(
    \frac{1}{K + 1} \sum_{i=0}^{K} \hat{A}^i \, \mathrm{drop}(X) \right)\right) W + b\right)\right)
    $$

    In training, `drop` removes whole nodes from the input, so that a node's features are often made
    of its neighbourhood alone. Both norms are batch norms, or both are left out. A training step
    propagates all input features, and keeps three dense matrices of their size per view. It
    takes $O(K E C)$ time. In evaluation the norms are fixed, and the linear map comes first: sparse
    features stay sparse, and $D$ features are propagated in place of $C$.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        hops: The number of steps $K$. (default: 5)
        node_dropout: Rate at which nodes are dropped from the input. (default: 0)
        dropout: Dropout rate of the propagated features, after their norm. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)
        scale: Factor by which the input features are multiplied. (default: 1)
        norm: Whether there are norms. (default: `True`)
        activation: The function $\sigma$. (default: identity)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** $(N, D)$
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hops: int = 5,
        *,
        node_dropout: float = 0.0,
        dropout: float = 0.0,
        adj_dropout: float = 0.0,
        scale: float = 1.0,
        norm: bool = True,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, hops, dropout=dropout, adj_dropout=adj_dropout)
        self.scale = scale
        self.node_dropout = node_dropout
        self.activation = activation
        self.input_norm = BatchNorm(in_channels) if norm else None
        self.norm = BatchNorm(out_channels) if norm else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for norm in (getattr(self, "input_norm", None), getattr(self, "norm", None)):
            if norm is not None:  # there is none yet while the base class is made
                norm.reset_parameters()

    # The first layer: no LGCL before it leaves columns of zeros.
    def forward(self, x: Tensor, graph: Edges) -> Tensor:  # type: ignore[override]
        self.check(x, graph)
        adjacency = self.masked_adjacency(graph)
        if not self.training:
            return self.finish(self.spread(self.transform(x), adjacency))
        x = x.to_dense() if x.layout == torch.sparse_csr else x
        x = self.spread(drop_rows(x, self.node_dropout), adjacency)
        x = x * (self.scale / (self.hops + 1))
        x = x if self.input_norm is None else self.input_norm(x)
        return self._after(drop(x, self.dropout) @ self.weight + self.bias)

    def _after(self, h: Tensor) -> Tensor:
        h = h if self.activation is None else self.activation(h)
        return h if self.norm is None else self.norm(h)

    def transform(self, x: Tensor) -> Tensor:
        """Applies the linear map of evaluation, in which the norm of the input is contained.

        The constant is added after the propagation, see `finish`.
        """
        weight, _ = self.linear_map()
        if x.layout == torch.sparse_csr:
            return spmm(*csr_parts(x), weight)
        return x @ weight

    def linear_map(self) -> tuple[Tensor, Tensor]:
        """The matrix and the constant of `transform`."""
        if self.input_norm is None:
            weight, _ = super().linear_map()
        else:
            factor, _ = _factor_and_shift(self.input_norm)
            weight = (self.scale * factor)[:, None] * self.weight
        return weight, torch.zeros_like(self.bias)

    def constant(self) -> Tensor:
        """What is added to each node after the propagation, in evaluation."""
        if self.input_norm is None:
            return self.bias
        _, shift = _factor_and_shift(self.input_norm)
        return shift @ self.weight + self.bias

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        width = self.out_channels
        out = x.stored().then(self.transform, width=width, values=2 * width)
        return self.spread_rows(out.stored("linear")).then(self.finish, values=2 * width)

    def finish(self, total: Tensor) -> Tensor:
        """What follows the propagation in evaluation, for all nodes or for a block of them."""
        return self._after(total / (self.hops + 1) + self.constant())


def _factor_and_shift(norm: BatchNorm) -> tuple[Tensor, Tensor]:
    """What a batch norm with running statistics does to each feature in evaluation."""
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None
    assert variance is not None
    factor = norm.weight / (variance + norm.eps).sqrt()
    return factor, norm.bias - mean * factor
