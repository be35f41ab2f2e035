"""Top-k pooling: keep the nodes whose features point furthest in a learned direction."""

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from lgcn.graph import Graph
from lgcn.nn.pooling.kept import Gate, Kept, check_ratio, keep_highest


class TopKPooling(Module):
    r"""The pooling (gPool) from the ["Graph U-Nets"](https://arxiv.org/abs/1905.05178) paper.

    $$
    y = \frac{X p}{\Vert p \Vert}, \qquad
    i = \mathrm{top}_{\lceil r N \rceil}(y), \qquad
    X' = X_i \odot \mathrm{gate}(y_i), \qquad A' = A_{i,i}
    $$

    for each graph. Ties go to the earlier node. The edges are those among the nodes that are kept;
    the paper's second power of the adjacency is left out, as PyG does.

    Args:
        in_channels: Features per node.
        ratio: Share of the nodes of each graph that is kept, rounded up. (default: 0.5)
        gate: `"tanh"`, as in PyG, or `"sigmoid"`, as in the paper. (default: `"tanh"`)

    Shapes:
        - **input:** node features $(N, C)$ and an `lgcn.Graph` with `ptr`
        - **output:** a triple `(x, graph, nodes)` of the nodes that are kept
    """

    def __init__(self, in_channels: int, ratio: float = 0.5, gate: Gate = "tanh") -> None:
        super().__init__()
        check_ratio(ratio)
        if gate not in ("tanh", "sigmoid"):
            raise ValueError(f"gate must be tanh or sigmoid, got {gate!r}")
        self.in_channels = in_channels
        self.ratio = ratio
        self.gate: Gate = gate
        self.weight = Parameter(torch.empty(in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws a new direction."""
        bound = self.in_channels**-0.5
        torch.nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, graph: Graph) -> Kept:
        """Keeps the nodes with the highest scores.

        Args:
            x: Node features.
            graph: The graphs.
        """
        score = x @ (self.weight / self.weight.norm())
        return keep_highest(x, graph, score, self.ratio, self.gate)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, ratio={self.ratio}, gate={self.gate!r}"
