"""GraphSAGE for whole graphs, with PyG's layer."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import SAGEConv

from lgcn.graph import Graph
from lgcn.nn.k_largest_aggregation import KLargestAggregation
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.nn.readout import SimpleReadout
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron, check_choice
from lgcn.paper.baselines.graphsage import AGGREGATORS
from lgcn.paper.baselines.inputs import dense, scale
from lgcn.paper.baselines.stack import widths


class GraphSAGE(GraphStack):
    r"""The layers of ["Inductive Representation Learning on Large
    Graphs"](https://arxiv.org/abs/1706.02216) with the read-out of ["A Fair Comparison of Graph
    Neural Networks for Graph Classification"](https://arxiv.org/abs/1912.09893). Layers are
    `torch_geometric.nn.SAGEConv`, followed by ReLU:

    $$
    \mathbf{x}^{\prime}_i = \mathrm{relu}(\mathbf{W}_1 \mathbf{x}_i + \mathbf{W}_2 \,
    \mathrm{aggregate}_{j \in \mathcal{N}(i)} \mathbf{x}_j)
    $$

    With the aggregator `"max"`, neighbours first pass a linear layer and ReLU, as in the paper of
    GraphSAGE. The features of all layers side by side are read out by their maximum over the nodes,
    and a perceptron with one hidden layer classifies the graph.

    The comparison's program has no ReLU after layers with `"mean"` and `"sum"`, and an earlier
    version of the layer, in which a node counts as one of its neighbours. Edge weights are not
    used. Sparse features are made dense, batch by batch.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of all layers, and of the classifier's hidden layer. (default: 64)
        num_layers: Number of layers `SAGEConv`. (default: 3)
        dropout: Dropout rate of the classifier's hidden features. (default: 0)
        aggregator: `"mean"`, `"max"` or `"sum"`. (default: `"max"`)
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
        num_layers: int = 3,
        dropout: float = 0.0,
        aggregator: str = "max",
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        check_choice("aggregator", aggregator, AGGREGATORS)
        sizes = widths(in_channels, hidden_channels, num_layers, hidden_channels)
        self.convs = ModuleList(_layer(*size, aggregator) for size in pairwise(sizes))
        self.readout = SimpleReadout("max")
        self.classifier = Perceptron(
            num_layers * hidden_channels, hidden_channels, num_classes, dropout
        )

    @property
    def first_layer(self) -> Module:
        return self.convs[0]

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the largest features of all layers side by side, see `GraphStack.embed`."""
        index = graph.edges()[0]
        x = scale(dense(x), self.input_scale)
        levels = []
        for conv in self.convs:
            x = torch.relu(conv(x, index))
            levels.append(x)
        out: Tensor = self.readout(torch.cat(levels, dim=1), offsets_of_graphs(graph))
        return out


def _layer(in_channels: int, out_channels: int, aggregator: str) -> SAGEConv:
    if aggregator == "max":
        # The maximum. Its backward pass takes a fifth of the time of PyG's.
        return SAGEConv(in_channels, out_channels, KLargestAggregation(1), project=True)
    return SAGEConv(in_channels, out_channels, aggregator)
