"""A linear map followed by an LGCL that does not mix features."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from lgcn.nn.edges import Edges
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.rows import RowLayer, Rows


class MappedLGConv(RowLayer):
    r"""A linear map without bias, followed by an LGCL with one kernel per feature.

    $$
    X' = c(g(X W, A, k))
    $$

    It has the form of GraphSAGE's layer, with the LGCL in place of the mean, and few weights more:
    those of the kernels. With the mean in the grid, it starts as that layer.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        k: Number of values to select per feature. (default: 8)
        options: Other arguments of `lgcn.LGConv`, such as `mean`.

    Shapes:
        - **input:** node features $(N, C)$ and the graph
        - **output:** $(N, D)$
    """

    def __init__(self, in_channels: int, out_channels: int, k: int = 8, **options: Any) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.weight = Parameter(torch.empty(in_channels, out_channels))
        self.lgcl = LGConv(out_channels, out_channels, k, "depthwise", **options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the map by Glorot initialisation, and lets the kernels start anew."""
        torch.nn.init.xavier_uniform_(self.weight)
        self.lgcl.reset_parameters()

    def forward(self, x: Tensor, graph: Edges) -> Tensor:
        out: Tensor = self.lgcl(x @ self.weight, graph)
        return out

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        width = self.out_channels
        mapped = x.stored().then(lambda block: block @ self.weight, width=width, values=width)
        rows: Rows = self.lgcl(mapped.stored("linear"))
        return rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, k={self.lgcl.k})"
