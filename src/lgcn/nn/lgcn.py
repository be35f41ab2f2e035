"""The learnable graph convolutional network (LGCN)."""

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Module, ModuleList

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import Aggregate, GCNLayer
from lgcn.nn.lg_conv import LGConv, Rank
from lgcn.ops.dropout import drop_rows, drop_whole
from lgcn.ops.k_largest import Zeros
from lgcn.utils.choices import ACTIVATIONS

BatchNorm = Literal["none", "running", "batch"]


class LGCN(Module):
    r"""The learnable graph convolutional network from the `"Large-Scale Learnable Graph
    Convolutional Networks" <https://arxiv.org/abs/1808.03965>`_ paper, for node classification.

    An embedding layer makes :math:`\mathbf{X}_1` of the input features; each of the stacked LGCLs
    appends its output to its input; a classifier with a sum over the neighbourhood follows:

    .. math::
        \mathbf{X}_{l+1} = [\mathbf{X}_l \, \Vert \, \mathrm{LGCL}(\mathbf{X}_l, \mathbf{A})]

    The widths are the paper's for Cora. Where paper and released program differ, the defaults are
    the reading that trains best with the test set unseen (``docs/fidelity.md``): normalised
    ranking with self-loops, competing zeros, no batch norm, and the paper's "dropout rates of 0.16
    and 0.999" read as the keep rates that its program uses, hence 0.84 and 0.001 here.

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        hidden_channels: Width of the embedding. (default: 32)
        lgcl_channels: Features that each LGCL adds, or each GCN layer in its place; with
            ``cnn="shared"``, as many as it is given. (default: 8)
        num_layers: Number of LGCLs. (default: 2)
        k: Values that an LGCL selects for each feature. (default: 8)
        embedding: ``"gcn"``, a GCN layer, or ``"linear"``. (default: ``"gcn"``)
        layer: ``"lgcl"``, or ``"gcn"`` to put GCN layers in place of the LGCLs, the paper's
            ablation. (default: ``"lgcl"``)
        cnn: The LGCLs' CNN, ``"double"``, ``"single"`` or ``"shared"``, see :class:`LGConv`.
            (default: ``"double"``)
        rank: ``"normalized"`` or ``"raw"``, see :class:`LGConv`. (default: ``"normalized"``)
        self_loops: Make every node a neighbour of itself where LGCLs select and a plain
            ``"sum"`` adds up; layers with GCN's normalised adjacency always do.
            (default: ``True``)
        zeros: ``"compete"`` or ``"pad"``, see :func:`lgcn.k_largest`. (default: ``"compete"``)
        mean: Put the neighbours' mean at the end of the LGCLs' grids, see :class:`LGConv`.
            (default: ``False``)
        classifier: How the classifier sums over neighbours: ``"normalized"``, ``"sum"`` or
            ``"none"``, see :class:`GCNLayer`; or ``"diffusion"``, see :class:`lgcn.nn.Diffusion`.
            (default: ``"normalized"``)
        hops: Steps of propagation in ``"diffusion"``. (default: 8)
        dropout: Dropout rate of the features in each layer. (default: 0.84)
        input_dropout: That of the input features, where it is another. (default: ``dropout``)
        input_scale: Factor of the input features. (default: 1)
        node_dropout: Dropout rate of whole nodes after the embedding. (default: 0)
        layer_dropout: Dropout rate of what an LGCL appends, all of it for all nodes: the layers
            after it learn to do without, as in `"Deep Networks with Stochastic Depth"
            <https://arxiv.org/abs/1603.09382>`_. (default: 0)
        adj_dropout: Dropout rate of the adjacency's entries in each layer. (default: 0.001)
        activation: ``"none"`` (the identity), ``"relu"``, ``"elu"`` or ``"gelu"``, after the
            embedding and in and after each LGCL. (default: ``"none"``)
        batch_norm: After each LGCL: ``"none"``; ``"running"``, with running averages at
            evaluation; ``"batch"``, with the statistics of the batch at evaluation too, as in the
            released program, so that predictions depend on what else is predicted.
            (default: ``"none"``)

    Shapes:
        - **input:** node features :math:`(N, C)`, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid :math:`(N, \mathrm{classes})`
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
        embedding: Literal["gcn", "linear"] = "gcn",
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
        node_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        adj_dropout: float = 0.001,
        activation: str = "none",
        batch_norm: BatchNorm = "none",
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("embedding", embedding, ("gcn", "linear")),
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
        self.embedding = GCNLayer(
            in_channels,
            hidden_channels,
            "normalized" if embedding == "gcn" else "none",
            dropout=dropout if input_dropout is None else input_dropout,
            adj_dropout=adj_dropout,
            scale=input_scale,
        )
        self.node_dropout = node_dropout
        self.layer_dropout = layer_dropout
        self.layers = ModuleList()
        self.norms = ModuleList()
        width = hidden_channels
        for _ in range(num_layers):
            new = width if cnn == "shared" else lgcl_channels  # GCN layers are as wide as LGCLs
            if layer == "gcn":
                self.layers.append(
                    GCNLayer(
                        width,
                        new,
                        dropout=dropout,
                        adj_dropout=adj_dropout,
                    )
                )
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
                        dropout=dropout,
                        adj_dropout=adj_dropout,
                        activation=self.activation,
                    )
                )
            if batch_norm == "none":
                self.norms.append(Identity())
            else:
                running = batch_norm == "running"
                self.norms.append(BatchNorm1d(new, track_running_stats=running))
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
        for module in (self.embedding, *self.layers, *self.norms, self.classifier):
            if not isinstance(module, Identity):
                module.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Graph | Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Scores the classes of every node.

        Args:
            x: Node features.
            edge_index: A :class:`lgcn.Graph`, which is converted once and remembers it; or PyG's
                [2, E] tensor or a sparse adjacency, which are converted on every call.
            edge_weight: Edge weights, where ``edge_index`` is a tensor. (default: all one)
        """
        graph = _as_graph(x, edge_index, edge_weight)
        scores: Tensor = self.classifier(self.embed(x, graph), graph)
        return scores

    def embed(
        self,
        x: Tensor,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        *,
        layer: int = -1,
    ) -> Tensor:
        """What the classifier sees of every node: the embedding and what each LGCL appended.

        Args:
            x, edge_index, edge_weight: See :meth:`forward`.
            layer: The last LGCL to apply, 0 for the embedding alone. (default: all, -1)
        """
        graph = _as_graph(x, edge_index, edge_weight)
        h: Tensor = self.activate(self.embedding(x, graph))
        h = drop_rows(h, self.node_dropout, self.training)
        for lgcl, norm in self.lgcls(layer):
            new = self.activate(norm(lgcl(h, graph)))
            h = torch.cat([h, drop_whole(new, self.layer_dropout, self.training)], dim=1)
        return h

    def lgcls(self, layer: int = -1) -> list[tuple[Any, Module]]:
        """The LGCLs up to that number, each with the norm that follows it."""
        if not -1 <= layer <= len(self.layers):
            raise UsageError(
                f"layer must be from 0 (the embedding) to {len(self.layers)}, or -1 for the last, "
                f"got {layer}"
            )
        pairs: list[tuple[Any, Module]] = list(zip(self.layers, self.norms, strict=True))
        return pairs if layer == -1 else pairs[:layer]

    @property
    def first_layer(self) -> Module:
        return self.embedding

    def activate(self, x: Tensor) -> Tensor:
        """What follows the embedding and each LGCL."""
        return x if self.activation is None else self.activation(x)


def _as_graph(x: Tensor, edge_index: Graph | Tensor, edge_weight: Tensor | None) -> Graph:
    if not isinstance(edge_index, Graph):
        return Graph.as_given(edge_index, x.size(0), edge_weight=edge_weight)
    if edge_weight is not None:
        raise ValueError("edge_weight must be None with a Graph, which holds its weights")
    return edge_index
