"""The receptive field: which nodes the scores of a node depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch.nn import Module

    from lgcn.graph import Graph


def hops(model: Module) -> int | None:
    """How many edges away nodes have an influence on a node's scores.

    `None` if all nodes may have: batch norm with the statistics of the graph, features that are
    made from all edges, or a network that is not known here.

    Args:
        model: The trained model.
    """
    from lgcn.explain.neighbourhood import num_hops
    from lgcn.nn.boosted_trees import BoostedTrees
    from lgcn.nn.lgcn import LGCN
    from lgcn.nn.residual import ResidualLGCN
    from lgcn.training.portfolio.ensemble import Ensemble

    if isinstance(model, Ensemble):
        parts = [None if part.spec.structure else hops(part.model) for part in model.parts]
        known = [part for part in parts if part is not None]
        return max(known) if len(known) == len(parts) else None
    if isinstance(model, BoostedTrees):
        return model.hops
    if any(getattr(part, "track_running_stats", True) is False for part in model.modules()):
        return None
    return num_hops(model) if isinstance(model, LGCN | ResidualLGCN) else None


def reached(graph: Graph, start: Any, steps: int, most: int) -> Any | None:
    """The nodes within some steps of others, sorted; `None` if there are too many.

    Only the rows of these nodes are read.

    Args:
        graph: The graph.
        start: Distinct node numbers, from which step 0 starts.
        steps: The number of steps. Row i leads to the nodes that node i aggregates from.
        most: The largest number of nodes.
    """
    rowptr, col = graph.rowptr.numpy(), graph.col.numpy()
    seen = frontier = np.sort(np.asarray(start, np.int64))
    for _ in range(steps):
        first, last = rowptr[frontier].astype(np.int64), rowptr[frontier + 1].astype(np.int64)
        sizes = last - first
        if sizes.sum() > 64 * most:  # reading it all would take long
            return None
        offsets = np.repeat(first - np.concatenate([[0], sizes.cumsum()[:-1]]), sizes)
        near = np.unique(col[offsets + np.arange(sizes.sum())].astype(np.int64))
        frontier = np.setdiff1d(near, seen, assume_unique=True)
        if not len(frontier):
            break
        seen = np.union1d(seen, frontier)
        if len(seen) > most:
            return None
    return seen if len(seen) <= most else None
