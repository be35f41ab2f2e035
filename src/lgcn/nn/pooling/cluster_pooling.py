"""Cluster pooling: merge pairs of neighbours that a matching of the edges finds."""

from typing import Literal, NamedTuple

from torch import Tensor
from torch.nn import Module

from lgcn.graph import Graph
from lgcn.nn.pooling.matching import coarsen
from lgcn.ops import k_largest_values, spmm


class Clustered(NamedTuple):
    """A coarser graph.

    Shapes:
        - **x:** $(N', C)$, the features of the coarse nodes
        - **graph:** the coarser graph, with `ptr`
        - **cluster:** $(N)$, the coarse node of each node
    """

    x: Tensor
    graph: Graph
    cluster: Tensor


class ClusterPooling(Module):
    """Merges pairs of neighbours, as Graclus does for the
    ["Convolutional Neural Networks on Graphs with Fast Localized Spectral
    Filtering"](https://arxiv.org/abs/1606.09375).

    The pairs are those of a heavy-edge matching (`lgcn.nn.pooling.matching.match`). They depend on
    edges alone, and are computed once per graph or batch. Nodes without a free neighbour stay
    alone, so a bit more than half of the nodes are left. Which neighbours are merged depends on the
    order of nodes where neighbours are equal.

    Args:
        reduce: The features of a pair: their maximum (`"max"`) or mean (`"mean"`).
            (default: `"max"`)

    Shapes:
        - **input:** node features $(N, C)$ and an `lgcn.Graph` with `ptr`
        - **output:** a triple `(x, graph, cluster)`
    """

    def __init__(self, reduce: Literal["max", "mean"] = "max") -> None:
        super().__init__()
        if reduce not in ("max", "mean"):
            raise ValueError(f"reduce must be max or mean, got {reduce!r}")
        self.reduce = reduce

    def forward(self, x: Tensor, graph: Graph) -> Clustered:
        """Merges pairs of nodes.

        Args:
            x: Node features.
            graph: The graphs.
        """
        coarse, cluster, (rowptr, col, _) = coarsen(graph)
        if self.reduce == "max":
            merged = k_largest_values(x, rowptr, col, 1).squeeze(1)
        else:
            total = spmm(rowptr, col, x.new_ones(col.numel()), x)
            merged = total / rowptr.diff().unsqueeze(1)
        return Clustered(merged, coarse, cluster)

    def extra_repr(self) -> str:
        return self.reduce
