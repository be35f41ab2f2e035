"""MLP: linear layers, which ignore the edges."""

from itertools import pairwise

from torch import Tensor

from lgcn.graph import Graph
from lgcn.paper.baselines.inputs import SparseLinear, glorot_linear
from lgcn.paper.baselines.stack import Stack, widths


class MLP(Stack):
    r"""Linear layers with ReLU between them and dropout before each.

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
        sizes = widths(in_channels, hidden_channels, num_layers, num_classes)
        layers = [SparseLinear(glorot_linear(before, after)) for before, after in pairwise(sizes)]
        super().__init__(layers, dropout, input_scale=input_scale)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.apply_layers(x)
