"""The learnable graph convolutional layer (LGCL): select, then convolve."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Conv1d, Module
from torch_geometric.nn.inits import reset

from lgcn.graph import Graph
from lgcn.graph.csr import CSR, to_csr
from lgcn.nn.grid_cnn import SharedKernel, double_cnn, single_cnn
from lgcn.nn.rows import AdjacencyOptions, RowLayer, Rows
from lgcn.ops import spmm
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.k_largest import Zeros, k_largest_grid
from lgcn.utils.row_blocks import row_blocks

Rank = Literal["raw", "normalized"]

# Values of the grid that are held at a time if no gradient needs all of them: 128 MB in float32.
MAX_GRID = 2**25


class LGConv(RowLayer):
    r"""The learnable graph convolutional layer (LGCL) from the
    ["Large-Scale Learnable Graph Convolutional Networks"](https://arxiv.org/abs/1808.03965) paper.

    $$
    \tilde{X} = g(X, A, k), \qquad X' = c(\tilde{X})
    $$

    The layer has two steps:

    1. **Select** ($g$): for every node and each feature separately, take the $k$ largest values
       among the node's neighbours, in descending order (`lgcn.k_largest`), and put the node's own
       value first. This gives every node a grid of $k + 1$ positions.
    2. **Convolve** ($c$): apply a 1-D CNN over these positions, with the features as channels.

    The defaults follow the paper as written. `lgcn.LGCN` chooses others, which train better.

    Args:
        in_channels: Input features per node.
        out_channels: Output features per node.
        k: Number of values to select per feature. (default: 8)
        cnn: The CNN. `"double"` or `None` is the paper's CNN of two convolutions, with
            `(in_channels + out_channels) // 2` channels between them. `"single"` is one
            convolution over all positions. `"shared"` is one kernel over all positions that every
            feature uses, without mixing features; it needs `out_channels == in_channels`. You can
            also pass a module that maps $(N, C, k + 1)$ to $(N, D)$ or $(N, D, 1)$.
            (default: `None`)
        rank: What is ranked: the neighbours' values as they are (`"raw"`), or multiplied by the
            entries of the symmetrically normalised adjacency (`"normalized"`), as in the authors'
            released program. (default: `"raw"`)
        self_loops: Make every node a neighbour of itself. (default: `False`)
        zeros: How zeros take part in the selection, see `lgcn.k_largest`. (default: `"pad"`)
        mean: Append the mean over all neighbours to the grid, which then has $k + 2$ positions: the
            $k$ largest values say nothing about the others. With `rank="normalized"` it is the
            sum, whose entries are normalised already. (default: `False`)
        dropout: Dropout rate of the selected values, and between the two convolutions.
            (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)
        activation: Function between the two convolutions. (default: identity)

    Shapes:
        - **input:** node features $(N, C)$, or a pair $((N_{source}, C), (N_{target}, C))$ for a
          bipartite graph, and the graph
        - **output:** $(N, D)$

    Example:
        ```python
        conv = LGConv(16, 32, k=8)
        out = conv(x, edge_index)  # x: [num_nodes, 16], edge_index: [2, num_edges]
        ```
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        k: int = 8,
        cnn: Module | str | None = None,
        *,
        rank: Rank = "raw",
        self_loops: bool = False,
        zeros: Zeros = "pad",
        mean: bool = False,
        dropout: float = 0.0,
        adj_dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if rank not in ("raw", "normalized"):
            raise ValueError(f"rank must be 'raw' or 'normalized', got {rank!r}")
        if zeros not in ("pad", "compete"):
            raise ValueError(f"zeros must be 'pad' or 'compete', got {zeros!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.k = k
        self.rank = rank
        self.self_loops = self_loops
        self.zeros: Zeros = zeros
        self.mean = mean
        self.positions = k + 2 if mean else k + 1
        self.dropout = dropout
        self.adj_dropout = adj_dropout
        self.cnn: Module
        if isinstance(cnn, Module):
            self.cnn = cnn
        elif cnn in (None, "double"):
            self.cnn = double_cnn(in_channels, out_channels, self.positions, dropout, activation)
        elif cnn == "single":
            self.cnn = single_cnn(in_channels, out_channels, self.positions)
        elif cnn == "shared":
            if out_channels != in_channels:
                raise ValueError(
                    f"out_channels must equal in_channels ({in_channels}) with cnn='shared', "
                    f"got {out_channels}"
                )
            self.cnn = SharedKernel(self.positions)
        else:
            raise ValueError(f"cnn must be 'double', 'single', 'shared' or a module, got {cnn!r}")
        self._own_cnn = isinstance(cnn, Module)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation, as in the paper.

        A CNN that you passed as a module resets itself.
        """
        if self._own_cnn or isinstance(self.cnn, SharedKernel):
            reset(self.cnn)
            return
        for module in self.cnn.modules():
            if isinstance(module, Conv1d):
                torch.nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    torch.nn.init.zeros_(module.bias)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Graph | CSR | Tensor,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Selects, then convolves.

        Args:
            x: Node features, or (source features, target features) for a bipartite graph.
            edge_index: An `lgcn.Graph`, whose adjacency is prepared once and kept; or PyG's [2, E]
                tensor or a sparse adjacency, which are converted on every call.
            edge_weight: Edge weights, if `edge_index` is a tensor. (default: all one)
        """
        source, own = x if isinstance(x, tuple) else (x, x)
        adjacency = self._checked_adjacency(edge_index, edge_weight, source, own)
        if not torch.is_grad_enabled() and not self.training:
            return self._by_blocks(source, own, adjacency)
        grid = self.select(source, own, adjacency)
        return self.convolve(grid)

    @property
    def adjacency_options(self) -> AdjacencyOptions:
        """The adjacency that this layer reads, as arguments of `lgcn.Graph.adjacency`."""
        return {"normalize": self.rank == "normalized", "self_loops": self.self_loops}

    def select(self, source: Tensor, own: Tensor | None, adjacency: CSR) -> Tensor:
        """Makes the grid [N, k + 1, C]: own features, then the k largest of the neighbours.

        With `mean`, the neighbours' mean follows, and the grid is [N, k + 2, C].

        Args:
            source: Features of the neighbours.
            own: Features of the nodes themselves; `None` for zeros.
            adjacency: The rows of the nodes; its columns number the rows of `source`.
        """
        if self.training:
            # If zeros compete, an entry of weight zero is not selected; otherwise it could be.
            drop_entries = CSR.drop_weights if self.zeros == "compete" else CSR.drop_edges
            adjacency = drop_entries(adjacency, self.adj_dropout)
        rowptr, col, weight = adjacency
        if torch.is_autocast_enabled(source.device.type):  # select in that precision as well
            source = source.to(torch.get_autocast_dtype(source.device.type))
        own = None if own is None else own.to(source.dtype)
        weight = None if weight is None else weight.to(source.dtype)
        mean = self._mean(source, adjacency) if self.mean else None
        grid = k_largest_grid(
            source, own, rowptr, col, self.k, edge_weight=weight, zeros=self.zeros, last=mean
        )
        return drop(grid, self.dropout, self.training, overwrite=True)  # nobody else holds it

    def _mean(self, source: Tensor, adjacency: CSR) -> Tensor:
        rowptr, col, weight = adjacency.rowptr, adjacency.col, adjacency.values(source.dtype)
        total = spmm(rowptr, col, weight, source)
        if self.rank == "normalized":
            return total
        weights = spmm(rowptr, col, weight, source.new_ones(len(source), 1))
        return total / torch.where(weights == 0, 1, weights)

    def convolve(self, grid: Tensor) -> Tensor:
        """Applies the 1-D CNN over the positions of the grid, [N, k + 1, C] to [N, D]."""
        out: Tensor = self.cnn(grid.transpose(1, 2))
        num_nodes = grid.size(0)
        if out.shape == (num_nodes, self.out_channels, 1):
            out = out.squeeze(2)
        if out.shape != (num_nodes, self.out_channels):
            raise ValueError(
                f"cnn must map [{num_nodes}, {self.in_channels}, {self.positions}] to "
                f"[{num_nodes}, {self.out_channels}] or [{num_nodes}, {self.out_channels}, 1], "
                f"got {list(out.shape)}"
            )
        return out

    def _by_blocks(self, source: Tensor, own: Tensor | None, adjacency: CSR) -> Tensor:
        """The same, block by block, so that the grid of a large graph need not fit in memory."""
        num_nodes = adjacency.rowptr.numel() - 1
        size = max(1, MAX_GRID // self.grid_values(1))
        if size >= num_nodes:
            return self.convolve(self.select(source, own, adjacency))
        parts = []
        for start, stop in row_blocks(num_nodes, size):
            own_block = None if own is None else own[start:stop]
            grid = self.select(source, own_block, adjacency.rows(start, stop))
            parts.append(self.convolve(grid))
        return torch.cat(parts)

    def rows(self, x: Rows) -> Rows:
        x.check_width(self.in_channels)
        return x.from_neighbours(
            lambda near, own, adjacency: self.convolve(self.select(near, own, adjacency)),
            self.adjacency_options,
            width=self.out_channels,
            # The grid, and about as much of what was chosen and of what the convolutions make.
            values=3 * self.grid_values(1),
        )

    def grid_values(self, num_rows: int) -> int:
        """Values in the grid of `num_rows` nodes. Training keeps them for the backward pass."""
        return num_rows * self.positions * self.in_channels

    def working_values(self, num_rows: int) -> int:
        # The grid of a block, and about as much of what the convolutions make.
        return 2 * min(MAX_GRID, self.grid_values(num_rows))

    def _checked_adjacency(
        self,
        edge_index: Graph | CSR | Tensor,
        edge_weight: Tensor | None,
        source: Tensor,
        own: Tensor | None,
    ) -> CSR:
        """The adjacency to select by, if the features fit the layer and the graph."""
        for name, features in (("x", source), ("the target features", own)):
            if features is not None and features.size(-1) != self.in_channels:
                raise ValueError(
                    f"{name} must have in_channels = {self.in_channels} features, "
                    f"got shape {list(features.shape)}"
                )
        adjacency = self._adjacency(edge_index, edge_weight, source, own)
        num_nodes = adjacency.rowptr.numel() - 1
        if own is not None and own.size(0) != num_nodes:
            raise ValueError(
                f"x must have one row per node of the graph ({num_nodes}), "
                f"got shape {list(own.shape)}"
            )
        return adjacency

    def _adjacency(
        self,
        edge_index: Graph | CSR | Tensor,
        edge_weight: Tensor | None,
        source: Tensor,
        own: Tensor | None,
    ) -> CSR:
        if isinstance(edge_index, CSR):
            return edge_index
        if isinstance(edge_index, Graph):
            if edge_weight is not None:
                raise ValueError(
                    "edge_weight must be None with a Graph, which holds its own weights"
                )
            graph = edge_index
        elif own is not source:
            if self.rank == "normalized" or self.self_loops:
                raise ValueError(
                    "rank='normalized' and self_loops need one set of nodes, got a bipartite pair: "
                    "use rank='raw' and self_loops=False"
                )
            num_targets = _num_targets(edge_index, own)
            return to_csr(edge_index, num_targets, source.size(0), edge_weight)
        else:
            graph = Graph.as_given(edge_index, source.size(0), edge_weight=edge_weight)
        return graph.adjacency(**self.adjacency_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, k={self.k})"


def _num_targets(edge_index: Tensor, own: Tensor | None) -> int:
    if own is not None:
        return own.size(0)
    if edge_index.layout != torch.strided:
        return edge_index.size(0)
    return int(edge_index[1].max()) + 1 if edge_index.numel() else 0
