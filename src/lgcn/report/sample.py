"""Which nodes a report shows one by one: all of a small graph, a sample of a large one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from lgcn.report.node_results import Array, NodeResults

LISTED = 25  # rows of the tables of uncertain and of wrong nodes
SAMPLE = 3000
MAX_SAMPLE = 10_000
SEED = 0


class Listed(NamedTuple):
    """Node numbers of the tables.

    Args:
        uncertain: Nodes outside the training set with the lowest confidence, lowest first.
        wrong: Wrong nodes of the main split. Classes: the most confident first; several labels:
            those with the most wrong labels; a regression: the largest errors.
    """

    uncertain: Array
    wrong: Array


def listed_nodes(results: NodeResults) -> Listed:
    """Finds the nodes of the tables."""
    none = np.zeros(0, dtype=np.int64)
    uncertain = none
    if results.task != "regression":
        uncertain = _first(np.flatnonzero(results.split != 0), results.confidence)
    inside = np.flatnonzero(results.scored)
    errors = np.abs(results.wrong[inside])
    with np.errstate(invalid="ignore"):
        inside = inside[errors > 0]
    if results.task == "classification":
        return Listed(uncertain, _first(inside, -results.confidence))
    return Listed(uncertain, _first(inside, -np.abs(results.wrong)))


def _first(nodes: Array, key: Any) -> Array:
    """The nodes with the smallest keys, smallest first; equal keys by number."""
    keys = key[nodes]
    if len(nodes) > LISTED:
        cut = np.partition(keys, LISTED - 1)[LISTED - 1]
        near = keys <= cut
        nodes, keys = nodes[near], keys[near]
    order = np.lexsort((nodes, keys))[:LISTED]
    return np.asarray(nodes[order])


class Sample(NamedTuple):
    """The sampled nodes.

    Args:
        nodes: Their numbers, rising.
        total: The number of nodes of the graph.
        scored: How many of them are labelled nodes of the main split.
    """

    nodes: Array
    total: int
    scored: int

    @property
    def complete(self) -> bool:
        return len(self.nodes) == self.total


def sample_nodes(results: NodeResults, listed: Listed, size: int = SAMPLE) -> Sample:
    """Draws the sample. Half of it are labelled nodes of the main split, if there are so many.

    Nodes of the tables are always in it. The same graph gets the same sample.

    Args:
        results: What is known of the nodes.
        listed: The nodes of the tables.
        size: How many nodes to draw.
    """
    total, scored = len(results.known), results.scored
    if total <= size:
        return Sample(np.arange(total), total, int(scored.sum()))
    rng = np.random.default_rng(SEED)
    chosen = np.unique(np.concatenate(listed))
    inside = np.setdiff1d(np.flatnonzero(scored), chosen)
    room = max(0, min(len(inside), size // 2 - int(scored[chosen].sum())))
    chosen = np.union1d(chosen, rng.choice(inside, room, replace=False))
    # More than enough are drawn from all nodes, as some are in the sample already.
    others = np.setdiff1d(rng.choice(total, min(total, 2 * size), replace=False), chosen)
    others = rng.permutation(others)[: max(0, size - len(chosen))]
    nodes = np.union1d(chosen, others)
    return Sample(nodes, total, int(scored[nodes].sum()))
