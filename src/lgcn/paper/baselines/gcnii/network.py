"""GCNII, with PyG's layer."""

from torch import Tensor
from torch_geometric.nn import GCN2Conv

from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.ops import spmm
from lgcn.paper.baselines.inputs import SparseLinear, drop, glorot_linear
from lgcn.paper.baselines.stack import Stack


class GCNII(Stack):
    r"""The inductive network of ["Simple and Deep Graph Convolutional
    Networks"](https://arxiv.org/abs/2007.02133): a linear map, layers
    `torch_geometric.nn.GCN2Conv` with two weights and a skip connection (the paper's GCNII*),
    and a linear classifier. ReLU and dropout are between them.

    $$
    \mathbf{X}_{l+1} = \mathrm{ReLU} \big( (1 - \alpha) \hat{\mathbf{A}} \mathbf{X}_l
    ((1 - \beta_l) \mathbf{I} + \beta_l \mathbf{W}_{l,1}) + \alpha \mathbf{X}_0
    ((1 - \beta_l) \mathbf{I} + \beta_l \mathbf{W}_{l,2}) + \mathbf{X}_l \big), \qquad
    \beta_l = \log(\theta / l + 1)
    $$

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        hidden_channels: Width of all layers. (default: 64)
        num_layers: Number of layers between the linear maps. (default: 9)
        alpha: Share of the first layer in each layer, $\alpha$. (default: 0.5)
        theta: Strength of the linear maps, $\theta$. (default: 1)
        dropout: Dropout rate of each layer's input. (default: 0.2)
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
        hidden_channels: int = 64,
        num_layers: int = 9,
        alpha: float = 0.5,
        theta: float = 1.0,
        dropout: float = 0.2,
        input_scale: float = 1.0,
    ) -> None:
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1, got {num_layers}")
        first = SparseLinear(glorot_linear(in_channels, hidden_channels))
        last = glorot_linear(hidden_channels, num_classes)
        # The graph has its adjacency normalised already, once for all layers and epochs.
        between = [
            _Layer(hidden_channels, alpha, theta, number, shared_weights=False, normalize=False)
            for number in range(1, num_layers + 1)
        ]
        super().__init__([first, *between, last], dropout, input_scale=input_scale)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        adjacency = graph.adjacency(normalize=True, self_loops=True)
        first, *between, last = self.layers
        start = x = self.activation(first(self.drop_input(x)))
        for layer in between:
            x = drop(x, self.dropout, self.training)
            x = self.activation(layer(x, start, adjacency) + x)
        scores: Tensor = last(drop(x, self.dropout, self.training))
        return scores


class _Layer(GCN2Conv):  # type: ignore[misc]
    """PyG's layer, computed as a sparse product. That needs no memory per edge."""

    def propagate(self, edge_index: CSR, x: Tensor, edge_weight: Tensor | None) -> Tensor:
        return spmm(edge_index.rowptr, edge_index.col, edge_index.values(x.dtype), x)
