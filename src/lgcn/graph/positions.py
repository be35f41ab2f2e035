"""Positions: coordinates of nodes within one graph, such that near nodes have near positions.

They use the undirected graph, and count each edge once; direction and weights do not matter. Both
kinds multiply the adjacency some forty times with as many columns as there are coordinates, and
eight more; memory is about five times that of the positions.
The coordinates of different graphs have nothing to do with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.graph.structural import undirected
from lgcn.utils.row_blocks import row_blocks

if TYPE_CHECKING:
    from lgcn.graph.graph import Graph

Array = np.ndarray[Any, Any]
STEPS, SPARE = 20, 8  # of orthogonal iteration, and vectors beyond those that are kept
SMOOTHING_STEPS = 4


def positions(graph: Graph, kind: str, dimensions: int, seed: int = 0) -> Array:
    """The positions of all nodes, [nodes, dimensions] in float32.

    They are computed once per graph and kept with its adjacency.

    Args:
        graph: The graph. Its features and labels are not read.
        kind: `"spectral"`: the leading eigenvectors of the normalised adjacency, without the
            first, which says nothing but degrees. `"learnt"`: a factorisation of which neighbours
            occur together more often than by chance, as DeepWalk and word embeddings learn it.
        dimensions: Number of coordinates; missing ones of a small graph are zero.
        seed: Of the start vectors. (default: 0)
    """
    compute = {"spectral": _spectral, "learnt": _learnt}[kind]

    def make() -> Array:
        found = np.zeros((graph.num_nodes, dimensions), np.float32)
        width = min(dimensions, graph.num_nodes - 2)
        if width > 0 and graph.num_edges:
            values = compute(undirected(graph).astype(np.float64), width, seed)
            found[:, : values.shape[1]] = _fixed_signs(values)
        return found

    found: Array = graph.derived(("positions", kind, dimensions, seed), make)
    return found


def digest(graph: Graph) -> str:
    """A digest of the adjacency and its weights, whatever their integer types."""

    def make() -> str:
        hashed = hashlib.sha256(str(graph.num_nodes).encode())
        for tensor, kind in (
            (graph.rowptr, "<i8"),
            (graph.col, "<i8"),
            (graph.edge_weight, "<f4"),
        ):
            if tensor is not None:
                for start, stop in row_blocks(len(tensor), 2**20):
                    hashed.update(tensor[start:stop].detach().cpu().numpy().astype(kind).tobytes())
            hashed.update(b"|")
        return hashed.hexdigest()

    found: str = graph.derived("digest", make)
    return found


def checksums(values: Array) -> list[float]:
    """One number per coordinate, by which two computations of positions are compared.

    It is a weighted sum over the nodes, divided by the coordinate's length, so that it is about 1.
    """
    if not len(values):
        return [0.0] * values.shape[1]
    weights = np.random.default_rng(0).standard_normal(len(values))
    lengths = np.linalg.norm(values.astype(np.float64), axis=0)
    found: list[float] = (weights @ values / np.maximum(lengths, 1e-12)).tolist()
    return found


def _spectral(matrix: Any, width: int, seed: int) -> Array:
    """The leading eigenvectors of M = D^-1/2 (A + t/N) D^-1/2, t the mean degree.

    Without t (regularised spectral clustering, Qin and Rohe 2013) the leading eigenvectors would
    only tell the components of a disconnected graph apart.
    """
    size = matrix.shape[0]
    degree = np.diff(matrix.indptr)
    added = degree.mean()
    scale = 1 / np.sqrt(degree + added)[:, None]

    def step(vectors: Array) -> Array:
        scaled = scale * vectors
        product: Array = scale * (matrix @ scaled + added / size * scaled.sum(0))
        return (vectors + product) / 2  # negative eigenvalues come last

    return _leading(lambda vectors: step(step(vectors)), size, width + 1, seed)[:, 1:]


def _learnt(matrix: Any, width: int, seed: int) -> Array:
    """Factors of how much more often neighbours meet than by chance, averaged over neighbours.

    These are the first step of ProNE (Zhang et al. 2019), and a plain average in place of its
    filter: a word embedding whose words are nodes and whose sentences are edges.
    """
    from scipy.sparse import csr_matrix

    size = matrix.shape[0]
    degree = np.diff(matrix.indptr)
    share = np.repeat(1 / np.maximum(degree, 1), degree)  # of a neighbour in a node's row
    met = np.bincount(matrix.indices, weights=share, minlength=size) ** 0.75
    with np.errstate(divide="ignore"):
        chance = np.log(met / met.sum())
    surprise = np.maximum(np.log(share) - chance[matrix.indices], 0)
    parts = (surprise, matrix.indices, matrix.indptr)
    surprises = csr_matrix(parts, shape=matrix.shape)
    reverse = surprises.T.tocsr()
    left = _leading(lambda vectors: surprises @ (reverse @ vectors), size, width, seed)
    values = np.linalg.norm(reverse @ left, axis=0)  # the singular values
    values[values < 1e-6 * values.max()] = 0  # vectors beyond the rank are nothing but rounding
    found = _unit_rows(left * np.sqrt(values))
    walk = csr_matrix((share, matrix.indices, matrix.indptr), shape=matrix.shape)
    step = found
    for _ in range(SMOOTHING_STEPS):
        step = walk @ step
        found = found + step
    return _unit_rows(found)


def _leading(multiply: Callable[[Array], Array], size: int, width: int, seed: int) -> Array:
    """The leading eigenvectors of a symmetric matrix, approximately, by orthogonal iteration.

    A fixed number of steps in place of a solver: the cost is known, and where eigenvalues are equal
    or nearly so, as in paths, grids and copies of one component, rounding does not turn the
    vectors.

    Args:
        multiply: Gives the product of the matrix and some columns.
        size: Number of rows.
        width: Number of vectors.
        seed: Of the start vectors.
    """
    vectors = np.random.default_rng(seed).standard_normal((size, min(size, width + SPARE)))
    for _ in range(STEPS):
        vectors = np.linalg.qr(multiply(vectors))[0]
    found: Array = vectors[:, :width]
    return found


def _unit_rows(values: Array) -> Array:
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    scaled: Array = values / np.where(lengths == 0, 1, lengths)
    return scaled


def _fixed_signs(values: Array) -> Array:
    """Columns whose checksum is positive."""
    return values * np.where(np.array(checksums(values)) < 0, -1, 1)
