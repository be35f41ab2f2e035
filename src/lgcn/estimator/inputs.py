"""Turns what users pass to `lgcn.LGCNClassifier` into graphs, features and node numbers.

Features and edges share memory with the caller wherever their types allow it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import check_sparse, sparse_features
from lgcn.graph.features import checked_matrix
from lgcn.ops.reference import row_of_entry

if TYPE_CHECKING:
    from lgcn.tables.encoder import FeatureEncoder

Array = np.ndarray[Any, Any]


def as_graph(
    value: Any,
    encoder: FeatureEncoder | None = None,
    *,
    directed: bool = False,
    task: str = "classification",
) -> Graph | None:
    """`value` as a graph, if it is one of ours, PyG's or NetworkX's, else `None`.

    Args:
        value: Anything.
        encoder: How a NetworkX graph's attributes become features. (default: from the attributes)
        directed: See `lgcn.LGCNClassifier.fit`; ours stays as it is. (default: `False`)
        task: Whether the attribute "y" of a NetworkX graph is a class, or a number to predict
            (`"regression"`). (default: `"classification"`)
    """
    if isinstance(value, Graph):
        graph = value
    elif isinstance(value, Data):
        graph = Graph.from_pyg(value, directed=directed)
    elif any(kind.__module__.split(".")[0] == "networkx" for kind in type(value).__mro__):
        graph = _from_networkx(value, encoder, directed, task)
    else:
        return None
    graph = graph.to("cpu")  # where sub-graphs are cut; training moves them to its device
    if graph.x is not None and graph.x.dtype != torch.float32:
        graph = replace(graph, x=graph.x.to(torch.float32))
    return graph


def _from_networkx(value: Any, encoder: FeatureEncoder | None, directed: bool, task: str) -> Graph:
    """The attribute "y" holds the labels, all others are features."""
    from lgcn.tables.from_graphs import from_networkx
    from lgcn.tables.open_table import read_table

    rows = [data for _, data in value.nodes(data=True)]
    there = set().union(*rows)
    graph = from_networkx(
        value,
        label="y" if "y" in there else None,
        task=task,
        features=None if encoder is None else [],
        directed=directed,
        val=0.0,
        test=0.0,
    )
    if encoder is not None and encoder.columns:
        names = [column.name for column in encoder.columns if column.name in there]
        columns = {name: [row.get(name) for row in rows] for name in names}
        graph = replace(graph, x=encoder.transform(read_table(columns)), encoder=encoder)
    return replace(graph, train_mask=None, val_mask=None, test_mask=None)


def as_features(matrix: Any) -> Tensor:
    """A float32 array, or SciPy CSR matrix, as a tensor that shares its memory."""
    if scipy.sparse.issparse(matrix):
        rowptr, col, values = map(as_tensor, (matrix.indptr, matrix.indices, matrix.data))
        return sparse_features(rowptr, col, values, matrix.shape[1])
    return as_tensor(matrix)


def as_matrix(X: Any) -> Any:
    """`X` in a form that scikit-learn checks: tensors become arrays or SciPy CSR matrices.

    Scikit-learn and SciPy trust the indices of sparse matrices, so these are checked here.
    """
    if X is None:
        raise UsageError("X must be a graph or features, or come with edges and y, got None")
    if scipy.sparse.issparse(X):
        return checked_matrix(X, "X")
    if not isinstance(X, Tensor):
        return X
    x = X.detach().cpu()
    if x.layout == torch.strided:
        return x.numpy()
    if x.layout != torch.sparse_csr:
        try:
            check_sparse(x)
        except ValueError as error:
            raise UsageError(f"X has wrong indices: {error}") from error
        x = x.to_sparse_csr()
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return checked_matrix(scipy.sparse.csr_matrix(parts, shape=tuple(x.shape)), "X")


def as_tensor(array: Array) -> Tensor:
    """A tensor that shares the array's memory, which may be read-only: it is never written to."""
    if not _has_torch_layout(array):
        array = array.copy()
    if not array.flags.writeable:  # torch would warn, and warning filters are not thread-safe
        array = np.asarray(_Writeable(array))
    return torch.from_numpy(array)


class _Writeable:
    """The memory of an array, declared writeable."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory alive
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def _has_torch_layout(array: Array) -> bool:
    return all(stride >= 0 for stride in array.strides) and array.dtype.isnative


def graph_of(x: Tensor, edges: Any, *, directed: bool = False) -> Graph:
    """A graph of features and edges, see `lgcn.LGCNClassifier.fit`."""
    num_nodes = x.size(0)
    if edges is None:
        nothing = torch.zeros(num_nodes + 1, dtype=torch.long)
        return Graph(nothing, nothing[:0], x=x)
    if scipy.sparse.issparse(edges):
        return _from_scipy(x, edges, directed)
    if not isinstance(edges, Tensor):
        array = np.asarray(edges)
        if array.dtype.kind not in "iu" and array.size:
            raise UsageError(
                "edges must hold node numbers as integers in shape [2, edges], or be a sparse "
                f"adjacency of shape [{num_nodes}, {num_nodes}]; got {array.dtype} in shape "
                f"{list(array.shape)}"
            )
        native = array.dtype.newbyteorder("=") if array.size else np.int64
        edges = as_tensor(np.ascontiguousarray(array, native))
    try:
        return Graph.from_edge_index(edges, num_nodes, directed=directed, x=x)
    except ValueError as error:
        raise UsageError(f"edges do not fit the {num_nodes} nodes (rows of X): {error}") from error


def _from_scipy(x: Tensor, edges: Any, directed: bool) -> Graph:
    num_nodes = x.size(0)
    if edges.shape != (num_nodes, num_nodes):
        raise UsageError(
            f"edges must have one row and one column for each row of X ({num_nodes}), got shape "
            f"{list(edges.shape)}. To split the nodes of one graph, as cross-validation does, pass "
            "node numbers as X and the whole graph as graph="
        )
    matrix = checked_matrix(edges, "edges")  # itself if it is CSR without duplicates
    if not np.isfinite(matrix.data).all():
        raise UsageError("edges must have finite weights, some are NaN or infinite")
    if (matrix.data == 0).any():  # zeros are not edges
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    weight = None
    if not (matrix.data == 1).all():
        weight = as_tensor(matrix.data.astype(np.float32, copy=False))
    rowptr, col = as_tensor(matrix.indptr), as_tensor(matrix.indices)
    if not directed and _is_simple(matrix):
        return Graph(rowptr, col, x=x, edge_weight=weight)
    # The entry (i, j) is an edge from i to j, as in lgcn.from_scipy.
    edge_index = torch.stack([row_of_entry(rowptr), col.long()])
    return Graph.from_edge_index(edge_index, num_nodes, edge_weight=weight, directed=directed, x=x)


def _is_simple(matrix: Any) -> bool:
    """Whether a CSR matrix is symmetric, with sorted rows and no entry on its diagonal."""
    if not matrix.has_sorted_indices or matrix.diagonal().any():
        return False
    reverse = matrix.T.tocsr()
    return all(
        np.array_equal(getattr(matrix, part), getattr(reverse, part))
        for part in ("indptr", "indices", "data")
    )


def same_features(one: Tensor, other: Tensor) -> bool:
    """Whether two feature matrices, dense or sparse, hold the same numbers."""
    if one.shape != other.shape:
        return False
    if one.layout == other.layout == torch.strided:
        return torch.equal(one, other)
    both = [scipy.sparse.csr_matrix(as_matrix(x)) for x in (one, other)]
    return bool((both[0] != both[1]).nnz == 0)


def with_features(graph: Graph | None, x: Tensor) -> Graph:
    """The fitted graph with other features, for `edges="fitted"`."""
    if graph is None:
        raise UsageError(
            "edges='fitted' needs the graph of the fit, which a loaded estimator does not have: "
            "pass its edges"
        )
    if x.size(0) != graph.num_nodes:
        raise UsageError(
            f"X must have one row for each node of the fitted graph ({graph.num_nodes}) with "
            f"edges='fitted', got {x.size(0)}"
        )
    return replace(graph, x=x, feature_scale=None)


def which_edges(rows: int, graph: Graph | None) -> str:
    """The message that refuses features without edges after a fit with edges."""
    ways = ["edges=... for the edges between the rows of X"]
    if graph is not None and rows == graph.num_nodes:
        ways.append("edges='fitted' for those of the fitted graph")
    ways.append("edges=np.empty((2, 0), int) for none")
    if graph is not None:
        ways.append("node numbers as X for nodes of the fitted graph")
        ours = f"the fitted graph has {graph.num_edges} edges"
    else:
        ours = "the model was fitted on a graph with edges"
    return (
        f"edges must be given for X of {rows} rows, which are not the features of the fit: {ours}, "
        f"and without neighbours predictions would be wrong. Pass {', '.join(ways[:-1])}, or "
        f"{ways[-1]}"
    )


def node_numbers(X: Any) -> Array | None:
    """`X` as node numbers, if it is one-dimensional integers or a mask, else `None`."""
    if scipy.sparse.issparse(X):
        return None
    if isinstance(X, Tensor):
        X = as_matrix(X)
    if hasattr(X, "ndim") and X.ndim != 1:
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # ragged lists; scikit-learn's checks will report it
        return None
    if array.ndim != 1 or array.dtype.kind not in "iub":
        return None
    return np.flatnonzero(array) if array.dtype.kind == "b" else array


def check_nodes(nodes: Array, num_nodes: int) -> Tensor:
    """Node numbers as a tensor, if all of them are in the graph."""
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise UsageError(
            f"X must hold node numbers from 0 to {num_nodes - 1}, "
            f"got {int(nodes.min())} to {int(nodes.max())}"
        )
    return torch.from_numpy(nodes.astype(np.int64))


def nodes_of(graph: Graph | None, X: Any, edges: Any, kind: type) -> tuple[Graph, Tensor]:
    """The graph that was passed as `graph`, and the nodes in `X`.

    Args:
        graph: The graph as `as_graph` gave it.
        X, edges: What else was passed.
        kind: The type of what was passed as `graph`.
    """
    numbers = node_numbers(X)
    if graph is None:
        raise UsageError(
            f"graph must be an lgcn.Graph, PyG's Data or a NetworkX graph, got {kind.__name__}"
        )
    if edges is not None:
        raise UsageError("edges must be None if graph is given, which has its own edges")
    if numbers is None:
        raise UsageError(
            "X must hold node numbers, one-dimensional integers, if graph is given, "
            f"got {type(X).__name__}"
        )
    return graph, check_nodes(numbers, graph.num_nodes)
