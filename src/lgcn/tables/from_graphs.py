"""Graphs from NetworkX and from SciPy's sparse matrices.

Neither library is imported: users who have one pass its objects.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.graph.features import checked_matrix, sparse_tensor
from lgcn.tables.edges import edge_weights, to_adjacency
from lgcn.tables.labels import ColumnLabels
from lgcn.tables.nodes import NodeOptions, node_data
from lgcn.tables.open_table import read_table


def from_networkx(
    graph: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    task: str = "auto",
    weight: str | None = None,
    directed: bool = False,
    split: str | None = None,
    labels_per_class: int | None = None,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    name: str | None = None,
) -> Graph:
    """Makes a graph from a NetworkX graph; its nodes keep their names in `node_ids`.

    Duplicate edges are merged, and the largest weight wins. Self-loops are left out.

    Args:
        graph: A NetworkX graph of any kind.
        features: Node attributes that become features, like columns of a table. An attribute can be
            a list of numbers. (default: all but `label` and `split`; no `x` if there are none)
        label: Node attribute with the class. Nodes without it can be predicted.
            (default: no labels)
        task: See [`from_tables`][lgcn.from_tables].
        weight: Edge attribute with a weight of at least 0. (default: all one)
        directed: Whether only an edge's target aggregates from its source, in a directed NetworkX
            graph. Edges of an undirected one always count both ways. (default: `False`, every
            edge counts both ways)
        split: Node attribute that says train, val or test. (default: a random split)
        labels_per_class, val, test, split_seed: See [`from_tables`][lgcn.from_tables].
        name: Name of the graph. (default: NetworkX's)
    """
    if graph.number_of_nodes() == 0:
        raise DataError("graph must have at least one node, got none")
    options = NodeOptions(
        label_columns=[] if label is None else [label],
        task=task,
        split_column=split,
        labels_per_class=labels_per_class,
        val=val,
        test=test,
        split_seed=split_seed,
    )
    found = dict.fromkeys(chain.from_iterable(data for _, data in graph.nodes(data=True)))
    special = [attribute for attribute in (label, split) if attribute is not None]
    if features is None:
        features = [attribute for attribute in found if attribute not in special]
    names = [*([features] if isinstance(features, str) else features), *special]
    for attribute in names:
        if attribute not in found:
            raise UsageError(
                f"no node has the attribute {attribute!r}; the nodes have "
                f"{', '.join(map(repr, found)) or 'none'}"
            )
    columns = {n: [data.get(n) for _, data in graph.nodes(data=True)] for n in names}
    nodes = Graph(torch.zeros(graph.number_of_nodes() + 1, dtype=torch.int32), torch.empty(0).int())
    if columns:
        notes: list[str] = []
        table = read_table(columns)
        nodes = node_data(table, options, notes, "the node attributes")
        for note in notes:
            warnings.warn(note, stacklevel=2)

    number = {node: i for i, node in enumerate(graph)}
    ends = np.array([(number[s], number[t]) for s, t in graph.edges()], np.int32).reshape(-1, 2)
    weights = None
    if weight is not None:
        values = [data.get(weight) for _, _, data in graph.edges(data=True)]
        weights = checked_weights(values, f"the edge attribute {weight!r}")
    rows = _to_rows(ends[:, 0], ends[:, 1], weights, len(number), directed and graph.is_directed())
    return replace(
        nodes,
        rowptr=rows.rowptr,
        col=rows.col,
        edge_weight=rows.weight,
        node_ids=_names_of(list(graph)),
        name=name or str(graph.graph.get("name") or "networkx"),
    )


def from_scipy(
    adjacency: Any,
    x: Any = None,
    y: Any = None,
    *,
    task: str = "auto",
    directed: bool = False,
    labels_per_class: int | None = None,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    name: str = "scipy",
) -> Graph:
    """Makes a graph from a SciPy sparse adjacency matrix.

    The entry (i, j) is an edge from node i to node j; its value is the edge's weight. Zeros are
    not edges. If all values are one, the graph has no weights. Duplicate edges are merged, and
    the largest weight wins. Self-loops are left out.

    Args:
        adjacency: A sparse matrix or array of shape [N, N].
        x: Features, [N, F], an array, a tensor or a sparse matrix. (default: none)
        y: Classes: integers, -1 if unknown; or names, `None` if unknown; or an [N, L] matrix
            of zeros and ones; or, for a regression, numbers, NaN if unknown. (default: none)
        task: See [`from_tables`][lgcn.from_tables].
        directed: Whether only an edge's target aggregates from its source. (default: `False`,
            every edge counts both ways)
        labels_per_class, val, test, split_seed: See [`from_tables`][lgcn.from_tables].
        name: Name of the graph. (default: `"scipy"`)
    """
    shape = tuple(getattr(adjacency, "shape", ()))
    if not hasattr(adjacency, "tocoo") or len(shape) != 2 or shape[0] != shape[1]:
        raise UsageError(
            "adjacency must be a SciPy sparse matrix of shape [N, N], "
            f"got {type(adjacency).__name__} in shape {list(shape)}"
        )
    matrix = checked_matrix(adjacency, "adjacency").tocoo()
    kept = matrix.data != 0
    source, target = matrix.row[kept].astype(np.int32), matrix.col[kept].astype(np.int32)
    weights = None
    if matrix.dtype != np.bool_ and not (matrix.data[kept] == 1).all():
        weights = checked_weights(matrix.data[kept], "the adjacency's values")
    rows = _to_rows(source, target, weights, shape[0], directed)

    fields: dict[str, Any] = {}
    options = NodeOptions(
        label_columns=[] if y is None else ["y"],
        task=task,
        labels_per_class=labels_per_class,
        val=val,
        test=test,
        split_seed=split_seed,
    )
    if x is not None:
        fields["x"] = _features(x, shape[0])
    if y is not None:
        labels = _labels(y, shape[0], options)
        for note in labels.notes:
            warnings.warn(note, stacklevel=2)
        masks = options.split(None, labels, None)
        fields |= {"y": labels.y, "label_names": labels.names or None}
        fields |= dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True))
    return Graph(rows.rowptr, rows.col, edge_weight=rows.weight, name=name, **fields)


def _to_rows(source: Any, target: Any, weights: Any, num_nodes: int, directed: bool) -> CSR:
    kept = source != target
    parts = None if weights is None else [weights[kept]]
    return to_adjacency([source[kept]], [target[kept]], parts, num_nodes, directed=directed).rows


def checked_weights(values: Any, what: str) -> Any:
    """Weights of edges in float32; `what` is their name in messages."""
    try:
        weights, wrong = edge_weights(np.array(values, np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be a number for every edge: {error}") from error
    if wrong.any():
        raise DataError(
            f"{what} must be a finite number of at least 0 for every edge, "
            f"got {values[int(wrong.argmax())]} at edge {int(wrong.argmax())}"
        )
    return weights


def _names_of(nodes: list[Any]) -> Any:
    """Node names: int64 if all are integers that fit, else objects."""
    if all(isinstance(node, int) and not isinstance(node, bool) for node in nodes):
        try:
            return np.array(nodes, np.int64)
        except OverflowError:
            pass
    names = np.empty(len(nodes), object)
    names[:] = nodes
    return names


def _features(x: Any, num_nodes: int) -> Tensor:
    """Float32 features, not copied if they are float32 already."""
    if hasattr(x, "tocsr"):
        features = sparse_tensor(checked_matrix(x, "x").copy(), "x")
    else:
        try:
            features = torch.as_tensor(np.asarray(x) if not isinstance(x, Tensor) else x)
        except (TypeError, ValueError) as error:
            raise UsageError(f"x must hold numbers in shape [N, F]: {error}") from error
    if features.dim() != 2 or features.size(0) != num_nodes:
        raise UsageError(
            f"x must have one row per node ({num_nodes}), got shape {list(features.shape)}"
        )
    return features if features.layout == torch.sparse_csr else features.float()


def _labels(y: Any, num_nodes: int, options: NodeOptions) -> ColumnLabels:
    array = np.asarray(y)
    if array.shape[:1] != (num_nodes,) or array.ndim > 2:
        raise UsageError(
            f"y must have one row per node ({num_nodes}), got shape {list(array.shape)}"
        )
    if options.task == "regression" and array.ndim == 2:
        raise UsageError(f"y of a regression must be one number per node, got {list(array.shape)}")
    if array.ndim == 2:
        if not np.isin(array, (0, 1)).all():
            raise UsageError("y in two dimensions must hold zeros and ones")
        return ColumnLabels(torch.tensor(array, dtype=torch.float32), (), np.ones(num_nodes, bool))
    if array.dtype.kind in "iu" and options.task != "regression":
        return ColumnLabels(torch.tensor(array, dtype=torch.int64), (), array >= 0)
    return options.labels(read_table({"y": array}), None)
