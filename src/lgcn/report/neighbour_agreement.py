"""How much the neighbours of a node agree with it: an easy node has neighbours of its own class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lgcn.graph import Graph
from lgcn.ops.reference import row_of_entry
from lgcn.utils.row_blocks import row_blocks_within

BLOCK_BYTES = 2**27
ENTRY_BYTES = 48  # per neighbour, for its label and some copies of it
LABEL_BYTES = 4  # per neighbour and label, if nodes can have several


def neighbour_agreement(graph: Graph, nodes: Any) -> Any:
    """How much the labelled neighbours of each node agree with it; NaN where it cannot be said.

    | task | agreement |
    |---|---|
    | classes | share of labelled neighbours that have the node's own class |
    | several labels | mean overlap of the label sets: common labels divided by all labels of both |
    | regression | distance of the node's value from the mean of its neighbours' values |

    Args:
        graph: The graph, with labels.
        nodes: A mask of the nodes to look at.

    Returns: One number per node of the graph.
    """
    found = np.full(graph.num_nodes, np.nan)
    if graph.y is None:
        return found
    per_entry = ENTRY_BYTES + (LABEL_BYTES * graph.y.size(1) if graph.multi_label else 0)
    unlabelled = graph.unlabelled()
    for start, stop in row_blocks_within(
        BLOCK_BYTES, graph.num_nodes, ENTRY_BYTES, graph.rowptr, per_entry
    ):
        if not nodes[start:stop].any():
            continue
        rowptr, col, _ = graph.adjacency_rows(start, stop)
        row, col = row_of_entry(rowptr), col.long()
        wanted = torch.from_numpy(np.asarray(nodes[start:stop]))
        kept = wanted[row] & ~unlabelled[col] & ~unlabelled[row + start] & (col != row + start)
        row, col = row[kept], col[kept]
        counts = torch.bincount(row, minlength=stop - start)
        sums = torch.bincount(row, _agreeing(graph, row + start, col), minlength=stop - start)
        mean = sums / counts  # NaN without labelled neighbours
        if graph.task == "regression":
            mean = (graph.y[start:stop].double() - mean).abs()
        block = found[start:stop]
        block[wanted.numpy()] = mean.numpy()[wanted.numpy()]
    return found


def _agreeing(graph: Graph, node: torch.Tensor, neighbour: torch.Tensor) -> torch.Tensor:
    """What each pair adds to the mean."""
    assert graph.y is not None
    if graph.task == "regression":
        return graph.y[neighbour].double()
    if graph.task == "classification":
        return (graph.y[node] == graph.y[neighbour]).double()
    own, other = graph.y[node] > 0.5, graph.y[neighbour] > 0.5
    every = (own | other).sum(dim=1)
    common = (own & other).sum(dim=1)
    return torch.where(every > 0, common / every.clamp_min(1), 1.0).double()
