"""What a layer multiplies the messages of edges by: a number that it learns from their features."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from lgcn.errors import UsageError


class EdgeFactor(Module):
    r"""The signed factor $b + f_e \cdot a$ of an edge with the features $f_e$.

    With $b = 1$ and $a = 0$ at the start, a network starts as the one without edge features. The
    constant is learned, too: with a fixed one, a factor whose sign depends on a feature would need
    a large $a$.

    Args:
        edge_channels: Features per edge.

    Shapes:
        - **input:** $(E, D)$
        - **output:** $(E)$
    """

    def __init__(self, edge_channels: int) -> None:
        super().__init__()
        self.edge_channels = edge_channels
        self.weight = Parameter(torch.zeros(edge_channels))
        self.bias = Parameter(torch.ones(1))

    def reset_parameters(self) -> None:
        """Makes all factors one."""
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.ones_(self.bias)

    def forward(self, edge_attr: Tensor | None) -> Tensor:
        check_edge_channels(edge_attr, self.edge_channels)
        assert edge_attr is not None
        # In bfloat16, small changes of a factor around one would be lost.
        with torch.autocast(edge_attr.device.type, enabled=False):
            factor: Tensor = self.bias + edge_attr.to(self.weight.dtype) @ self.weight
        return factor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.edge_channels})"


def check_edge_channels(edge_attr: Tensor | None, edge_channels: int) -> None:
    """Raises UsageError if a graph does not have the edge features that a network reads."""
    if edge_attr is None or edge_attr.size(1) != edge_channels:
        got = "none" if edge_attr is None else f"{edge_attr.size(1)}"
        raise UsageError(
            f"edge_attr must have the {edge_channels} features per edge that the network reads "
            f"(edge_channels), got {got}: give the graph the edge features of the training, or "
            "train without them"
        )
