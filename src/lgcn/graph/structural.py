"""Structural features: what the edges alone say about a node.

| name | value |
|---|---|
| `log_degree` | log(1 + entries of the node's row) |
| `log_out_degree` | log(1 + entries of the node's column), for directed graphs |
| `log_weighted_degree` | log(1 + sum of the weights in the node's row), for weighted graphs |
| `mean_neighbour_degree`, `max_...`, `min_...` | of the `log_degree` of the nodes in the row |
| `log_triangles` | log(1 + triangles that the node is in), see `TRIANGLE_CAP` |
| `clustering` | share of the pairs of neighbours that are neighbours |
| `log_core` | log(1 + core number) |
| `log_pagerank` | log(PageRank times the nodes of its graph), damping 0.85 |
| `log_component` | log(nodes of the connected component) |

Triangles, cores and components are those of the simple undirected graph: direction, weights,
self-loops and duplicates do not count there. A node without neighbours has degree, triangles,
clustering and core 0. Separate graphs (`ptr`) give what each of them alone would give.

The cost grows with the number of entries E: once for degrees, cores and components, some fifty
times for PageRank, and at most `TRIANGLE_CAP` times for triangles. Memory is about 30 bytes per
entry. Graphs of more than `LARGE` entries get the features in `OF_DEGREES` alone, which read the
adjacency twice and keep nothing but numbers per node.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.graph.structural_names import NAMES, NEIGHBOUR_DEGREES, OF_DEGREES
from lgcn.utils.jit import jit

if TYPE_CHECKING:
    from lgcn.graph.graph import Graph

Array = np.ndarray[Any, Any]

LARGE = 50_000_000  # entries of the adjacency
# Each node is compared with at most so many of its neighbours of higher degree. Only nodes in very
# dense parts have more; they are counted in fewer triangles than there are.
TRIANGLE_CAP = 256
DAMPING, PAGERANK_STEPS, PAGERANK_ERROR = 0.85, 100, 1e-6


def suitable_names(graph: Graph) -> tuple[str, ...]:
    """The features that a graph can have at a reasonable cost.

    Args:
        graph: The graph.
    """
    names = NAMES if graph.num_edges <= LARGE else OF_DEGREES
    without = []
    if graph.edge_weight is None:
        without.append("log_weighted_degree")
    if graph.num_edges <= LARGE and is_symmetric(graph):
        without.append("log_out_degree")
    return tuple(name for name in names if name not in without)


def structural_features(graph: Graph, names: Sequence[str] = NAMES) -> Array:
    """The structural features of all nodes, [nodes, features] in float32.

    Each is computed once per graph and kept with its adjacency.

    Args:
        graph: The graph. Its features and labels are not read.
        names: The features, some of `NAMES`. (default: all)
    """
    computed = np.empty((graph.num_nodes, len(names)), np.float32)
    for place, name in enumerate(names):
        if name not in NAMES:
            raise ValueError(f"a structural feature must be one of {', '.join(NAMES)}, got {name}")
        computed[:, place] = _column(graph, name)
    return computed


def is_symmetric(graph: Graph) -> bool:
    """Whether each entry of the adjacency has its reverse, whatever their weights."""

    def look() -> bool:
        matrix = _pattern(graph)
        return bool((matrix != matrix.T).nnz == 0)

    found: bool = graph.derived(("structure", "symmetric"), look)
    return found


def undirected(graph: Graph) -> Any:
    """The simple undirected graph as a SciPy CSR matrix of ones, rows sorted."""

    def make() -> Any:
        matrix = _pattern(graph)
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        if (matrix != matrix.T).nnz:
            matrix = matrix.maximum(matrix.T).tocsr()
        matrix.sort_indices()
        return matrix

    return graph.derived(("structure", "undirected"), make)


def _column(graph: Graph, name: str) -> Array:
    if name in NEIGHBOUR_DEGREES:
        found = graph.derived(
            ("structure", "neighbours"),
            lambda: _neighbours(*_arrays(graph), _column(graph, "log_degree")),
        )
        return found[NEIGHBOUR_DEGREES.index(name)]
    bounds = None if graph.ptr is None else tuple(graph.ptr.tolist())
    column: Array = graph.derived(("structure", name, bounds), lambda: _COMPUTE[name](graph))
    return column


def _arrays(graph: Graph) -> tuple[Array, Array]:
    return graph.rowptr.cpu().numpy(), graph.col.cpu().numpy()


def _pattern(graph: Graph) -> Any:
    """The adjacency as a SciPy matrix of ones, without duplicates."""
    from scipy.sparse import csr_matrix

    rowptr, col = _arrays(graph)
    size = (graph.num_nodes, graph.num_nodes)
    matrix = csr_matrix((np.ones(len(col), np.int8), col, rowptr), shape=size, copy=True)
    matrix.sort_indices()
    # Not sum_duplicates: 256 of them would be 0 in a byte.
    matrix = csr_matrix(_without_duplicates(matrix.indptr, matrix.indices), shape=size)
    matrix.has_canonical_format = True
    return matrix


def _without_duplicates(indptr: Array, indices: Array) -> tuple[Array, Array, Array]:
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=indices.dtype), np.diff(indptr))
    kept = np.ones(len(indices), bool)
    kept[1:] = (indices[1:] != indices[:-1]) | (rows[1:] != rows[:-1])
    counts = np.bincount(rows[kept], minlength=len(indptr) - 1)
    offsets = np.concatenate([[0], counts.cumsum()])
    return np.ones(int(kept.sum()), np.int8), indices[kept], offsets


def _log_degree(graph: Graph) -> Array:
    return np.log1p(np.diff(_arrays(graph)[0])).astype(np.float32)


def _log_out_degree(graph: Graph) -> Array:
    counts = _count(_arrays(graph)[1], graph.num_nodes)
    return np.log1p(counts).astype(np.float32)


def _log_weighted_degree(graph: Graph) -> Array:
    from lgcn.graph.csr import CSR, row_sums

    weight = None if graph.edge_weight is None else graph.edge_weight.detach()
    sums = row_sums(CSR(graph.rowptr, graph.col, weight)).cpu().numpy()
    return np.log1p(np.maximum(sums, 0)).astype(np.float32)


def _triangles(graph: Graph) -> Array:
    matrix = undirected(graph)

    def count() -> Array:
        degree = np.diff(matrix.indptr)
        rank = np.empty(len(degree), np.int64)
        rank[np.lexsort((np.arange(len(degree)), degree))] = np.arange(len(degree))
        counts: Array = _count_triangles(matrix.indptr, matrix.indices, rank, TRIANGLE_CAP)
        return counts

    found: Array = graph.derived(("structure", "triangles"), count)
    return found


def _log_triangles(graph: Graph) -> Array:
    return np.log1p(_triangles(graph)).astype(np.float32)


def _clustering(graph: Graph) -> Array:
    degree = np.diff(undirected(graph).indptr).astype(np.float64)
    pairs = degree * (degree - 1) / 2
    return (_triangles(graph) / np.maximum(pairs, 1)).astype(np.float32)


def _log_core(graph: Graph) -> Array:
    matrix = undirected(graph)
    return np.log1p(_core_numbers(matrix.indptr, matrix.indices)).astype(np.float32)


def _log_component(graph: Graph) -> Array:
    from scipy.sparse.csgraph import connected_components

    # Symmetric, so that strong components, which are slower, are not needed.
    _, component = connected_components(undirected(graph), directed=False)
    return np.log(np.bincount(component)[component]).astype(np.float32)


def _log_pagerank(graph: Graph) -> Array:
    """By the power method. Nodes without an edge that leaves them spread over their graph."""
    from scipy.sparse import csr_matrix

    rowptr, col = _arrays(graph)
    size = graph.num_nodes
    weight = (
        np.ones(len(col))
        if graph.edge_weight is None
        else np.maximum(graph.edge_weight.detach().cpu().numpy().astype(np.float64), 0)
    )
    leaving = np.bincount(col, weights=weight, minlength=size)
    ends = leaving == 0
    share = np.divide(1.0, leaving, out=np.zeros(size), where=~ends)
    matrix = csr_matrix((weight * share[col], col, rowptr), shape=(size, size))
    bounds = np.array([0, size]) if graph.ptr is None else graph.ptr.cpu().numpy()
    sizes = np.diff(bounds)
    own = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.ones(size)
    for _ in range(PAGERANK_STEPS):
        spread = np.bincount(own, weights=rank * ends, minlength=len(sizes)) / np.maximum(sizes, 1)
        after = 1 - DAMPING + DAMPING * (matrix @ rank + spread[own])
        moved = float(np.abs(after - rank).sum())
        rank = after
        if moved < PAGERANK_ERROR * size:
            break
    return np.log(rank).astype(np.float32)


_COMPUTE: dict[str, Callable[[Graph], Array]] = {
    "log_degree": _log_degree,
    "log_out_degree": _log_out_degree,
    "log_weighted_degree": _log_weighted_degree,
    "log_triangles": _log_triangles,
    "clustering": _clustering,
    "log_core": _log_core,
    "log_pagerank": _log_pagerank,
    "log_component": _log_component,
}


@jit
def _count(col: Array, size: int) -> Array:
    counts = np.zeros(size, np.int64)
    for place in range(len(col)):
        counts[col[place]] += 1
    return counts


@jit
def _neighbours(rowptr: Array, col: Array, value: Array) -> Array:
    """Mean, maximum and minimum of a value over each row."""
    found = np.zeros((3, len(rowptr) - 1), np.float32)
    for node in range(len(rowptr) - 1):
        total, high, low = 0.0, -np.inf, np.inf
        for place in range(rowptr[node], rowptr[node + 1]):
            one = value[col[place]]
            total += one
            high = max(high, one)
            low = min(low, one)
        if rowptr[node + 1] > rowptr[node]:
            found[0, node] = total / (rowptr[node + 1] - rowptr[node])
            found[1, node], found[2, node] = high, low
    return found


@jit
def _count_triangles(indptr: Array, indices: Array, rank: Array, cap: int) -> Array:
    """Triangles per node. Each is found once, from its node of lowest degree."""
    size = len(indptr) - 1
    count = np.zeros(size, np.int64)
    upper = np.empty(size + 1, np.int64)  # neighbours of higher rank, at most cap of them
    upper[0] = 0
    for node in range(size):
        found = 0
        for place in range(indptr[node], indptr[node + 1]):
            if rank[indices[place]] > rank[node]:
                found += 1
        upper[node + 1] = upper[node] + min(found, cap)
    higher = np.empty(upper[size], np.int64)
    for node in range(size):
        end = upper[node]
        for place in range(indptr[node], indptr[node + 1]):
            if rank[indices[place]] > rank[node] and end < upper[node + 1]:
                higher[end] = indices[place]
                end += 1
    marked = np.full(size, -1, np.int64)
    for node in range(size):
        for place in range(upper[node], upper[node + 1]):
            marked[higher[place]] = node
        for place in range(upper[node], upper[node + 1]):
            other = higher[place]
            for third in range(upper[other], upper[other + 1]):
                if marked[higher[third]] == node:
                    count[node] += 1
                    count[other] += 1
                    count[higher[third]] += 1
    return count


@jit
def _core_numbers(indptr: Array, indices: Array) -> Array:
    """Removes nodes in the order of their remaining degree (Batagelj and Zaversnik)."""
    size = len(indptr) - 1
    degree = np.empty(size, np.int64)
    for node in range(size):
        degree[node] = indptr[node + 1] - indptr[node]
    first = np.zeros((degree.max() if size else 0) + 2, np.int64)
    for node in range(size):
        first[degree[node] + 1] += 1
    for number in range(1, len(first)):
        first[number] += first[number - 1]
    order, place = np.empty(size, np.int64), np.empty(size, np.int64)
    free = first.copy()
    for node in range(size):
        place[node] = free[degree[node]]
        order[place[node]] = node
        free[degree[node]] += 1
    for step in range(size):
        node = order[step]
        for entry in range(indptr[node], indptr[node + 1]):
            other = indices[entry]
            if degree[other] > degree[node]:
                # Swapped with the first node of its degree, which then starts one place later.
                start = max(first[degree[other]], step + 1)
                head = order[start]
                order[place[other]], order[start] = head, other
                place[head], place[other] = place[other], start
                first[degree[other]] = start + 1
                degree[other] -= 1
    return degree
