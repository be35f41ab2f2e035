"""PyG's `edge_index` as layers read it if torch traces them, or an explanation masks edges."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.adjacency import inverse_root
from lgcn.graph.csr import CSR, add_self_loops, as_edge_index, check_edge_index
from lgcn.ops.plain import stable_sort


class GivenEdges:
    """Edges in PyG's form, with the two methods of a graph that layers use.

    `lgcn.Graph` reads the contents of its tensors: it checks them, counts what is missing, and
    keeps what it computed. Here all sizes follow from the sizes of the input, so `torch.compile`
    and `torch.export` can trace it. It also knows which edge each entry of the adjacency is, so
    that the masks of PyG's explainers find their entry.

    Args:
        edge_index: Sources and targets, shape [2, E].
        num_targets: Number of target nodes.
        num_sources: Number of source nodes.
        edge_weight: One weight per edge. (default: all one)
        edge_attr: Features of the edges, [E, D]. (default: none)
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_targets: int,
        num_sources: int,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> None:
        self._given = (edge_index, edge_weight)
        self.edge_attr = edge_attr
        source, target = edge_index = as_edge_index(edge_index)
        if torch.compiler.is_compiling():
            # The operators check the range of what they read when the traced program runs.
            if edge_weight is not None and edge_weight.shape != source.shape:
                raise ValueError(
                    f"edge_weight must have one entry per edge ({source.size(0)}), "
                    f"got shape {list(edge_weight.shape)}"
                )
        else:
            check_edge_index(edge_index, num_targets, num_sources, edge_weight)
        self.num_nodes = num_targets
        self.num_edges = source.size(0)
        self._row, self._edge = stable_sort(target)
        self._col = source[self._edge]
        self._weight = None if edge_weight is None else edge_weight[self._edge]
        self._made: dict[tuple[bool, bool], tuple[CSR, Tensor]] = {}

    def reversed(self) -> GivenEdges:
        """As `lgcn.Graph.reversed`."""
        edge_index, edge_weight = self._given
        nodes = self.num_nodes
        return GivenEdges(edge_index.flip(0), nodes, nodes, edge_weight, self.edge_attr)

    def adjacency(self, *, normalize: bool = False, self_loops: bool = False) -> CSR:
        """As `lgcn.Graph.adjacency`. With `self_loops`, a spare row follows that of the last node.

        How many nodes lack a self-loop cannot be known while tracing, so every node gets another
        one, and those that are not needed go to the spare row.
        """
        return self._matrix(normalize, self_loops)[0]

    def edge_of_entry(self, *, normalize: bool = False, self_loops: bool = False) -> Tensor:
        """The edge that each entry of `adjacency` is, -1 for a self-loop that was added."""
        return self._matrix(normalize, self_loops)[1]

    def _matrix(self, normalize: bool, self_loops: bool) -> tuple[CSR, Tensor]:
        key = (normalize, self_loops)
        if key not in self._made:  # the layers of a network share it
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, normalize: bool, self_loops: bool) -> tuple[CSR, Tensor]:
        row, col, weight, edge = self._row, self._col, self._weight, self._edge
        num_rows = self.num_nodes
        degree = self._degree()
        if self_loops:
            node = torch.arange(num_rows, device=row.device)
            looped = torch.zeros_like(node).scatter_add(0, row, (row == col).long()) > 0
            row, order = stable_sort(torch.cat([torch.where(looped, num_rows, node), row]))
            col = torch.cat([node, col])[order]
            edge = torch.cat([torch.full_like(node, -1), edge])[order]
            if weight is not None:
                weight = torch.cat([weight.new_ones(num_rows), weight])[order]
            degree = F.pad(degree + (~looped).to(degree.dtype), (0, 1))
            num_rows = num_rows + 1
        if normalize:
            scale = inverse_root(degree)
            factor = scale[row] * scale[col]
            weight = factor if weight is None else factor * weight.to(factor.dtype)
        return CSR(_offsets(row, num_rows), col, weight), edge

    def _degree(self) -> Tensor:
        if self._weight is None:
            return _offsets(self._row, self.num_nodes).diff().to(torch.get_default_dtype())
        weight = self._weight
        if weight.dtype not in (torch.float32, torch.float64):
            weight = weight.to(torch.float32)
        return weight.new_zeros(self.num_nodes).scatter_add(0, self._row, weight)


Edges = Graph | GivenEdges


def edge_of_entry(edges: Edges, *, normalize: bool, self_loops: bool) -> Tensor:
    """The edge that each entry of the adjacency is, -1 for a self-loop that was added.

    The edges of a graph are numbered as in `lgcn.Graph.edge_index`.
    """
    if isinstance(edges, GivenEdges):
        return edges.edge_of_entry(normalize=normalize, self_loops=self_loops)

    def make() -> Tensor:
        number = torch.arange(edges.num_edges, device=edges.col.device)
        if not self_loops:
            return number
        looped = add_self_loops(CSR(edges.rowptr, edges.col, number + 2))  # a new loop's is 1
        assert looped.weight is not None
        return looped.weight - 2

    found: Tensor = edges.derived(("edge_of_entry", self_loops), make)
    return found


def without_spare(rows: Tensor, edges: Edges) -> Tensor:
    """What was computed for the rows of an adjacency, without its spare row if it has one."""
    return rows[: edges.num_nodes] if isinstance(edges, GivenEdges) else rows


def _offsets(row: Tensor, num_rows: int) -> Tensor:
    """The row offsets of sorted entries. Not by `searchsorted`, which ONNX does not have."""
    counts = row.new_zeros(num_rows + 1).scatter_add(0, row + 1, torch.ones_like(row))
    return counts.cumsum(0)
