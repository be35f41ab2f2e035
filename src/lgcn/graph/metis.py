"""METIS: parts of about equal size with few edges between them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import UsageError

if TYPE_CHECKING:
    from lgcn.graph.graph import Graph


def has_metis() -> bool:
    """Whether METIS is installed."""
    return importlib.util.find_spec("pymetis") is not None


def metis_memory(num_nodes: int, num_entries: int, *, directed: bool) -> int:
    """An estimate of the bytes that `metis_parts` takes: above what six random graphs took."""
    return 100 * num_nodes + 150 * num_entries * (1 + directed)


def metis_parts(
    graph: Graph, num_parts: int, seed: int, needed_by: str, *, isolated: bool = True
) -> Any:
    """The part of each node, int64. The direction of edges is ignored.

    Args:
        graph: The graph. Its adjacency is taken into memory several times.
        num_parts: The number of parts.
        seed: The same seed gives the same parts.
        needed_by: The option that needs METIS, for the error if it is not installed.
        isolated: Whether METIS sees nodes without edges, which takes it minutes if there are a
            million; else their part is -1. (default: `True`)
    """
    try:
        import pymetis
    except ImportError as error:
        raise UsageError(
            f"{needed_by} needs METIS, which is not installed: pip install 'lgcn[metis]'"
        ) from error
    if num_parts <= 1:
        return np.zeros(graph.num_nodes, np.int64)
    from scipy.sparse import csr_array

    source = graph.col.cpu().numpy()
    target = np.repeat(np.arange(graph.num_nodes), graph.rowptr.diff().cpu().numpy())
    source, target = source[source != target], target[source != target]
    entries = (np.ones(source.size, bool), (target, source))
    matrix = csr_array(entries, shape=(graph.num_nodes, graph.num_nodes))
    both = matrix + matrix.T
    seen = np.ones(graph.num_nodes, bool) if isolated else np.diff(both.indptr) > 0
    found = np.full(graph.num_nodes, -1, np.int64)
    if not isolated:
        both = both[seen][:, seen]
        if both.shape[0] <= num_parts:
            found[seen] = np.arange(both.shape[0])
            return found
    _, part = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(both.indptr.astype(np.int64), both.indices.astype(np.int64)),
        options=pymetis.Options(seed=seed % 2**31),
    )
    found[seen] = part
    return found
