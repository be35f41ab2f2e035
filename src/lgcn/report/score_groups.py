"""Which groups of nodes, or of whole graphs, a report scores one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lgcn.report.bins import Bin, agreement_bins, degree_bins, range_bins
from lgcn.report.names import plain_number
from lgcn.report.neighbour_agreement import neighbour_agreement
from lgcn.report.node_results import NodeResults

if TYPE_CHECKING:
    from lgcn.graph import Graph, GraphSet

# With several labels per node, comparing neighbours is slow: so many nodes are enough.
MAX_COMPARED = 20_000
AGREEMENTS = {
    "classification": (
        "neighbours of the same class",
        "By the share of labelled neighbours that have the node's own true class. Unknown: "
        "none is labelled.",
    ),
    "multilabel": (
        "overlap with the neighbours' labels",
        "By the mean overlap of a node's labels with those of its labelled neighbours.",
    ),
    "regression": (
        "distance from the neighbours' mean",
        "By the distance of the true value from the mean of the labelled neighbours.",
    ),
}


class ScoreGroups(NamedTuple):
    """Groups that are scored.

    Args:
        key: The id of their chart.
        title: What tells them apart.
        about: A sentence on it.
        bins: The groups; or why there are none.
    """

    key: str
    title: str
    about: str
    bins: list[Bin] | str


def node_groups(graph: Graph, results: NodeResults) -> list[ScoreGroups]:
    """Nodes by degree, and by the agreement of their neighbours."""
    degrees = degree_bins(results, graph.rowptr.diff().numpy())
    title, about = AGREEMENTS[results.task]
    return [
        ScoreGroups("degrees", "neighbours", "By the number of neighbours.", degrees),
        ScoreGroups("agreements", title, about, _agreements(graph, results)),
    ]


def graph_groups(graphs: GraphSet, results: NodeResults) -> list[ScoreGroups]:
    """Whole graphs by size, and by their mean degree."""
    sizes = graphs.sizes.cpu().numpy()
    entries = graphs.edge_ptr.diff().cpu().numpy()
    by_size = range_bins(results, sizes, "{:,.0f}".format)
    by_degree = range_bins(
        results, entries / np.maximum(sizes, 1), lambda value: plain_number(value, 3)
    )
    mean = "neighbours per node"
    return [
        ScoreGroups("sizes", "nodes", "By the number of nodes.", by_size),
        ScoreGroups("mean-degrees", mean, "By the mean number of neighbours per node.", by_degree),
    ]


def _agreements(graph: Graph, results: NodeResults) -> list[Bin] | str:
    if graph.y is None or not results.scored.any():
        return "There are no labelled nodes to compare."
    nodes = results.scored
    if graph.multi_label and nodes.sum() > MAX_COMPARED:
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(nodes))[:MAX_COMPARED]
        nodes = np.zeros_like(nodes)
        nodes[chosen] = True
        counted = results.split.copy()
        counted[results.scored & ~nodes] = -1
        results = replace(results, split=counted)
    found = agreement_bins(results, neighbour_agreement(graph, nodes))
    return found or "No node of the split has a labelled neighbour."
