"""What PyG sees of a layer that reads neighbours: message passing whose edges can be masked."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.nn.edge_factor import EdgeFactor
from lgcn.nn.edges import Edges, GivenEdges, edge_of_entry
from lgcn.nn.rows import AdjacencyOptions, RowLayer
from lgcn.ops.plain import exports_to_onnx


class MessageLayer(RowLayer, MessagePassing):  # type: ignore[misc]
    """A layer of which PyG's tools know that it sends messages along edges.

    `to_hetero` makes one copy per relation, and the explainers of `torch_geometric.explain` can
    mask edges: the message of an edge is multiplied by the edge's entry in the mask. Degrees of the
    normalisation and denominators of means stay those of the unmasked graph, and self-loops that
    the layer adds are not masked. The mask follows the edges of the given `edge_index`, or of
    `lgcn.Graph.edge_index`.

    The layer computes by operators of its own: `propagate` is not called, and neither are its
    hooks.
    """

    def __init__(self) -> None:
        super().__init__(aggr=None)
        self.edge_factor: EdgeFactor | None = None  # of a network that reads edge features

    @property
    def adjacency_options(self) -> AdjacencyOptions:
        """The adjacency that this layer reads, as arguments of `lgcn.Graph.adjacency`."""
        raise NotImplementedError

    # PyG's property also replaces `propagate`, for layers that call PyG's.
    @property
    def explain(self) -> bool | None:
        """Whether an explainer masks the edges; `False` keeps explainers from doing so."""
        return self._explain

    @explain.setter
    def explain(self, value: bool | None) -> None:
        self._explain = value

    def __setattr__(self, name: str, value: Any) -> None:
        """Keeps a mask out of the parameters.

        GNNExplainer's mask is a parameter. If it were registered, PyG would copy every later mask
        into a new parameter, and gradients would not reach it.
        """
        if name == "_edge_mask":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Does nothing: PyG would write a file of code for a `propagate` that is not called."""

    def entry_mask(self, edges: Edges | CSR) -> Tensor | None:
        """The factor of each entry of the adjacency, `None` if all are one.

        It is that of the mask, if somebody masks edges, times what the layer learnt from the
        features of the edges, if it reads any.

        Args:
            edges: What the layer was called with. For a `CSR`, the mask follows its entries.
        """
        learned: Tensor | None = None
        if self.edge_factor is not None:
            learned = self.edge_factor(None if isinstance(edges, CSR) else edges.edge_attr)
        if not self._explain or self._edge_mask is None:
            if learned is None:
                return None
            if isinstance(edges, Graph) and not self.adjacency_options["self_loops"]:
                return learned  # the entries are the edges
            return self._of_entries(learned, edges)
        mask: Any = self._edge_mask
        if self._apply_sigmoid:
            mask = mask.sigmoid()
        return self._of_entries(mask, edges, learned)

    def _of_entries(
        self, mask: Tensor, edges: Edges | CSR, learned: Tensor | None = None
    ) -> Tensor:
        if isinstance(edges, CSR):
            edge, count = None, edges.col.numel()
        else:
            edge = edge_of_entry(edges, **self.adjacency_options)
            count = edges.num_edges
        if mask.shape != (count,):
            raise ValueError(
                f"an edge mask must have one entry per edge ({count}), got shape {list(mask.shape)}"
            )
        mask = mask if learned is None else mask * learned
        # Entry -1, the last one, is that of self-loops that were added.
        factor: Tensor = mask if edge is None else torch.cat([mask, mask.new_ones(1)])[edge]
        return factor

    @property
    def learns_mask(self) -> bool:
        """Whether `entry_mask` gives factors that are learnt from edge features, and no others."""
        return self.edge_factor is not None and not self._explain

    def check_blocks(self) -> None:
        """Raises UsageError if the edges are masked."""
        if self._explain:
            raise UsageError("edges cannot be masked while a graph is computed block by block")


def times(adjacency: CSR, mask: Tensor | None) -> CSR:
    """The adjacency with masked entries."""
    if mask is None:
        return adjacency
    return CSR(adjacency.rowptr, adjacency.col, adjacency.values(mask.dtype) * mask)


def drop_edges(
    adjacency: CSR, p: float, mask: Tensor | None, *, learned: bool
) -> tuple[CSR, Tensor | None]:
    """The adjacency without some of its entries, for a layer whose zeros could be selected.

    The mask of the rest comes with it. Raises ValueError if the number of entries must stay the
    same: for a mask that was given, or for an export.

    Args:
        adjacency: The adjacency.
        p: The rate at which entries are removed, the layer's `adj_dropout`.
        mask: The factors of its entries, `None` if all are one.
        learned: Whether the mask is made of edge features alone, which may have fewer entries.
    """
    for what, done in (
        ("masked", mask is not None and not learned),
        ("exported", torch.compiler.is_exporting()),
    ):
        if done:
            raise ValueError(
                f"adj_dropout ({p}) removes edges in training, so the layer cannot be {what}: "
                "call eval() first"
            )
    return adjacency.drop_edges_with(p, mask)


def as_edges(
    model: Module,
    x: Tensor,
    edge_index: Edges | Tensor,
    edge_weight: Tensor | None,
    edge_attr: Tensor | None = None,
) -> Edges:
    """The edges that a network was called with, as its layers take them.

    Args:
        model: The network, whose layers may be masked.
        x: Node features.
        edge_index: A graph, which is returned; PyG's [2, E] tensor; or a sparse adjacency.
        edge_weight: Edge weights, if `edge_index` is a tensor.
        edge_attr: Features of the edges, if `edge_index` is a tensor. (default: none)
    """
    if isinstance(edge_index, (Graph, GivenEdges)):
        if edge_weight is not None:
            raise ValueError("edge_weight must be None with a Graph, which holds its own weights")
        if edge_attr is not None:
            raise ValueError("edge_attr must be None with a Graph, which holds its own features")
        return edge_index
    if needs_tracing(edge_index, model, x):
        return GivenEdges(edge_index, x.size(0), x.size(0), edge_weight, edge_attr)
    return Graph.as_given(edge_index, x.size(0), edge_weight=edge_weight, edge_attr=edge_attr)


def needs_tracing(edge_index: Tensor, model: Module, x: Tensor) -> bool:
    """Whether `GivenEdges` must sort the edges: torch traces the model, or its edges are masked.

    Raises ValueError for what cannot be exported.
    """
    if torch.compiler.is_exporting() and x.layout != torch.strided:
        raise ValueError(f"x must be dense to be exported, got {x.layout}: use x.to_dense()")
    if exports_to_onnx() and model.training:
        raise ValueError("ONNX has no dropout by our rules: call model.eval() before the export")
    if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
        return False
    if torch.compiler.is_compiling():
        return True
    return any(isinstance(layer, MessageLayer) and layer.explain for layer in model.modules())
