"""PATCHY-SAN: a 1-D convolution over the neighbourhoods of a sequence of nodes."""

from math import sqrt

import torch
from torch import Tensor
from torch.nn import Conv1d, Module, ModuleList, Parameter
from torch.nn.init import uniform_

from lgcn.graph import Graph
from lgcn.ops import spmm
from lgcn.ops.structure import csr_parts
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron, check_choice
from lgcn.paper.baselines.inputs import scale
from lgcn.paper.baselines.patchy_san import LABELLINGS
from lgcn.paper.baselines.patchy_san.field_cache import fields_of_graphs
from lgcn.paper.baselines.patchy_san.receptive_fields import Shape

FIELD_CHANNELS, PLACE_CHANNELS, PLACES = 16, 8, 10  # of the convolutions, in all experiments


class PatchySan(GraphStack):
    r"""The network of ["Learning Convolutional Neural Networks for
    Graphs"](https://arxiv.org/abs/1605.05273). It turns each graph into a grid of $w$ receptive
    fields of $k$ nodes:

    1. The nodes are sorted by a labelling, the largest label first. Every `stride`-th of them is
       the root of a field, until there are $w$.
    2. A search from the root adds all nodes at distance 1, 2, ... until there are at least $k$.
    3. These are sorted by their distance to the root, then by their labels, and the first $k$ are
       the field $v_{i1}, \dots, v_{ik}$.

    Missing nodes and missing fields have features of zeros. A 1-D convolution whose kernel and
    stride are $k$ reads the fields, another reads ten of its outputs at a time:

    $$
    \mathbf{h}_i = \mathrm{relu}\Big(\sum_{p=1}^k W_p \mathbf{x}_{v_{ip}} + \mathbf{b}\Big), \qquad
    \mathbf{z}_i = \mathrm{relu}\Big(\sum_{q=1}^{10} V_q \mathbf{h}_{i+q-1} + \mathbf{c}\Big)
    $$

    with 16 and 8 filters. A perceptron with one hidden layer classifies all $\mathbf{z}_i$ side by
    side. With fewer than ten inputs, the second kernel is as wide as these.

    Differences from the paper: it breaks ties of labels by Nauty's canonical form. Here ties are
    broken by refining colours (`lgcn.paper.baselines.patchy_san.ranking.rank`): in step 1 in the
    graph, in step 3 in the neighbourhood, where the first colours are distances and labels. Of
    nodes that are still tied, one is put first and colours are refined again: in step 1 the node
    with the smallest number, in step 3 the one with the largest refined colour in the graph, then
    with the smallest number. So the fields do not depend on the order of the nodes if refinement
    tells apart all nodes that differ, as in trees and almost all random graphs; in regular graphs
    they do. Nodes that look the same but have different features are read in the order of the
    nodes, as in the paper. Labels are those of the graph, and are not computed again in each
    neighbourhood. Edge features ($k = 10^E$), weights and directions of edges, and self-loops are
    not used.

    Fields are computed on the CPU and kept, for all models of the process, up to 256 MiB. With
    `"betweenness"`, the time grows with nodes times edges of a graph: two seconds for the largest
    graph of DD (6,000 nodes, 29,000 entries of the adjacency), and up to a minute for 70,000 nodes
    and entries. Above that, there is a warning.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of the classifier's hidden layer. (default: 128)
        num_layers: Number of 1-D convolutions. The first reads the fields; each other one is like
            the second. (default: 2)
        dropout: Dropout rate of the classifier's hidden features. (default: 0.5)
        width: Number of fields per graph, $w$. The experiments take the average number of nodes:
            `lgcn.paper.baselines.patchy_san.average_nodes`. (default: 30)
        stride: Every how many nodes there is a field. (default: 1)
        field: Nodes per field, $k$. (default: 10)
        labelling: `"betweenness"`, `"degree"`, or `"wl"`, colour refinement. (default: `"wl"`)
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
        hidden_channels: int = 128,
        num_layers: int = 2,
        dropout: float = 0.5,
        width: int = 30,
        stride: int = 1,
        field: int = 10,
        labelling: str = "wl",
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        check_choice("labelling", labelling, LABELLINGS)
        given = {"num_layers": num_layers, "width": width, "stride": stride, "field": field}
        for name, value in given.items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.shape = Shape(width, stride, field, labelling)
        self.of_fields = FieldConvolution(in_channels, FIELD_CHANNELS, field)
        self.of_places = ModuleList()
        channels, places = FIELD_CHANNELS, width
        for _ in range(num_layers - 1):
            kernel = min(PLACES, places)
            self.of_places.append(Conv1d(channels, PLACE_CHANNELS, kernel))
            channels, places = PLACE_CHANNELS, places - kernel + 1
        self.classifier = Perceptron(channels * places, hidden_channels, num_classes, dropout)

    @property
    def first_layer(self) -> Module:
        return self.of_fields

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the outputs of the last convolution side by side, see `GraphStack.embed`."""
        fields = fields_of_graphs(graph, self.shape)
        places = torch.relu(self.of_fields(scale(x, self.input_scale), fields))
        for conv in self.of_places:
            places = torch.relu(conv(places))
        return places.flatten(1)


class FieldConvolution(Module):
    """A 1-D convolution whose kernel and stride are a field, over fields side by side.

    Each node's features are multiplied by the weights of all positions, and a field is a sum of
    such products. So features can be sparse, and those of the fields, which overlap, are not
    copied.

    Args:
        in_channels: Input features per node.
        out_channels: Number of filters.
        field: Nodes per field.

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the node numbers of the fields
          $(G, w, k)$, -1 for none
        - **output:** $(G, filters, w)$
    """

    def __init__(self, in_channels: int, out_channels: int, field: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.empty(out_channels, field, in_channels))
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # As torch.nn.Conv1d. Without features, nothing is read.
        bound = 1 / sqrt(max(self.weight[0].numel(), 1))
        uniform_(self.weight, -bound, bound)
        uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor, fields: Tensor) -> Tensor:
        filters, field, channels = self.weight.shape
        weight = self.weight.permute(2, 1, 0).reshape(channels, field * filters)
        products = spmm(*csr_parts(x), weight) if x.layout == torch.sparse_csr else x @ weight
        products = products.view(-1, filters)  # one row per node and position
        there = fields >= 0
        counts = there.sum(2).flatten()
        rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        col = (fields * field + torch.arange(field, device=fields.device))[there]
        sums = spmm(rowptr, col, products.new_ones(col.numel()), products) + self.bias
        return sums.view(*fields.shape[:2], filters).transpose(1, 2)
