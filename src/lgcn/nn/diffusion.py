"""The mean over several propagation steps, followed by a linear map."""

import torch
from torch import Tensor

from lgcn.graph.csr import CSR
from lgcn.nn.edges import Edges
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.rows import Rows
from lgcn.ops.diffusion import can_diffuse, diffuse
from lgcn.ops.dropout import dropout as drop


class Diffusion(GCNLayer):
    r"""The mean over 0 to $K$ propagation steps, followed by a linear map, as in the
    ["Graph Random Neural Networks"](https://arxiv.org/abs/2005.11079) paper.

    $$
    X' = \left( \frac{1}{K + 1} \sum_{i=0}^{K} \hat{A}^i X \right) W + b
    $$

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        hops: The number of steps $K$. (default: 8)
        dropout: Dropout rate of the propagated features. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)

    Shapes:
        - **input:** node features $(N, C)$ and the graph
        - **output:** $(N, D)$
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hops: int = 8,
        *,
        dropout: float = 0.0,
        adj_dropout: float = 0.0,
    ) -> None:
        super().__init__(in_channels, out_channels, dropout=dropout, adj_dropout=adj_dropout)
        if hops < 0:
            raise ValueError(f"hops must be at least 0, got {hops}")
        self.hops = hops

    def forward(self, x: Tensor, graph: Edges, zeros: Tensor | None = None) -> Tensor:
        """Propagates and maps.

        Args:
            x: Node features.
            graph: The graph.
            zeros: Columns of zeros that belong behind x. They stay zero, so they are not
                propagated. (default: none)
        """
        if zeros is None:
            self.check(x, graph)
            return self.finish(self.spread(x, self.masked_adjacency(graph)))
        total = self.spread(x, self.masked_adjacency(graph))
        return self.finish(torch.cat([total, zeros], dim=1))

    def spread(self, x: Tensor, adjacency: CSR) -> Tensor:
        """The sum over 0 to K propagation steps."""
        rowptr, col, value = adjacency.rowptr, adjacency.col, adjacency.values(x.dtype)
        drops = self.training and self.adj_dropout > 0  # other entries in each step
        if not drops and rowptr.numel() == x.size(0) + 1 and can_diffuse(value, x):
            return diffuse(rowptr, col, value, x, self.hops)
        total = x
        for _ in range(self.hops):
            total = self.step(x, total, adjacency)
        return total

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        return self.spread_rows(x.stored()).then(
            self.finish, width=self.out_channels, values=self.in_channels + self.out_channels
        )

    def spread_rows(self, x: Rows) -> Rows:
        """The sum over 0 to K propagation steps, of a matrix that is stored."""
        total, width = x, x.width
        for hop in range(1, self.hops + 1):
            total = total.from_neighbours(
                lambda near, own, adjacency: self.step(own, near, adjacency),
                self.adjacency_options,
                own=x,
                width=width,
                values=3 * width,
            ).stored(f"step {hop}")
        return total

    def step(self, x: Tensor, total: Tensor, adjacency: CSR) -> Tensor:
        """Adds one more power to the sum, as in x + A (x + A (x + ...)).

        Args:
            x: The input, of all nodes or of a block of them.
            total: The sum so far, of all nodes.
            adjacency: The rows of the nodes of `x`.
        """
        # Without the spare row that traced edges have.
        return x + self.propagate(total, adjacency)[: x.size(0)]

    def finish(self, total: Tensor) -> Tensor:
        """Applies the linear map to the mean, for all nodes or for a block of them."""
        mean = total / (self.hops + 1)
        weight, bias = self.linear_map()
        return drop(mean, self.dropout, self.training, overwrite=True) @ weight + bias

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, hops={self.hops})"
