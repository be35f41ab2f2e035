"""The base of most baselines: layers one after the other."""

from collections.abc import Callable, Iterable
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList

from lgcn.paper.baselines.inputs import drop, scale


class Stack(Module):
    """Layers with dropout before each and a non-linearity between them.

    Args:
        layers: At least one.
        dropout: Dropout rate of each layer's input.
        activation: Between the layers. (default: ReLU)
        input_scale: Factor of the input features. (default: 1)

    Attributes:
        can_capture: Whether a training step launches the same kernels on the same memory each time,
            so that a CUDA graph can replay it. Most layers of PyG do not: they read edges on the
            CPU.
        can_pad: Whether added nodes without neighbours change nothing for the others in training.
    """

    can_capture = False
    can_pad = False

    def __init__(
        self,
        layers: Iterable[Module],
        dropout: float,
        activation: Callable[[Tensor], Tensor] = F.relu,
        *,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(layers)
        self.dropout = dropout
        self.activation = activation
        self.input_scale = input_scale

    def reset_parameters(self) -> None:
        for layer in self.layers:
            reset: Any = layer.reset_parameters
            reset()

    @property
    def first_layer(self) -> Module:
        return self.layers[0]

    def drop_input(self, x: Tensor) -> Tensor:
        """The input features, scaled, with dropout."""
        return drop(scale(x, self.input_scale), self.dropout, self.training)

    def apply_layers(self, x: Tensor, *edges: Tensor | None) -> Tensor:
        """All layers in turn; each gets the features and ``edges``."""
        first, *others = self.layers
        x = first(self.drop_input(x), *edges)
        for layer in others:
            x = layer(drop(self.activation(x), self.dropout, self.training), *edges)
        return x


def widths(in_channels: int, hidden_channels: int, num_layers: int, out_channels: int) -> list[int]:
    """The number of features before the first and after each layer."""
    if num_layers < 1:
        raise ValueError(f"num_layers must be at least 1, got {num_layers}")
    return [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
