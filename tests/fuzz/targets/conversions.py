"""Graphs of edge lists of every integer type, of tensors, arrays and sparse matrices."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgcn import Graph
from lgcn.estimator.inputs import graph_of
from lgcn.graph.csr import CSR
from lgcn.tables.from_graphs import from_scipy

from ..references import assert_same
from ..rules import Refused, argument_errors, wrong
from ..source import Source
from .graphs import some_graph

TYPES = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
Rows = list[list[tuple[int, float]]]


def expected_rows(
    pairs: list[tuple[int, int]], weights: list[float], direction: str
) -> dict[int, list[tuple[int, float]]]:
    """The neighbours and weights of every node that has some.

    ``direction`` is "undirected" or "directed", or "as given" for duplicates and self-loops too.
    """
    rows: dict[int, list[tuple[int, float]]] = {}
    if direction == "as given":
        for (s, t), w in zip(pairs, weights, strict=True):
            rows.setdefault(t, []).append((s, w))
        return rows
    largest: dict[tuple[int, int], float] = {}
    for (s, t), w in zip(pairs, weights, strict=True):
        if s != t:
            for entry in ((s, t),) if direction == "directed" else ((s, t), (t, s)):
                largest[entry] = max(w, largest.get(entry, -math.inf))
    for (s, t), w in sorted(largest.items()):
        rows.setdefault(t, []).append((s, w))
    return rows


def rows_of(graph: Graph | CSR, weight: Tensor | None) -> Rows:
    rowptr, col = graph.rowptr.tolist(), graph.col.tolist()
    values = [1.0] * len(col) if weight is None else weight.tolist()
    entries = list(zip(col, values, strict=True))
    return [entries[a:b] for a, b in pairwise(rowptr)]


def same_rows(graph: Graph, expected: dict[int, list[tuple[int, float]]]) -> None:
    """Compares the rows that are not empty: a graph may have many nodes and few edges."""
    rowptr = graph.rowptr.numpy()
    entries = rows_of(CSR(torch.tensor([0, graph.num_edges]), graph.col), graph.edge_weight)[0]
    assert (int(rowptr[0]), int(rowptr[-1])) == (0, len(entries))
    filled = np.flatnonzero(np.diff(rowptr)).tolist()
    found = {node: entries[rowptr[node] : rowptr[node + 1]] for node in filled}
    assert found == expected, f"{graph!r}: {found} instead of {expected}"


def edge_index_target(source: Source) -> None:
    """Any integer type, size and direction gives the graph of Python's integers."""
    name = source.choice(TYPES)
    info = np.iinfo(name)
    size = source.below(8)
    if size < 5:
        n = source.between(0, 12)
    elif size < 7:
        n = source.between(90, 400)
    else:
        n = source.between(40_000, 70_000)
    n = min(n, int(info.max) + 1)
    ends: list[int] = []
    for _ in range(2 * source.below(10)):  # the first and last numbers are more likely
        near = source.below(min(n, 12)) if n else 0
        ends.append(n - 1 - near if n and source.flag() else near)
    given: int | None = n
    if ends and source.below(8) == 7:
        ends[source.below(len(ends))] = source.integer(int(info.min), int(info.max))
    if source.below(4) == 3:
        given = None
        n = max(ends) + 1 if ends else 0
        if n > 100_000:  # a large node number needs memory
            ends = [min(end, 1000) for end in ends]
            n = max(ends) + 1
    array = np.array(ends, name).reshape(-1, 2).T
    pairs = [(int(s), int(t)) for s, t in array.T]
    edges = torch.from_numpy(np.ascontiguousarray(array) if source.flag() else array)
    weights, weight = [1.0] * len(pairs), None
    if source.flag():
        weights = [source.choice((0.0, 0.5, 1.0, 2.0, -1.0, -0.5)) for _ in pairs]
        weight = torch.tensor(weights, dtype=source.choice((torch.float32, torch.float64)))
    directed = source.flag()
    direction = "directed" if directed else "undirected"
    form = source.below(5)
    if form == 0:
        call = _by_pyg(edges, given, weight, directed)
    elif form == 1 and weight is None and n and given is not None:
        call = _by_estimator(source, array, n, directed)
    elif form == 2:
        direction = "as given"

        def call() -> Graph:
            return Graph.as_given(edges, given, edge_weight=weight)

    else:

        def call() -> Graph:
            return Graph.from_edge_index(edges, given, edge_weight=weight, directed=directed)

    if any(not 0 <= end < n for end in ends):
        wrong(call)
    graph = call()
    assert graph.num_nodes == n
    same_rows(graph, expected_rows(pairs, weights, direction))


def _by_pyg(edges: Tensor, num_nodes: int | None, weight: Tensor | None, directed: bool) -> Any:
    data = Data(edge_index=edges, edge_weight=weight)
    if num_nodes is not None:
        data.num_nodes = num_nodes
    if num_nodes is not None:
        return lambda: Graph.from_pyg(data, directed=directed)
    return lambda: Graph.from_edge_index(edges, edge_weight=weight, directed=directed)


def _by_estimator(source: Source, array: Any, num_nodes: int, directed: bool) -> Any:
    """As ``LGCNClassifier.fit(X, y, edges=...)`` takes them: arrays, lists or tensors."""
    form = source.below(3)
    edges = array if form == 0 else array.tolist() if form == 1 else torch.from_numpy(array)
    return lambda: graph_of(torch.zeros(num_nodes, 1), edges, directed=directed)


def scipy_target(source: Source) -> None:
    """Sparse matrices of SciPy and torch, with duplicates and any type of index."""
    n = source.between(1, 10)
    num_edges = source.below(16)
    rng = source.rng()
    row, col = rng.integers(0, n, (2, num_edges))
    weights = source.choice(((1.0,), (0.5, 1.0, 2.0), (0.0, 1.0), (1.0, -1.0), (1.0, math.nan)))
    values = rng.choice(weights, num_edges)
    if source.below(3) == 2:
        _torch_sparse(source, n, row, col, values)
        return
    index = source.choice((np.int32, np.int64))
    matrix: Any = scipy.sparse.coo_matrix(
        (values.astype(source.choice((np.float64, np.float32))), (row, col)), (n, n)
    )
    layout = source.below(4)
    if layout:  # a matrix of these keeps its duplicates
        matrix = _compressed(matrix, index, by_rows=layout != 2)
    directed = source.flag()
    with argument_errors():
        graph = from_scipy(matrix, directed=directed)
    found = dict(_entries(graph))
    summed: dict[tuple[int, int], float] = {}
    for s, t, w in zip(row.tolist(), col.tolist(), values.tolist(), strict=True):
        summed[s, t] = summed.get((s, t), 0.0) + w
    if any(math.isnan(w) or w < 0 for w in summed.values()):
        raise AssertionError(f"accepted weights {sorted(set(summed.values()))}")
    expected: dict[tuple[int, int], float] = {}
    for (s, t), w in summed.items():
        if s == t or w == 0:
            continue
        for entry in ((s, t),) if directed else ((s, t), (t, s)):
            expected[entry] = max(w, expected.get(entry, 0.0))
    assert found == expected
    assert len(_entries(graph)) == len(expected)


def _entries(graph: Graph) -> list[tuple[tuple[int, int], float]]:
    rows = rows_of(graph, graph.edge_weight)
    return [((s, t), w) for t, row in enumerate(rows) for s, w in row]


def _compressed(matrix: Any, index: Any, *, by_rows: bool) -> Any:
    """CSR or CSC with the entries in their order, none of them summed."""
    major, minor = (matrix.row, matrix.col) if by_rows else (matrix.col, matrix.row)
    order = np.argsort(major, kind="stable")
    ptr = np.searchsorted(major[order], np.arange(matrix.shape[0] + 1)).astype(index)
    kind = scipy.sparse.csr_matrix if by_rows else scipy.sparse.csc_matrix
    return kind((matrix.data[order], minor[order].astype(index), ptr), shape=matrix.shape)


def _torch_sparse(source: Source, n: int, row: Any, col: Any, values: Any) -> None:
    """PyG's ``adj_t``: rows are targets. Duplicates of a COO tensor are summed by torch."""
    index = torch.from_numpy(np.stack([row, col]))
    matrix = torch.sparse_coo_tensor(index, torch.from_numpy(values), (n, n), check_invariants=True)
    if source.flag():
        matrix = matrix.coalesce()
        if source.flag():
            matrix = matrix.to_sparse_csr()
    directed = source.flag()
    with argument_errors():
        graph = Graph.from_edge_index(matrix, directed=directed)
    summed: dict[tuple[int, int], float] = {}
    for t, s, w in zip(row.tolist(), col.tolist(), values.tolist(), strict=True):
        summed[s, t] = summed.get((s, t), 0.0) + w
    if any(math.isnan(w) for w in summed.values()):
        return  # training checks these
    entries = sorted(summed.items(), key=lambda entry: (entry[0][1], entry[0][0]))
    pairs, weights = [pair for pair, _ in entries], [w for _, w in entries]
    direction = "directed" if directed else "undirected"
    same_rows(graph, expected_rows(pairs, weights, direction))


def adjacency_target(source: Source) -> None:
    """Self-loops, degrees and normalised weights of all rows and of some."""
    graph, neighbors = some_graph(source, source.choice((6, 30)))
    n, num_edges = graph.num_nodes, graph.num_edges
    weights = [1.0] * num_edges
    if source.flag():
        weights = source.rng().choice((0.0, 0.5, 1.0, 2.0), num_edges).tolist()
        graph = Graph(graph.rowptr, graph.col, edge_weight=torch.tensor(weights))
    normalize, self_loops = source.flag(), source.flag()
    if n == 0:
        raise Refused("no nodes")
    matrix = graph.adjacency(normalize=normalize, self_loops=self_loops)
    bounds = graph.rowptr.tolist()
    rows: Rows = [
        list(zip(near, weights[a:b], strict=True))
        for near, a, b in zip(neighbors, bounds, bounds[1:], strict=False)
    ]
    if self_loops:
        rows = [r if any(s == t for s, _ in r) else [(t, 1.0), *r] for t, r in enumerate(rows)]
    if normalize:
        # A degree is the sum of the row's own weights, with the self-loop that was added.
        degree = [sum(w for _, w in row) for row in rows]
        scale = [0.0 if d <= 0 else 1 / math.sqrt(d) for d in degree]
        rows = [[(s, scale[t] * scale[s] * w) for s, w in row] for t, row in enumerate(rows)]
    start = source.below(n + 1)
    stop = source.between(start, n)
    part = graph.adjacency_rows(start, stop, normalize=normalize, self_loops=self_loops)
    for found, expected in ((matrix, rows), (part, rows[start:stop])):
        listed = rows_of(found, found.weight)
        assert [[s for s, _ in row] for row in listed] == [[s for s, _ in row] for row in expected]
        got = torch.tensor([w for row in listed for _, w in row], dtype=torch.float64)
        wanted = torch.tensor([w for row in expected for _, w in row], dtype=torch.float64)
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
    assert_same(graph.rowptr.diff().long(), torch.tensor([len(near) for near in neighbors]))
