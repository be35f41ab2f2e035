"""Several read-outs side by side."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module, ModuleList

from lgcn.nn.readout.k_largest_readout import KLargestReadout
from lgcn.nn.readout.simple import SimpleReadout
from lgcn.nn.readout.sort_pooling import SortPooling
from lgcn.utils.choices import readout_names


class JoinedReadout(Module):
    """Read-outs side by side, by their names: `"sum+max+k_largest"`.

    Args:
        names: `"sum"`, `"mean"`, `"max"`, `"k_largest"` or `"sort"`, or several of these with `+`
            between them.
        in_channels: Features per node. Each read-out gives as many features per graph.
        k: The k of `"k_largest"` and `"sort"`. (default: 16)
        cnn: The CNN of `"k_largest"` and `"sort"`. (default: `"single"`)
        activation: Function that follows the CNN. (default: identity)

    Shapes:
        - **input:** node features $(N, C)$ and the node offsets of the graphs $(G + 1)$
        - **output:** $(G, R C)$ for $R$ read-outs
    """

    def __init__(
        self,
        names: str,
        in_channels: int,
        k: int = 16,
        cnn: str = "single",
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.names = readout_names(names)
        self.activation = activation
        self.readouts = ModuleList()
        for name in self.names:
            if name == "k_largest":
                made: Module = KLargestReadout(
                    in_channels, in_channels, k, cnn, activation=activation
                )
            elif name == "sort":
                made = SortPooling(in_channels, in_channels, k, cnn, activation=activation)
            else:
                made = SimpleReadout(name)
            self.readouts.append(made)
        self.out_channels = len(self.names) * in_channels

    def reset_parameters(self) -> None:
        """Draws new weights in all read-outs."""
        for readout in self.readouts:
            if not isinstance(readout, SimpleReadout):
                readout.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Reads out each graph.

        Args:
            x: Node features.
            ptr: Node offsets of the graphs.
        """
        parts = []
        for readout in self.readouts:
            part = readout(x, ptr=ptr)
            if self.activation is not None and not isinstance(readout, SimpleReadout):
                part = self.activation(part)
            parts.append(part)
        return torch.cat(parts, dim=1)
