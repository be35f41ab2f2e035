"""What the baselines have in common: layers one after the other."""

from collections.abc import Callable, Iterable
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList

from lgcn.nn.baselines.inputs import drop


class Stack(Module):
    """Layers with dropout before each and a non-linearity between them.

    Args:
        layers: At least one.
        dropout: Dropout rate of each layer's input.
        activation: Between the layers. (default: ReLU)
    """

    def __init__(
        self,
        layers: Iterable[Module],
        dropout: float,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(layers)
        self.dropout = dropout
        self.activation = activation

    def reset_parameters(self) -> None:
        for layer in self.layers:
            reset: Any = layer.reset_parameters
            reset()

    @property
    def first_layer(self) -> Module:
        return self.layers[0]

    def apply_layers(self, x: Tensor, *edges: Tensor | None) -> Tensor:
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = self.activation(x)
            x = layer(drop(x, self.dropout, self.training), *edges)
        return x


def widths(in_channels: int, hidden_channels: int, num_layers: int, out_channels: int) -> list[int]:
    """The features before and after each layer."""
    if num_layers < 1:
        raise ValueError(f"num_layers must be at least 1, got {num_layers}")
    return [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
