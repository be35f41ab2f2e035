"""What is known about a graph before it is trained on: `lgcn data check`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from lgcn.datasets.check_warnings import warnings_of
from lgcn.datasets.graph_counts import (
    class_counts,
    degree_histogram,
    degrees,
    edge_counts,
    homophily,
    labelled_nodes,
)
from lgcn.graph import SPLITS, Graph
from lgcn.ops.structure import check_range

SAMPLED_ROWS = 1_000_000
SAMPLED_FEATURES = 10_000
# Neighbours agree where so much of what there is between chance and always is reached, and this is
# known of so many entries of the adjacency.
AGREEMENT, AGREEMENT_ENTRIES = 0.1, 20


def suggest_k(graph: Graph) -> int:
    """A k for the degrees of a graph.

    The smallest power of two that holds the neighbours and the node itself of three nodes in four,
    from 8 to 32: on the graphs of ``benchmarks/own_defaults.py`` k = 8 and 16 were as good as 64,
    and the cost of a layer grows with k. Where the splits are separate graphs, those of training
    count.

    Args:
        graph: The graph to be trained on.
    """
    rowptr = graph.rowptr
    if graph.inductive:
        assert graph.train_mask is not None
        degree = rowptr.diff()[graph.train_mask]
    else:  # of a large graph, rows at equal distances: its arrays may be files
        rows = torch.arange(0, graph.num_nodes, max(1, graph.num_nodes // SAMPLED_ROWS))
        degree = rowptr[rows.to(rowptr.device) + 1] - rowptr[rows.to(rowptr.device)]
    if not len(degree):
        return 8
    wanted = float(np.percentile(degree.cpu().numpy(), 75)) + 1
    return next((k for k in (8, 16) if k >= wanted), 32)


def feature_length(graph: Graph) -> float:
    """The root mean square length of the nodes' feature vectors; 1 where there are none.

    Where the splits are separate graphs, those of training count. Of a large graph it is that of
    nodes at equal distances.

    Args:
        graph: The graph to be trained on.
    """
    if graph.x is None:
        return 1.0
    if graph.inductive:
        assert graph.train_mask is not None
        rows = graph.train_mask.nonzero().squeeze(1)
    else:
        rows = torch.arange(graph.num_nodes)
    step = max(1, len(rows) // SAMPLED_FEATURES)
    x = graph.features(rows[::step].to(graph.rowptr.device))
    values = (x.values() if x.layout == torch.sparse_csr else x).double()
    length = math.sqrt(float(values.square().sum()) / max(1, x.size(0)))
    if length in (0, math.inf) and values.numel():
        # Squares of very small or large numbers leave the range of numbers; their shares do not.
        largest = float(values.abs().max())
        if 0 < largest < math.inf:
            shares = float((values / largest).square().sum())
            length = largest * math.sqrt(shares / x.size(0))
    # Of float32, whose largest number one over a smaller length would exceed.
    return max(length, torch.finfo(torch.float32).tiny) if length else 1.0


def labels_per_class(graph: Graph) -> float:
    """Training nodes that a class has on average; 0 where there are none.

    Args:
        graph: The graph to be trained on.
    """
    if graph.y is None or graph.train_mask is None or graph.num_classes == 0:
        return 0.0
    nodes = graph.train_mask.nonzero().squeeze(1)
    if graph.y.dim() == 1:
        return len(nodes) / graph.num_classes
    some = nodes[:: max(1, len(nodes) // SAMPLED_FEATURES)]  # of a large graph
    labels = graph.y[some.to(graph.y.device)].sum() / max(1, len(some))
    return float(labels) * len(nodes) / graph.num_classes


def neighbours_agree(graph: Graph) -> bool:
    """Whether neighbours are of one class clearly more often than by chance, as far as is known.

    Only edges between training nodes count; where there are hardly any, or where a node can have
    several labels, it is taken for granted.

    Args:
        graph: The graph to be trained on.
    """
    mask, y = graph.train_mask, graph.y
    if mask is None or y is None or y.dim() != 1:
        return True
    nodes = mask.nonzero().squeeze(1)
    first = graph.rowptr[nodes]
    degree = graph.rowptr[nodes + 1] - first
    row = nodes.repeat_interleave(degree)
    place = torch.arange(len(row), device=row.device)
    place += (first - degree.cumsum(0) + degree).repeat_interleave(degree)
    col = graph.col[place].long()
    between = mask[col] & (col != row)
    if int(between.sum()) < AGREEMENT_ENTRIES:
        return True
    one, other = y[row[between]], y[col[between]]
    by_chance = (torch.bincount(one).double() / len(one)).square().sum()
    alike = (one == other).double().mean()
    return bool(alike - by_chance >= AGREEMENT * (1 - by_chance))


@dataclass(frozen=True)
class GraphReport:
    """What :func:`check_graph` found.

    Args:
        name: Name of the graph.
        nodes, graphs: How many there are.
        edges: How many there are; an undirected edge counts once.
        directed: Whether some edge has no reverse of the same weight.
        weighted: Whether edges have weights.
        isolated_nodes, self_loops, duplicate_edges: How many the graph has after the import
            (``imported`` has what the import removed).
        components, largest_component: Number of connected components, and of nodes in the largest.
        degree: Smallest, mean, median and largest number of neighbours.
        degree_histogram: Nodes by number of neighbours, in powers of two.
        features: Features per node.
        columns: Name, kind and number of features of each column they were made from.
        labels: "one per node", "several per node" or "none".
        classes: Labelled nodes of each class, or nodes that have each label.
        labelled_nodes: Nodes of a known class; with several labels, nodes in a split.
        splits: Nodes in each split.
        homophily: Share of the edges between labelled nodes that join nodes of one class, without
            self-loops. ``None`` if there is no such edge, or nodes can have several labels.
        homophily_by_chance: What random edges between the same edge ends would give.
        suggested_k: See :func:`suggest_k`.
        imported: Counts of the import: rows, duplicates, self-loops and the like.
        notes: Notes of the import and of the encoder.
        warnings: What looks wrong.
    """

    name: str
    nodes: int
    graphs: int
    edges: int
    directed: bool
    weighted: bool
    isolated_nodes: int
    self_loops: int
    duplicate_edges: int
    components: int
    largest_component: int
    degree: dict[str, float]
    degree_histogram: list[dict[str, int]]
    features: int
    columns: list[dict[str, Any]]
    labels: str
    classes: dict[str, int]
    labelled_nodes: int
    splits: dict[str, int]
    homophily: float | None
    homophily_by_chance: float | None
    suggested_k: int
    imported: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return asdict(self)


def check_graph(graph: Graph, imported: Any = None) -> GraphReport:
    """Counts what a user should know about a graph, and says what looks wrong.

    Args:
        graph: Any graph.
        imported: What :func:`~lgcn.tables.from_tables.import_tables` returned; its ``notes`` and
            ``counts`` become part of the report. (default: none)
    """
    graph = graph.to("cpu")
    check_range(graph.rowptr, graph.col, graph.num_nodes)  # again only where they changed
    degree = degrees(graph)
    share, by_chance = homophily(graph)
    encoder = graph.encoder
    if imported is not None:
        notes = list(imported.notes)  # with those of the encoder
    else:
        notes = [] if encoder is None else list(encoder.notes)
    labels = "one per node"
    if graph.y is None:
        labels = "none"
    elif graph.multi_label:
        labels = "several per node"
    report = GraphReport(
        name=graph.name,
        nodes=graph.num_nodes,
        graphs=graph.num_graphs,
        weighted=graph.edge_weight is not None,
        **edge_counts(graph),
        degree={
            "smallest": int(degree.min()) if len(degree) else 0,
            "mean": round(float(degree.mean()), 2) if len(degree) else 0.0,
            "median": float(np.median(degree)) if len(degree) else 0.0,
            "largest": int(degree.max()) if len(degree) else 0,
        },
        degree_histogram=degree_histogram(degree),
        features=graph.num_features,
        columns=[] if encoder is None else [column._asdict() for column in encoder.columns],
        labels=labels,
        classes=class_counts(graph),
        labelled_nodes=labelled_nodes(graph),
        splits={
            split: int(mask.sum()) for split in SPLITS if (mask := graph.mask(split)) is not None
        },
        homophily=share,
        homophily_by_chance=by_chance,
        suggested_k=suggest_k(graph),
        imported={} if imported is None else dict(imported.counts),
        notes=notes,
    )
    return replace(report, warnings=warnings_of(graph, report, degree))
