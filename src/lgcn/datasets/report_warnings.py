"""What looks wrong with a graph, in sentences for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lgcn.datasets.graph_counts import class_counts
from lgcn.graph import Graph

if TYPE_CHECKING:
    from lgcn.datasets.graph_report import GraphReport


def warnings_of(graph: Graph, report: GraphReport, degree: Any) -> list[str]:
    """What looks wrong, the worst first."""
    if report.nodes == 0:
        return ["the graph has no nodes"]
    found = []
    if graph.num_edges == 0:
        found.append(
            "the graph has no edges: every node is classified by its own features alone. Do the "
            "ids of the two tables match?"
        )
    if graph.x is None or report.features == 0:
        found.append(
            "the nodes have no features; a network needs some. Add columns to the node table"
        )
    elif not _finite(graph.x):
        found.append("some features are NaN or infinite, which training cannot work with")
    if not report.labelled_nodes:
        found.append("no node has a label, so nothing can be learned. Name a label_column")
    elif report.labels == "one per node":
        found += _class_warnings(report.classes)
    found += _split_warnings(graph, report)
    if graph.num_edges:
        found += _edge_warnings(graph, report, degree)
    return found


def _class_warnings(counts: dict[str, int]) -> list[str]:
    found = []
    present = {name: number for name, number in counts.items() if number}
    if len(present) == 1:
        found.append("all labelled nodes are of one class; label nodes of another class too")
    few = [name for name, number in counts.items() if number < 2]
    if few:
        found.append(
            f"fewer than two labelled nodes in {_number(len(few), 'class')} ({_listed(few)}), "
            "which cannot be both learned and tested; label more, or merge with another class"
        )
    largest, smallest = max(present.values()), min(present.values())
    if len(present) > 1 and largest > 20 * smallest:
        found.append(
            f"the classes are very unequal, from {smallest} to {largest} nodes: read the "
            "scores per class, not accuracy alone"
        )
    if present.get("-1"):
        found.append(
            f"class '-1' has {_number(present['-1'], 'node')}; if that means no label, leave "
            "the cells empty"
        )
    return found


def _split_warnings(graph: Graph, report: GraphReport) -> list[str]:
    found = [
        f"no node is in the {split} split; training needs some"
        for split in ("train", "val")
        if report.splits.get(split) == 0
    ]
    if report.splits.get("train"):
        training = class_counts(graph, "train")
        absent = [name for name, n in report.classes.items() if n and not training[name]]
        if absent:
            noun = "class" if report.labels == "one per node" else "label"
            found.append(
                f"no training node has {_number(len(absent), noun)} that others have "
                f"({_listed(absent)}), which cannot be learned; move some to the train split"
            )
    return found


def _edge_warnings(graph: Graph, report: GraphReport, degree: Any) -> list[str]:
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
            f"node {name!r} is joined with {degree[hub]} of the {report.nodes} nodes; a "
            "placeholder for missing values among the edges?"
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
            f"({chance:.2f}): they may say little about the classes; compare with a model that "
            "does not use them"
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
