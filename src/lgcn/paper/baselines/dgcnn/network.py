"""DGCNN: graph convolutions, the nodes in the order of their last feature, 1-D convolutions."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Conv1d, Module, ModuleList
from torch_geometric.nn.dense import Linear

from lgcn.graph import Graph
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.nn.readout import SortPooling
from lgcn.ops import spmm
from lgcn.paper.baselines.dgcnn import LEAST_K
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron
from lgcn.paper.baselines.inputs import SparseLinear, scale
from lgcn.paper.baselines.stack import widths

NODE_CHANNELS, PLACE_CHANNELS, PLACES = 16, 32, 5  # of the two convolutions, in all experiments


class DGCNN(GraphStack):
    r"""The network of ["An End-to-End Deep Learning Architecture for Graph
    Classification"](https://muhanzhang.github.io/papers/AAAI_2018_DGCNN.pdf). Its graph
    convolutions average over a node and its neighbours; the last one has a single output feature:

    $$
    Z_{l+1} = \tanh(\tilde{D}^{-1} \tilde{A} (Z_l W_l + b_l)), \qquad \tilde{A} = A + I
    $$

    The features of all layers side by side describe a node. The nodes of each graph are sorted by
    the last feature, and the first $k$ are kept (`lgcn.nn.readout.SortPooling`); graphs with fewer
    nodes are filled up with zeros. Then follow a convolution with one position per node and 16
    filters, max-pooling by two, a convolution over five positions with 32 filters, and a perceptron
    with one hidden layer. Edge weights are not used.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of the graph convolutions. (default: 32)
        num_layers: Number of graph convolutions before the last one, which sorts. (default: 3)
        dropout: Dropout rate of the classifier's hidden features. (default: 0.5)
        readout_k: Number of nodes that are kept, $k$, at least 10. The experiments choose it by
            the sizes of the graphs: `lgcn.paper.baselines.dgcnn.k_of_share`. (default: 30)
        dense_channels: Width of the classifier's hidden layer. (default: 128)
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
        hidden_channels: int = 32,
        num_layers: int = 3,
        dropout: float = 0.5,
        readout_k: int = 30,
        dense_channels: int = 128,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        if readout_k < LEAST_K:
            raise ValueError(f"readout_k must be at least {LEAST_K}, got {readout_k}")
        sizes = [*widths(in_channels, hidden_channels, num_layers, hidden_channels), 1]
        self.convs = ModuleList(AveragingLayer(*size) for size in pairwise(sizes))
        width = num_layers * hidden_channels + 1
        self.readout = SortPooling(width, k=readout_k, cnn="none")
        self.of_nodes = Conv1d(1, NODE_CHANNELS, width, width)
        self.of_places = Conv1d(NODE_CHANNELS, PLACE_CHANNELS, PLACES)
        places = readout_k // 2 - PLACES + 1
        self.classifier = Perceptron(places * PLACE_CHANNELS, dense_channels, num_classes, dropout)

    @property
    def first_layer(self) -> Module:
        return self.convs[0]

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the features of the places, after both convolutions, see `GraphStack.embed`."""
        x = scale(x, self.input_scale)
        levels = []
        for conv in self.convs:
            x = torch.tanh(conv(x, graph))
            levels.append(x)
        grid = self.readout(torch.cat(levels, dim=1), offsets_of_graphs(graph))
        places = F.max_pool1d(torch.relu(self.of_nodes(grid.unsqueeze(1))), 2)
        return torch.relu(self.of_places(places)).flatten(1)


class AveragingLayer(Module):
    """A linear map, then the mean over each node and its neighbours, see `DGCNN`.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = SparseLinear(Linear(in_channels, out_channels))

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        rowptr, col, _ = graph.adjacency(self_loops=True)
        x = self.linear(x)
        return spmm(rowptr, col, x.new_ones(col.numel()), x) / rowptr.diff().unsqueeze(1)
