"""The base of the baselines that classify whole graphs."""

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense import Linear
from torch_geometric.nn.inits import reset

from lgcn.graph import Graph
from lgcn.ops.dropout import dropout as drop


class GraphStack(Module):
    """A network of whole graphs: `embed` computes features of each graph, `classifier` its scores.

    A subclass defines both. Layers start with the weights of `torch.nn.Linear`, as in the programs
    of the papers.

    Args:
        input_scale: Factor of the input features. (default: 1)

    Attributes:
        can_capture: Whether a training step launches the same kernels on the same memory each time.
            The batches differ, so that nothing is gained.
    """

    can_capture = False
    classifier: Module

    def __init__(self, input_scale: float = 1.0) -> None:
        super().__init__()
        self.input_scale = input_scale

    def reset_parameters(self) -> None:
        """Draws new weights in all layers."""
        for part in self.children():
            reset(part)

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        """Returns what the classifier sees of each graph.

        Args:
            x: Node features.
            graph: The graphs. Without `ptr`, it is one graph.
        """
        raise NotImplementedError

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Scores the classes of each graph.

        Args:
            x: Node features.
            graph: As in `embed`.
        """
        scores: Tensor = self.classifier(self.embed(x, graph))
        return scores


class Perceptron(Module):
    """A hidden layer with ReLU and dropout, and a linear layer.

    Args:
        in_channels: Input features.
        hidden_channels: Width of the hidden layer.
        out_channels: Output features.
        dropout: Dropout rate of the hidden features.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float
    ) -> None:
        super().__init__()
        self.hidden = Linear(in_channels, hidden_channels)
        self.out = Linear(hidden_channels, out_channels)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.hidden(x))
        out: Tensor = self.out(drop(hidden, self.dropout, self.training))
        return out


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises ValueError if an argument has none of the known values."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
