"""GAT, with PyG's layer."""

from typing import Any, Optional

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.typing import OptTensor

from lgcn.graph import Graph
from lgcn.ops.dropout import torch_dropout
from lgcn.paper.baselines.inputs import SparseLinear
from lgcn.paper.baselines.stack import Stack, widths


class GAT(Stack):
    r"""The network of ["Graph Attention Networks"](https://arxiv.org/abs/1710.10903): layers
    `torch_geometric.nn.GATConv` with several heads side by side and ELU between them; the
    heads of the last layer are averaged. Layers between the first and the last have a skip
    connection, as in the paper's inductive network.

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        hidden_channels: Width of each head. (default: 8)
        num_layers: Number of layers. (default: 2)
        heads: Heads of all layers but the last. (default: 8)
        out_heads: Heads of the last layer. (default: 1)
        dropout: Dropout rate of each layer's input. (default: 0.6)
        input_scale: Factor of the input features. (default: 1)
        adj_dropout: Dropout rate of the attention coefficients. (default: 0.6)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid $(N, \mathrm{classes})$
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 8,
        num_layers: int = 2,
        heads: int = 8,
        out_heads: int = 1,
        dropout: float = 0.6,
        adj_dropout: float = 0.6,
        input_scale: float = 1.0,
    ) -> None:
        sizes = widths(in_channels, hidden_channels * heads, num_layers, num_classes)
        layers = []
        for number, width in enumerate(sizes[:-1], start=1):
            last = number == num_layers
            layer = _Layer(
                width,
                num_classes if last else hidden_channels,
                heads=out_heads if last else heads,
                concat=not last,
                attention_dropout=adj_dropout,
                residual=1 < number < num_layers,
            )
            layers.append(layer)
        layers[0].lin = SparseLinear(layers[0].lin)
        super().__init__(layers, dropout, F.elu, input_scale=input_scale)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.apply_layers(x, graph.edges()[0])


class _Layer(GATConv):  # type: ignore[misc]
    """PyG's layer, with dropout of the attention that uses the generators of the training."""

    def __init__(self, *sizes: int, attention_dropout: float, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.attention_dropout = attention_dropout

    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: OptTensor,
        edge_attr: OptTensor,
        index: Tensor,
        ptr: OptTensor,
        dim_size: Optional[int],  # noqa: UP045 (PyG reads the annotations, and knows no int | None)
    ) -> Tensor:
        alpha = super().edge_update(alpha_j, alpha_i, edge_attr, index, ptr, dim_size)
        return torch_dropout(alpha, self.attention_dropout, self.training)
