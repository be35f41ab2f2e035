"""A perceptron, before and after a sum over the nodes: what can be learned without the edges."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.dense import Linear

from lgcn.graph import Graph
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.nn.readout import SimpleReadout
from lgcn.ops.structure import csr_parts
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron, check_choice
from lgcn.paper.baselines.inputs import SparseLinear, scale
from lgcn.paper.baselines.stack import widths
from lgcn.paper.baselines.structure_blind import VARIANTS


class StructureBlind(GraphStack):
    r"""The baselines of ["A Fair Comparison of Graph Neural Networks for Graph
    Classification"](https://arxiv.org/abs/1912.09893), which use the nodes' features and never the
    edges. `"fingerprint"`, which the comparison uses for chemical sets except ENZYMES, sums the
    features first, as a molecular fingerprint does. `"multiset"` (DeepMultisets) is for the others:

    $$
    Y_\text{fingerprint} = \mathrm{MLP}\Big(\sum_i \mathbf{x}_i\Big), \qquad
    Y_\text{multiset} = \mathrm{MLP}\Big(\sum_i \mathrm{relu}(W \mathbf{x}_i + b)\Big)
    $$

    Each MLP has one hidden layer. The comparison's program applies ReLU to the scores of
    `"fingerprint"` too; this network does not.

    What edges say can still be in the features. In the comparison's published row, nodes of the
    social sets have their degree as the feature, and so does the preset of this model
    (`structural_features=degree`). With the usual `structural_features=auto` they would have
    triangles and more, which is no longer blind. To leave out the degree too, give all nodes a
    feature of ones.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per graph.
        hidden_channels: Width of all layers, and of the classifier's hidden layer. (default: 128)
        num_layers: Number of layers before the sum with `"multiset"`; with `"fingerprint"`, there
            are none. (default: 1)
        dropout: Dropout rate of the classifier's hidden features. (default: 0)
        variant: `"fingerprint"` or `"multiset"`. (default: `"multiset"`)
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
        num_layers: int = 1,
        dropout: float = 0.0,
        variant: str = "multiset",
        input_scale: float = 1.0,
    ) -> None:
        super().__init__(input_scale)
        check_choice("variant", variant, VARIANTS)
        sizes = widths(in_channels, hidden_channels, num_layers, hidden_channels)
        self.layers = ModuleList()
        if variant == "multiset":
            self.layers.extend(SparseLinear(Linear(*size)) for size in pairwise(sizes))
        summed = in_channels if variant == "fingerprint" else hidden_channels
        self.classifier: Perceptron = Perceptron(summed, hidden_channels, num_classes, dropout)

    @property
    def first_layer(self) -> Module:
        return self.layers[0] if self.layers else self.classifier.hidden

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns the sums over the nodes, see `GraphStack.embed`."""
        x = scale(x, self.input_scale)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return sum_nodes(x, offsets_of_graphs(graph))


def sum_nodes(x: Tensor, ptr: Tensor) -> Tensor:
    """The sum of the features of the nodes of each graph.

    Args:
        x: Node features, dense or sparse CSR.
        ptr: Node offsets of the graphs.
    """
    if x.layout != torch.sparse_csr:
        total: Tensor = SimpleReadout("sum")(x, ptr)
        return total
    rowptr, col, values = csr_parts(x)
    graph_of = torch.repeat_interleave(rowptr[ptr.long()].long().diff())
    out = values.new_zeros((ptr.numel() - 1) * x.size(1))
    return out.index_add(0, graph_of * x.size(1) + col, values).view(-1, x.size(1))
