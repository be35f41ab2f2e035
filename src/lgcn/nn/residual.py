"""A deep network of residual layers of constant width."""

from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Identity, LayerNorm, Linear, Module, ModuleList

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.edge_factor import EdgeFactor
from lgcn.nn.edges import Edges
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.message_layer import MessageLayer, as_edges
from lgcn.nn.neighbour_layers import Attention, NeighbourMax, neighbour_layer
from lgcn.nn.rows import Matrix, RowLayer, Rows, row_wise
from lgcn.ops.dropout import dropout as drop

Aggregation = Literal["lgcl", "mean", "max", "sum", "gcn", "attention", "none"]
AGGREGATIONS = ("lgcl", "mean", "max", "sum", "gcn", "attention", "none")
NO_FACTORS = ("attention", "none")  # these cannot read edge features


class ResidualLayer(RowLayer):
    r"""One layer of `ResidualLGCN`: $\mathrm{relu}(\mathrm{norm}(\mathrm{conv}(X) + X W + b))$.

    Args:
        channels: Features per node, before and after.
        conv: The layer that reads neighbours; `None` for none.
        norm: `"batch"`, `"layer"` or `"none"`.
        residual: Whether to add $X W + b$. Without `conv`, it is always there.
        reverse: A second one, which reads the reversed graph, and is added. (default: none)
    """

    def __init__(
        self,
        channels: int,
        conv: Module | None,
        norm: str,
        residual: bool,
        reverse: Module | None = None,
    ) -> None:
        super().__init__()
        self.conv = conv
        self.reverse = reverse
        self.linear = Linear(channels, channels) if residual or conv is None else None
        self.norm: Any = Identity()
        if norm == "batch":
            self.norm = BatchNorm(channels)
        elif norm == "layer":
            self.norm = LayerNorm(channels)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for module in (self.conv, self.reverse, self.linear, self.norm):
            if module is not None and not isinstance(module, Identity):
                reset: Any = module.reset_parameters
                reset()
        for module in self.modules():
            if isinstance(module, EdgeFactor):
                module.reset_parameters()

    def forward(self, x: Tensor, graph: Edges, turned: Edges | None = None) -> Tensor:
        if self.conv is None:
            assert self.linear is not None
            out: Tensor = self.linear(x)
        else:
            out = self.conv(x, graph)
            if self.reverse is not None:
                out = out + self.reverse(x, turned)
            if self.linear is not None:
                out = out + self.linear(x)
        return F.relu(self.norm(out))

    def rows(self, x: Rows) -> Rows:
        out = x if self.conv is None else self.conv(x)
        if self.reverse is not None:
            with x.work.reversed():
                out = out.plus(self.reverse(x))
        if self.linear is not None:
            mapped = x.then(self.linear, values=x.width)
            out = mapped if self.conv is None else out.plus(mapped)
        out = self.norm(out) if isinstance(self.norm, BatchNorm) else out.then(self.norm)
        return out.then(F.relu)


class ResidualLGCN(Module):
    r"""A deep stack of residual layers of constant width, for graphs whose neighbours disagree or
    that need many hops.

    $$
    X_{l+1} = \mathrm{dropout}(\mathrm{relu}(\mathrm{norm}(\mathrm{conv}(X_l, A) + X_l W_l + b_l)))
    $$

    A linear layer with ReLU comes first, a linear classifier last. The convolution is an LGCL
    (`lgcn.LGConv` with one convolution over the $k$ largest values and the mean), or that of
    GraphSAGE (the mean, or the maximum or sum in its place), GCN or GAT. With `aggregate="none"`
    this is a multilayer perceptron, which ignores the edges. All variants can be computed layer by
    layer (`lgcn.nn.layerwise`).

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per node.
        hidden_channels: Width of all layers. (default: 64)
        num_layers: Number of residual layers. (default: 8)
        aggregate: `"lgcl"`, `"mean"`, `"max"`, `"sum"`, `"gcn"`, `"attention"` or `"none"`.
            (default: `"lgcl"`)
        k: Number of values that an LGCL selects per feature. (default: 8)
        cnn: The CNN of an LGCL. `"single"` is one convolution that mixes features.
            `"depthwise"` is a linear map before the selection and one kernel per feature after it,
            which has few weights more than `aggregate="mean"`. (default: `"single"`)
        mean: Append the neighbours' mean to the values that an LGCL selects. (default: `True`)
        lgcl_dropout: Dropout rate of the values that an LGCL selects. (default: 0)
        heads: Heads of `"attention"`, side by side in `hidden_channels`. (default: 4)
        residual: Add $X_l W_l + b_l$. (default: `True`)
        norm: `"batch"`, `"layer"` or `"none"`. (default: `"batch"`)
        dropout: Dropout rate after each layer. (default: 0.2)
        input_dropout: Dropout rate of the input features. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries, or of the attention. (default: 0)
        input_scale: Factor by which the input features are multiplied. (default: 1)
        recompute: Make the grids of LGCLs again in the backward pass in place of keeping them, so
            that memory does not grow with depth times k, see `lgcn.LGConv`. (default: `False`)
        edge_channels: Features per edge (`lgcn.Graph.edge_attr`). Each layer learns a factor
            $b + f_e \cdot a$ of every edge from its features $f_e$, which may become negative. It
            multiplies a neighbour's values before they are ranked or summed; means still divide by
            the sum of the edge weights. With $b = 1$ and $a = 0$ at the start, the network starts
            as the one without edge features. Not for `"attention"`. (default: 0, they are not read)
        directions: `"in"` for layers that read the sources of the edges into a node, as
            everywhere else. With `"both"`, each layer has a second convolution of its own for
            the targets of the edges out of it, and adds both. That is for directed graphs: where
            every edge counts both ways, both read the same. (default: `"in"`)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** scores before softmax or sigmoid, $(N, classes)$
    """

    can_pad = True  # nodes without neighbours change nothing for the others in training

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 64,
        num_layers: int = 8,
        aggregate: Aggregation = "lgcl",
        k: int = 8,
        cnn: Literal["single", "depthwise"] = "single",
        mean: bool = True,
        lgcl_dropout: float = 0.0,
        heads: int = 4,
        residual: bool = True,
        norm: Literal["batch", "layer", "none"] = "batch",
        dropout: float = 0.2,
        input_dropout: float = 0.0,
        adj_dropout: float = 0.0,
        input_scale: float = 1.0,
        recompute: bool = False,
        edge_channels: int = 0,
        directions: Literal["in", "both"] = "in",
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("directions", directions, ("in", "both")),
            ("aggregate", aggregate, AGGREGATIONS),
            ("cnn", cnn, ("single", "depthwise")),
            ("norm", norm, ("batch", "layer", "none")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if edge_channels and aggregate in NO_FACTORS:
            raise ValueError(
                f"edge_channels must be 0 with aggregate={aggregate!r}, which has no sums or "
                f"selections to weight, got {edge_channels}: choose another aggregate"
            )
        if directions == "both" and aggregate == "none":
            raise ValueError("directions must be 'in' with aggregate='none', which reads no edges")
        self.aggregate = aggregate
        self.edge_channels = edge_channels
        self.directions = directions
        self.dropout = dropout
        self.embedding = GCNLayer(
            in_channels, hidden_channels, "none", dropout=input_dropout, scale=input_scale
        )
        self.layers = ModuleList()
        for _ in range(num_layers):
            made: list[Module | None] = []
            for _ in range(2 if directions == "both" else 1):
                conv: Module | None = None
                if aggregate == "lgcl":
                    options: dict[str, Any] = {
                        "mean": mean,
                        "dropout": lgcl_dropout,
                        "adj_dropout": adj_dropout,
                        "recompute": recompute,
                    }
                    if cnn == "depthwise":
                        conv = MappedLGConv(hidden_channels, hidden_channels, k, **options)
                    else:
                        conv = LGConv(hidden_channels, hidden_channels, k, cnn, **options)
                elif aggregate != "none":
                    conv = neighbour_layer(
                        aggregate,
                        hidden_channels,
                        hidden_channels,
                        heads=heads,
                        adj_dropout=adj_dropout,
                    )
                if conv is not None and edge_channels:
                    _read_edges(conv, edge_channels)
                made.append(conv)
            self.layers.append(ResidualLayer(hidden_channels, made[0], norm, residual, *made[1:]))
        self.classifier = GCNLayer(hidden_channels, num_classes, "none")

    def reset_parameters(self) -> None:
        """Draws new weights in all layers."""
        for module in (self.embedding, *self.layers, self.classifier):
            reset: Any = module.reset_parameters
            reset()

    def forward(
        self,
        x: Tensor,
        edge_index: Edges | Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """Scores the classes of every node.

        Args:
            x: Node features.
            edge_index: An `lgcn.Graph`, whose adjacency is prepared once and kept; or PyG's [2, E]
                tensor or a sparse adjacency, which are converted on every call.
            edge_weight: Edge weights, if `edge_index` is a tensor. (default: all one)
            edge_attr: Features of the edges, if `edge_index` is a tensor and the network has
                `edge_channels`. (default: none)
        """
        edges = as_edges(self, x, edge_index, edge_weight, edge_attr)
        scores: Tensor = self.classifier(self._embed(x, edges, -1), edges)
        return scores

    def embed(
        self,
        x: Tensor,
        edge_index: Edges | Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        *,
        layer: int = -1,
    ) -> Tensor:
        """Returns what the classifier sees of each node.

        Args:
            x: Node features.
            edge_index: As in `forward`.
            edge_weight: As in `forward`. (default: all one)
            edge_attr: As in `forward`. (default: none)
            layer: The last layer to apply; 0 for the embedding alone, -1 for all. (default: -1)
        """
        return self._embed(x, as_edges(self, x, edge_index, edge_weight, edge_attr), layer)

    def rows(self, x: Rows, *, layer: int | None = None) -> Rows:
        """How blocks of rows are computed, see `lgcn.nn.layerwise.layerwise`.

        Args:
            x: Node features.
            layer: As in `embed`; `None` for the scores. (default: `None`)
        """
        graph = x.work.graph
        if layer is not None:
            return self._embed(x, graph, layer)
        scores: Rows = self.classifier(self._embed(x, graph, -1), graph)
        return scores

    def _embed(self, x: Matrix, graph: Edges, layer: int) -> Matrix:
        if not -1 <= layer <= len(self.layers):
            raise UsageError(
                f"layer must be from 0 (the embedding) to {len(self.layers)}, or -1 for the last, "
                f"got {layer}"
            )
        layers = list(self.layers) if layer == -1 else list(self.layers)[:layer]
        h: Any = self._drop(row_wise(F.relu, self.embedding(x, graph)))
        # Blocks reverse the rows that they read.
        both = self.directions == "both" and not isinstance(x, Rows)
        if both and isinstance(graph, Graph) and _is_masked(self):
            raise UsageError(
                "an edge mask follows the edges of a graph in one direction, and directions='both' "
                "reads two: give the network the graph's edge_index to mask its edges"
            )
        given = (graph, graph.reversed()) if both else (graph,)
        for one in layers:
            h = self._drop(one(h, *given))
        out: Matrix = h
        return out

    def _drop(self, x: Matrix) -> Matrix:
        if isinstance(x, Rows):  # blocks are computed in evaluation mode only
            return x
        return drop(x, self.dropout, self.training, overwrite=False)

    def forward_values(self, num_rows: int) -> tuple[int, int]:
        """Values that `forward` holds without gradients: after the embedding, and at most."""
        width = self.embedding.out_channels
        convs: list[Any] = [module for module in self.modules() if isinstance(module, LGConv)]
        working = max((conv.working_values(num_rows) for conv in convs), default=0)
        if self.edge_channels:  # grids are then not made by blocks
            working = max((2 * conv.grid_values(num_rows) for conv in convs), default=0)
        most = num_rows * (4 * width + self.classifier.out_channels) + working
        return num_rows * width, most

    @property
    def can_capture(self) -> bool:
        """Whether a training step launches the same kernels on the same memory each time."""
        return self.directions == "in" and not any(
            isinstance(module, Attention | EdgeFactor)
            or (isinstance(module, LGConv | NeighbourMax) and module.adj_dropout > 0)
            for module in self.modules()
        )

    @property
    def first_layer(self) -> Module:
        """The layer that reads the input features."""
        return self.embedding


def _is_masked(model: Module) -> bool:
    return any(isinstance(layer, MessageLayer) and layer.explain for layer in model.modules())


def _read_edges(conv: Module, edge_channels: int) -> None:
    """Lets the layer that reads neighbours learn factors of edges."""
    for layer in list(conv.modules()):
        if isinstance(layer, MessageLayer):
            layer.edge_factor = EdgeFactor(edge_channels)
