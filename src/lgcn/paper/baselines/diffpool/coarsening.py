"""Graphs that DiffPool makes coarser: sparse ones at first, dense ones with few nodes afterwards.

Both average over neighbours, and pool nodes to clusters. `torch_geometric.nn.dense_diff_pool` does
the second for dense graphs that are filled up to the size of the largest; the results are equal.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.ops import spmm

TINY = 1e-15  # an assignment can be zero, which has no logarithm


class Pooled(NamedTuple):
    """Coarser graphs, with edges of any weight between their nodes.

    Shapes:
        - **x:** $(G, K, C)$, the features of the $K$ clusters of each graph
        - **adjacency:** $(G, K, K)$
        - **loss:** a scalar, the extra loss, or `None`
    """

    x: Tensor
    adjacency: Tensor
    loss: Tensor | None


class SparseGraphs:
    """The graphs of a batch. No tensor has an entry for each pair of nodes.

    Args:
        graph: The graphs.
    """

    def __init__(self, graph: Graph) -> None:
        self.rowptr, self.col, _ = graph.adjacency()
        # A GPU waits for these. They are not cached with the adjacency, which other offsets share.
        self.sizes: list[int] = offsets_of_graphs(graph).diff().tolist()

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the neighbours of each node, zeros if it has none."""
        return self._sum(x) / self.rowptr.diff().clamp(min=1).unsqueeze(1)

    def pool(self, x: Tensor, scores: Tensor, with_loss: bool) -> Pooled:
        """Pools nodes to clusters.

        Args:
            x: Node features.
            scores: The scores of the clusters for each node, before softmax.
            with_loss: Whether to compute the extra loss.
        """
        s = scores.softmax(1)
        edges = self._sum(s)
        # One product per graph: an intermediate with all graphs filled up to the size of the
        # largest would be as large as that one times their number.
        columns = [x, edges, s] if with_loss else [x, edges]
        right = torch.cat(columns, 1)
        pairs = zip(*(torch.split(rows, self.sizes) for rows in (s, right)), strict=True)
        each = [of_graph.t() @ rows for of_graph, rows in pairs]
        # A stack needs at least one graph.
        products = torch.stack(each) if each else right.new_zeros(0, s.size(1), right.size(1))
        widths = [part.size(1) for part in columns]
        coarse, adjacency, *overlap = torch.split(products, widths, 2)
        if not with_loss:
            return Pooled(coarse, adjacency, None)
        # As if all graphs had as many nodes as the largest, like those of the comparison's program.
        largest = max(self.sizes, default=0)
        places = len(self.sizes) * largest
        square = self.col.numel() - 2 * (s * edges).sum() + overlap[0].square().sum()
        # Rounding can make it negative; at zero, the gradient of the root would be infinite.
        link = square.clamp(min=torch.finfo(square.dtype).tiny).sqrt()
        loss = link / max(places * largest, 1) + _entropy(s).sum() / max(places, 1)
        return Pooled(coarse, adjacency, loss)

    def _sum(self, x: Tensor) -> Tensor:
        return spmm(self.rowptr, self.col, x.new_ones(self.col.numel()), x)


class DenseGraphs:
    """Graphs with the same number of nodes.

    Args:
        adjacency: Their adjacency matrices, $(G, N, N)$.
    """

    def __init__(self, adjacency: Tensor) -> None:
        self.adjacency = adjacency

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the neighbours of each node by the weights of the edges.

        Where these add up to less than one, it is the sum.
        """
        return self.adjacency @ x / self.adjacency.sum(2, keepdim=True).clamp(min=1)

    def pool(self, x: Tensor, scores: Tensor, with_loss: bool) -> Pooled:
        """Pools nodes to clusters, see `SparseGraphs.pool`."""
        s = scores.softmax(2)
        turned = s.transpose(1, 2)
        adjacency = turned @ self.adjacency @ s
        loss = None
        if with_loss:
            link = torch.linalg.vector_norm(self.adjacency - s @ turned)
            loss = link / self.adjacency.numel() + _entropy(s).mean()
        return Pooled(turned @ x, adjacency, loss)


def _entropy(s: Tensor) -> Tensor:
    return -(s * (s + TINY).log()).sum(-1)
