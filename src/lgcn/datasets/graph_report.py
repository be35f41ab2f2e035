"""What is known about a graph before it is trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets.graph_counts import (
    class_counts,
    degree_histogram,
    degrees,
    edge_counts,
    homophily,
    labelled_nodes,
    target_summary,
)
from lgcn.datasets.report_warnings import warnings_of
from lgcn.graph import SPLITS, Graph
from lgcn.graph.statistics import suggest_k
from lgcn.ops.structure import check_range

if TYPE_CHECKING:
    from lgcn.datasets.graph_source import GraphSource


@dataclass(frozen=True)
class GraphReport:
    """What `check_graph` found.

    Args:
        name: Name of the graph.
        nodes, graphs: How many there are.
        edges: How many there are; an undirected edge counts once.
        directed: Whether some edge has no reverse of the same weight.
        weighted: Whether edges have weights.
        isolated_nodes, self_loops, duplicate_edges: How many the graph has after the import
            (`imported` has what the import removed).
        components, largest_component: Number of connected components, and of nodes in the largest.
        degree: Smallest, mean, median and largest number of neighbours.
        degree_histogram: Nodes by number of neighbours, in powers of two.
        features: Features per node.
        columns: Name, kind and number of features of each column they were made from.
        labels: "one per node", "several per node", "a number per node" or "none".
        classes: Labelled nodes of each class, or nodes that have each label.
        labelled_nodes: Nodes of a known class; with several labels, nodes in a split.
        splits: Nodes in each split.
        homophily: Share of the edges between labelled nodes that join nodes of one class, without
            self-loops. `None` if there is no such edge, or nodes can have several labels.
        homophily_by_chance: What random edges between the same edge ends would give.
        target: Of a regression, smallest, mean and largest target and their standard deviation.
            `None` otherwise.
        suggested_k: See `lgcn.graph.statistics.suggest_k`.
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
    target: dict[str, float] | None = None
    imported: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return asdict(self)


def check_source(source: GraphSource) -> GraphReport:
    """Loads a graph and reports on it; of tables, also on what their import left out.

    Args:
        source: Where the graph comes from.
    """
    if source.dataset != "tables":
        return check_graph(source.load())
    from lgcn.tables.from_tables import import_tables  # imports pyarrow

    imported = import_tables(**source.options)
    return check_graph(imported.graph, imported)


def check_graph(graph: Graph, imported: Any = None) -> GraphReport:
    """Counts what a user should know about a graph, and says what looks wrong.

    Args:
        graph: Any graph.
        imported: What `import_tables` returned; its `notes` and
            `counts` become part of the report. (default: none)
    """
    graph = graph.to("cpu")
    check_range(graph.rowptr, graph.col, graph.num_nodes)  # again only if they changed
    degree = degrees(graph)
    share, by_chance = homophily(graph)
    encoder = graph.encoder
    if imported is not None:
        notes = list(imported.notes)  # with those of the encoder
    else:
        notes = [] if encoder is None else list(encoder.notes)
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
        labels=_labels(graph),
        classes=class_counts(graph),
        labelled_nodes=labelled_nodes(graph),
        splits={
            split: int(mask.sum()) for split in SPLITS if (mask := graph.mask(split)) is not None
        },
        homophily=share,
        homophily_by_chance=by_chance,
        suggested_k=suggest_k(graph),
        target=target_summary(graph),
        imported={} if imported is None else dict(imported.counts),
        notes=notes,
    )
    return replace(report, warnings=warnings_of(graph, report, degree))


def _labels(graph: Graph) -> str:
    if graph.y is None:
        return "none"
    kinds = {"multilabel": "several per node", "regression": "a number per node"}
    return kinds.get(graph.task, "one per node")


def graph_sizes(graph: Graph, *, directed: bool = False) -> dict[str, Any]:
    """The sizes of a graph of any size, without the parts of a report that take long.

    Args:
        graph: The graph.
        directed: Whether its edges are directed, which is not looked up. (default: `False`)
    """
    edges = {"directed_edges": graph.num_edges}
    if not directed:
        edges = {"undirected_edges": graph.num_edges // 2}
    degree = graph.rowptr.diff()
    sizes: dict[str, Any] = {
        "name": graph.name,
        "graphs": graph.num_graphs,
        "nodes": graph.num_nodes,
        **edges,
        "mean_degree": round(graph.num_edges / max(graph.num_nodes, 1), 2),
        "largest_degree": int(degree.max()) if graph.num_nodes else 0,
        "isolated_nodes": int((degree == 0).sum()),
        "features": graph.num_features,
        "classes": graph.num_classes,
        "labels": "one per node" if graph.y is None else _labels(graph),
        "setting": "inductive" if graph.inductive else "transductive",
    }
    for split in SPLITS:
        mask = graph.mask(split)
        sizes[f"{split}_nodes"] = 0 if mask is None else int(mask.sum())
    return sizes
