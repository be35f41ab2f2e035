"""The LGCN for whole graphs: LGCLs, a read-out after each, and a classifier of the graph."""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Identity, LayerNorm, Linear, Module, ModuleList

from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.grid_cnn import Activation
from lgcn.nn.lg_conv import LGConv, Rank
from lgcn.nn.pooling.cluster_pooling import ClusterPooling
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.nn.pooling.sag_pooling import SAGPooling
from lgcn.nn.pooling.topk_pooling import TopKPooling
from lgcn.nn.readout.joined import JoinedReadout
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.k_largest import Zeros
from lgcn.utils.choices import ACTIVATIONS

# Some read-outs hardly differ between graphs, such as the largest value of a common feature. The
# usual 1e-5 would multiply them by 300, and with them how far the running mean, which evaluation
# uses, is behind the weights: scores would fall to those of a coin while the loss still falls.
READOUT_EPS = 0.1

Append = Literal["none", "mean", "sum"]
Norm = Literal["batch", "layer", "none"]
Pooling = Literal["none", "topk", "sag", "cluster"]


class GraphLGCN(Module):
    r"""A learnable graph convolutional network
    ([paper](https://arxiv.org/abs/1808.03965)) for the classification of whole graphs.

    An embedding layer turns the input features into $X_0$. Each of the stacked LGCLs
    (`lgcn.LGConv`) computes new features, which are appended to its input:

    $$
    H_{l+1} = \mathrm{relu}(\mathrm{norm}(\mathrm{LGCL}(X_l, A_l))), \qquad
    X_{l+1} = \mathrm{pool}([X_l \, \Vert \, H_{l+1}])
    $$

    The new features of each level are read out over the nodes of the graph. All read-outs side by
    side are what a perceptron with one hidden layer classifies:

    $$
    Y = \mathrm{MLP}(\mathrm{readout}(X_0) \, \Vert \, \mathrm{readout}(H_1) \, \Vert \dots)
    $$

    Many graphs are computed at once, as one `lgcn.Graph` with `ptr`. Nothing is padded to the
    largest of them. Graphs without edges or nodes are allowed; the read-outs of a graph without
    nodes are those of zeros.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph: classes or labels, 1 for a regression.
        hidden_channels: Width of the embedding, and of the classifier's hidden layer. (default: 32)
        lgcl_channels: Features that each LGCL appends. (default: 32)
        num_layers: Number of LGCLs. (default: 3)
        k: Number of values that an LGCL selects per feature. (default: 8)
        cnn: The CNN of the LGCLs: `"single"` or `"double"`, see `lgcn.LGConv`.
            (default: `"single"`)
        rank: `"raw"` or `"normalized"`, see `lgcn.LGConv`. (default: `"raw"`)
        self_loops: Make every node a neighbour of itself in the LGCLs. (default: `False`)
        zeros: `"pad"` or `"compete"`, see `lgcn.k_largest`. (default: `"pad"`)
        append: What follows the k largest values in the grids of the LGCLs: the `"sum"` or the
            `"mean"` over all neighbours, or nothing (`"none"`). The sum counts, which the k largest
            values do not. (default: `"sum"`)
        activation: `"relu"`, `"elu"`, `"gelu"` or `"none"`. (default: `"relu"`)
        norm: `"batch"`, `"layer"` or `"none"`: after the embedding and each LGCL, and in the
            classifier. (default: `"batch"`)
        readout: `"sum"`, `"mean"`, `"max"`, `"k_largest"` (`lgcn.KLargestReadout`), `"sort"`
            (`lgcn.nn.readout.SortPooling`), or several of these with `+` between them.
            (default: `"sum+max"`)
        readout_k: Values or nodes that the read-outs `"k_largest"` and `"sort"` take.
            (default: 16)
        pooling: What makes the graphs smaller between two LGCLs: `"topk"`
            (`lgcn.nn.pooling.TopKPooling`), `"sag"` (`SAGPooling`), `"cluster"`
            (`ClusterPooling`), or nothing (`"none"`). (default: `"none"`)
        ratio: Share of the nodes that `"topk"` and `"sag"` keep. (default: 0.5)
        dropout: Dropout rate of the inputs of both layers of the classifier. (default: 0.5)
        input_dropout: Dropout rate of the input features. (default: 0)
        lgcl_dropout: Dropout rate of the values that LGCLs select. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries in the LGCLs. (default: 0)
        input_scale: Factor by which the input features are multiplied. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graphs
        - **output:** scores before softmax or sigmoid, $(G, classes)$ for $G$ graphs

    Example:
        ```python
        graph = Graph.concat([first, second, third])  # with node features x
        model = GraphLGCN(graph.num_features, num_classes=2)
        scores = model(graph.x, graph)  # [3, 2]
        ```
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 32,
        lgcl_channels: int = 32,
        num_layers: int = 3,
        k: int = 8,
        cnn: str = "single",
        rank: Rank = "raw",
        self_loops: bool = False,
        zeros: Zeros = "pad",
        append: Append = "sum",
        activation: str = "relu",
        norm: Norm = "batch",
        readout: str = "sum+max",
        readout_k: int = 16,
        pooling: Pooling = "none",
        ratio: float = 0.5,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        lgcl_dropout: float = 0.0,
        adj_dropout: float = 0.0,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("append", append, ("none", "mean", "sum")),
            ("activation", activation, ACTIVATIONS),
            ("norm", norm, ("batch", "layer", "none")),
            ("pooling", pooling, ("none", "topk", "sag", "cluster")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        function: Callable[[Tensor], Tensor] | None = (
            None if activation == "none" else getattr(F, activation)
        )
        self.activation = Activation(function)

        def make_readout(width: int) -> JoinedReadout:
            return JoinedReadout(readout, width, readout_k, activation=function)

        self.embedding = GCNLayer(
            in_channels, hidden_channels, "none", dropout=input_dropout, scale=input_scale
        )
        # One norm and one read-out per level: that of the embedding, and those of the LGCLs.
        self.norms = ModuleList([_norm(norm, hidden_channels)])
        self.readouts = ModuleList([make_readout(hidden_channels)])
        self.layers, self.pools = ModuleList(), ModuleList()
        width = hidden_channels
        for number in range(num_layers):
            if number > 0:
                self.pools.append(_pool(pooling, width, ratio))
            self.layers.append(
                LGConv(
                    width,
                    lgcl_channels,
                    k,
                    cnn,
                    rank=rank,
                    self_loops=self_loops,
                    zeros=zeros,
                    mean=append == "mean",
                    sum=append == "sum",
                    dropout=lgcl_dropout,
                    adj_dropout=adj_dropout,
                    activation=function,
                )
            )
            self.norms.append(_norm(norm, lgcl_channels))
            self.readouts.append(make_readout(lgcl_channels))
            width += lgcl_channels
        readouts: Any = self.readouts
        self.classifier = _Classifier(
            sum(one.out_channels for one in readouts),
            hidden_channels,
            num_classes,
            norm,
            dropout,
            self.activation,
        )

    def reset_parameters(self) -> None:
        """Draws new weights in all layers."""
        parts = (*self.norms, *self.readouts, *self.layers, *self.pools)
        for module in (self.embedding, *parts, self.classifier):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Scores the classes of every graph.

        Args:
            x: Node features.
            graph: The graphs. Without `ptr`, it is one graph.
        """
        scores: Tensor = self.classifier(self.embed(x, graph))
        return scores

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns what the classifier sees of each graph: the read-outs of all levels.

        Args:
            x: Node features.
            graph: As in `forward`.
        """
        h = new = self.activation(self.norms[0](self.embedding(x, graph)))
        seen = [self.readouts[0](new, offsets_of_graphs(graph))]
        for number, layer in enumerate(self.layers):
            if number > 0 and not isinstance(self.pools[number - 1], Identity):
                h, graph, _ = self.pools[number - 1](h, graph)
            new = self.activation(self.norms[number + 1](layer(h, graph)))
            seen.append(self.readouts[number + 1](new, offsets_of_graphs(graph)))
            h = torch.cat([h, new], dim=1)
        return torch.cat(seen, dim=1)

    @property
    def can_capture(self) -> bool:
        """Whether a training step launches the same kernels on the same memory each time.

        It does not if the number of edges changes: with learned pooling, or if dropout removes
        edges.
        """
        convs: Any = self.layers
        removes = any(conv.zeros == "pad" and conv.adj_dropout > 0 for conv in convs)
        return not removes and not any(
            isinstance(pool, (TopKPooling, SAGPooling)) for pool in self.pools
        )

    @property
    def first_layer(self) -> Module:
        """The layer that reads the input features."""
        return self.embedding


class _Classifier(Module):
    """A perceptron with one hidden layer, each layer after a norm and dropout."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_classes: int,
        norm: Norm,
        dropout: float,
        activation: Activation,
    ) -> None:
        super().__init__()
        of_readouts = _norm(norm, in_channels)
        if isinstance(of_readouts, BatchNorm):
            of_readouts.eps = READOUT_EPS
        self.norms = ModuleList([of_readouts, _norm(norm, hidden_channels)])
        self.hidden = Linear(in_channels, hidden_channels)
        self.out = Linear(hidden_channels, num_classes)
        self.out_channels = num_classes
        self.dropout = dropout
        self.activation = activation

    def reset_parameters(self) -> None:
        for module in (*self.norms, self.hidden, self.out):
            if not isinstance(module, Identity):
                module.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        x = drop(self.norms[0](x), self.dropout, self.training)
        x = self.activation(self.norms[1](self.hidden(x)))
        scores: Tensor = self.out(drop(x, self.dropout, self.training))
        return scores


def _norm(name: Norm, width: int) -> Module:
    if name == "batch":
        return BatchNorm(width)
    return LayerNorm(width) if name == "layer" else Identity()


def _pool(name: Pooling, width: int, ratio: float) -> Module:
    if name == "topk":
        return TopKPooling(width, ratio)
    if name == "sag":
        return SAGPooling(width, ratio)
    return ClusterPooling() if name == "cluster" else Identity()
