"""Sets of graphs in one `.npz` file of plain arrays.

| array | content |
|---|---|
| `node_ptr` | [G + 1] where each graph's nodes start |
| `edge_ptr` | [G + 1] where each graph's edges start |
| `source` | [E] node numbers within the graph, from 0; each edge once, taken as undirected |
| `target_difference` | [E] whose cumulative sum is the other end of each edge |
| `graph_labels` | [G] class of each graph, whole numbers |

Self-loops and duplicates are left out. Nodes have no features.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import DataError
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.limits import MAX_NODES
from lgcn.utils.memory import check_memory

if TYPE_CHECKING:
    from lgcn.graph import GraphSet

ARRAYS = ("node_ptr", "edge_ptr", "source", "target_difference", "graph_labels")


def read_graph_npz(path: Path) -> GraphSet:
    """Reads a set of graphs with the layout above, without splits.

    Args:
        path: The file; its name without ending becomes the name of the set.
    """
    import torch

    from lgcn.graph import Graph, GraphSet
    from lgcn.tables.edges import to_adjacency

    arrays = read_npz(path, ARRAYS)
    labels = check_array(arrays["graph_labels"], "graph_labels", path, (None,), integer=True)
    source = check_array(arrays["source"], "source", path, (None,), integer=True)
    steps = arrays["target_difference"]
    check_array(steps, "target_difference", path, (len(source),), integer=True)
    node_ptr = _offsets(arrays["node_ptr"], "node_ptr", path, len(labels))
    edge_ptr = _offsets(arrays["edge_ptr"], "edge_ptr", path, len(labels))
    if edge_ptr[-1] != len(source):
        raise DataError(
            f"{path}: edge_ptr must end with the number of edges ({len(source)}), got "
            f"{edge_ptr[-1]}"
        )
    num_nodes = int(node_ptr[-1])
    if num_nodes > MAX_NODES:
        raise DataError(f"{path}: node_ptr must end with at most {MAX_NODES}, got {num_nodes}")
    check_memory(40 * num_nodes, f"{path}: {num_nodes} nodes", DataError)
    first = np.repeat(node_ptr[:-1], np.diff(edge_ptr))
    size = np.repeat(np.diff(node_ptr), np.diff(edge_ptr))
    ends = []
    for name, within in (("source", source), ("target", np.cumsum(steps, dtype=np.int64))):
        wrong = (within < 0) | (within >= size)
        if wrong.any():
            edge = int(wrong.argmax())
            raise DataError(
                f"{path}: the {name} of edge {edge} must be a node of its graph, from 0 to "
                f"{size[edge] - 1}, got {within[edge]}"
            )
        ends.append((within + first).astype(np.int32))
    between = ends[0] != ends[1]
    sources, targets = ([end[between]] for end in ends)
    del ends, first, size
    rows, _ = to_adjacency(sources, targets, None, num_nodes, directed=False)
    found, y = np.unique(labels, return_inverse=True)
    graph = Graph(rows.rowptr, rows.col, ptr=torch.from_numpy(node_ptr), name=path.stem)
    names = [str(label) for label in found.tolist()]
    return GraphSet.create(graph, y=torch.from_numpy(y.astype(np.int64)), label_names=names)


def _offsets(values: Any, name: str, path: Path, num_graphs: int) -> Any:
    """Offsets of the graphs in int64, checked."""
    check_array(values, name, path, (num_graphs + 1,), integer=True, low=0, high=2**62)
    offsets = values.astype(np.int64)
    if offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
        raise DataError(f"{path}: {name} must rise from 0")
    return offsets
