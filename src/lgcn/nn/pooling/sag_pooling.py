"""SAGPool: keep the nodes that a graph convolution scores highest."""

from torch import Tensor
from torch.nn import Module

from lgcn.graph import Graph
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.pooling.kept import Gate, Kept, check_ratio, keep_highest


class SAGPooling(Module):
    r"""The pooling from the ["Self-Attention Graph Pooling"](https://arxiv.org/abs/1904.08082)
    paper.

    $$
    y = \hat{A} (X w + b), \qquad i = \mathrm{top}_{\lceil r N \rceil}(y), \qquad
    X' = X_i \odot \mathrm{gate}(y_i), \qquad A' = A_{i,i}
    $$

    for each graph, with the normalised adjacency $\hat{A}$ of `lgcn.nn.GCNLayer`. Ties go to the
    earlier node.

    Args:
        in_channels: Features per node.
        ratio: Share of the nodes of each graph that is kept, rounded up. (default: 0.5)
        gate: `"tanh"`, as in the paper, or `"sigmoid"`. (default: `"tanh"`)

    Shapes:
        - **input:** node features $(N, C)$ and an `lgcn.Graph` with `ptr`
        - **output:** a triple `(x, graph, nodes)` of the nodes that are kept
    """

    def __init__(self, in_channels: int, ratio: float = 0.5, gate: Gate = "tanh") -> None:
        super().__init__()
        check_ratio(ratio)
        if gate not in ("tanh", "sigmoid"):
            raise ValueError(f"gate must be tanh or sigmoid, got {gate!r}")
        self.ratio = ratio
        self.gate: Gate = gate
        self.score = GCNLayer(in_channels, 1)

    def reset_parameters(self) -> None:
        """Draws new weights of the convolution."""
        self.score.reset_parameters()

    def forward(self, x: Tensor, graph: Graph) -> Kept:
        """Keeps the nodes with the highest scores.

        Args:
            x: Node features.
            graph: The graphs.
        """
        score = self.score(x, graph).squeeze(1)
        return keep_highest(x, graph, score, self.ratio, self.gate)

    def extra_repr(self) -> str:
        return f"ratio={self.ratio}, gate={self.gate!r}"
