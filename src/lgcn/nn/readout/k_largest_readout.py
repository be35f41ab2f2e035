"""The k-largest read-out: an LGCL's selection and CNN with a whole graph as the neighbourhood."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.inits import reset

from lgcn.nn.grid_cnn import GridCNN, draw_weights, make_cnn
from lgcn.nn.groups import rows_of_graphs, rows_of_groups
from lgcn.ops import k_largest_values
from lgcn.ops.k_largest import Zeros


class KLargestReadout(Aggregation):  # type: ignore[misc]
    r"""Reads out a graph as an LGCL reads a neighbourhood
    ([paper](https://arxiv.org/abs/1808.03965)).

    $$
    \tilde{X}_{i, 1..k, c} = \mathrm{largest}_k \{ x_{jc} : j \text{ in graph } i \}, \qquad
    X'_i = c(\tilde{X}_i)
    $$

    For each graph and each feature separately, it takes the $k$ largest values among all nodes of
    the graph, in descending order, and applies a 1-D CNN over these positions, with the features as
    channels. Graphs with fewer than $k$ nodes are filled up with zeros; nothing is padded to the
    size of the largest graph. Compare `SortPooling`, which takes the values of the same $k$ nodes
    for all features.

    It is also a PyG aggregation: call it with the `batch` vector of a PyG model.

    Args:
        in_channels: Features per node.
        out_channels: Features per graph.
        k: Number of values to select per feature. (default: 16)
        cnn: The CNN: `"double"`, `"single"`, `"shared"` or `"depthwise"`, see `lgcn.LGConv`; or a
            module that maps $(G, C, k)$ to $(G, D)$ or $(G, D, 1)$. (default: `"single"`)
        zeros: `"pad"` fills up with zeros at the end. With `"compete"`, zeros take part in the
            ranking, so that no negative value is selected. (default: `"pad"`)
        dropout: Dropout rate between the two convolutions of `"double"`. (default: 0)
        activation: Function between the two convolutions of `"double"`. (default: identity)

    Shapes:
        - **input:** node features $(N, C)$, and the graph of each node $(N)$, sorted or not, or
          `ptr`, the node offsets of the graphs $(G + 1)$
        - **output:** $(G, D)$

    Example:
        ```python
        from torch_geometric.nn import GCNConv

        conv, readout = GCNConv(7, 32), KLargestReadout(32, 64, k=10)
        out = readout(conv(x, edge_index).relu(), batch)  # [num_graphs, 64]
        ```
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        k: int = 16,
        cnn: Module | str = "single",
        *,
        zeros: Zeros = "pad",
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if zeros not in ("pad", "compete"):
            raise ValueError(f"zeros must be 'pad' or 'compete', got {zeros!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.k = k
        self.zeros: Zeros = zeros
        self.cnn: Module = (
            cnn
            if isinstance(cnn, Module)
            else make_cnn(cnn, in_channels, out_channels, k, dropout, activation)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation. A module that you passed resets itself."""
        if isinstance(self.cnn, GridCNN):
            draw_weights(self.cnn)
        else:
            reset(self.cnn)

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        """Reads out each graph.

        Args:
            x: Node features.
            index: The graph of each node, PyG's `batch`. (default: one graph, unless there is
                `ptr`)
            ptr: Node offsets of the graphs, in place of `index`. (default: none)
            dim_size: Number of graphs. (default: as many as `index` or `ptr` name)
            dim: The dimension of the nodes, which must be the last but one. (default: -2)
            max_num_elements: Not used, since nothing is padded. (default: none)
        """
        self.assert_two_dimensional_input(x, dim)
        if x.size(1) != self.in_channels:
            raise ValueError(
                f"x must have in_channels = {self.in_channels} features, got shape {list(x.shape)}"
            )
        if ptr is not None:
            rowptr, col, _ = rows_of_graphs(ptr, x.size(0))
        else:
            if index is None:
                index = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
                dim_size = 1 if dim_size is None else dim_size
            rowptr, col, _ = rows_of_groups(index, dim_size)
        grid = k_largest_values(x, rowptr, col, self.k, zeros=self.zeros)
        return over_positions(self.cnn, grid, self.out_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, k={self.k})"


def over_positions(cnn: Module, grid: Tensor, out_channels: int) -> Tensor:
    """Applies a CNN to the grids [G, k, C] of graphs, which gives [G, D]."""
    out: Tensor = cnn(grid.transpose(1, 2))
    num_graphs, k, channels = grid.shape
    if out.shape == (num_graphs, out_channels, 1):
        out = out.squeeze(2)
    if out.shape != (num_graphs, out_channels):
        raise ValueError(
            f"cnn must map [{num_graphs}, {channels}, {k}] to [{num_graphs}, {out_channels}] or "
            f"[{num_graphs}, {out_channels}, 1], got {list(out.shape)}"
        )
    return out
