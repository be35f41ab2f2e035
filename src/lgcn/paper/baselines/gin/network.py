"""GIN for whole graphs, with PyG's layer."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, ReLU, Sequential
from torch_geometric.nn import GINConv
from torch_geometric.nn.dense import Linear

from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.nn.readout import SimpleReadout
from lgcn.ops.dropout import dropout as drop
from lgcn.paper.baselines.gin import READOUTS
from lgcn.paper.baselines.graph_stack import GraphStack, check_choice
from lgcn.paper.baselines.inputs import SparseLinear, scale
from lgcn.paper.baselines.stack import widths


class GIN(GraphStack):
    r"""The network of ["How Powerful are Graph Neural
    Networks?"](https://arxiv.org/abs/1810.00826), as run in ["A Fair Comparison of Graph Neural
    Networks for Graph Classification"](https://arxiv.org/abs/1912.09893): a perceptron of each
    node, then layers `torch_geometric.nn.GINConv`. All perceptrons have two layers, each with
    batch norm and ReLU.

    $$
    H_0 = \mathrm{MLP}_0(X), \qquad
    H_{l+1} = \mathrm{MLP}_{l+1}((1 + \epsilon_l) H_l + A H_l)
    $$

    Every level is read out, and has a linear classifier of its own. The scores of a graph are the
    sums over the levels (jumping knowledge):

    $$
    Y = \sum_{l=0}^{L} \mathrm{dropout}(\mathrm{readout}(H_l) W_l + b_l)
    $$

    Two differences from the comparison's program: that drops scores of the first level in
    evaluation too, and applies that level's classifier before the read-out instead of after it.
    Edge weights are not used.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of all layers. (default: 64)
        num_layers: Number of layers `GINConv`, $L$. (default: 4)
        dropout: Dropout rate of each level's scores. (default: 0.5)
        train_eps: Learn each $\epsilon_l$, which else is zero. (default: `True`)
        readout: `"sum"` or `"mean"`. (default: `"sum"`)
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
        num_layers: int = 4,
        dropout: float = 0.5,
        train_eps: bool = True,
        readout: str = "sum",
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        check_choice("readout", readout, READOUTS)
        self.first = _perceptron(in_channels, hidden_channels)
        sizes = widths(hidden_channels, hidden_channels, num_layers, hidden_channels)
        self.convs = ModuleList(
            GINConv(_perceptron(*size), train_eps=train_eps) for size in pairwise(sizes)
        )
        self.readout = SimpleReadout("sum" if readout == "sum" else "mean")
        self.classifier = _SumOfScores(hidden_channels, num_layers + 1, num_classes, dropout)

    @property
    def first_layer(self) -> Module:
        return self.first[0]

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the read-outs of all levels side by side, see `GraphStack.embed`."""
        index, ptr = graph.edges()[0], offsets_of_graphs(graph)
        x = self.first(scale(x, self.input_scale))
        seen = [self.readout(x, ptr)]
        for conv in self.convs:
            x = conv(x, index)
            seen.append(self.readout(x, ptr))
        return torch.cat(seen, dim=1)


class _SumOfScores(Module):
    """A linear classifier per level, with dropout of its scores, and their sum."""

    def __init__(self, channels: int, levels: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.linears = ModuleList(Linear(channels, num_classes) for _ in range(levels))
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        levels = x.chunk(len(self.linears), dim=1)
        scores = [
            drop(linear(level), self.dropout, self.training)
            for linear, level in zip(self.linears, levels, strict=True)
        ]
        return torch.stack(scores).sum(0)


def _perceptron(in_channels: int, out_channels: int) -> Sequential:
    """Two layers, each with batch norm and ReLU."""
    layers: list[Module] = []
    for width in (in_channels, out_channels):
        linear = SparseLinear(Linear(width, out_channels))
        layers += [linear, BatchNorm(out_channels), ReLU()]
    return Sequential(*layers)
