"""What is known of a graph before it is trained on: `lgcn data check`."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import SPLITS, Graph
from lgcn.graph.statistics import suggest_k
from lgcn.ops.structure import check_range
from lgcn.utils.jit import jit


@dataclass(frozen=True)
class Report:
    """What :func:`check_graph` found.

    Args:
        name: Of the graph.
        nodes, graphs: Their numbers.
        edges: An undirected edge counts once, also as a duplicate.
        directed: Whether some edge has no reverse of the same weight.
        weighted: Whether edges have weights.
        isolated_nodes, self_loops, duplicate_edges: Their numbers in the graph as it is, after the
            import (``imported`` has what that removed).
        components, largest_component: Connected parts, and the nodes of the largest.
        degree: Smallest, mean, median and largest number of neighbours.
        degree_histogram: Nodes by number of neighbours, in steps of powers of two.
        features: Features of a node.
        columns: Name, kind and number of features of the columns they were made of.
        labels: one a node, several a node, or none.
        classes: Labelled nodes of each class, or nodes that have each label.
        labelled_nodes: Nodes of a known class; with several labels, nodes in a split.
        splits: Nodes in each split.
        homophily: Share of the edges between labelled nodes that join nodes of one class, without
            self-loops. ``None`` if there is no such edge, or nodes can have several labels.
        homophily_by_chance: What random edges between the same edge ends would give.
        suggested_k: See :func:`lgcn.graph.statistics.suggest_k`.
        imported: Counts of the import: rows, duplicates, self-loops and the like.
        notes: What the import and the encoder have to say.
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
        """The report as JSON can hold it."""
        return asdict(self)


def check_graph(graph: Graph, imported: Any = None) -> Report:
    """Counts what a user should know of a graph, and says what looks wrong.

    Args:
        graph: Any graph.
        imported: What :func:`lgcn.from_tables` returned: its ``notes`` and ``counts``
            become part of the report. (default: none)
    """
    graph = graph.to("cpu")
    check_range(graph.rowptr, graph.col, graph.num_nodes)  # again only where they changed
    degree = _degree(graph)
    homophily, chance = _homophily(graph)
    encoder = graph.encoder
    if imported is not None:
        notes = list(imported.notes)  # with those of the encoder
    else:
        notes = [] if encoder is None else list(encoder.notes)
    labels = "one a node"
    if graph.y is None:
        labels = "none"
    elif graph.multi_label:
        labels = "several a node"
    report = Report(
        name=graph.name,
        nodes=graph.num_nodes,
        graphs=graph.num_graphs,
        weighted=graph.edge_weight is not None,
        **_edges(graph),
        degree={
            "smallest": int(degree.min()) if len(degree) else 0,
            "mean": round(float(degree.mean()), 2) if len(degree) else 0.0,
            "median": float(np.median(degree)) if len(degree) else 0.0,
            "largest": int(degree.max()) if len(degree) else 0,
        },
        degree_histogram=_histogram(degree),
        features=graph.num_features,
        columns=[] if encoder is None else [column._asdict() for column in encoder.columns],
        labels=labels,
        classes=_classes(graph),
        labelled_nodes=_labelled(graph),
        splits={
            split: int(mask.sum()) for split in SPLITS if (mask := graph.mask(split)) is not None
        },
        homophily=homophily,
        homophily_by_chance=chance,
        suggested_k=suggest_k(graph),
        imported={} if imported is None else dict(imported.counts),
        notes=notes,
    )
    return replace(report, warnings=_warnings(graph, report, degree))


def _degree(graph: Graph) -> Any:
    return graph.rowptr.diff().cpu().numpy()


def _histogram(degree: Any) -> list[dict[str, int]]:
    """Nodes of degree 0, 1, 2 to 3, 4 to 7 and so on."""
    counts = np.bincount(np.frexp(degree.astype(np.float64))[1])  # the number of binary digits
    return [
        {"from": 2**digits // 2, "to": 2**digits - 1, "nodes": number}
        for digits, number in enumerate(counts.tolist())
    ]


def _edges(graph: Graph) -> dict[str, Any]:
    """Counts that need the adjacency as a whole, in linear time."""
    from scipy.sparse import csr_matrix

    n = graph.num_nodes
    values = np.ones(graph.num_edges, dtype=np.int8)
    if graph.edge_weight is not None:
        weight = graph.edge_weight.detach()
        values = (weight if weight.dtype == torch.float64 else weight.float()).numpy()
    arrays = (values, graph.col.numpy(), graph.rowptr.numpy())
    # Two transpositions sort the rows; both steps are counting sorts, and stable.
    reverse = csr_matrix(arrays, shape=(n, n)).T.tocsr()
    forward = reverse.T.tocsr()
    row = np.repeat(np.arange(n, dtype=forward.indices.dtype), np.diff(forward.indptr))
    loops = forward.indices == row
    again = np.zeros_like(loops)
    again[1:] = (forward.indices[1:] == forward.indices[:-1]) & (row[1:] == row[:-1])
    symmetric = all(
        np.array_equal(getattr(forward, part), getattr(reverse, part))
        for part in ("indptr", "indices")
    ) and np.array_equal(*(_weights_in_order(m, row, again) for m in (forward, reverse)))
    components = _component_sizes(_array(graph.rowptr), _array(graph.col))
    touched = np.diff(forward.indptr) + np.diff(reverse.indptr) > 0

    def edges(entry: Any) -> int:
        """An undirected edge is two entries, but a self-loop is one."""
        of_loops = int((entry & loops).sum())
        others = int(entry.sum()) - of_loops
        return (others // 2 if symmetric else others) + of_loops

    return {
        "edges": edges(np.ones_like(loops)),
        "directed": not symmetric,
        "isolated_nodes": int(n - touched.sum()),
        "self_loops": int(loops.sum()),
        "duplicate_edges": edges(again),
        "components": len(components),
        "largest_component": int(components.max()) if n else 0,
    }


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _weights_in_order(matrix: Any, row: Any, again: Any) -> Any:
    """The weights of a matrix with sorted rows, those of the same edge from the smallest on."""
    if not again.any():
        return matrix.data
    return matrix.data[np.lexsort((matrix.data, matrix.indices, row))]


@jit
def _component_sizes(rowptr: Any, col: Any) -> Any:
    """The nodes of each connected part, whichever way the edges point and how often they come.

    Every node points to itself or to a smaller one of its part, so that following these ends.
    """
    num_nodes = rowptr.shape[0] - 1
    parent = np.arange(num_nodes)
    for i in range(num_nodes):
        for e in range(rowptr[i], rowptr[i + 1]):
            one, other = _root(parent, i), _root(parent, col[e])
            parent[max(one, other)] = min(one, other)
    sizes = np.zeros(num_nodes, np.int64)
    for i in range(num_nodes):
        sizes[_root(parent, i)] += 1
    return sizes[sizes > 0]


@jit
def _root(parent: Any, node: Any) -> Any:
    while parent[node] != node:
        parent[node] = parent[parent[node]]  # half the way for whoever comes next
        node = parent[node]
    return node


def _classes(graph: Graph, split: str | None = None) -> dict[str, int]:
    """Nodes of each class or label, in all of the graph or in one split."""
    if graph.y is None:
        return {}
    mask = None if split is None else graph.mask(split)
    y = graph.y if mask is None else graph.y[mask]
    if graph.multi_label:
        counts = y.count_nonzero(dim=0)
    else:
        counts = y[y >= 0].long().bincount(minlength=graph.num_classes)
    names = graph.label_names or [str(number) for number in range(len(counts))]
    return dict(zip(names, counts.tolist(), strict=False))


def _labelled(graph: Graph) -> int:
    if graph.y is None:
        return 0
    if not graph.multi_label:
        return int((graph.y >= 0).sum())
    masks = [mask for split in SPLITS if (mask := graph.mask(split)) is not None]
    return int(torch.stack(masks).any(dim=0).sum()) if masks else graph.num_nodes


def _homophily(graph: Graph) -> tuple[float | None, float | None]:
    if graph.y is None or graph.multi_label or not graph.num_edges:
        return None, None
    number = int(graph.y.max()) + 1
    small = np.int16 if number < 2**15 else np.int32  # there are two for each edge below
    y = graph.y.numpy().astype(small)
    degree, col = _degree(graph), graph.col.numpy()
    target, source = np.repeat(y, degree), y[col]
    counted = (target >= 0) & (source >= 0)
    counted &= col != np.repeat(np.arange(len(y), dtype=col.dtype), degree)
    target, source = target[counted], source[counted]
    if not len(target):
        return None, None
    shares = [np.bincount(end, minlength=number) / len(target) for end in (target, source)]
    return float((target == source).mean()), float(shares[0] @ shares[1])


def _warnings(graph: Graph, report: Report, degree: Any) -> list[str]:
    """What looks wrong, the worst first."""
    if report.nodes == 0:
        return ["the graph has no node"]
    found = []
    if graph.num_edges == 0:
        found.append(
            "there is no edge: every node is classified by its own features alone. Do the ids of "
            "both tables match?"
        )
    if graph.x is None or report.features == 0:
        found.append("the nodes have no features; a network needs some. Add columns to their table")
    elif not _finite(graph.x):
        found.append("some features are NaN or infinite, which training cannot work with")
    if not report.labelled_nodes:
        found.append(
            "no node has a label, so that nothing can be learned. Name the column of the labels in "
            "label_column"
        )
    elif report.labels == "one a node":
        found += _class_warnings(report.classes)
    found += _split_warnings(graph, report)
    if graph.num_edges:
        found += _edge_warnings(graph, report, degree)
    return found


def _class_warnings(counts: dict[str, int]) -> list[str]:
    found = []
    present = {name: number for name, number in counts.items() if number}
    if len(present) == 1:
        found.append("all labelled nodes are of one class; label nodes of another, too")
    few = [name for name, number in counts.items() if number < 2]
    if few:
        found.append(
            f"fewer than two labelled nodes in {_number(len(few), 'class')} ({_listed(few)}), "
            "which cannot be both learned and tested; label more, or join with another class"
        )
    largest, smallest = max(present.values()), min(present.values())
    if len(present) > 1 and largest > 20 * smallest:
        found.append(
            f"the classes are very unequal, from {smallest} to {largest} nodes: read scores of "
            "each class, not accuracy alone"
        )
    if present.get("-1"):
        found.append(
            f"class '-1' has {_number(present['-1'], 'node')}; where that means no label, leave "
            "the cells empty"
        )
    return found


def _split_warnings(graph: Graph, report: Report) -> list[str]:
    found = [
        f"no node is in the {split} split; training needs some"
        for split in ("train", "val")
        if report.splits.get(split) == 0
    ]
    if report.splits.get("train"):
        training = _classes(graph, "train")
        absent = [name for name, n in report.classes.items() if n and not training[name]]
        if absent:
            noun = "class" if report.labels == "one a node" else "label"
            found.append(
                f"no training node has {_number(len(absent), noun)} that others have "
                f"({_listed(absent)}), which cannot be learned; move some to the train split"
            )
    return found


def _edge_warnings(graph: Graph, report: Report, degree: Any) -> list[str]:
    found = []
    share = report.isolated_nodes / report.nodes
    if share > 0.2:
        found.append(
            f"{share:.0%} of the nodes have no edge ({report.isolated_nodes}); do the ids of both "
            "tables match?"
        )
    hub = int(degree.argmax())
    if len(degree) > 100 and degree[hub] > max(0.1 * len(degree), 20 * degree.mean()):
        name = str(hub if graph.node_ids is None else graph.node_ids[hub])
        found.append(
            f"node {name!r} is joined with {degree[hub]} of the {report.nodes} nodes; a stand-in "
            "for missing values among the edges?"
        )
    if report.duplicate_edges:
        found.append(
            f"{_number(report.duplicate_edges, 'duplicate edge')}: repeats of another edge, each "
            "of which counts as one more neighbour; remove them"
        )
    homophily, chance = report.homophily, report.homophily_by_chance
    if homophily is not None and chance is not None and homophily <= chance + 0.02:
        found.append(
            f"edges join nodes of one class no more often ({homophily:.2f}) than chance would "
            f"({chance:.2f}): they may tell little of the classes; compare with a model that does "
            "not use them"
        )
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def _number(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def _finite(x: Tensor) -> bool:
    values = x.values() if x.layout == torch.sparse_csr else x.flatten()
    step = 2**22  # a matrix of booleans for all of x would be a quarter of its size
    return all(bool(values[i : i + step].isfinite().all()) for i in range(0, values.numel(), step))
