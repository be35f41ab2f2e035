"""The Chebyshev network, with PyG's layer."""

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.nn import ChebConv

from lgcn.graph import Graph
from lgcn.paper.baselines.inputs import SparseLinear
from lgcn.paper.baselines.stack import Stack, widths


class ChebNet(Stack):
    r"""The network of ["Convolutional Neural Networks on Graphs with Fast Localized Spectral
    Filtering"](https://arxiv.org/abs/1606.09375) as the GCN paper compares with it: two layers
    `torch_geometric.nn.ChebConv` in place of GCN's.

    $$
    \mathbf{X}_{l+1} = \mathrm{ReLU} \Big( \sum_{i=0}^{\mathrm{order}}
    T_i(\tilde{\mathbf{L}}) \, \mathbf{X}_l \mathbf{W}_{l,i} + \mathbf{b} \Big)
    $$

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        order: The highest degree of the polynomials, the GCN paper's K. (default: 2)
        hidden_channels: Width of the hidden layers. (default: 16)
        num_layers: Number of layers. (default: 2)
        dropout: Dropout rate of each layer's input. (default: 0.5)
        input_scale: Factor of the input features. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid $(N, \mathrm{classes})$
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        order: int = 2,
        hidden_channels: int = 16,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_scale: float = 1.0,
    ) -> None:
        sizes = widths(in_channels, hidden_channels, num_layers, num_classes)
        layers = [_NarrowChebConv(before, after, order + 1) for before, after in pairwise(sizes)]
        super().__init__(layers, dropout, input_scale=input_scale)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.apply_layers(x, *graph.edges())


class _NarrowChebConv(ChebConv):  # type: ignore[misc]
    """PyG's layer with the linear maps before the sums over neighbours.

    The result is the same, but the sums are then over a few output features instead of a thousand
    input features, and sparse features stay sparse. The polynomials of the Laplacian are evaluated
    by Clenshaw's recurrence.
    """

    def __init__(self, in_channels: int, out_channels: int, K: int) -> None:
        super().__init__(in_channels, out_channels, K)
        self.lins: ModuleList = ModuleList(SparseLinear(lin) for lin in self.lins)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edge_index, norm = self.__norm__(
            edge_index, x.size(0), edge_weight, self.normalization, None, dtype=x.dtype
        )
        terms = [lin(x) for lin in self.lins]
        after = second = torch.zeros_like(terms[0])
        for term in reversed(terms[1:]):
            after, second = (
                2 * self.propagate(edge_index, x=after, norm=norm) + term - second,
                after,
            )
        out: Tensor = terms[0] + self.propagate(edge_index, x=after, norm=norm) - second
        out += self.bias
        return out
