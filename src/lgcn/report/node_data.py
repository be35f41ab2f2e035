"""The sampled nodes and their neighbours, or whole graphs, as JSON, one list per property."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.report.names import plain_number, shown_ids, shown_name

if TYPE_CHECKING:
    from lgcn.report.facts import Facts
    from lgcn.report.neighbourhoods import Neighbourhoods
    from lgcn.report.node_results import Array

# Of one node, where it can have several. One more is kept, which says that there are more.
MAX_LABELS = 8
SHARE_UNITS = 1000  # shares are whole numbers of so many parts


def node_data(facts: Facts, scores: Any) -> dict[str, Any]:
    """What the page's scripts need of the nodes, or of the whole graphs.

    Sampled nodes come first, then neighbours of theirs that are not in the sample, which have an id
    and labels only.

    Args:
        facts: The facts of the report.
        scores: The scores of all nodes, for the labels of a multi-label graph.
    """
    sampled, near = facts.sample.nodes, facts.near
    every = sampled
    if near is not None:
        every = np.concatenate([sampled, np.setdiff1d(near.neighbour, sampled)])
    order = np.argsort(every)  # ids are read in rising order
    ids: list[str] = [""] * len(every)
    for place, text in zip(order.tolist(), shown_ids(facts.node_ids, every[order]), strict=True):
        ids[place] = text
    results = facts.results
    true, predicted, names, ranks = _labels(facts, every, scores)
    maps = [] if isinstance(facts.maps, str) else facts.maps
    found = {
        "task": facts.task,
        "labelsShown": MAX_LABELS,
        "classes": names,
        "ranks": ranks,
        "total": facts.sample.total,
        "sampled": len(sampled),
        "nodes": {
            "id": ids,
            "true": true,
            "predicted": predicted,
            "confidence": _numbers(results.confidence[every], 3),
            "wrong": _numbers(results.wrong[every], 6 if facts.task == "regression" else 0),
            "split": results.split[sampled].tolist(),
        },
        "maps": [
            {
                "about": found.about,
                "x": found.points[:, 0].tolist(),
                "y": found.points[:, 1].tolist(),
            }
            for found in maps
        ],
    }
    if facts.drawings is not None:
        found["pictures"] = facts.drawings.data()
    if near is not None:
        found |= _neighbours(facts, near, order[np.searchsorted(every[order], near.neighbour)])
    return found


def _neighbours(facts: Facts, near: Neighbourhoods, position: Array) -> dict[str, Any]:
    """The neighbours of the sampled nodes, by their places on the page."""
    return {
        "near": {
            "ptr": near.ptr.tolist(),
            "node": position.tolist(),
            "shares": [_shares(part) for part in near.shares],
            "empty": [_shares(part) for part in near.empty],
            "layers": near.layers,
            "degree": near.degree.tolist(),
        },
        "selection": facts.selection,
        "explain": f"lgcn explain {shlex.quote(str(facts.run.folder))}" if facts.is_own else None,
    }


def _shares(values: Array) -> list[int]:
    found: list[int] = np.rint(values * SHARE_UNITS).astype(np.int64).tolist()
    return found


def label_text(value: Any, task: str, names: Sequence[str]) -> str:
    """A true or predicted label of a node as text.

    Args:
        value: A class, several labels, or a number, as in `node_data`.
        task: What is predicted.
        names: The names of the classes.
    """
    if value is None or value == -1:
        return "unknown"
    if task == "regression":
        return plain_number(value, 5)
    if isinstance(value, list):
        more = ", …" if len(value) > MAX_LABELS else ""
        return ", ".join(names[part] for part in value[:MAX_LABELS]) + more or "no label"
    return str(names[value])


def _numbers(values: Array, digits: int) -> list[Any]:
    """Numbers with so many digits, null where there is none."""

    def short(value: float) -> Any:
        if not math.isfinite(value):
            return None
        return int(value) if digits == 0 else float(f"{value:.{digits}g}")

    return [short(value) for value in values.tolist()]


def _labels(
    facts: Facts, nodes: Array, scores: Any
) -> tuple[list[Any], list[Any], list[str], list[int]]:
    """True and predicted labels of nodes, the names of the classes they use, and their ranks.

    The most frequent class has rank 0: the colours of a page go to the largest classes.
    """
    import torch

    graph, results = facts.graph, facts.results
    chosen = torch.from_numpy(nodes)
    known = results.known[nodes]
    if facts.task == "regression":
        assert graph.y is None or graph.y.is_floating_point()
        y = np.full(len(nodes), np.nan) if graph.y is None else graph.y[chosen].double().numpy()
        return _numbers(y, 6), _numbers(results.predicted[nodes], 6), [], []
    if facts.task == "multilabel":
        marked = scores[chosen] > 0
        predicted = [_places(row) for row in marked]
        true: list[Any] = [None] * len(nodes)
        if graph.y is not None:
            rows = graph.y[chosen] > 0.5
            true = [_places(row) if ok else None for row, ok in zip(rows, known, strict=True)]
    else:
        y = np.full(len(nodes), -1) if graph.y is None else graph.y[chosen].numpy()
        true = np.where(known, y, -1).tolist()
        predicted = results.predicted[nodes].tolist()
    return _renumbered(true, predicted, facts.run.class_names)


def _places(row: Any) -> list[int]:
    """The first marked labels of a node."""
    found: list[int] = row.nonzero().reshape(-1)[: MAX_LABELS + 1].tolist()
    return found


def _renumbered(
    true: list[Any], predicted: list[Any], names: tuple[str, ...]
) -> tuple[list[Any], list[Any], list[str], list[int]]:
    """Only the classes that occur have a number, so that a million others cost nothing."""
    counts: dict[int, int] = {}
    for value in (*true, *predicted):
        for place in value if isinstance(value, list) else [value]:
            if place is not None and place >= 0:
                counts[place] = counts.get(place, 0) + 1
    used = sorted(counts)
    number = {place: new for new, place in enumerate(used)}

    def new(value: Any) -> Any:
        if isinstance(value, list):
            return [number[place] for place in value]
        return value if value is None or value < 0 else number[value]

    by_count = sorted(used, key=lambda place: (-counts[place], place))
    rank = {place: r for r, place in enumerate(by_count)}
    return (
        [new(value) for value in true],
        [new(value) for value in predicted],
        [shown_name(names[place]) for place in used],
        [rank[place] for place in used],
    )
