"""What is known about a set of graphs before it is trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets.graph_counts import class_counts, edge_counts, labelled_nodes, target_summary
from lgcn.datasets.graph_sets import read_graph_files
from lgcn.graph import SPLITS, GraphSet
from lgcn.tables.columns import listed
from lgcn.tables.notes import notes_on_graphs

if TYPE_CHECKING:
    from lgcn.datasets.graph_source import GraphSource

UNEQUAL = 10  # the largest class against the smallest
FAR_LARGER = 1000  # the largest graph against the median


@dataclass(frozen=True)
class GraphSetReport:
    """What `check_graph_set` found.

    Args:
        name: Name of the set.
        graphs, nodes: How many there are.
        edges: How many there are; an undirected edge counts once.
        directed: Whether some edge has no reverse of the same weight.
        weighted: Whether edges have weights.
        nodes_per_graph, edges_per_graph: Smallest, median, mean and largest number.
        graphs_without_nodes: How many there are.
        graphs_without_edges: How many of the others have no edges.
        isolated_nodes: Nodes without an edge.
        features: Features per node.
        columns: Name, kind and number of features of each column they were made from.
        labels: "one per graph", "several per graph", "a number per graph" or "none".
        classes: Labelled graphs of each class, or graphs that have each label.
        labelled_graphs: Graphs of a known class; with several labels, graphs in a split.
        splits: Graphs in each split.
        target: Of a regression, smallest, mean and largest target and their standard deviation.
            `None` otherwise.
        imported: Counts of the import: rows, duplicates and self-loops.
        notes: Notes of the import and of the encoder.
        warnings: What looks wrong.
    """

    name: str
    graphs: int
    nodes: int
    edges: int
    directed: bool
    weighted: bool
    nodes_per_graph: dict[str, float]
    edges_per_graph: dict[str, float]
    graphs_without_nodes: int
    graphs_without_edges: int
    isolated_nodes: int
    features: int
    columns: list[dict[str, Any]]
    labels: str
    classes: dict[str, int]
    labelled_graphs: int
    splits: dict[str, int]
    target: dict[str, float] | None = None
    imported: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return asdict(self)


def check_graph_source(source: GraphSource) -> GraphSetReport:
    """Loads a set of graphs and reports on it; of tables, also on what their import left out.

    Args:
        source: Where the graphs come from.
    """
    if source.dataset != "graph_tables":
        return check_graph_set(read_graph_files(root=source.root, **source.options))
    from lgcn.tables.graphs_from_tables import import_graphs  # imports pyarrow

    imported = import_graphs(**{"nodes": None, **source.options})
    counted = notes_on_graphs(imported.graphs)  # which are among the warnings
    notes = [note for note in imported.notes if note not in counted]
    return check_graph_set(imported.graphs, replace(imported, notes=notes))


def check_graph_set(graphs: GraphSet, imported: Any = None) -> GraphSetReport:
    """Counts what a user should know about a set of graphs, and says what looks wrong.

    Args:
        graphs: The graphs.
        imported: What `import_graphs` returned; its `notes` and `counts` become part of the
            report. (default: none)
    """
    graphs = graphs.to("cpu")
    graph, targets = graphs.graph, graphs.targets
    found = edge_counts(graph)
    encoder = graph.encoder
    sizes = graphs.sizes.numpy()
    entries = graphs.edge_ptr.diff().numpy()
    notes = list(() if encoder is None else encoder.notes)
    if imported is not None:
        notes = list(imported.notes)  # with those of the encoder
    report = GraphSetReport(
        name=graphs.name,
        graphs=len(graphs),
        nodes=graph.num_nodes,
        weighted=graph.edge_weight is not None,
        **{key: found[key] for key in ("edges", "directed", "isolated_nodes")},
        nodes_per_graph=_spread(sizes),
        edges_per_graph=_spread(entries if found["directed"] else entries // 2),
        graphs_without_nodes=int((sizes == 0).sum()),
        graphs_without_edges=int(((entries == 0) & (sizes > 0)).sum()),
        features=graph.num_features,
        columns=[] if encoder is None else [column._asdict() for column in encoder.columns],
        labels=_labels(graphs),
        classes=class_counts(targets),
        labelled_graphs=labelled_nodes(targets),
        splits={
            split: int(mask.sum()) for split in SPLITS if (mask := graphs.mask(split)) is not None
        },
        target=target_summary(targets),
        imported={} if imported is None else dict(imported.counts),
        notes=notes,
    )
    return replace(report, warnings=_warnings(graphs, report))


def graph_set_sizes(graphs: GraphSet, *, directed: bool = False) -> dict[str, Any]:
    """The sizes of a set of graphs, without the parts of a report that take long.

    Args:
        graphs: The graphs.
        directed: Whether edges are directed, which is not looked up. (default: `False`)
    """
    entries = graphs.edge_ptr.diff().numpy() // (1 if directed else 2)
    record: dict[str, Any] = {
        "name": graphs.name,
        "graphs": len(graphs),
        "nodes": graphs.graph.num_nodes,
        "directed_edges" if directed else "undirected_edges": int(entries.sum()),
        "nodes_per_graph": _spread(graphs.sizes.numpy()),
        "edges_per_graph": _spread(entries),
        "features": graphs.num_features,
        "classes": graphs.num_classes,
        "labels": _labels(graphs),
    }
    for split in SPLITS:
        mask = graphs.mask(split)
        record[f"{split}_graphs"] = 0 if mask is None else int(mask.sum())
    return record


def _labels(graphs: GraphSet) -> str:
    if graphs.y is None:
        return "none"
    kinds = {"multilabel": "several per graph", "regression": "a number per graph"}
    return kinds.get(graphs.task, "one per graph")


def _spread(counts: Any) -> dict[str, float]:
    if not len(counts):
        return {"smallest": 0, "median": 0.0, "mean": 0.0, "largest": 0}
    return {
        "smallest": int(counts.min()),
        "median": float(np.median(counts)),
        "mean": round(float(counts.mean()), 2),
        "largest": int(counts.max()),
    }


def _warnings(graphs: GraphSet, report: GraphSetReport) -> list[str]:
    """What looks wrong, the worst first."""
    found = []
    if report.graphs < 2:
        there = "is one graph" if report.graphs else "are no graphs"
        found.append(f"there {there}; training needs more")
    if not report.nodes:
        found.append("no graph has a node")
    if report.labels == "none" or not report.labelled_graphs:
        remedy = ". Name a label_column" if report.imported else ""  # only tables have columns
        found.append(f"no graph has a label, so nothing can be learned{remedy}")
    elif report.labels == "one per graph":
        found += _class_warnings(report.classes, class_counts(graphs.targets, "train"))
    for split in ("train", "val"):
        if report.splits and not report.splits.get(split) and report.labelled_graphs:
            found.append(f"no graph is for {'training' if split == 'train' else 'validation'}")
    for what, number in (
        ("nodes", report.graphs_without_nodes),
        ("edges", report.graphs_without_edges),
    ):
        if number:
            have = "has" if number == 1 else "have"
            found.append(f"{number} of {report.graphs} graphs {have} no {what}")
    if report.nodes and not report.features:
        found.append(
            "the nodes have no features: training makes some from the edges, such as degrees"
        )
    sizes = report.nodes_per_graph
    if sizes["largest"] > FAR_LARGER * max(sizes["median"], 1):
        found.append(
            f"the largest graph has {sizes['largest']:,} nodes, and half of the graphs have at "
            f"most {sizes['median']:g}: its batch decides how much memory training needs"
        )
    return found


def _class_warnings(counts: dict[str, int], training: dict[str, int]) -> list[str]:
    there = {name: number for name, number in counts.items() if number}
    if len(there) < 2:
        return ["all labelled graphs are of one class; label graphs of another class too"]
    found = []
    absent = [name for name in there if not training.get(name)]
    if absent and any(training.values()):
        found.append(
            f"no training graph has the class {listed(absent, 5)}, which cannot be learned; move "
            "some to the train split"
        )
    largest, smallest = max(there.values()), min(there.values())
    if largest > UNEQUAL * smallest:
        found.append(
            f"the classes are very unequal, from {smallest:,} to {largest:,} graphs: accuracy "
            "hides a small class that is never found"
        )
    return found
