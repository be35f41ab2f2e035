"""The learnable graph convolutional layer (LGCL): select, then convolve."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from torch.nn import Module
from torch.nn.parameter import is_lazy
from torch_geometric.nn.inits import reset

from lgcn.graph import Graph
from lgcn.graph.csr import CSR, to_csr
from lgcn.nn.edges import Edges, GivenEdges, without_spare
from lgcn.nn.grid_cnn import (
    KEEP_WIDTH,
    DepthwiseKernel,
    GridCNN,
    GridDropout,
    SharedKernel,
    close,
    draw_weights,
    leave_open,
    make_cnn,
)
from lgcn.nn.message_layer import MessageLayer, as_edges, drop_edges, needs_tracing, times
from lgcn.nn.recompute import NoRandomNumbers, by_blocks, recomputed, repeats
from lgcn.nn.rows import AdjacencyOptions, Rows
from lgcn.ops import spmm
from lgcn.ops.blocks import RowBlock, row_blocks_of
from lgcn.ops.cpu.launch import Overwritten
from lgcn.ops.dropout import dropout as drop
from lgcn.ops.k_largest import (
    Zeros,
    k_largest_grid,
    k_largest_grid_chosen,
    k_largest_grid_from,
    k_largest_grid_values,
    k_largest_grid_within,
)

Rank = Literal["raw", "normalized"]

# Values of the grid that are held at a time if no gradient needs all of them: 2 MB in float32,
# which stay in the caches from the selection to the convolution. So do the neighbours' features,
# which the mean reads as well. Smaller blocks cost more in calls than they gain.
MAX_GRID = 2**19
# On a GPU: 1 GB, or a part of its memory. A block costs some twenty launches there, whatever its
# size.
MAX_GRID_GPU = 2**28
# On a GPU with `recompute`: what of a block is held at a time in the backward pass, half a GB. Its
# grid is one part of that; the grid's gradient, which is as large, and the gradients of entries, of
# which there are MESSAGES per entry or more, come one after the other.
MAX_RECOMPUTED_GPU = 2**27
MESSAGES = 16


class Selection(NamedTuple):
    """What an LGCL selected: per node, rank and feature, which neighbour and which value.

    Shapes:
        - **node:** $(N, k, C)$, numbers of source nodes, -1 for a zero that was filled in
        - **value:** $(N, k, C)$, as in the grid, before dropout
    """

    node: Tensor
    value: Tensor


class LGConv(MessageLayer):
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
        in_channels: Input features per node; -1 to take the number from the first call. A pair
            of equal numbers is the same, for code that gives source and target features.
        out_channels: Output features per node.
        k: Number of values to select per feature. (default: 8)
        cnn: The CNN. `"double"` or `None` is the paper's CNN of two convolutions, with
            `(in_channels + out_channels) // 2` channels between them. `"single"` is one
            convolution over all positions. `"shared"` is one kernel over all positions that every
            feature uses, without mixing features. `"depthwise"` is one kernel over all positions
            for each feature, without mixing features: with `mean` or `sum` it starts as that alone,
            else as the average of the positions. Both need `out_channels == in_channels`. You can
            also pass a module that maps $(N, C, k + 1)$ to $(N, D)$ or $(N, D, 1)$.
            (default: `None`)
        rank: What is ranked: the neighbours' values as they are (`"raw"`), or multiplied by the
            entries of the symmetrically normalised adjacency (`"normalized"`), as in the authors'
            released program. (default: `"raw"`)
        self_loops: Make every node a neighbour of itself. (default: `False`)
        zeros: How zeros take part in the selection, see `lgcn.k_largest`. (default: `"pad"`)
        mean: Append the mean over all neighbours to the grid, which then has $k + 2$ positions: the
            $k$ largest values say nothing about the others. It divides by the sum of the edge
            weights without their signs. With `rank="normalized"` it is the sum, whose entries are
            normalised already. (default: `False`)
        sum: Append the neighbours' sum in place of the mean, which also tells how many neighbours
            there are. (default: `False`)
        dropout: Dropout rate of the selected values, and between the two convolutions.
            (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries. (default: 0)
        activation: Function between the two convolutions. (default: identity)
        return_selection: Return what was selected as well, see `forward`. (default: `False`)
        recompute: Make the grid again in the backward pass in place of keeping it: less memory, at
            the cost of one more selection. A layer then keeps its input alone, whatever k is, and
            the grid exists by blocks of rows. The gradients are the same up to rounding. A CNN of
            your own must treat each row on its own. The grid is kept all the same in training with
            `dropout` or `adj_dropout`, or with a dropout or batch norm in the CNN, whose random
            numbers or averages would differ in the second pass; with edge masks or edge features;
            when compiled or exported; and for `return_selection`. (default: `False`)

    Shapes:
        - **input:** node features $(N, C)$, or a pair $((N_{source}, C), (N_{target}, C))$ for a
          bipartite graph, and the graph
        - **output:** $(N, D)$; with `return_selection`, a pair of that and a `Selection`

    To PyG, this is a `MessagePassing` layer: `to_hetero` and the edge masks of
    `torch_geometric.explain` work. A mask multiplies the values of a neighbour before they are
    ranked. Where it is 0, the neighbour's values are zeros; among competing zeros, and among
    features of at least zero, that is as if the edge were not there.

    Example:
        ```python
        conv = LGConv(16, 32, k=8)
        out = conv(x, edge_index)  # x: [num_nodes, 16], edge_index: [2, num_edges]
        ```
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        k: int = 8,
        cnn: Module | str | None = None,
        *,
        rank: Rank = "raw",
        self_loops: bool = False,
        zeros: Zeros = "pad",
        mean: bool = False,
        sum: bool = False,
        dropout: float = 0.0,
        adj_dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] | None = None,
        return_selection: bool = False,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if rank not in ("raw", "normalized"):
            raise ValueError(f"rank must be 'raw' or 'normalized', got {rank!r}")
        if zeros not in ("pad", "compete"):
            raise ValueError(f"zeros must be 'pad' or 'compete', got {zeros!r}")
        if mean and sum:
            raise ValueError("mean and sum must not both be true: the grid has one place for them")
        self.in_channels = _one_width(in_channels)
        self.out_channels = out_channels
        self.k = k
        self.rank = rank
        self.self_loops = self_loops
        self.zeros: Zeros = zeros
        self.mean = mean
        self.sum = sum
        self.positions = k + 2 if mean or sum else k + 1
        self.dropout = dropout
        self.adj_dropout = adj_dropout
        self.activation = activation
        self.return_selection = return_selection
        self.recompute = recompute
        self._own_cnn = isinstance(cnn, Module)
        self._cnn_name = "" if isinstance(cnn, Module) else (cnn or "double")
        self.cnn: Module
        if isinstance(cnn, Module):
            self.cnn = cnn
        elif self._is_lazy:
            self.cnn = self._make_cnn(out_channels if cnn in KEEP_WIDTH else 1)
            leave_open(self.cnn)
        else:
            self.cnn = self._make_cnn(self.in_channels)
        self.reset_parameters()

    def _make_cnn(self, in_channels: int) -> Module:
        name, sizes = self._cnn_name, (in_channels, self.out_channels, self.positions)
        return make_cnn(name, *sizes, self.dropout, self.activation, last=self.mean or self.sum)

    @property
    def _is_lazy(self) -> bool:
        return self.in_channels < 0

    def _materialize(self, in_channels: int) -> None:
        """Draws the weights of a lazy layer, now that the number of input features is known."""
        if torch.compiler.is_compiling():
            raise ValueError(
                "in_channels is not known yet (-1): call the layer once before it is compiled or "
                "exported"
            )
        if not self._own_cnn:
            made = self._make_cnn(in_channels)
            draw_weights(made)
            close(self.cnn, made)
        self.in_channels = in_channels

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Takes the number of input features of a lazy layer from the weights that it loads."""
        weight = state_dict.get(f"{prefix}cnn.0.weight")
        if self._is_lazy and not self._own_cnn and weight is not None and not is_lazy(weight):
            self._materialize(weight.size(1))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_parameters(self) -> None:
        """Draws new weights by Glorot initialisation, as in the paper.

        A CNN that you passed as a module resets itself.
        """
        if self._own_cnn or isinstance(self.cnn, SharedKernel | DepthwiseKernel):
            reset(self.cnn)
        elif not self._is_lazy:
            draw_weights(self.cnn)

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor | None],
        edge_index: Edges | CSR | Tensor,
        edge_weight: Tensor | None = None,
        *,
        return_selection: bool | None = None,
    ) -> Tensor | tuple[Tensor, Selection]:
        """Selects, then convolves.

        Args:
            x: Node features, or (source features, target features) for a bipartite graph.
            edge_index: An `lgcn.Graph`, whose adjacency is prepared once and kept; or PyG's [2, E]
                tensor or a sparse adjacency, which are converted on every call.
            edge_weight: Edge weights, if `edge_index` is a tensor. (default: all one)
            return_selection: Return `(out, selection)`, where `selection.node` and
                `selection.value` say which neighbour was taken for each node, rank and feature.
                (default: as the layer was made)
        """
        source, own = x if isinstance(x, tuple) else (x, x)
        self._check_widths(source, own)
        edges = self._edges(edge_index, edge_weight, source, own)
        adjacency = edges if isinstance(edges, CSR) else edges.adjacency(**self.adjacency_options)
        mask = self.entry_mask(edges)
        if isinstance(edges, GivenEdges) and self.self_loops:
            assert own is not None
            own = F.pad(own, (0, 0, 0, 1))  # for the spare row
        _check_rows(own, adjacency)
        if self.return_selection if return_selection is None else return_selection:
            grid, selection = self.select_from(source, own, adjacency, mask)
            if isinstance(edges, GivenEdges):
                grid = without_spare(grid, edges)
                node, value = selection
                selection = Selection(without_spare(node, edges), without_spare(value, edges))
            return self.convolve(grid), selection
        if self._can_cut(edges, mask):
            if not torch.is_grad_enabled() and not self.training:
                return by_blocks(self, self._blocks(adjacency, source), source, own, adjacency)
            if self.recompute and self._can_repeat():
                return recomputed(self, self._blocks(adjacency, source), source, own, adjacency)
        grid = self.select(source, own, adjacency, mask)
        if isinstance(edges, GivenEdges):
            grid = without_spare(grid, edges)
        return self.convolve(grid)

    @property
    def adjacency_options(self) -> AdjacencyOptions:
        """The adjacency that this layer reads, as arguments of `lgcn.Graph.adjacency`."""
        return {"normalize": self.rank == "normalized", "self_loops": self.self_loops}

    def select(
        self,
        source: Tensor,
        own: Tensor | None,
        adjacency: CSR,
        mask: Tensor | None = None,
        memory: Overwritten | None = None,
    ) -> Tensor:
        """Makes the grid [N, k + 1, C]: own features, then the k largest of the neighbours.

        With `mean` or `sum`, that of the neighbours follows, and the grid is [N, k + 2, C].

        Args:
            source: Features of the neighbours.
            own: Features of the nodes themselves; `None` for zeros.
            adjacency: The rows of the nodes; its columns number the rows of `source`.
            mask: Factor of the values of each entry of `adjacency`. (default: none)
            memory: Where the grid is made, until the next one is; without gradients, on a CPU.
                (default: new memory)
        """
        if mask is None and self._selects_and_sums(source, own, adjacency):
            grid = self.select_values(source, own, adjacency)
            return drop(grid, self.dropout, self.training, overwrite=True)
        source, own, adjacency, last = self._ranked(source, own, adjacency, mask)
        rowptr, col, weight = adjacency
        make = k_largest_grid if memory is None else partial(k_largest_grid_within, memory)
        grid = make(
            source, own, rowptr, col, self.k, edge_weight=weight, zeros=self.zeros, last=last
        )
        return drop(grid, self.dropout, self.training, overwrite=True)  # nobody else holds it

    def select_from(
        self, source: Tensor, own: Tensor | None, adjacency: CSR, mask: Tensor | None = None
    ) -> tuple[Tensor, Selection]:
        """As `select`, and says which neighbours the values of the grid are from."""
        source, own, adjacency, last = self._ranked(source, own, adjacency, mask)
        rowptr, col, weight = adjacency
        grid, node = k_largest_grid_from(
            source, own, rowptr, col, self.k, edge_weight=weight, zeros=self.zeros, last=last
        )
        selection = Selection(node.long(), grid[:, 1 : self.k + 1])
        return drop(grid, self.dropout, self.training), selection

    def select_chosen(
        self, source: Tensor, own: Tensor | None, adjacency: CSR
    ) -> tuple[Tensor, Tensor]:
        """As `select_values`, with the positions in the rows of what was selected."""
        return k_largest_grid_chosen(**self._to_select(source, own, adjacency))

    def select_values(self, source: Tensor, own: Tensor | None, adjacency: CSR) -> Tensor:
        """As `select` without dropout. No gradients flow through it."""
        return k_largest_grid_values(**self._to_select(source, own, adjacency))

    def _to_select(self, source: Tensor, own: Tensor | None, adjacency: CSR) -> dict[str, Any]:
        source, own, adjacency, _ = self._ranked(source, own, adjacency, None, with_last=False)
        rowptr, col, weight = adjacency
        with_sum = self.mean or self.sum
        return {
            "x": source,
            "own": own,
            "rowptr": rowptr,
            "col": col,
            "k": self.k,
            "edge_weight": weight,
            "zeros": self.zeros,
            "with_sum": with_sum,
            "divisor": self.weight_sums(adjacency, source) if with_sum else None,
        }

    def _selects_and_sums(self, source: Tensor, own: Tensor | None, adjacency: CSR) -> bool:
        """Whether to sum neighbours while they are selected: on a GPU, where nothing learns."""
        if not (self.mean or self.sum) or not source.is_cuda:
            return False
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return False
        inputs = (source, own, adjacency.weight)
        return not torch.is_grad_enabled() or not any(
            tensor is not None and tensor.requires_grad for tensor in inputs
        )

    def _ranked(
        self,
        source: Tensor,
        own: Tensor | None,
        adjacency: CSR,
        mask: Tensor | None,
        *,
        with_last: bool = True,
    ) -> tuple[Tensor, Tensor | None, CSR, Tensor | None]:
        """What the selection reads: features, the adjacency, and the neighbours' mean or sum."""
        if self.training and self.adj_dropout > 0:
            adjacency, mask = self._drop_entries(adjacency, mask)
        if torch.is_autocast_enabled(source.device.type):  # select in that precision as well
            source = source.to(torch.get_autocast_dtype(source.device.type))
        own = None if own is None else own.to(source.dtype)
        last = None
        if with_last and (self.mean or self.sum):
            last = self.neighbour_mean(source, adjacency, mask)
        rowptr, col, weight = times(adjacency, mask)
        weight = None if weight is None else weight.to(source.dtype)
        return source, own, CSR(rowptr, col, weight), last

    def _drop_entries(self, adjacency: CSR, mask: Tensor | None) -> tuple[CSR, Tensor | None]:
        # If zeros compete, an entry of weight zero is not selected; otherwise it could be.
        if self.zeros == "compete":
            return adjacency.drop_weights(self.adj_dropout), mask
        return drop_edges(adjacency, self.adj_dropout, mask, learned=self.learns_mask)

    def neighbour_mean(self, source: Tensor, adjacency: CSR, mask: Tensor | None = None) -> Tensor:
        """The mean of the neighbours, or their sum, as the grid has it at its end."""
        rowptr, col, weight = adjacency.rowptr, adjacency.col, adjacency.values(source.dtype)
        masked = weight if mask is None else weight * mask.to(source.dtype)
        total = spmm(rowptr, col, masked, source)
        sums = self.weight_sums(adjacency, source)
        return total if sums is None else total / sums

    def weight_sums(self, adjacency: CSR, source: Tensor) -> Tensor | None:
        """What the sum of the neighbours is divided by, [N, 1]; `None` if it stays as it is."""
        if self.sum or self.rank == "normalized":
            return None
        rowptr, col, weight = adjacency
        if weight is None:  # a product with ones would read all entries for this
            weights = (rowptr[1:] - rowptr[:-1]).to(source.dtype).unsqueeze(1)
        else:
            ones = source.new_ones(source.size(0), 1)
            weights = spmm(rowptr, col, weight.abs().to(source.dtype), ones)
        return torch.where(weights == 0, 1, weights)

    def prepared(self) -> Callable[[Tensor], Tensor]:
        """The CNN for many grids in turn, without gradients; itself if a grid may outlive its turn.

        A module of your own and hooks may keep what they are called with.
        """
        cnn = self.cnn
        if self._own_cnn or cnn._forward_hooks or cnn._forward_pre_hooks:
            return cnn
        return cnn.prepared() if isinstance(cnn, GridCNN) else cnn.forward

    def convolve(
        self,
        grid: Tensor,
        parameters: Mapping[str, Tensor] | None = None,
        cnn: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Applies the 1-D CNN over the positions of the grid, [N, k + 1, C] to [N, D].

        Args:
            grid: The grid.
            parameters: What to use in place of the CNN's parameters. (default: those)
            cnn: What `prepared` gave. (default: the CNN)
        """
        out: Tensor
        if parameters:
            out = functional_call(self.cnn, dict(parameters), (grid.transpose(1, 2),))
        else:
            out = (cnn or self.cnn)(grid.transpose(1, 2))
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

    def _can_cut(self, edges: Edges | CSR, mask: Tensor | None) -> bool:
        """Whether rows can be computed block by block: nothing traces the layer or masks edges."""
        if mask is not None or isinstance(edges, GivenEdges) or torch.compiler.is_compiling():
            return False
        return not torch._C._are_functorch_transforms_active()

    def _can_repeat(self) -> bool:
        """Whether to select and convolve again gives the same."""
        drops = self.dropout > 0 or self.adj_dropout > 0
        return not (self.training and drops) and repeats(self.cnn)

    def _blocks(self, adjacency: CSR, source: Tensor) -> Sequence[RowBlock]:
        learns = torch.is_grad_enabled()
        limit = _largest_block(source.device, learns)
        entry_cost = MESSAGES if learns and source.is_cuda else 0
        rowptr, col, _ = adjacency
        row_cost = max(1, self.grid_values(1))
        return row_blocks_of(rowptr, col, source.size(0), limit, row_cost, entry_cost)

    def no_random_numbers(self) -> AbstractContextManager[Any]:
        """Makes sure that functions of the user draw no random numbers."""
        knows_all = not self._own_cnn and self.activation is None
        return nullcontext() if knows_all else NoRandomNumbers()  # type: ignore[no-untyped-call]

    def rows(self, x: Rows) -> Rows:
        if self._is_lazy:
            self._materialize(x.width)
        x.check_width(self.in_channels)
        return x.from_neighbours(
            lambda near, own, rows, mask=None: self.convolve(self.select(near, own, rows, mask)),
            self.adjacency_options,
            factor=self.edge_factor,
            width=self.out_channels,
            # The grid, and about as much of what was chosen and of what the convolutions make.
            values=3 * self.grid_values(1),
        )

    @property
    def dropouts(self) -> int | None:
        """Calls of dropout in a forward pass in training mode, without return_selection.

        `None` if that is not known: a CNN of the user may draw random numbers as well, and dropout
        of edges draws others.
        """
        if self._own_cnn or self.adj_dropout > 0:
            return None
        rates = [m.p for m in self.cnn.modules() if isinstance(m, GridDropout)]
        return sum(rate > 0 for rate in (self.dropout, *rates))

    def grid_values(self, num_rows: int) -> int:
        """Values in the grid of `num_rows` nodes.

        Training keeps them for the backward pass, unless they are made again.
        """
        return num_rows * self.positions * self.in_channels

    def working_values(self, num_rows: int) -> int:
        # The grid of a block, and about as much of what the convolutions make.
        parameter = next(self.parameters(), None)
        device = torch.device("cpu") if parameter is None else parameter.device
        return 2 * min(_largest_block(device, learns=False), self.grid_values(num_rows))

    def _check_widths(self, source: Tensor, own: Tensor | None) -> None:
        """Checks the number of features, which a lazy layer takes from the first call."""
        if self._is_lazy:
            if own is not None and own.size(-1) != source.size(-1):
                raise ValueError(_widths_differ(source.size(-1), own.size(-1)))
            self._materialize(source.size(-1))
        for name, features in (("x", source), ("the target features", own)):
            if features is not None and features.size(-1) != self.in_channels:
                raise ValueError(
                    f"{name} must have in_channels = {self.in_channels} features, "
                    f"got shape {list(features.shape)}"
                )

    def _edges(
        self,
        edge_index: Edges | CSR | Tensor,
        edge_weight: Tensor | None,
        source: Tensor,
        own: Tensor | None,
    ) -> Edges | CSR:
        if isinstance(edge_index, CSR):
            return edge_index
        if isinstance(edge_index, (Graph, GivenEdges)) or own is source:
            return as_edges(self, source, edge_index, edge_weight)
        if self.rank == "normalized" or self.self_loops:
            raise ValueError(
                "rank='normalized' and self_loops need one set of nodes, got a bipartite pair: "
                "use rank='raw' and self_loops=False"
            )
        num_targets = _num_targets(edge_index, own)
        if needs_tracing(edge_index, self, source):
            return GivenEdges(edge_index, num_targets, source.size(0), edge_weight)
        return to_csr(edge_index, num_targets, source.size(0), edge_weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, k={self.k})"


def _largest_block(device: torch.device, learns: bool) -> int:
    """Values of the grid that are held at a time; with `learns`, those of `recompute`."""
    if device.type != "cuda":
        return MAX_GRID
    memory = int(torch.cuda.get_device_properties(device).total_memory)
    return min(MAX_RECOMPUTED_GPU, memory // 256) if learns else min(MAX_GRID_GPU, memory // 128)


def _one_width(in_channels: int | tuple[int, int]) -> int:
    """The number of features, of source and target nodes alike; -1 if it is not known yet."""
    if isinstance(in_channels, int):
        return in_channels
    source, target = in_channels
    if source != target and min(source, target) >= 0:
        raise ValueError(f"in_channels: {_widths_differ(source, target)}")
    return max(source, target)


def _widths_differ(source: int, target: int) -> str:
    return (
        "an LGCL puts a node's own features in front of its neighbours', so both must have the "
        f"same number of features, got {source} of source nodes and {target} of target nodes: "
        "map both to one width first, for example with torch_geometric.nn.Linear(-1, width)"
    )


def _check_rows(own: Tensor | None, adjacency: CSR) -> None:
    num_nodes = adjacency.rowptr.numel() - 1
    if own is not None and own.size(0) != num_nodes:
        raise ValueError(
            f"x must have one row per node of the graph ({num_nodes}), got shape {list(own.shape)}"
        )


def _num_targets(edge_index: Tensor, own: Tensor | None) -> int:
    if own is not None:
        return own.size(0)
    if torch.compiler.is_compiling():
        raise ValueError(
            "x must be (source features, target features) to be compiled or exported, got no "
            "target features: their number of rows cannot be read from edge_index then"
        )
    if edge_index.layout != torch.strided:
        return edge_index.size(0)
    return int(edge_index[1].max()) + 1 if edge_index.numel() else 0
