"""DiffPool: networks that assign nodes to clusters, and pool a graph to that of its clusters."""

from collections.abc import Callable
from itertools import pairwise
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.dense import Linear

from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.paper.baselines.diffpool import RATIO_OF_SEVERAL
from lgcn.paper.baselines.diffpool.coarsening import DenseGraphs, SparseGraphs
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron
from lgcn.paper.baselines.inputs import dense, scale

Mean = Callable[[Tensor], Tensor]  # of each node's neighbours


class DiffPool(GraphStack):
    r"""The network of ["Hierarchical Graph Representation Learning with Differentiable
    Pooling"](https://arxiv.org/abs/1806.08804), as run in ["A Fair Comparison of Graph Neural
    Networks for Graph Classification"](https://arxiv.org/abs/1912.09893). Each pooling has two
    networks of three GraphSAGE convolutions: one embeds the nodes, one assigns them to clusters.

    $$
    Z = \mathrm{GNN}_\text{embed}(X, A), \qquad
    S = \mathrm{softmax}(\mathrm{GNN}_\text{pool}(X, A)), \qquad
    X' = S^\top Z, \qquad A' = S^\top A S
    $$

    Of the convolutions $W_1 \mathbf{x}_i + W_2 \, \mathrm{mean}_{j \in \mathcal{N}(i)} \mathbf{x}_j
    + b$, the first two are followed by ReLU and batch norm; the outputs of all three side by side
    are the output of the network, followed in $\mathrm{GNN}_\text{pool}$ by a linear map. A last
    such network embeds the coarsest graph. What each pooling gives, and this embedding, are read
    out by their maximum over the clusters, and a perceptron with one hidden layer classifies the
    graph. In training, each pooling adds an extra loss,

    $$
    \frac{\| A - S S^\top \|_F}{G N^2} + \frac{1}{G N} \sum_i H(\mathbf{s}_i),
    $$

    with the norm over all $G$ graphs of the batch and $N$ the nodes of the largest one. The first
    pooling works on sparse matrices: $\| A - S S^\top \|_F^2 = \| A \|_F^2 - 2 \langle S, A S
    \rangle + \| S^\top S \|_F^2$. Its memory grows with nodes times clusters.

    Differences from the comparison's program: with the version of PyG that its installation names,
    convolutions lack $W_1 \mathbf{x}_i$; its batch norm counts the zeros that fill up graphs; it
    clips gradients at the norm 2, does not limit the number of clusters, and counts the extra loss
    in evaluation too. The program of the authors of DiffPool was not compared. Edge weights are not
    used. Sparse features are made dense, batch by batch.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of the first two convolutions. (default: 64)
        embedding_channels: Width of the third convolution that embeds. (default: 128)
        num_layers: Number of poolings. (default: 2)
        pool_clusters: Number of clusters of the first pooling. Each further one has a quarter of
            those before it, rounded up. The experiments choose it by the sizes of the graphs:
            `lgcn.paper.baselines.diffpool.clusters_of`. (default: 28)
        dropout: Dropout rate of the classifier's hidden features. (default: 0)
        dense_channels: Width of the classifier's hidden layer. (default: 50)
        input_scale: Factor of the input features. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graphs
        - **output:** scores before softmax or sigmoid, $(G, classes)$ for $G$ graphs
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        embedding_channels: int = 128,
        num_layers: int = 2,
        pool_clusters: int = 28,
        dropout: float = 0.0,
        dense_channels: int = 50,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1, got {num_layers}")
        if pool_clusters < 1:
            raise ValueError(f"pool_clusters must be at least 1, got {pool_clusters}")
        width = 2 * hidden_channels + embedding_channels
        self.poolings, clusters = ModuleList(), pool_clusters
        for _ in range(num_layers):
            self.poolings.append(
                Pooling(in_channels, hidden_channels, embedding_channels, clusters)
            )
            in_channels, clusters = width, ceil(RATIO_OF_SEVERAL * clusters)
        self.last = Convolutions(width, hidden_channels, embedding_channels)
        self.classifier = Perceptron((num_layers + 1) * width, dense_channels, num_classes, dropout)
        self._extra_loss: Tensor | None = None

    @property
    def first_layer(self) -> Module:
        first: Any = self.poolings[0]
        return ModuleList([first.embed.convs[0], first.assign.convs[0]])

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the largest features of all levels side by side, see `GraphStack.embed`."""
        self._extra_loss = None  # and with it, the memory of a pass that nobody asked about
        x = scale(dense(x), self.input_scale)
        graphs: SparseGraphs | DenseGraphs = SparseGraphs(graph)
        seen, losses = [], []
        for pooling in self.poolings:
            embedded, scores = pooling(x, graphs.mean)
            x, adjacency, loss = graphs.pool(embedded, scores, with_loss=self.training)
            graphs = DenseGraphs(adjacency)
            seen.append(x.amax(1))
            losses += [] if loss is None else [loss]
        seen.append(self.last(x, graphs.mean).amax(1))
        if losses:
            self._extra_loss = torch.stack(losses).sum()
        return torch.cat(seen, dim=1)

    def take_extra_loss(self) -> Tensor:
        """Returns the extra loss of the latest forward pass, and forgets it.

        Raises RuntimeError if there is none, as after a pass in evaluation mode.
        """
        found, self._extra_loss = self._extra_loss, None
        if found is None:
            raise RuntimeError(
                "take_extra_loss() must follow a forward pass in training mode, once per pass"
            )
        return found


class Pooling(Module):
    """The networks that embed nodes and assign them to clusters, see `DiffPool`.

    Args:
        in_channels: Input features per node.
        hidden_channels: Width of the first two convolutions.
        embedding_channels: Width of the third convolution that embeds.
        clusters: Number of clusters.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, embedding_channels: int, clusters: int
    ) -> None:
        super().__init__()
        self.embed = Convolutions(in_channels, hidden_channels, embedding_channels)
        self.assign = Convolutions(in_channels, hidden_channels, clusters)
        self.scores = Linear(2 * hidden_channels + clusters, clusters)

    def forward(self, x: Tensor, mean: Mean) -> tuple[Tensor, Tensor]:
        """Returns the embeddings of the nodes and their scores of the clusters.

        Args:
            x: Node features.
            mean: Takes the mean over the neighbours of each node.
        """
        return self.embed(x, mean), self.scores(self.assign(x, mean))


class Convolutions(Module):
    """Three GraphSAGE convolutions, and their outputs side by side, see `DiffPool`.

    Args:
        in_channels: Input features per node.
        hidden_channels: Output features of the first two.
        out_channels: Output features of the third.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        sizes = [in_channels, hidden_channels, hidden_channels, out_channels]
        self.convs = ModuleList(Convolution(*size) for size in pairwise(sizes))
        self.norms = ModuleList(BatchNorm(hidden_channels) for _ in range(2))

    def forward(self, x: Tensor, mean: Mean) -> Tensor:
        """Convolves, see `Pooling.forward`."""
        *convs, last = self.convs
        levels = []
        for conv, norm in zip(convs, self.norms, strict=True):
            x = torch.relu(conv(x, mean))
            x = norm(x.flatten(0, -2)).view_as(x)  # by the nodes of all graphs
            levels.append(x)
        return torch.cat([*levels, last(x, mean)], dim=-1)


class Convolution(Module):
    """A linear map of a node's features, plus one of the mean of its neighbours'.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = Linear(in_channels, out_channels)
        self.neighbours = Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor, mean: Mean) -> Tensor:
        out: Tensor = self.own(x) + self.neighbours(mean(x))
        return out
