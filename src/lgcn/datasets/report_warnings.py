"""What looks wrong with a graph, in sentences for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lgcn.datasets.column_warnings import column_warnings
from lgcn.datasets.graph_counts import class_counts
from lgcn.graph import Graph

if TYPE_CHECKING:
    from lgcn.datasets.graph_report import GraphReport


UNEQUAL = 10  # the largest class against the smallest
MANY_NUMBERS = 10  # labels that are this many different numbers may be amounts
FEW_ISOLATED, MANY_ISOLATED = 0.02, 0.2  # shares of nodes without an edge


def training_warnings(graph: Graph, *, classes_count_alike: bool = False) -> list[str]:
    """What looks wrong with a graph that is about to be trained on, the worst first.

    The warnings of `warnings_of` that cost little, also for a graph in files.

    Args:
        graph: A graph on the CPU with labels and splits.
        classes_count_alike: Whether the user has chosen class weights or a metric by which small
            classes count as much as large ones. (default: `False`)
    """
    found = column_warnings(graph)
    counts = class_counts(graph)
    if _has_classes(graph):
        found += _class_warnings(counts, classes_count_alike)
        found += _validation_warnings(counts, class_counts(graph, "val"))
    isolated = int((graph.rowptr.diff() == 0).sum())
    return found + _isolated_warning(isolated, graph.num_nodes, graph.num_edges)


def _has_classes(graph: Graph) -> bool:
    return graph.y is not None and graph.y.dim() == 1 and not graph.y.is_floating_point()


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
            "the nodes have no features: training makes some from the edges, such as degrees and "
            "positions. Columns of the node table would say more"
            if graph.num_edges
            else "the nodes have no features, and there are no edges to make some from. Add "
            "columns to the node table"
        )
    elif not _finite(graph.x):
        found.append("some features are NaN or infinite, which training cannot work with")
    if not report.labelled_nodes:
        found.append("no node has a label, so nothing can be learned. Name a label_column")
    elif report.labels == "one per node":
        found += _class_warnings(report.classes)
        if report.splits.get("val"):
            found += _validation_warnings(report.classes, class_counts(graph, "val"))
    found += _split_warnings(graph, report)
    found += column_warnings(graph)
    if graph.num_edges:
        found += _edge_warnings(graph, report, degree)
    return found


def _class_warnings(counts: dict[str, int], count_alike: bool = False) -> list[str]:
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
    if len(present) > 1 and largest > UNEQUAL * smallest and not count_alike:
        found.append(
            f"the classes are very unequal, from {smallest:,} to {largest:,} nodes: accuracy hides "
            "a small class that is never found. Read the scores per class; metric=macro_f1 or "
            "class_weight=balanced give small classes more weight"
        )
    if len(present) >= MANY_NUMBERS and _are_amounts(list(present)):
        found.append(
            f"the labels are {len(present)} different numbers and are read as classes. If they are "
            "amounts, predict them with task=regression"
        )
    if present.get("-1"):
        found.append(
            f"class '-1' has {_number(present['-1'], 'node')}; if that means no label, leave "
            "the cells empty"
        )
    return found


def _validation_warnings(counts: dict[str, int], val: dict[str, int]) -> list[str]:
    absent = [name for name, number in counts.items() if number and not val.get(name)]
    if not absent or len(absent) == len(counts):
        return []
    return [
        f"no validation node is of {_number(len(absent), 'class')} ({_listed(absent)}): scores on "
        "validation nodes say nothing about it. Label more nodes, raise val, or put 'val' into the "
        "split column of some"
    ]


def _isolated_warning(isolated: int, nodes: int, edges: int) -> list[str]:
    if not edges or isolated <= FEW_ISOLATED * nodes:
        return []
    what = f"{isolated / nodes:.0%} of the nodes have no edge ({isolated:,})"
    if isolated > MANY_ISOLATED * nodes:
        return [f"{what}; do the ids of both tables match?"]
    return [f"{what}; they are predicted by their own features alone"]


def _are_amounts(names: list[str]) -> bool:
    """Whether labels are numbers, and not the numbers from 0 or 1 on that stand for classes."""
    try:
        numbers = sorted(map(float, names))
    except ValueError:
        return False
    return all(numbers != [first + n for n in range(len(numbers))] for first in (0, 1))


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
    found = _isolated_warning(report.isolated_nodes, report.nodes, graph.num_edges)
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
