"""Layers that mix a node's neighbours: their sum, mean or maximum, or by attention."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from lgcn.graph.csr import CSR
from lgcn.nn.edges import Edges, GivenEdges, without_spare
from lgcn.nn.message_layer import MessageLayer, drop_edges, times
from lgcn.nn.rows import AdjacencyOptions, Rows
from lgcn.ops import plain, spmm
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.k_largest import k_largest_values


class NeighbourLayer(MessageLayer):
    """A linear map without bias, followed by something that is made of the neighbours' rows.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        adj_dropout: Dropout rate of the entries of the adjacency. (default: 0)

    Shapes:
        - **input:** node features $(N, C)$ and the graph
        - **output:** $(N, D)$
    """

    adjacency_options: ClassVar[AdjacencyOptions]

    def __init__(self, in_channels: int, out_channels: int, *, adj_dropout: float = 0.0) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.adj_dropout = adj_dropout
        self.weight = Parameter(torch.empty(in_channels, out_channels))
        torch.nn.init.xavier_uniform_(self.weight)

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation."""
        torch.nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor, graph: Edges) -> Tensor:
        mapped = own = x @ self.weight
        adjacency = graph.adjacency(**self.adjacency_options)
        if isinstance(graph, GivenEdges) and self.adjacency_options["self_loops"]:
            own = F.pad(own, (0, 0, 0, 1))  # for the spare row
        out = self.mix(mapped, own, adjacency, self.entry_mask(graph))
        return without_spare(out, graph)

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        width = self.out_channels
        mapped = x.stored().then(lambda block: block @ self.weight, width=width, values=width)
        return mapped.stored("linear").from_neighbours(
            self.mix,
            self.adjacency_options,
            factor=self.edge_factor,
            width=width,
            values=3 * width,
        )

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        """Mixes the neighbours, for all nodes or for a block of them.

        Args:
            near: The mapped features of the neighbours.
            own: Those of the nodes themselves.
            adjacency: The rows of the nodes; its columns number the rows of `near`.
            mask: Factor of the message of each entry. (default: none)
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels})"


class NormalizedSum(NeighbourLayer):
    r"""The sum over neighbours and the node itself, with the symmetrically normalised adjacency, as
    in ["Semi-supervised Classification with Graph Convolutional Networks"](https://arxiv.org/abs/1609.02907).
    """

    adjacency_options: ClassVar[AdjacencyOptions] = {"normalize": True, "self_loops": True}

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        if self.training:
            adjacency = adjacency.drop_weights(self.adj_dropout)
        adjacency = times(adjacency, mask)
        return spmm(adjacency.rowptr, adjacency.col, adjacency.values(near.dtype), near)


class NeighbourMean(NeighbourLayer):
    r"""The weighted mean over neighbours, as in
    ["Inductive Representation Learning on Large Graphs"](https://arxiv.org/abs/1706.02216); zero
    for a node without neighbours. It divides by the sum of the weights without their signs.
    """

    adjacency_options: ClassVar[AdjacencyOptions] = {"normalize": False, "self_loops": False}

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        if self.training:
            adjacency = adjacency.drop_weights(self.adj_dropout)
        rowptr, col, weight = adjacency.rowptr, adjacency.col, adjacency.values(near.dtype)
        weights = spmm(rowptr, col, weight.abs(), near.new_ones(near.size(0), 1))
        masked = weight if mask is None else weight * mask.to(weight.dtype)
        return spmm(rowptr, col, masked, near) / torch.where(weights == 0, 1, weights)


class NeighbourSum(NeighbourLayer):
    r"""The weighted sum over neighbours; zero for a node without neighbours."""

    adjacency_options: ClassVar[AdjacencyOptions] = {"normalize": False, "self_loops": False}

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        if self.training:
            adjacency = adjacency.drop_weights(self.adj_dropout)
        adjacency = times(adjacency, mask)
        return spmm(adjacency.rowptr, adjacency.col, adjacency.values(near.dtype), near)


class NeighbourMax(NeighbourLayer):
    r"""The largest value over neighbours, per feature; zero for a node without neighbours.

    Edge weights multiply the values before they are compared. Of equal values, the earliest
    neighbour's gets the gradient.
    """

    adjacency_options: ClassVar[AdjacencyOptions] = {"normalize": False, "self_loops": False}

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        if self.training and self.adj_dropout > 0:
            learned = self.learns_mask
            adjacency, mask = drop_edges(adjacency, self.adj_dropout, mask, learned=learned)
        rowptr, col, weight = times(adjacency, mask)
        weight = None if weight is None else weight.to(near.dtype)
        return k_largest_values(near, rowptr, col, 1, edge_weight=weight).squeeze(1)


class Attention(NeighbourLayer):
    r"""The attention over neighbours and the node itself, as in
    ["Graph Attention Networks"](https://arxiv.org/abs/1710.10903). Edge weights are ignored.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node, of all heads together.
        heads: Number of heads side by side. (default: 4)
        adj_dropout: Dropout rate of the attention coefficients. (default: 0)
    """

    adjacency_options: ClassVar[AdjacencyOptions] = {"normalize": False, "self_loops": True}

    def __init__(
        self, in_channels: int, out_channels: int, *, heads: int = 4, adj_dropout: float = 0.0
    ) -> None:
        if heads < 1 or out_channels % heads:
            raise ValueError(
                f"out_channels must be a multiple of heads ({heads}), got {out_channels}"
            )
        super().__init__(in_channels, out_channels, adj_dropout=adj_dropout)
        self.heads = heads
        self.source = Parameter(torch.empty(heads, out_channels // heads))
        self.target = Parameter(torch.empty(heads, out_channels // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation."""
        super().reset_parameters()
        torch.nn.init.xavier_uniform_(self.source)
        torch.nn.init.xavier_uniform_(self.target)

    def mix(self, near: Tensor, own: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        rowptr, col = adjacency.rowptr, adjacency.col
        width = self.out_channels // self.heads
        of_near = near.view(-1, self.heads, width)
        from_source = (of_near * self.source).sum(2)
        from_target = (own.view(-1, self.heads, width) * self.target).sum(2)
        if plain.exports_to_onnx():
            row = plain.row_of_entry(rowptr, col)
        else:
            row = torch.arange(own.size(0), device=near.device).repeat_interleave(
                rowptr.diff(), output_size=col.numel()
            )
        score = from_source.index_select(0, col) + from_target.index_select(0, row)
        score = F.leaky_relu(score, 0.2)
        # Subtracting the largest score of each row changes nothing but keeps exp in range.
        largest = score.new_zeros(own.size(0), self.heads).scatter_reduce_(
            0, row[:, None].expand_as(score), score.detach(), "amax", include_self=False
        )
        share = (score - largest.index_select(0, row)).exp()
        ones = near.new_ones(near.size(0), 1)
        found = []
        for head in range(self.heads):
            own_share = share[:, head].contiguous()
            total = spmm(rowptr, col, own_share, ones)
            kept = drop(own_share, self.adj_dropout, self.training)
            kept = kept if mask is None else kept * mask
            found.append(spmm(rowptr, col, kept, of_near[:, head].contiguous()) / total)
        return torch.cat(found, dim=1)


Mix = Literal["gcn", "mean", "max", "sum", "attention"]
_PLAIN: dict[str, type[NeighbourLayer]] = {
    "gcn": NormalizedSum,
    "mean": NeighbourMean,
    "max": NeighbourMax,
    "sum": NeighbourSum,
}


def neighbour_layer(
    kind: Mix, in_channels: int, out_channels: int, *, heads: int = 4, adj_dropout: float = 0.0
) -> NeighbourLayer:
    """The layer of that name: `"gcn"`, `"mean"`, `"max"`, `"sum"` or `"attention"`."""
    if kind == "attention":
        return Attention(in_channels, out_channels, heads=heads, adj_dropout=adj_dropout)
    return _PLAIN[kind](in_channels, out_channels, adj_dropout=adj_dropout)
