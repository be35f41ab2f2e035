"""SortPooling: the features of the k nodes that come first by their last feature."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.inits import reset

from lgcn.nn.grid_cnn import GridCNN, draw_weights, make_cnn
from lgcn.nn.groups import rows_of_graphs
from lgcn.nn.readout.k_largest_readout import over_positions
from lgcn.ops import k_largest


class SortPooling(Module):
    r"""The read-out of DGCNN, from the
    ["An End-to-End Deep Learning Architecture for Graph
    Classification"](https://muhanzhang.github.io/papers/AAAI_2018_DGCNN.pdf) paper.

    It sorts the nodes of each graph by their last feature, in descending order, keeps the first
    $k$, and applies a 1-D CNN over these positions. Graphs with fewer than $k$ nodes are filled up
    with zeros. Ties go to the earlier node.

    Args:
        in_channels: Features per node.
        out_channels: Features per graph; not used with `cnn="none"`, which gives $k C$.
        k: Number of nodes to keep. (default: 16)
        cnn: The CNN: `"double"`, `"single"`, `"shared"` or `"depthwise"`, see `lgcn.LGConv`; a
            module that maps $(G, C, k)$ to $(G, D)$ or $(G, D, 1)$; or `"none"` to concatenate the
            features of the nodes. (default: `"single"`)
        dropout: Dropout rate between the two convolutions of `"double"`. (default: 0)
        activation: Function between the two convolutions of `"double"`. (default: identity)

    Shapes:
        - **input:** node features $(N, C)$ and the node offsets of the graphs $(G + 1)$
        - **output:** $(G, D)$
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 0,
        k: int = 16,
        cnn: Module | str = "single",
        *,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        self.in_channels = in_channels
        self.out_channels = k * in_channels if cnn == "none" else out_channels
        self.k = k
        self.cnn: Module | None
        if cnn == "none" or isinstance(cnn, Module):
            self.cnn = cnn if isinstance(cnn, Module) else None
        else:
            self.cnn = make_cnn(cnn, in_channels, out_channels, k, dropout, activation)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation. A module that you passed resets itself."""
        if isinstance(self.cnn, GridCNN):
            draw_weights(self.cnn)
        else:
            reset(self.cnn)

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Reads out each graph.

        Args:
            x: Node features.
            ptr: Node offsets of the graphs.
        """
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(
                f"x must have in_channels = {self.in_channels} features, got shape {list(x.shape)}"
            )
        rowptr, col, _ = rows_of_graphs(ptr, x.size(0))
        _, first = k_largest(x[:, -1:].detach(), rowptr, col, self.k)
        first = first.squeeze(2).long()
        if x.size(0) == 0:
            grid = x.new_zeros(first.size(0), self.k, x.size(1))
        else:
            grid = torch.where((first < 0).unsqueeze(2), 0, x[first.clamp(min=0)])
        if self.cnn is None:
            return grid.flatten(1)
        return over_positions(self.cnn, grid, self.out_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, k={self.k})"
