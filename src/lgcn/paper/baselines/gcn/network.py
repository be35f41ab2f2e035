"""GCN, with PyG's layer."""

from itertools import pairwise

from torch import Tensor
from torch_geometric.nn import GCNConv

from lgcn.graph import Graph
from lgcn.paper.baselines.inputs import SparseLinear
from lgcn.paper.baselines.stack import Stack, widths


class GCN(Stack):
    r"""The network of ["Semi-supervised Classification with Graph Convolutional
    Networks"](https://arxiv.org/abs/1609.02907): layers `torch_geometric.nn.GCNConv` with ReLU
    between them and dropout before each.

    $$
    \mathbf{X}_{l+1} = \mathrm{ReLU}(\hat{\mathbf{A}} \, \mathbf{X}_l \mathbf{W}_l + \mathbf{b})
    $$

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        hidden_channels: Width of the hidden layers. (default: 16)
        num_layers: Number of layers. (default: 2)
        dropout: Dropout rate of each layer's input. (default: 0.5)
        input_scale: Factor of the input features. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid $(N, \mathrm{classes})$
    """

    can_capture = True
    can_pad = True

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 16,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_scale: float = 1.0,
    ) -> None:
        # The graph has its adjacency normalised already, once for all layers and epochs.
        sizes = widths(in_channels, hidden_channels, num_layers, num_classes)
        layers = [GCNConv(before, after, normalize=False) for before, after in pairwise(sizes)]
        layers[0].lin = SparseLinear(layers[0].lin)
        super().__init__(layers, dropout, input_scale=input_scale)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.apply_layers(x, *graph.edges(normalize=True, self_loops=True))
