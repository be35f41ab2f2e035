"""Counts of a graph for its report: degrees, edges, connected parts, homophily."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import SPLITS, Graph
from lgcn.utils.jit import jit


def degrees(graph: Graph) -> Any:
    return graph.rowptr.diff().cpu().numpy()


def degree_histogram(degree: Any) -> list[dict[str, int]]:
    """Nodes of degree 0, 1, 2 to 3, 4 to 7 and so on."""
    counts = np.bincount(np.frexp(degree.astype(np.float64))[1])  # the number of binary digits
    return [
        {"from": 2**digits // 2, "to": 2**digits - 1, "nodes": number}
        for digits, number in enumerate(counts.tolist())
    ]


def edge_counts(graph: Graph) -> dict[str, Any]:
    """Counts that need the adjacency as a whole, in linear time."""
    from scipy.sparse import csr_matrix

    n = graph.num_nodes
    values = np.ones(graph.num_edges, dtype=np.int8)
    if graph.edge_weight is not None:
        weight = graph.edge_weight.detach()
        values = (weight if weight.dtype == torch.float64 else weight.float()).numpy()
    arrays = (values, graph.col.numpy(), graph.rowptr.numpy())
    # Two transpositions sort the rows; both steps are counting sorts, and stable.
    reverse = csr_matrix(arrays, shape=(n, n)).T.tocsr()
    forward = reverse.T.tocsr()
    row = np.repeat(np.arange(n, dtype=forward.indices.dtype), np.diff(forward.indptr))
    loops = forward.indices == row
    again = np.zeros_like(loops)
    again[1:] = (forward.indices[1:] == forward.indices[:-1]) & (row[1:] == row[:-1])
    symmetric = all(
        np.array_equal(getattr(forward, part), getattr(reverse, part))
        for part in ("indptr", "indices")
    ) and np.array_equal(*(_weights_in_order(m, row, again) for m in (forward, reverse)))
    components = _component_sizes(_array(graph.rowptr), _array(graph.col))
    touched = np.diff(forward.indptr) + np.diff(reverse.indptr) > 0

    def edges(entry: Any) -> int:
        """An undirected edge is two entries, but a self-loop is one."""
        of_loops = int((entry & loops).sum())
        others = int(entry.sum()) - of_loops
        return (others // 2 if symmetric else others) + of_loops

    return {
        "edges": edges(np.ones_like(loops)),
        "directed": not symmetric,
        "isolated_nodes": int(n - touched.sum()),
        "self_loops": int(loops.sum()),
        "duplicate_edges": edges(again),
        "components": len(components),
        "largest_component": int(components.max()) if n else 0,
    }


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _weights_in_order(matrix: Any, row: Any, again: Any) -> Any:
    """The weights of a matrix with sorted rows, those of the same edge from the smallest on."""
    if not again.any():
        return matrix.data
    return matrix.data[np.lexsort((matrix.data, matrix.indices, row))]


@jit
def _component_sizes(rowptr: Any, col: Any) -> Any:
    """The number of nodes of each connected component, whatever the direction of edges.

    Duplicate edges are allowed.

    Every node points to itself or to a smaller node of its component, so that following them ends.
    """
    num_nodes = rowptr.shape[0] - 1
    parent = np.arange(num_nodes)
    for i in range(num_nodes):
        for e in range(rowptr[i], rowptr[i + 1]):
            one, other = _root(parent, i), _root(parent, col[e])
            parent[max(one, other)] = min(one, other)
    sizes = np.zeros(num_nodes, np.int64)
    for i in range(num_nodes):
        sizes[_root(parent, i)] += 1
    return sizes[sizes > 0]


@jit
def _root(parent: Any, node: Any) -> Any:
    while parent[node] != node:
        parent[node] = parent[parent[node]]  # halves the way for the next search
        node = parent[node]
    return node


def homophily(graph: Graph) -> tuple[float | None, float | None]:
    if graph.y is None or graph.task != "classification" or not graph.num_edges:
        return None, None
    number = int(graph.y.max()) + 1
    small = np.int16 if number < 2**15 else np.int32  # there are two for each edge below
    y = graph.y.numpy().astype(small)
    degree, col = degrees(graph), graph.col.numpy()
    target, source = np.repeat(y, degree), y[col]
    counted = (target >= 0) & (source >= 0)
    counted &= col != np.repeat(np.arange(len(y), dtype=col.dtype), degree)
    target, source = target[counted], source[counted]
    if not len(target):
        return None, None
    shares = [np.bincount(end, minlength=number) / len(target) for end in (target, source)]
    return float((target == source).mean()), float(shares[0] @ shares[1])


def class_counts(graph: Graph, split: str | None = None) -> dict[str, int]:
    """Nodes of each class or label, in all of the graph or in one split."""
    if graph.y is None or graph.task == "regression":
        return {}
    mask = None if split is None else graph.mask(split)
    y = graph.y if mask is None else graph.y[mask]
    if graph.multi_label:
        counts = y.count_nonzero(dim=0)
    else:
        counts = y[y >= 0].long().bincount(minlength=graph.num_classes)
    names = graph.label_names or [str(number) for number in range(len(counts))]
    return dict(zip(names, counts.tolist(), strict=False))


def labelled_nodes(graph: Graph) -> int:
    if graph.y is None:
        return 0
    if not graph.multi_label:
        return int((~graph.unlabelled()).sum())
    masks = [mask for split in SPLITS if (mask := graph.mask(split)) is not None]
    return int(torch.stack(masks).any(dim=0).sum()) if masks else graph.num_nodes


def target_summary(graph: Graph) -> dict[str, float] | None:
    """Range, mean and standard deviation of the known targets of a regression."""
    if graph.y is None or graph.task != "regression":
        return None
    targets = graph.y[~graph.unlabelled()].double().numpy()
    if not len(targets):
        return None
    names = ("smallest", "mean", "largest", "deviation")
    numbers = (targets.min(), targets.mean(), targets.max(), targets.std())
    return {name: float(number) for name, number in zip(names, numbers, strict=True)}
