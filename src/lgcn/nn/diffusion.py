"""The mean over several steps of propagation, in front of a linear map."""

from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.rows import Rows


class Diffusion(GCNLayer):
    r"""The mean over 0 to :math:`K` steps of propagation, and a linear map, as in the
    `"Graph Random Neural Networks for Semi-Supervised Learning on Graphs"
    <https://arxiv.org/abs/2005.11079>`_ paper.

    .. math::
        \mathbf{X}^{\prime} = \left( \frac{1}{K + 1} \sum_{i=0}^{K} \hat{\mathbf{A}}^i \mathbf{X}
        \right) \mathbf{W} + \mathbf{b}

    Args:
        in_channels: Features of a node.
        out_channels: New features of a node.
        hops: The number of steps :math:`K`. (default: 8)
        dropout: Dropout rate of the propagated features. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)

    Shapes:
        - **input:** node features :math:`(N, C)` and the graph
        - **output:** :math:`(N, D)`
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

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        self.check(x, graph)
        adjacency = graph.adjacency(**self.adjacency_options)
        total = x
        for _ in range(self.hops):
            total = self.step(x, total, adjacency)
        return self.finish(total)

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        total = x = x.stored()
        for hop in range(1, self.hops + 1):
            total = total.from_neighbours(
                lambda near, own, adjacency: self.step(own, near, adjacency),
                self.adjacency_options,
                own=x,
                width=self.in_channels,
                values=3 * self.in_channels,
            ).stored(f"step {hop}")
        return total.then(
            self.finish, width=self.out_channels, values=self.in_channels + self.out_channels
        )

    def step(self, x: Tensor, total: Tensor, adjacency: CSR) -> Tensor:
        """One more power in the sum of all of them, x + A (x + A (x + ...)).

        For all rows of the adjacency or for some, of which ``x`` is then.
        """
        return x + self.propagate(total, adjacency)

    def finish(self, total: Tensor) -> Tensor:
        """The linear map of the mean, for all nodes or some."""
        return self.transform(total / (self.hops + 1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, hops={self.hops})"
