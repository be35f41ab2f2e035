"""Scores of groups of nodes: by degree, and by how much their neighbours agree; and of graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lgcn.report.names import plain_number
from lgcn.report.node_results import Array, NodeResults

Bin = dict[str, Any]
MAX_DEGREE_BINS = 14
AGREEMENT_BINS = 5
RANGE_BINS = 5
# The score of each task, and whether it is a share.
GROUP_SCORE = {
    "classification": "accuracy",
    "multilabel": "micro_f1",
    "regression": "mae",
}


def degree_bins(results: NodeResults, degree: Array) -> list[Bin]:
    """The score of the main split's nodes by degree: 0, 1, 2, 3 to 4, 5 to 8, and so on.

    Args:
        results: What is known of the nodes.
        degree: The number of neighbours of every node.
    """
    inside = np.flatnonzero(results.scored)
    if not len(inside):
        return []
    of_node = degree[inside]
    place = np.where(of_node < 3, of_node, np.ceil(np.log2(np.maximum(of_node, 1))) + 1)
    place = np.minimum(place.astype(np.int64), MAX_DEGREE_BINS - 1)
    rows = []
    for number in np.unique(place):
        members = inside[place == number]
        low, high = int(degree[members].min()), int(degree[members].max())
        if number >= 3:
            low, high = 2 ** (int(number) - 2) + 1, 2 ** (int(number) - 1)
        if number == MAX_DEGREE_BINS - 1:
            name = f"{low}+"
        else:
            name = str(low) if low == high else f"{low} to {high}"
        rows.append({"bin": name, **group_score(results, members)})
    return rows


def agreement_bins(results: NodeResults, agreement: Array) -> list[Bin]:
    """The score of the main split's nodes by the agreement of their neighbours.

    Shares have five bins of equal width, distances (regression) five of equal size. Nodes without
    labelled neighbours have a bin of their own.

    Args:
        results: What is known of the nodes.
        agreement: See `lgcn.report.neighbour_agreement`.
    """
    inside = results.scored
    values = agreement[inside]
    values = values[np.isfinite(values)]
    rows: list[Bin] = []
    if len(values):
        if results.task == "regression":
            edges = np.unique(np.quantile(values, np.linspace(0, 1, AGREEMENT_BINS + 1)))
        else:
            edges = np.linspace(0, 1, AGREEMENT_BINS + 1)
        if len(edges) == 1:
            edges = np.append(edges, edges)
        place = np.clip(np.searchsorted(edges, agreement, side="right") - 1, 0, len(edges) - 2)
        for number in range(len(edges) - 1):
            members = np.flatnonzero(inside & np.isfinite(agreement) & (place == number))
            if len(members):
                name = _range_name(results.task, edges[number], edges[number + 1])
                rows.append({"bin": name, **group_score(results, members)})
    alone = np.flatnonzero(inside & ~np.isfinite(agreement))
    if len(alone) and rows:
        rows.append({"bin": "unknown", **group_score(results, alone)})
    return rows


def range_bins(results: NodeResults, values: Array, show: Callable[[float], str]) -> list[Bin]:
    """The score of the main split in groups of about equal size, in rising order of a value.

    Equal values are always in one group.

    Args:
        results: What is known of the nodes or graphs.
        values: The value of each.
        show: Gives a value as text.
    """
    inside = np.flatnonzero(results.scored)
    if not len(inside):
        return []
    shares = np.linspace(0, 1, RANGE_BINS + 1)[1:-1]
    # Each limit is a value that occurs: the first one of the next group.
    limits = np.unique(np.quantile(values[inside], shares, method="higher"))
    place = np.searchsorted(limits, values, side="right")
    rows = []
    for number in np.unique(place[inside]):
        members = inside[place[inside] == number]
        low, high = (show(float(end)) for end in np.sort(values[members])[[0, -1]])
        name = low if low == high else f"{low} to {high}"
        rows.append({"bin": name, **group_score(results, members)})
    return rows


def _range_name(task: str, low: float, high: float) -> str:
    if task == "regression":
        return f"{plain_number(low, 3)} to {plain_number(high, 3)}"
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def group_score(results: NodeResults, members: Array) -> Bin:
    """The number of nodes, their score, and a range of 95 % around it.

    Args:
        results: What is known of the nodes.
        members: The numbers of the nodes, which are labelled; at least one.
    """
    count, wrong = len(members), results.wrong[members].astype(np.float64)
    if results.task == "regression":
        score = float(np.abs(wrong).mean())
        spread = 1.96 * float(np.abs(wrong).std()) / math.sqrt(count)
        return {
            "nodes": count,
            "score": score,
            "low": max(0.0, score - spread),
            "high": score + spread,
        }
    if results.task == "classification":
        score = float(1 - wrong.mean())
        low, high = wilson(score, count)
        return {"nodes": count, "score": score, "low": low, "high": high}
    assert results.hits is not None
    assert results.truths is not None
    marked = int(results.predicted[members].sum() + results.truths[members].sum())
    score = 2 * int(results.hits[members].sum()) / marked if marked else 1.0
    return {"nodes": count, "score": score, "low": None, "high": None}


def wilson(share: float, count: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share that was observed on so many nodes."""
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half /= 1 + z * z / count
    return max(0.0, centre - half), min(1.0, centre + half)


def calibration_bins(results: NodeResults) -> list[Bin]:
    """The bins of the calibration that have predictions: confidence, share right, number."""
    found = results.calibration
    if found is None:
        return []
    size = len(found.count)
    rows = []
    for place in np.flatnonzero(found.count):
        count = int(found.count[place])
        right = float(found.right[place] / count)
        low, high = wilson(right, count)
        rows.append(
            {
                "bin": f"{100 * place / size:.0f} to {100 * (place + 1) / size:.0f} %",
                "confidence": float(found.confidence[place] / count),
                "accuracy": right,
                "low": low,
                "high": high,
                "predictions": count,
            }
        )
    return rows


def residual_bins(results: NodeResults, size: int = 30) -> list[Bin]:
    """A histogram of the errors of a regression on the main split; 1 % at each end is cut off."""
    errors = results.wrong[results.scored]
    errors = errors[np.isfinite(errors)]
    if not len(errors):
        return []
    low, high = np.quantile(errors, [0.005, 0.995])
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(errors, low, high), bins=size, range=(low, high))
    return [
        {"from": float(a), "to": float(b), "nodes": int(n)}
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
