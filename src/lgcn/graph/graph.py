"""The graph: a CSR adjacency, features, labels and splits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph.adjacency import Adjacency
from lgcn.graph.checks import check_edge_attr, check_sparse_features, covers
from lgcn.graph.csr import (
    CSR,
    checked_nodes,
    one_index_dtype,
    sparse_features,
    take_rows,
)
from lgcn.graph.cut import NODE_TENSORS, concat_fields, subgraph_fields
from lgcn.graph.pyg import adjacency_as_given, arguments_from_pyg, simple_adjacency, to_pyg
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import INDEX_DTYPES, check_layout, check_range, transpose, trust
from lgcn.utils.choices import Task
from lgcn.utils.memory import check_memory

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lgcn.tables.encoder import FeatureEncoder

SPLITS = ("train", "val", "test")
PER_NODE = ("x", *NODE_TENSORS, "degree", "n_id", "node_ids")


@dataclass(frozen=True, eq=False)
class Graph:
    r"""A graph, or several: adjacency, features, labels and splits.

    Fields have PyG's names if PyG has one. A graph never changes: to change a field, make a new
    graph with `dataclasses.replace`. What is derived from a graph, such as `adjacency()`, is
    computed once and shared by all graphs that have the same tensors. The tensors may be
    memory-mapped files (`lgcn.store.open_store`), so most methods read only the rows you ask for.

    Args:
        rowptr, col: CSR adjacency. Row i lists the nodes that node i aggregates from. Their order
            breaks ties in `lgcn.k_largest`.
        x: Features of shape [N, F], dense or sparse (`torch.sparse_csr`), of any type;
            `features()` returns them as floating-point numbers. (default: none)
        feature_scale: For features stored as small integers, a tensor of shape [2, F]. A feature is
            `x` times the first row plus the second row. (default: `x` is used as it is)
        y: Class of each node, -1 if unknown; or a [N, L] matrix of zeros and ones if a node can
            have several of L labels; or, for a regression, a floating-point number per node, NaN
            if unknown. See `task`. (default: none)
        train_mask, val_mask, test_mask: Boolean masks of nodes. (default: none)
        edge_weight: One weight per entry of `col`. (default: all one)
        edge_attr: Features of the edges, floating-point numbers of shape [E, D], one row per entry
            of `col`. `lgcn.nn.residual.ResidualLGCN` can learn from them. (default: none)
        degree: Degree of each node that the normalisation uses. A sub-graph keeps the degrees of
            the graph it was cut from. (default: the sum of the weights in each row)
        node_weight: Weight of each node in the loss of a batch, for start nodes that were not drawn
            uniformly. (default: all equal)
        sample_weight: Your weight of each node in the training loss, at least 0. Scores are not
            weighted. (default: all equal)
        ptr: Node offsets of the separate graphs, as in a PyG batch. (default: one graph)
        n_id: For a sub-graph, the numbers of its nodes in the graph it was cut from.
            (default: none)
        node_ids: Your ids of the nodes. (default: their numbers)
        label_names: Your names of the classes or labels. (default: their numbers)
        encoder: How `x` was encoded from the columns of a table. A trained model keeps it for new
            tables. (default: `x` was given as it is)
        edge_encoder: The same for `edge_attr`. (default: it was given as it is)
        name: Shown in messages and results. (default: `"graph"`)
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
    sample_weight: Tensor | None = None
    ptr: Tensor | None = None
    n_id: Tensor | None = None
    node_ids: np.ndarray[Any, Any] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: FeatureEncoder | None = None
    feature_scale: Tensor | None = None
    name: str = "graph"
    edge_attr: Tensor | None = None
    edge_encoder: FeatureEncoder | None = None
    # What is derived from rowptr, col, edge_weight and degree: __post_init__ makes sure that it is
    # derived from these very tensors.
    _adjacency: Adjacency = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        tensors = (self.rowptr, self.col, self.edge_weight, self.degree)
        known = self._adjacency
        adjacency = Adjacency(*tensors) if known is None else known.of(*tensors)
        object.__setattr__(self, "_adjacency", adjacency)
        if adjacency.trusted:
            trust(self.rowptr, self.col, self.num_nodes)
        else:
            check_layout(self.rowptr, self.col)
            check_range(self.rowptr, self.col, self.num_nodes)
        n = self.num_nodes
        for key in PER_NODE:
            value = getattr(self, key)
            if value is not None and tuple(value.shape[:1]) != (n,):
                raise ValueError(
                    f"{key} must have one row per node ({n}), got shape {tuple(value.shape)}"
                )
        if self.x is not None and self.x.dim() != 2:
            raise ValueError(f"x must have shape [nodes, features], got {tuple(self.x.shape)}")
        if self.x is not None and self.x.layout == torch.sparse_csr and not adjacency.trusted:
            check_sparse_features(self.x)
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
        if self.edge_attr is not None:
            check_edge_attr(self.edge_attr, self.col)
        weight = self.sample_weight
        if weight is not None and (weight.dim() != 1 or not weight.is_floating_point()):
            raise ValueError(
                f"sample_weight must be a vector of floating-point numbers, got {weight.dtype} in "
                f"shape {tuple(weight.shape)}"
            )
        if self.ptr is not None and not covers(self.ptr, n):
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
        """A graph whose adjacency is known to be valid and is not read to check it.

        `rowptr` may be int64 while `col` is int32. What the methods return has one dtype.
        """
        for name, part in (("rowptr", rowptr), ("col", col)):
            if part.dim() != 1 or part.dtype not in INDEX_DTYPES:
                raise ValueError(f"{name} must be a vector of int32 or int64, got {part.dtype}")
        return cls(rowptr, col, **fields, _adjacency=Adjacency(rowptr, col, trusted=True))

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        directed: bool = False,
        **node_data: Any,
    ) -> Graph:
        """Creates a graph from PyG's [2, E] `edge_index` or a sparse adjacency.

        Like every function that makes a graph from a user's edges, it merges duplicate edges
        (the largest weight wins, and edge features are averaged), leaves out self-loops, and sorts
        each row by node number. For a graph with duplicates or self-loops, see `as_given`.

        Args:
            edge_index: Sources and targets in shape [2, E]; or a sparse tensor of shape
                [targets, sources], which PyG calls `adj_t`.
            num_nodes: Number of nodes. (default: the number of rows of `x`, else the largest
                number in `edge_index` plus one)
            edge_weight: One weight per edge. (default: none)
            edge_attr: Features of the edges, [E, D] or [E], finite. An edge that counts both ways
                has them in both. (default: none)
            directed: Whether only an edge's target aggregates from its source. (default:
                `False`, every edge counts both ways)
            **node_data: The other fields of `lgcn.Graph`.
        """
        matrix, edge_attr = simple_adjacency(
            edge_index,
            num_nodes,
            x=node_data.get("x"),
            edge_weight=edge_weight,
            edge_attr=edge_attr,
            directed=directed,
        )
        node_data |= {"edge_weight": matrix.weight, "edge_attr": edge_attr}
        return cls(matrix.rowptr, matrix.col, **node_data)

    @classmethod
    def as_given(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        **node_data: Any,
    ) -> Graph:
        """Creates a graph of exactly the given edges, as a layer of PyG takes them.

        Edges are directed. Duplicates and self-loops stay, and each row keeps the order of its
        edges. This is what a layer such as `lgcn.LGConv` does with a raw `edge_index`.

        Args:
            edge_index, num_nodes, edge_weight, edge_attr, **node_data: As in `from_edge_index`.
        """
        matrix, edge_attr = adjacency_as_given(
            edge_index,
            num_nodes,
            x=node_data.get("x"),
            edge_weight=edge_weight,
            edge_attr=edge_attr,
        )
        node_data |= {"edge_weight": matrix.weight, "edge_attr": edge_attr}
        return cls(matrix.rowptr, matrix.col, **node_data)

    @classmethod
    def from_pyg(cls, data: Data, name: str = "graph", *, directed: bool = False) -> Graph:
        """Creates a graph from PyG's `Data` or `Batch`.

        Whole numbers in `edge_attr` become floating-point numbers: encode categories before, for
        example with `torch.nn.functional.one_hot`.

        Args:
            data: With `edge_index` or `adj_t`.
            name: The graph's name. (default: `"graph"`)
            directed: As in `from_edge_index`. (default: `False`)
        """
        return cls.from_edge_index(**arguments_from_pyg(data), name=name, directed=directed)

    def to_pyg(self) -> Data:
        """Returns the graph as PyG's `Data` with an `edge_index`. Sparse features stay sparse."""
        return to_pyg(self)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of entries of the adjacency. An undirected edge counts twice."""
        return self.col.numel()

    @property
    def num_features(self) -> int:
        """Number of features per node, 0 without `x`."""
        return 0 if self.x is None else self.x.size(1)

    @property
    def num_edge_features(self) -> int:
        """Number of features per edge, 0 without `edge_attr`."""
        return 0 if self.edge_attr is None else self.edge_attr.size(1)

    @property
    def task(self) -> Task:
        """What `y` asks for.

        `"multilabel"` if `y` is a matrix, `"regression"` if it is a vector of floating-point
        numbers, else `"classification"`, also without `y`.
        """
        if self.multi_label:
            return "multilabel"
        numbers = self.y is not None and self.y.is_floating_point()
        return "regression" if numbers else "classification"

    @property
    def multi_label(self) -> bool:
        """Whether a node can have several labels."""
        return self.y is not None and self.y.dim() == 2

    @property
    def num_outputs(self) -> int:
        """Outputs that a network needs: one per class or label, one in all for a regression."""
        return 1 if self.task == "regression" else self.num_classes

    @property
    def num_classes(self) -> int:
        """Number of classes, or of labels if a node can have several; 0 for a regression."""
        if self.task == "regression":
            return 0
        if self.label_names is not None:
            return len(self.label_names)
        if self.y is None:
            return 0
        if self.multi_label:
            return self.y.size(1)
        return int(self.y.max()) + 1 if self.y.numel() else 0

    @property
    def num_graphs(self) -> int:
        """Number of separate graphs, see `ptr`."""
        return 1 if self.ptr is None else self.ptr.numel() - 1

    @property
    def edge_index(self) -> Tensor:
        """The edges in PyG's shape [2, E]: sources and targets."""
        return torch.stack([self.col.long(), row_of_entry(self.rowptr)])

    @property
    def inductive(self) -> bool:
        """Whether the splits are separate graphs, so that training must not see the others."""
        if self.num_graphs == 1 or self.train_mask is None:
            return False
        assert self.ptr is not None
        counts = torch.stack(
            [self.train_mask[a:b].float().mean() for a, b in zip(self.ptr, self.ptr[1:])]  # noqa: B905
        )
        return bool(((counts == 0) | (counts == 1)).all()) and bool((counts == 0).any())

    def mask(self, split: str) -> Tensor | None:
        """Returns the mask of a split: `"train"`, `"val"` or `"test"`."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        mask: Tensor | None = getattr(self, f"{split}_mask")
        return mask

    def unlabelled(self) -> Tensor:
        """Returns a mask of the nodes whose label is unknown.

        If a node can have several labels, a node without any counts as known if it is in a split.
        """
        if self.y is None:
            return torch.ones(self.num_nodes, dtype=torch.bool)
        if self.task == "regression":
            return self.y.isnan()
        if not self.multi_label:
            return self.y < 0
        # Zeros in y do not tell whether a node has no labels or none that is known.
        known = (self.y > 0).any(1)
        for split in SPLITS:
            mask = self.mask(split)
            known = known if mask is None else known | mask
        return ~known

    def row_degree(self) -> Tensor:
        """Returns the degrees that the normalisation uses: `degree`, else the sum of each row."""
        return self._adjacency.row_degree()

    def adjacency(self, *, normalize: bool = False, self_loops: bool = False) -> CSR:
        r"""Returns the adjacency in CSR form, computed once.

        If `edge_weight` or `degree` requires a gradient, it is computed on every call, since each
        backward pass needs its own autograd graph.

        Args:
            normalize: Weights each entry by $(d_i d_j)^{-1/2}$, the symmetric normalisation of GCN,
                where $d$ is `degree`. Meant for non-negative weights: all entries of a node whose
                degree is zero or less are zero. (default: `False`)
            self_loops: Adds missing entries (i, i) with weight one. (default: `False`)
        """
        return self._adjacency.matrix(normalize=normalize, self_loops=self_loops)

    def edges(
        self, *, normalize: bool = False, self_loops: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the adjacency as PyG's layers take it: `(edge_index, edge_weight)`.

        Args:
            normalize, self_loops: See `adjacency()`.
        """
        return self._adjacency.edges(normalize=normalize, self_loops=self_loops)

    def derived(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns `make()`, computed once per key for all graphs with this adjacency.

        Args:
            key: Names what is computed. It must not depend on features, labels or splits.
            make: Computes it from the adjacency.
        """
        return self._adjacency.once(("derived", key), make)

    def reversed(self) -> Graph:
        """Returns the graph whose edges go the other way, computed once.

        Weights and features stay with their edges. Its degrees are the sums of its own rows, also
        if `degree` was given, which counts the other direction.
        """

        def make() -> tuple[Graph, Tensor]:
            if self.col.is_cpu:  # a store on disk may be larger
                check_memory(16 * self.num_edges, f"the reversed edges of {self.name}")
            rowptr, col = one_index_dtype(self.rowptr, self.col)
            rowptr, col, entry = transpose(rowptr, col, self.num_nodes)
            weight = None if self.edge_weight is None else self.edge_weight[entry.long()]
            return Graph._trusted(rowptr, col, edge_weight=weight), entry.long()

        learned = self.edge_weight is not None and self.edge_weight.requires_grad
        turned, entry = make() if learned else self.derived("reversed", make)
        return replace(
            self,
            rowptr=turned.rowptr,
            col=turned.col,
            edge_weight=turned.edge_weight,
            edge_attr=None if self.edge_attr is None else self.edge_attr[entry],
            degree=None,
            _adjacency=turned._adjacency,
        )

    def adjacency_rows(
        self, start: int, stop: int, *, normalize: bool = False, self_loops: bool = False
    ) -> CSR:
        """Returns the rows `start` to `stop` (exclusive) of `adjacency()`, reading only these rows.

        Columns are the nodes of the whole graph. The rows are not kept. With `normalize`, the first
        call may read the whole adjacency once, for the degrees and the self-loops.

        Args:
            start, stop: Node numbers, 0 <= start <= stop <= num_nodes.
            normalize, self_loops: See `adjacency()`.
        """
        return self._adjacency.rows(start, stop, normalize=normalize, self_loops=self_loops)

    def features(self, rows: Tensor | slice | None = None) -> Tensor:
        """Returns rows of `x` as a model takes them: in float32, or in float64 if `x` is float64.

        Args:
            rows: Node numbers, a boolean mask, or a slice without a step. (default: all nodes)
        """
        if self.x is None:
            raise ValueError("the graph must have features x, got none")
        x = self.x
        if rows is not None:
            if isinstance(rows, Tensor):
                rows = checked_nodes(rows, self.num_nodes, "rows")
            x = take_rows(x, rows)
        if x.layout == torch.sparse_csr:
            return _plain_sparse(x)
        if x.dtype != torch.float64:
            x = x.to(torch.float32)
        if self.feature_scale is not None:
            # Not in place: if x was float already, it is not a copy.
            x = torch.addcmul(self.feature_scale[1], x, self.feature_scale[0])
        return x

    def subgraph(self, nodes: Tensor, *, keep_degree: bool = True) -> Graph:
        """Returns the induced sub-graph on `nodes`.

        Each row keeps the order of its entries. Nodes of separate graphs (`ptr`) become one graph.
        Features are those that `features()` returns.

        Args:
            nodes: Distinct node numbers, in the order that the sub-graph will have; or a boolean
                mask.
            keep_degree: Normalise with the degrees that the nodes have in this graph. If `False`,
                the sub-graph has its own degrees. (default: `True`)
        """
        return Graph(**subgraph_fields(self, nodes, keep_degree=keep_degree))

    @staticmethod
    def concat(graphs: Sequence[Graph]) -> Graph:
        """Joins graphs to one block-diagonal graph with `ptr`."""
        if not graphs:
            raise ValueError("graphs must have at least one graph, got none")
        if len(graphs) == 1:
            return graphs[0]
        return Graph(**concat_fields(graphs))

    def to(self, device: torch.device | str) -> Graph:
        """Returns the graph with all tensors on `device`."""
        device = torch.device(device)
        if self.rowptr.device == device:
            return self
        moved = {
            f.name: getattr(self, f.name).to(device)
            for f in fields(self)
            if isinstance(getattr(self, f.name), Tensor)
        }
        # A store has two types of numbers, but the operators on another device take one.
        moved["rowptr"], moved["col"] = one_index_dtype(moved["rowptr"], moved["col"])
        trusted = self._adjacency.trusted
        adjacency = Adjacency(moved["rowptr"], moved["col"], trusted=trusted)
        return replace(self, **moved, _adjacency=adjacency)

    def separate(self) -> list[Graph]:
        """Returns the separate graphs that this one consists of, see `ptr` and `concat`."""
        if self.ptr is None:
            return [self]
        bounds = itertools.pairwise(self.ptr.tolist())
        return [self.subgraph(torch.arange(first, last)) for first, last in bounds]

    def __repr__(self) -> str:
        graphs = f", num_graphs={self.num_graphs}" if self.num_graphs > 1 else ""
        labels = f"num_classes={self.num_classes}"
        if self.task == "regression":
            labels = "task='regression'"
        return (
            f"Graph(name={self.name!r}, num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"num_features={self.num_features}, {labels}{graphs})"
        )


def _plain_sparse(x: Tensor) -> Tensor:
    """Sparse features in one index dtype and in float32 (float64 if they are that already)."""
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    rowptr, col = x.crow_indices(), x.col_indices()
    if x.dtype == dtype and rowptr.dtype == col.dtype:
        return x
    return sparse_features(*one_index_dtype(rowptr, col), x.values().to(dtype), x.size(1))
