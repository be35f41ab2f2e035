"""A linear map followed by a sum over neighbours: the embedding and the classifier of an LGCN."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import Parameter

from lgcn.graph.csr import CSR
from lgcn.nn.edges import Edges, without_spare
from lgcn.nn.message_layer import MessageLayer, times
from lgcn.nn.rows import AdjacencyOptions, Rows
from lgcn.ops import spmm
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.structure import csr_parts

Aggregate = Literal["normalized", "sum", "none"]


class GCNLayer(MessageLayer):
    r"""The layer from the
    ["Semi-supervised Classification with Graph Convolutional Networks"](https://arxiv.org/abs/1609.02907)
    paper, in the order of the released LGCN program: first the linear map, then the sum.

    $$
    X' = \hat{A} (X W + b)
    $$

    Sparse features are multiplied as a sparse matrix: the cost is that of the non-zeros.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        aggregate: What $\hat{A}$ is. `"normalized"`: the symmetrically normalised adjacency;
            `"sum"`: the adjacency itself; `"none"`: the identity, which makes this a linear
            layer. (default: `"normalized"`)
        self_loops: Make every node a neighbour of itself. (default: `True`)
        dropout: Dropout rate of the input features. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)
        scale: Factor by which the input features are multiplied. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** $(N, D)$
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggregate: Aggregate = "normalized",
        *,
        self_loops: bool = True,
        dropout: float = 0.0,
        adj_dropout: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        if aggregate not in ("normalized", "sum", "none"):
            raise ValueError(f"aggregate must be normalized, sum or none, got {aggregate!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.aggregate = aggregate
        self.self_loops = self_loops
        self.dropout = dropout
        self.adj_dropout = adj_dropout
        self.scale = scale
        self.weight = Parameter(torch.empty(in_channels, out_channels))
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation, as in the paper."""
        torch.nn.init.xavier_uniform_(self.weight)
        torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, graph: Edges) -> Tensor:
        self.check(x, graph)
        out = self.transform(x)
        if self.aggregate == "none":
            return out
        return without_spare(self.propagate(out, self.masked_adjacency(graph)), graph)

    def masked_adjacency(self, graph: Edges) -> CSR:
        """The adjacency that this layer sums over, masked if an explainer asks for that."""
        return times(graph.adjacency(**self.adjacency_options), self.entry_mask(graph))

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        out = x.stored().then(self.transform, width=self.out_channels, values=2 * self.out_channels)
        if self.aggregate == "none":
            return out
        return out.stored("linear").from_neighbours(
            lambda near, own, adjacency: self.propagate(near, adjacency),
            self.adjacency_options,
            width=self.out_channels,
            values=2 * self.out_channels,
        )

    def check(self, x: Tensor, graph: Edges) -> None:
        """Raises ValueError if the features have another shape than the graph and the layer."""
        if tuple(x.shape) != (graph.num_nodes, self.in_channels):
            raise ValueError(
                f"x must have shape [nodes, in_channels] = [{graph.num_nodes}, {self.in_channels}],"
                f" got {list(x.shape)}"
            )

    @property
    def adjacency_options(self) -> AdjacencyOptions:
        """The adjacency that this layer sums over, as arguments of `lgcn.Graph.adjacency`."""
        return {"normalize": self.aggregate == "normalized", "self_loops": self.self_loops}

    def transform(self, x: Tensor) -> Tensor:
        """Applies the linear map, to all nodes or to a block of them."""
        weight, bias = self.linear_map()
        if x.layout == torch.sparse_csr:
            rowptr, col, values = csr_parts(x)
            values = drop(values, self.dropout, self.training)
            return spmm(rowptr, col, values, weight) + bias
        return drop(x, self.dropout, self.training) @ weight + bias

    def linear_map(self) -> tuple[Tensor, Tensor]:
        """The matrix and the constant of `transform`."""
        # Scaling the weights is the same as scaling the features, and there are fewer weights.
        return self.weight if self.scale == 1 else self.scale * self.weight, self.bias

    def propagate(self, x: Tensor, adjacency: CSR) -> Tensor:
        """Sums over the neighbours, for all rows of the adjacency or for a block of them."""
        if self.training:
            adjacency = adjacency.drop_weights(self.adj_dropout)
        return spmm(adjacency.rowptr, adjacency.col, adjacency.values(x.dtype), x)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"aggregate={self.aggregate!r})"
        )
