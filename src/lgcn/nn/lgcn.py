"""The learnable graph convolutional network (LGCN)."""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Identity, Module, ModuleList

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.edges import Edges
from lgcn.nn.gcn_layer import Aggregate, GCNLayer
from lgcn.nn.grid_cnn import KEEP_WIDTH
from lgcn.nn.lg_conv import LGConv, Rank
from lgcn.nn.message_layer import as_edges
from lgcn.nn.propagated_embedding import PropagatedEmbedding
from lgcn.nn.rows import Matrix, Rows, concat, row_wise
from lgcn.ops.dropout import draws_on_cpu, drop_rows, drop_whole, drops_whole, zeros_of
from lgcn.ops.k_largest import Zeros
from lgcn.utils.choices import ACTIVATIONS

Norm = Literal["none", "running", "batch"]


class LGCN(Module):
    r"""The learnable graph convolutional network from the
    ["Large-Scale Learnable Graph Convolutional Networks"](https://arxiv.org/abs/1808.03965) paper,
    for node classification.

    An embedding layer turns the input features into $X_1$. Each of the stacked LGCLs
    (`lgcn.LGConv`) appends its output to its input:

    $$
    X_{l+1} = [X_l \, \Vert \, \mathrm{LGCL}(X_l, A)]
    $$

    A classifier follows, which sums over the neighbourhood.

    The default widths are the paper's for Cora. Where the paper and the authors' released program
    differ, the defaults follow the reading that trains best without looking at the test set:
    normalised ranking with self-loops, competing zeros, no batch norm, and the paper's "dropout
    rates of 0.16 and 0.999" as keep rates, which they are in its program. Here they are dropout
    rates, 0.84 and 0.001.

    Args:
        in_channels: Input features per node.
        num_classes: Number of classes, or of labels if a node can have several.
        hidden_channels: Width of the embedding. (default: 32)
        lgcl_channels: Features that each LGCL appends. With `cnn="shared"` or `"depthwise"` it
            appends as many as it gets. (default: 8)
        num_layers: Number of LGCLs. (default: 2)
        k: Number of values that an LGCL selects per feature. (default: 8)
        embedding: `"gcn"` for a GCN layer, `"linear"`, or `"propagated"` for a layer over features
            that are propagated first, see `lgcn.nn.PropagatedEmbedding`. (default: `"gcn"`)
        input_hops: Propagation steps of `embedding="propagated"`. (default: 5)
        input_norm: `"batch"` or `"none"`, with `embedding="propagated"`. (default: `"batch"`)
        layer: `"lgcl"`, or `"gcn"` for GCN layers in place of the LGCLs, which is the paper's
            ablation. (default: `"lgcl"`)
        cnn: The CNN of the LGCLs: `"double"`, `"single"`, `"shared"` or `"depthwise"`, see
            `lgcn.LGConv`. (default: `"double"`)
        rank: `"normalized"` or `"raw"`, see `lgcn.LGConv`. (default: `"normalized"`)
        self_loops: Make every node a neighbour of itself, in the LGCLs and in a classifier with
            `"sum"`. Layers with GCN's normalised adjacency always do. (default: `True`)
        zeros: `"compete"` or `"pad"`, see `lgcn.k_largest`. (default: `"compete"`)
        mean: Append the neighbours' mean to the grids of the LGCLs, see `lgcn.LGConv`.
            (default: `False`)
        classifier: How the classifier sums over neighbours: `"normalized"`, `"sum"` or
            `"none"`, see `lgcn.nn.GCNLayer`; or `"diffusion"`, see `lgcn.nn.Diffusion`.
            (default: `"normalized"`)
        hops: Propagation steps of `"diffusion"`. (default: 8)
        dropout: Dropout rate of the features in each layer. (default: 0.84)
        input_dropout: Dropout rate of the input features. (default: `dropout`)
        input_scale: Factor by which the input features are multiplied. (default: 1)
        lgcl_dropout: Dropout rate of the values that LGCLs select. (default: `dropout`)
        node_dropout: Dropout rate of whole nodes: after the embedding, or of the input if that is
            propagated. (default: 0)
        layer_dropout: Probability that all that an LGCL appends is dropped, for all nodes, so that
            later layers learn to do without it, as in
            ["Deep Networks with Stochastic Depth"](https://arxiv.org/abs/1603.09382). (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries in each layer. (default: 0.001)
        activation: `"none"` (the identity), `"relu"`, `"elu"` or `"gelu"`: after the
            embedding, inside each LGCL and after it. (default: `"none"`)
        batch_norm: Batch norm after each LGCL. `"none"`; `"running"`, which evaluates with
            running averages; or `"batch"`, which also evaluates with the statistics of the batch,
            as in the released program, so that predictions depend on the other nodes in the batch.
            (default: `"none"`)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid, $(N, classes)$

    Example:
        ```python
        graph = lgcn.load_dataset("digits")
        model = lgcn.LGCN(graph.num_features, graph.num_classes, k=8)
        scores = model(graph.x, graph)  # [num_nodes, num_classes]
        ```
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 32,
        lgcl_channels: int = 8,
        num_layers: int = 2,
        k: int = 8,
        embedding: Literal["gcn", "linear", "propagated"] = "gcn",
        input_hops: int = 5,
        input_norm: Literal["batch", "none"] = "batch",
        layer: Literal["lgcl", "gcn"] = "lgcl",
        cnn: str = "double",
        rank: Rank = "normalized",
        self_loops: bool = True,
        zeros: Zeros = "compete",
        mean: bool = False,
        classifier: Aggregate | Literal["diffusion"] = "normalized",
        hops: int = 8,
        dropout: float = 0.84,
        input_dropout: float | None = None,
        input_scale: float = 1.0,
        lgcl_dropout: float | None = None,
        node_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        adj_dropout: float = 0.001,
        activation: str = "none",
        batch_norm: Norm = "none",
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("embedding", embedding, ("gcn", "linear", "propagated")),
            ("input_norm", input_norm, ("batch", "none")),
            ("layer", layer, ("lgcl", "gcn")),
            ("activation", activation, ACTIVATIONS),
            ("batch_norm", batch_norm, ("none", "running", "batch")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        for name, rate in (("node_dropout", node_dropout), ("layer_dropout", layer_dropout)):
            if not 0 <= rate < 1:
                raise ValueError(f"{name} must be a rate from 0 to below 1, got {rate}")
        self.activation: Callable[[Tensor], Tensor] | None = (
            None if activation == "none" else getattr(F, activation)
        )
        self.embedding: GCNLayer
        first: dict[str, Any] = {
            "dropout": dropout if input_dropout is None else input_dropout,
            "adj_dropout": adj_dropout,
            "scale": input_scale,
        }
        if embedding == "propagated":
            self.embedding = PropagatedEmbedding(
                in_channels,
                hidden_channels,
                input_hops,
                node_dropout=node_dropout,
                norm=input_norm == "batch",
                activation=self.activation,
                **first,
            )
        else:
            aggregate: Aggregate = "normalized" if embedding == "gcn" else "none"
            self.embedding = GCNLayer(in_channels, hidden_channels, aggregate, **first)
        self.node_dropout = node_dropout
        self.layer_dropout = layer_dropout
        self.layers = ModuleList()
        self.norms = ModuleList()
        width = hidden_channels
        for _ in range(num_layers):
            new = width if cnn in KEEP_WIDTH else lgcl_channels  # also for GCN layers
            if layer == "gcn":
                self.layers.append(GCNLayer(width, new, dropout=dropout, adj_dropout=adj_dropout))
            else:
                self.layers.append(
                    LGConv(
                        width,
                        new,
                        k,
                        cnn,
                        rank=rank,
                        self_loops=self_loops,
                        zeros=zeros,
                        mean=mean,
                        dropout=dropout if lgcl_dropout is None else lgcl_dropout,
                        adj_dropout=adj_dropout,
                        activation=self.activation,
                    )
                )
            if batch_norm == "none":
                self.norms.append(Identity())
            else:
                running = batch_norm == "running"
                self.norms.append(BatchNorm(new, track_running_stats=running))
            width += new
        self.classifier: GCNLayer
        if classifier == "diffusion":
            self.classifier = Diffusion(
                width, num_classes, hops, dropout=dropout, adj_dropout=adj_dropout
            )
        else:
            self.classifier = GCNLayer(
                width,
                num_classes,
                classifier,
                self_loops=self_loops or classifier == "normalized",
                dropout=dropout,
                adj_dropout=adj_dropout,
            )

    def reset_parameters(self) -> None:
        """Draws new weights in all layers."""
        for module in (self.embedding, *self.layers, *self.norms, self.classifier):
            if not isinstance(module, Identity):
                module.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Edges | Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Scores the classes of every node.

        Args:
            x: Node features.
            edge_index: An `lgcn.Graph`, whose adjacency is prepared once and kept; or PyG's [2, E]
                tensor or a sparse adjacency, which are converted on every call.
            edge_weight: Edge weights, if `edge_index` is a tensor. (default: all one)
        """
        edges = as_edges(self, x, edge_index, edge_weight)
        h, zeros = self._parts(x, edges, -1)
        scores: Tensor
        if zeros is not None and isinstance(self.classifier, Diffusion):
            scores = self.classifier(h, edges, zeros)
        else:
            scores = self.classifier(h if zeros is None else concat(h, zeros), edges)
        return scores

    def embed(
        self,
        x: Tensor,
        edge_index: Edges | Tensor,
        edge_weight: Tensor | None = None,
        *,
        layer: int = -1,
    ) -> Tensor:
        """Returns what the classifier sees of each node: the embedding, and what each LGCL appends.

        Args:
            x: Node features.
            edge_index: As in `forward`.
            edge_weight: As in `forward`. (default: all one)
            layer: The last LGCL to apply; 0 for the embedding layer alone, -1 for all LGCLs.
                (default: -1)
        """
        return self._embed(x, as_edges(self, x, edge_index, edge_weight), layer)

    def _embed(self, x: Matrix, graph: Edges, layer: int) -> Matrix:
        """The layers up to an LGCL, computed (for a tensor) or described (for rows)."""
        h, zeros = self._parts(x, graph, layer)
        out: Matrix = h if zeros is None else concat(h, zeros)
        return out

    def _parts(self, x: Matrix, graph: Edges, layer: int) -> tuple[Any, Tensor | None]:
        """What `_embed` gives, without the zeros of the last LGCL if it is left out; and these."""
        h: Any = self.embedding(x, graph)
        if not isinstance(self.embedding, PropagatedEmbedding):  # which has done both
            h = self.activate(h)
            if self.training:
                h = drop_rows(h, self.node_dropout)
        zeros: Tensor | None = None
        for lgcl, norm in self.lgcls(layer):
            h, zeros = h if zeros is None else concat(h, zeros), None
            if self._is_left_out(h, graph, lgcl, norm):
                zeros = zeros_of(h, lgcl.out_channels, lgcl.parameters())
                continue
            new = self.activate(norm(lgcl(h, graph)))
            if self.training:
                new = drop_whole(new, self.layer_dropout)
            h = concat(h, new)
        return h, zeros

    def _is_left_out(self, h: Matrix, graph: Edges, lgcl: Module, norm: Module) -> bool:
        """Whether an LGCL need not be computed, since all that it appends would be dropped.

        That is known beforehand on the CPU, if it is known how many random numbers the LGCL draws.
        Gradients and all later random numbers are those of an LGCL that is computed and dropped.
        """
        if not self.training or self.layer_dropout == 0 or not isinstance(lgcl, LGConv):
            return False
        if not isinstance(h, Tensor) or not draws_on_cpu(h) or not isinstance(graph, Graph):
            return False
        draws = lgcl.dropouts
        if draws is None or not isinstance(norm, Identity):  # a norm keeps statistics
            return False
        if torch.is_autocast_enabled("cpu"):  # dropout of a narrower type draws other numbers
            return False
        return drops_whole(self.layer_dropout, after=draws)

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

    def forward_values(self, num_rows: int) -> tuple[int, int]:
        """Values that `forward` holds without gradients: after the embedding, and at most."""
        first, last = self.embedding.out_channels, self.classifier.in_channels
        working = max((lgcl.working_values(num_rows) for lgcl, _ in self.lgcls()), default=0)
        most = num_rows * (2 * max(first, last) + self.classifier.out_channels) + working
        return num_rows * first, most

    def lgcls(self, layer: int = -1) -> list[tuple[Any, Module]]:
        """The LGCLs up to this number, each with the norm that follows it."""
        if not -1 <= layer <= len(self.layers):
            raise UsageError(
                f"layer must be from 0 (the embedding) to {len(self.layers)}, or -1 for the last, "
                f"got {layer}"
            )
        pairs: list[tuple[Any, Module]] = list(zip(self.layers, self.norms, strict=True))
        return pairs if layer == -1 else pairs[:layer]

    @property
    def can_capture(self) -> bool:
        """Whether a training step launches the same kernels on the same memory each time.

        It does not if dropout removes edges, as with `zeros="pad"`: tensors then change size.
        """
        return not any(
            isinstance(layer, LGConv) and layer.zeros == "pad" and layer.adj_dropout > 0
            for layer in self.layers
        )

    @property
    def can_pad(self) -> bool:
        """Whether added nodes without neighbours change nothing for the others in training.

        Features that are propagated have to become dense, which reads all of them.
        """
        return not isinstance(self.embedding, PropagatedEmbedding)

    @property
    def first_layer(self) -> Module:
        """The layer that reads the input features."""
        return self.embedding

    def activate(self, x: Matrix) -> Matrix:
        """The activation, which follows the embedding and each LGCL."""
        return x if self.activation is None else row_wise(self.activation, x)
