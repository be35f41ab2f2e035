"""The one data structure: a CSR adjacency, features, labels and splits."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgcn.graph.csr import (
    CSR,
    INTEGER_DTYPES,
    add_self_loops,
    as_edge_index,
    check_edge_index,
    has_self_loop,
    node_numbers,
    one_index_dtype,
    row_sums,
    sparse_features,
    stack_offsets,
    stack_rows,
    take_rows,
    to_csr,
)
from lgcn.ops.induced_subgraph import induced_subgraph
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import INDEX_DTYPES, check_layout, check_range, csr_parts, trust
from lgcn.utils.limits import MAX_INT32

if TYPE_CHECKING:
    from lgcn.tables.encoder import FeatureEncoder

SPLITS = ("train", "val", "test")
# What a sub-graph takes along of its nodes, one row each. The features go through features().
NODE_TENSORS = ("y", "train_mask", "val_mask", "test_mask", "node_weight")
FOUND_NODES = 2**27  # with more, few edges are taken for a mistake: the offsets take gigabytes
MAX_SQUARED = 3_037_000_499  # whose square int64 holds
PER_NODE = ("x", *NODE_TENSORS, "degree", "n_id", "node_ids")


@dataclass(frozen=True, eq=False)
class Graph:
    r"""A graph, or several: adjacency, features, labels and splits.

    The names are PyG's where PyG has one. A graph does not change once it is made; what is derived
    from it (:meth:`adjacency`) is computed once and kept. Its tensors may be maps of files
    (:func:`~lgcn.store.open_store`), which is why most methods work on the rows they are asked
    for and on no others.

    Args:
        rowptr, col: CSR adjacency. Row i lists the nodes that node i aggregates from, in the order
            that breaks ties (:func:`lgcn.k_largest`).
        x: Features, dense or sparse (``torch.sparse_csr``), of any type; :meth:`features` gives
            them as floating point numbers. (default: none)
        feature_scale: For features that are stored as small integers, [2, F]: a feature is ``x``
            times the first row plus the second. (default: ``x`` is taken as it is)
        y: Class of every node, -1 where it is unknown; or a [N, L] matrix of zeros and ones where a
            node can have several of L labels. (default: none)
        train_mask, val_mask, test_mask: Boolean masks of nodes. (default: none)
        edge_weight: One weight an entry of ``col``. (default: all one)
        degree: Sum of the weights of each row that the normalisation uses. A sub-graph keeps those
            of the graph it was cut from. (default: computed from the rows)
        node_weight: How much each node counts in the loss of a batch, for start nodes that were
            not drawn uniformly. (default: all the same)
        ptr: Node offsets of the separate graphs, as in a PyG batch. (default: one graph)
        n_id: For a sub-graph, its nodes' numbers in the graph it was cut from. (default: none)
        node_ids: The user's names for the nodes. (default: their numbers)
        label_names: The user's names for classes or labels. (default: their numbers)
        encoder: How ``x`` was made of the user's columns; a model keeps it for new tables.
            (default: ``x`` was given as it is)
        name: Shown in messages and results.
    """

    rowptr: Tensor
    col: Tensor
    x: Tensor | None = None
    y: Tensor | None = None
    train_mask: Tensor | None = None
    val_mask: Tensor | None = None
    test_mask: Tensor | None = None
    edge_weight: Tensor | None = None
    degree: Tensor | None = None
    node_weight: Tensor | None = None
    ptr: Tensor | None = None
    n_id: Tensor | None = None
    node_ids: np.ndarray[Any, Any] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: FeatureEncoder | None = None
    feature_scale: Tensor | None = None
    name: str = "graph"
    _derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    # rowptr and col where they were checked by other means than reading all of them here.
    _checked: tuple[Tensor, Tensor] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self._is_trusted:
            trust(self.rowptr, self.col, self.num_nodes)
        else:
            check_layout(self.rowptr, self.col)
            check_range(self.rowptr, self.col, self.num_nodes)
        n = self.num_nodes
        for key in PER_NODE:
            value = getattr(self, key)
            if value is not None and value.shape[0] != n:
                raise ValueError(
                    f"{key} must have one row per node ({n}), got shape {tuple(value.shape)}"
                )
        if self.x is not None and self.x.dim() != 2:
            raise ValueError(f"x must have shape [nodes, features], got {tuple(self.x.shape)}")
        if self.x is not None and self.x.layout == torch.sparse_csr and not self._is_trusted:
            _check_sparse_features(self.x)
        scale = self.feature_scale
        if scale is not None and (self.x is None or tuple(scale.shape) != (2, self.x.size(1))):
            raise ValueError(
                f"feature_scale must have shape [2, features] and come with x, got "
                f"{tuple(scale.shape)} for {self.num_features} features"
            )
        if self.edge_weight is not None and self.edge_weight.shape != self.col.shape:
            raise ValueError(
                f"edge_weight must have one entry per entry of col ({self.col.numel()}), "
                f"got shape {tuple(self.edge_weight.shape)}"
            )
        if self.ptr is not None and not _covers(self.ptr, n):
            raise ValueError(f"ptr must rise from 0 to the number of nodes ({n}), got {self.ptr}")
        for split in SPLITS:
            mask = self.mask(split)
            if mask is not None and (mask.dtype != torch.bool or mask.dim() != 1):
                raise ValueError(
                    f"{split}_mask must be a one-dimensional boolean mask, got {mask.dtype} "
                    f"in shape {tuple(mask.shape)}"
                )

    @classmethod
    def _trusted(cls, rowptr: Tensor, col: Tensor, **fields: Any) -> Graph:
        """A graph whose adjacency is known to be right, so that it need not be read.

        ``rowptr`` may then be int64 and ``col`` int32. What the methods return has one dtype.
        """
        for name, part in (("rowptr", rowptr), ("col", col)):
            if part.dim() != 1 or part.dtype not in INDEX_DTYPES:
                raise ValueError(f"{name} must be a vector of int32 or int64, got {part.dtype}")
        return cls(rowptr, col, **fields, _checked=(rowptr, col))

    @property
    def _is_trusted(self) -> bool:
        """Whether these very tensors, and no others put in their place, need not be read."""
        known = self._checked
        return known is not None and known[0] is self.rowptr and known[1] is self.col

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        directed: bool = False,
        **node_data: Any,
    ) -> Graph:
        """Makes a graph from PyG's [2, E] ``edge_index`` or a sparse adjacency.

        Like every function that makes a graph from a user's edges, it merges duplicate edges
        (the largest weight wins), leaves out self-loops, and sorts each row by node number. For a
        graph with duplicates or self-loops, see :meth:`as_given`.

        Args:
            edge_index: See :func:`~lgcn.graph.csr.to_csr`.
            num_nodes: (default: rows of ``x``, else the largest number in ``edge_index`` plus one)
            edge_weight: One weight per edge. (default: none)
            directed: Whether only an edge's target aggregates from its source. (default:
                ``False``, every edge counts both ways)
            **node_data: The other fields of :class:`Graph`.
        """
        if not _is_sparse(edge_index):
            edge_index = as_edge_index(edge_index)
        num_nodes = _count_nodes(edge_index, num_nodes, node_data.get("x"))
        if _is_sparse(edge_index):
            matrix = to_csr(edge_index, num_nodes, num_nodes, edge_weight)
            check_range(matrix.rowptr, matrix.col, num_nodes)
            edge_index = torch.stack([matrix.col.long(), row_of_entry(matrix.rowptr)])
            edge_weight = matrix.weight
        check_edge_index(edge_index, num_nodes, num_nodes, edge_weight)
        matrix = _simple_rows(edge_index, edge_weight, num_nodes, directed)
        return cls(matrix.rowptr, matrix.col, edge_weight=matrix.weight, **node_data)

    @classmethod
    def as_given(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        **node_data: Any,
    ) -> Graph:
        """Makes a graph of exactly the given edges, as a layer of PyG takes them.

        Edges are directed. Duplicates and self-loops stay, and each row keeps the order of its
        edges. This is what a layer such as :class:`lgcn.LGConv` does with a raw ``edge_index``.

        Args:
            edge_index, num_nodes, edge_weight, **node_data: See :meth:`from_edge_index`.
        """
        if not _is_sparse(edge_index):
            edge_index = as_edge_index(edge_index)
        num_nodes = _count_nodes(edge_index, num_nodes, node_data.get("x"))
        matrix = to_csr(edge_index, num_nodes, num_nodes, edge_weight)
        return cls(matrix.rowptr, matrix.col, edge_weight=matrix.weight, **node_data)

    @classmethod
    def from_pyg(cls, data: Data, name: str = "graph", *, directed: bool = False) -> Graph:
        """Makes a graph from PyG's ``Data`` or ``Batch``.

        Args:
            data: With ``edge_index`` or ``adj_t``.
            name: The graph's name. (default: ``"graph"``)
            directed: See :meth:`from_edge_index`. (default: ``False``)
        """
        adjacency = data.edge_index if data.edge_index is not None else data.get("adj_t")
        if adjacency is None:
            raise ValueError("data must have edge_index or adj_t, got neither")
        if data.edge_index is not None and adjacency.layout == torch.strided:
            adjacency = as_edge_index(adjacency)
            data = copy(data)  # PyG counts the nodes, which it cannot do in every integer type
            data.edge_index = adjacency
        edge_weight = data.get("edge_weight") if adjacency.layout == torch.strided else None
        keys = ("x", "y", "train_mask", "val_mask", "test_mask", "ptr", "n_id")
        node_data = {key: data.get(key) for key in keys if data.get(key) is not None}
        y = node_data.get("y")
        if y is not None and y.dim() == 2 and y.size(1) == 1:
            node_data["y"] = y.squeeze(1)
        return cls.from_edge_index(
            adjacency,
            data.num_nodes,
            edge_weight=edge_weight,
            directed=directed,
            name=name,
            **node_data,
        )

    def to_pyg(self) -> Data:
        """The graph as PyG's ``Data``, with ``edge_index``; sparse features stay sparse."""
        data = Data(edge_index=self.edge_index, num_nodes=self.num_nodes)
        if self.x is not None:
            data["x"] = self.features()
        keys = ("y", "train_mask", "val_mask", "test_mask", "edge_weight", "ptr", "n_id")
        for key in keys:
            if getattr(self, key) is not None:
                data[key] = getattr(self, key)
        return data

    @property
    def num_nodes(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Entries of the adjacency: an undirected edge counts twice."""
        return self.col.numel()

    @property
    def num_features(self) -> int:
        return 0 if self.x is None else self.x.size(1)

    @property
    def multi_label(self) -> bool:
        return self.y is not None and self.y.dim() == 2

    @property
    def num_classes(self) -> int:
        """Number of classes, or of labels where a node can have several."""
        if self.label_names is not None:
            return len(self.label_names)
        if self.y is None:
            return 0
        if self.multi_label:
            return self.y.size(1)
        return int(self.y.max()) + 1 if self.y.numel() else 0

    @property
    def num_graphs(self) -> int:
        return 1 if self.ptr is None else self.ptr.numel() - 1

    @property
    def edge_index(self) -> Tensor:
        """PyG's [2, E] form: sources, targets."""
        return torch.stack([self.col.long(), row_of_entry(self.rowptr)])

    @property
    def inductive(self) -> bool:
        """Whether the splits are separate graphs: training must not see the other graphs."""
        if self.num_graphs == 1 or self.train_mask is None:
            return False
        assert self.ptr is not None
        counts = torch.stack(
            [self.train_mask[a:b].float().mean() for a, b in zip(self.ptr, self.ptr[1:])]  # noqa: B905
        )
        return bool(((counts == 0) | (counts == 1)).all()) and bool((counts == 0).any())

    def mask(self, split: str) -> Tensor | None:
        """The mask of a split, "train", "val" or "test"."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        mask: Tensor | None = getattr(self, f"{split}_mask")
        return mask

    def unlabelled(self) -> Tensor:
        """A mask of the nodes whose label is not known.

        Where a node can have several labels, one that has none of them counts as known if it is in
        a split.
        """
        if self.y is None:
            return torch.ones(self.num_nodes, dtype=torch.bool)
        if not self.multi_label:
            return self.y < 0
        # Zeros in y do not tell whether a node has no labels or none that is known.
        known = (self.y > 0).any(1)
        for split in SPLITS:
            mask = self.mask(split)
            known = known if mask is None else known | mask
        return ~known

    def adjacency(self, *, normalize: bool = False, self_loops: bool = False) -> CSR:
        r"""The adjacency in CSR form, computed once per graph.

        Args:
            normalize: Weights each entry by :math:`(d_i d_j)^{-1/2}`, the symmetric normalisation
                of GCN, with the degrees :attr:`degree`. It is made for weights that are not
                negative: the entries of a node whose degree is zero or less are zero.
                (default: ``False``)
            self_loops: Adds the entries (i, i) that are missing. (default: ``False``)

        Where ``edge_weight`` or ``degree`` requires a gradient, nothing is kept: each backward has
        its own autograd graph.
        """
        if self._learns_weights:
            return self._make_adjacency(normalize, self_loops)
        key = (normalize, self_loops)
        if key not in self._derived:
            self._derived[key] = self._make_adjacency(normalize, self_loops)
        found: CSR = self._derived[key]
        return found

    @property
    def _learns_weights(self) -> bool:
        return any(t is not None and t.requires_grad for t in (self.edge_weight, self.degree))

    def _make_adjacency(self, normalize: bool, self_loops: bool) -> CSR:
        check_range(self.rowptr, self.col, self.num_nodes)  # again only where they changed
        matrix = CSR(*one_index_dtype(self.rowptr, self.col), self.edge_weight)
        degree = self.degree if self.degree is not None else row_sums(matrix)
        if self_loops:
            looped = add_self_loops(matrix)
            degree = degree + (looped.rowptr.diff() - matrix.rowptr.diff())
            matrix = looped
        if normalize:
            scale = _inverse_root(degree)
            weight = scale[row_of_entry(matrix.rowptr)] * scale[matrix.col]
            matrix = matrix._replace(weight=weight * matrix.values(weight.dtype))
        return matrix

    def edges(
        self, *, normalize: bool = False, self_loops: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The adjacency as PyG's layers take it, (edge_index, edge_weight), made once per graph.

        Args:
            normalize, self_loops: See :meth:`adjacency`.
        """
        key = ("edges", normalize, self_loops)
        if key not in self._derived or self._learns_weights:
            matrix = self.adjacency(normalize=normalize, self_loops=self_loops)
            edge_index = torch.stack([matrix.col.long(), row_of_entry(matrix.rowptr).long()])
            if self._learns_weights:
                return edge_index, matrix.weight
            self._derived[key] = (edge_index, matrix.weight)
        found: tuple[Tensor, Tensor | None] = self._derived[key]
        return found

    def adjacency_rows(
        self, start: int, stop: int, *, normalize: bool = False, self_loops: bool = False
    ) -> CSR:
        """The rows from ``start`` up to ``stop`` of :meth:`adjacency`, made of these rows alone.

        Columns are the nodes of the whole graph. Nothing is kept, except which nodes have a
        self-loop, where that matters: the first call then reads the whole adjacency once.

        Args:
            start, stop: Node numbers, 0 <= start <= stop <= num_nodes.
            normalize, self_loops: See :meth:`adjacency`.
        """
        if not 0 <= start <= stop <= self.num_nodes:
            raise ValueError(
                f"rows must lie between 0 and {self.num_nodes}, got start {start} and stop {stop}"
            )
        check_range(self.rowptr, self.col, self.num_nodes)  # again only where they changed
        matrix = CSR(self.rowptr, self.col, self.edge_weight).rows(start, stop)
        if self_loops:
            matrix = add_self_loops(matrix, start)
        if normalize:
            own, other = self._row_degree()[start:stop], self._row_degree()[matrix.col]
            if self_loops:
                looped = self._has_self_loop
                if looped is None:
                    own, other = own + 1, other + 1
                else:
                    own, other = own + ~looped[start:stop], other + ~looped[matrix.col]
            weight = _inverse_root(own)[row_of_entry(matrix.rowptr)] * _inverse_root(other)
            matrix = matrix._replace(weight=weight * matrix.values(weight.dtype))
        return matrix

    @cached_property
    def _has_self_loop(self) -> Tensor | None:
        """A mask of the nodes that have one, ``None`` where there are none."""
        looped = has_self_loop(self.rowptr, self.col)
        return looped if bool(looped.any()) else None

    def features(self, rows: Tensor | slice | None = None) -> Tensor:
        """Rows of ``x`` as they enter a model: float32 (float64 where ``x`` is that).

        Args:
            rows: Node numbers, a boolean mask, or a slice without a step. (default: all nodes)
        """
        if self.x is None:
            raise ValueError("the graph must have features x, got none")
        x = self.x
        if rows is not None:
            if isinstance(rows, Tensor):
                rows = node_numbers(rows, self.num_nodes, "rows")
            x = take_rows(x, rows)
        if x.layout == torch.sparse_csr:
            return _plain_sparse(x)
        if x.dtype != torch.float64:
            x = x.to(torch.float32)
        if self.feature_scale is not None:
            # x is a copy here, unless it was float already, and then it is not ours to change.
            x = torch.addcmul(self.feature_scale[1], x, self.feature_scale[0])
        return x

    def subgraph(self, nodes: Tensor, *, keep_degree: bool = True) -> Graph:
        """The induced sub-graph on ``nodes``, which must be distinct; rows keep their order.

        Nodes of separate graphs (``ptr``) become one graph. Features become float32, as
        :meth:`features` gives them.

        Args:
            nodes: Node numbers, the sub-graph's nodes come in this order; or a boolean mask.
            keep_degree: Normalise with the degrees that the nodes have in this graph. With
                ``False`` the sub-graph has degrees of its own. (default: ``True``)
        """
        nodes = node_numbers(nodes, self.num_nodes)
        rowptr, col, entry = induced_subgraph(self.rowptr, self.col, nodes)
        degree = None
        if keep_degree:
            degree = self._row_degree()[nodes]
        ids = nodes if self.n_id is None else self.n_id[nodes]
        taken: dict[str, Any] = {
            key: value.index_select(0, nodes)  # a third of the time of value[nodes]
            for key in NODE_TENSORS
            if (value := getattr(self, key)) is not None
        }
        return Graph(
            *one_index_dtype(rowptr, col),
            x=None if self.x is None else self.features(nodes),
            **taken,
            edge_weight=None if self.edge_weight is None else self.edge_weight[entry],
            degree=degree,
            n_id=ids,
            node_ids=None if self.node_ids is None else self.node_ids[nodes.cpu().numpy()],
            label_names=self.label_names,
            encoder=self.encoder,
            name=self.name,
        )

    def _row_degree(self) -> Tensor:
        if self.degree is not None:
            return self.degree
        # Kept on the full graph, since many sub-graphs are cut from it.
        degree = row_sums(CSR(self.rowptr, self.col, self.edge_weight))
        if not degree.requires_grad:
            object.__setattr__(self, "degree", degree)
        return degree

    @staticmethod
    def concat(graphs: Sequence[Graph]) -> Graph:
        """Puts graphs side by side as one block-diagonal graph with ``ptr``."""
        if not graphs:
            raise ValueError("graphs must have at least one graph, got none")
        if len(graphs) == 1:
            return graphs[0]
        sizes = torch.tensor([0] + [graph.num_nodes for graph in graphs])
        offsets = sizes.cumsum(0)
        parts: dict[str, Any] = {}
        for key in ("x", *NODE_TENSORS, "edge_weight", "degree"):
            values = [getattr(graph, key) for graph in graphs]
            present = [value is not None for value in values]
            if key == "degree" and any(present):  # the others' are those of their rows
                parts[key] = torch.cat([graph._row_degree() for graph in graphs])
                continue
            if any(present) and not all(present):
                raise ValueError(f"{key} must be given for all graphs or for none")
            if all(present):
                if key == "x":  # each graph may have a scale of its own
                    values = [graph.features() for graph in graphs]
                parts[key] = stack_rows(values)
        n_id = [graph.n_id for graph in graphs]
        col = [graph.col for graph in graphs]
        if int(offsets[-1]) > MAX_INT32:  # a tensor of int32 plus an offset is int32
            col = [numbers.long() for numbers in col]
        return Graph(
            *one_index_dtype(
                stack_offsets([graph.rowptr for graph in graphs]),
                torch.cat([c + o for c, o in zip(col, offsets, strict=False)]),
            ),
            ptr=offsets,
            n_id=torch.cat(n_id) if all(i is not None for i in n_id) else None,  # type: ignore[arg-type]
            label_names=graphs[0].label_names,
            encoder=graphs[0].encoder,
            name=graphs[0].name,
            **parts,
        )

    def to(self, device: torch.device | str) -> Graph:
        """The graph with all tensors on ``device``."""
        device = torch.device(device)
        if self.rowptr.device == device:
            return self
        moved = {
            f.name: getattr(self, f.name).to(device)
            for f in fields(self)
            if isinstance(getattr(self, f.name), Tensor)
        }
        trusted = (moved["rowptr"], moved["col"]) if self._is_trusted else None
        return replace(self, **moved, _derived={}, _checked=trusted)

    def __repr__(self) -> str:
        graphs = f", num_graphs={self.num_graphs}" if self.num_graphs > 1 else ""
        return (
            f"Graph(name={self.name!r}, num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"num_features={self.num_features}, num_classes={self.num_classes}{graphs})"
        )


def _check_sparse_features(x: Tensor) -> None:
    """Torch trusts the indices of sparse tensors. These checks are those of the product with x."""
    rowptr, col, _ = csr_parts(x)
    if rowptr.numel() != x.size(0) + 1:
        raise ValueError(
            f"x must have an offset per row and one more ({x.size(0) + 1}), got {rowptr.numel()}"
        )
    try:
        check_range(rowptr, col, x.size(1))
    except ValueError as error:
        raise ValueError(f"x has wrong indices: {error}") from error


def _is_sparse(edge_index: Tensor) -> bool:
    return isinstance(edge_index, Tensor) and edge_index.layout != torch.strided


def _count_nodes(edge_index: Tensor, num_nodes: int | None, x: Tensor | None) -> int:
    """The number of nodes: as given, else the rows of ``x``, else as the edges say."""
    if num_nodes is not None:
        return index(num_nodes)
    if x is not None:
        return int(x.shape[0])
    return edge_index.size(0) if _is_sparse(edge_index) else _found_nodes(edge_index)


def _found_nodes(edge_index: Tensor) -> int:
    """The largest node number plus one; refused where it can only be another kind of number."""
    if edge_index.numel() == 0:
        return 0
    largest = int(edge_index.max())
    if largest > max(FOUND_NODES, 1000 * edge_index.size(1)):
        raise ValueError(
            f"edge_index must number the nodes from 0 on, got node {largest} in "
            f"{edge_index.size(1)} edges. Where there are so many nodes, give num_nodes"
        )
    return largest + 1


def _simple_rows(edge_index: Tensor, weight: Tensor | None, num_nodes: int, directed: bool) -> CSR:
    """The sorted rows of the edges, or of the edges and their reverses.

    Self-loops are left out. Duplicates are merged; the largest weight wins.
    """
    between = edge_index[0] != edge_index[1]
    edge_index = edge_index[:, between]
    weight = None if weight is None else weight[between]
    col, row = edge_index
    if not directed:
        row, col = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        weight = None if weight is None else weight.repeat(2)
    order = _sorted_order(row, col, num_nodes)
    row, col = row[order], col[order]
    new = torch.ones_like(row, dtype=torch.bool)
    new[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    if weight is not None:
        weight = weight[order]
        largest = weight.new_empty(int(new.sum()))
        weight = largest.scatter_reduce(0, new.cumsum(0) - 1, weight, "amax", include_self=False)
    rows = torch.arange(num_nodes + 1, device=row.device)
    return CSR(torch.searchsorted(row[new], rows), col[new], weight)


def _sorted_order(row: Tensor, col: Tensor, num_nodes: int) -> Tensor:
    """The order of entries by row, then column."""
    if num_nodes <= MAX_SQUARED:
        return (row * num_nodes + col).sort(stable=True).indices
    order = col.sort(stable=True).indices
    return order[row[order].sort(stable=True).indices]


def _covers(ptr: Tensor, num_nodes: int) -> bool:
    if ptr.dim() != 1 or ptr.dtype not in INTEGER_DTYPES:
        return False
    bounds = ptr.tolist()
    return bounds[:1] == [0] and bounds[-1] == num_nodes and bounds == sorted(bounds)


def _inverse_root(degree: Tensor) -> Tensor:
    """One over the root of each degree, 0 for nodes that have none."""
    none = degree <= 0
    # Not in place, and no infinite slope at zero: the weights may be learned.
    return torch.where(none, 0, torch.where(none, 1, degree).rsqrt())


def _plain_sparse(x: Tensor) -> Tensor:
    """Sparse features in one index dtype and in float32 (float64 where they are that)."""
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    rowptr, col = x.crow_indices(), x.col_indices()
    if x.dtype == dtype and rowptr.dtype == col.dtype:
        return x
    return sparse_features(*one_index_dtype(rowptr, col), x.values().to(dtype), x.size(1))
