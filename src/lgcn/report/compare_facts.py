"""Collects what a comparison of runs shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import LGCNError, UsageError, one_line
from lgcn.inference.trained_run import ScoredGraph, TrainedRun
from lgcn.nn.layerwise import read_blocks
from lgcn.report.names import shown_name
from lgcn.report.node_results import SPLITS, Array, NodeResults, node_results
from lgcn.training.run_metrics import main_split
from lgcn.training.scoring import Scoring
from lgcn.training.split_reports import split_reports

if TYPE_CHECKING:
    from lgcn.utils.choices import Unit
    from lgcn.utils.progress import OnProgress

LISTED = 25  # nodes on which runs disagree
ID_BLOCK = 2**18


@dataclass(frozen=True)
class ComparedRun:
    """A run of a comparison.

    Args:
        name: What the page calls it.
        run: The run.
        metric: The metric that its training chose by.
        reports: The report of each split, see `lgcn.training.score_report`.
        scored: Its graph with all scores; `None` if the graph could not be read.
        results: What is known of each node; `None` without the graph.
        problem: Why the graph could not be read. (default: it was)
    """

    name: str
    run: TrainedRun
    metric: str
    reports: Mapping[str, Mapping[str, Any]]
    scored: ScoredGraph | None
    results: NodeResults | None
    problem: str | None = None

    @property
    def main(self) -> str | None:
        return main_split(self.reports)


@dataclass(frozen=True)
class Difference:
    """A run beside the first one, on the same labelled nodes.

    Args:
        only_first, only_other: How many nodes only one of them gets right.
        error: Standard error of the difference in accuracy.
    """

    only_first: int
    only_other: int
    error: float


@dataclass(frozen=True)
class Comparison:
    """What a comparison shows.

    Args:
        runs: The runs, in the order in which they were given.
        same_graph: Whether all have the same graph: nodes, ids and edges.
        same_split: Whether all have the same nodes in the main split.
        differences: Per run, how it differs from the first; `None` for the first one, and where
            the nodes are not the same.
        differing: Numbers of nodes on which predictions differ most, the first ones.
        num_differing: How many nodes there are on which they differ.
        pairs: Share of nodes on which each pair of runs agrees, [runs, runs]; empty for a
            regression.
    """

    runs: tuple[ComparedRun, ...]
    same_graph: bool
    same_split: bool
    differences: tuple[Difference | None, ...]
    differing: Array
    num_differing: int
    pairs: Array

    @property
    def task(self) -> str:
        return self.runs[0].run.spec.task

    @property
    def unit(self) -> Unit:
        """What is predicted."""
        return self.runs[0].run.spec.unit

    @property
    def units(self) -> str:
        """What is predicted, as the page calls several of them."""
        return f"{self.unit}s"

    @property
    def whole(self) -> str:
        """What they are parts of."""
        return "graph" if self.unit == "node" else "set"


def compare(
    opened: Sequence[TrainedRun],
    *,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Scores the graphs of runs, and compares the runs with the first one.

    Args:
        opened: Two to eight runs.
        memory, on_progress: See `lgcn.inference.trained_run.TrainedRun.predict`.
    """
    for kinds in ({f"{run.spec.unit}s" for run in opened}, {run.spec.task for run in opened}):
        if len(kinds) > 1:
            raise UsageError(
                f"the runs must predict the same kind of thing, got {', '.join(sorted(kinds))}"
            )
    names = _names([run.folder for run in opened])
    runs = [
        _compared(name, run, memory, on_progress) for name, run in zip(names, opened, strict=True)
    ]
    same_graph = all(_same_graph(runs[0].scored, other.scored) for other in runs[1:])
    same_split = same_graph and all(_same_split(runs[0], other) for other in runs[1:])
    same_classes = len({run.run.class_names for run in runs}) == 1
    differences: list[Difference | None] = [None] * len(runs)
    if same_split and runs[0].run.spec.task == "classification":
        differences[1:] = [_difference(runs[0], other) for other in runs[1:]]
    empty = np.zeros(0, dtype=np.int64)
    differing, number, pairs = empty, 0, np.zeros((0, 0))
    if same_graph and same_classes:
        differing, number, pairs = _disagreements(runs)
    return Comparison(
        tuple(runs), same_graph, same_split, tuple(differences), differing, number, pairs
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Short names; whole paths if some folders have the same name."""
    short = [folder.resolve().name for folder in folders]
    if len(set(short)) < len(short):
        short = [str(folder) for folder in folders]
    names = [shown_name(text) for text in short]
    if len(set(names)) < len(names):  # a folder given twice
        names = [f"{text} ({place})" for place, text in enumerate(names, 1)]
    return names


def _compared(
    name: str, run: TrainedRun, memory: str | int | None, on_progress: OnProgress | None
) -> ComparedRun:
    scoring = replace(
        Scoring.of(run.settings, run.spec), threshold=run.threshold, temperature=run.temperature
    )
    try:
        scored = run.scored_graph(memory=memory, on_progress=on_progress)
    except (LGCNError, OSError) as error:
        stored = run.metrics()
        if stored is None:
            raise
        # How to give other data is no advice here: a comparison takes the data of the runs.
        problem = one_line(error).partition("; if it has moved,")[0]
        return ComparedRun(name, run, scoring.metric, stored["splits"], None, None, problem)
    import torch

    results = node_results(run, scored)
    masks: dict[str, Any] = {
        f"{split}_mask": torch.from_numpy(results.labelled(place))
        for place, split in enumerate(SPLITS)
    }
    graph = replace(scored.graph, **masks)
    reports = split_reports([(graph, scored.scores)], ("val", "test"), scoring, run.interval)
    return ComparedRun(name, run, scoring.metric, reports, scored, results)


def _same_graph(first: ScoredGraph | None, other: ScoredGraph | None) -> bool:
    """Whether two graphs, or sets of them, have the same nodes and edges. Features may differ."""
    if first is None or other is None or first.graph.num_nodes != other.graph.num_nodes:
        return False
    a, b = first.graph, other.graph
    if first.graphs is not None and other.graphs is not None:
        a, b = first.graphs.graph, other.graphs.graph
        if not bool((first.graphs.sizes == other.graphs.sizes).all()):
            return False
    if (
        a.num_nodes != b.num_nodes
        or a.num_edges != b.num_edges
        or not bool((a.rowptr == b.rowptr).all())
    ):
        return False
    for start in range(0, a.num_edges, ID_BLOCK):
        if not bool((a.col[start : start + ID_BLOCK] == b.col[start : start + ID_BLOCK]).all()):
            return False
    if (first.node_ids is None) != (other.node_ids is None):
        return False
    if first.node_ids is None or other.node_ids is None:
        return True
    count = first.graph.num_nodes
    for start in range(0, count, ID_BLOCK):
        stop = min(count, start + ID_BLOCK)
        ours, theirs = first.node_ids(start, stop), other.node_ids(start, stop)
        if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
            return False
    return True


def _same_split(first: ComparedRun, other: ComparedRun) -> bool:
    assert first.results is not None
    assert other.results is not None
    return np.array_equal(first.results.scored, other.results.scored)


def _difference(first: ComparedRun, other: ComparedRun) -> Difference:
    """The paired comparison: only nodes on which one of the two is right say something."""
    assert first.results is not None
    assert other.results is not None
    inside = first.results.scored
    ours, theirs = first.results.wrong[inside] == 0, other.results.wrong[inside] == 0
    only_first, only_other = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    count = max(1, int(inside.sum()))
    spread = only_first + only_other - (only_first - only_other) ** 2 / count
    return Difference(only_first, only_other, math.sqrt(max(0.0, spread)) / count)


def _disagreements(runs: Sequence[ComparedRun]) -> tuple[Array, int, Array]:
    """The nodes on which runs differ most, how many differ at all, and how often pairs agree."""
    results = [run.results for run in runs if run.results is not None]
    first = results[0]
    size, count = len(first.known), len(results)
    pairs = np.ones((count, count))
    if first.task == "regression":
        values = np.stack([one.predicted for one in results])
        spread = values.max(axis=0) - values.min(axis=0)
        pairs = np.zeros((0, 0))
    else:
        spread = np.zeros(size)
        for a in range(count):
            for b in range(a):
                differs = _differs(runs[a], runs[b])
                spread += differs
                pairs[a, b] = pairs[b, a] = 1 - (differs > 0).mean()
    spread = np.where(np.isfinite(spread), spread, 0.0)
    differing = np.flatnonzero(spread > 0)
    # Labelled nodes of the main split come first: it can be seen who is right.
    sure = np.zeros(size) if first.task == "regression" else sum(one.confidence for one in results)
    key = (differing, -np.asarray(sure)[differing], -spread[differing], ~first.scored[differing])
    order = np.lexsort(key)[:LISTED]
    return differing[order], len(differing), pairs


def _differs(first: ComparedRun, other: ComparedRun) -> Array:
    """Per node, whether classes differ, or how many labels do."""
    assert first.results is not None
    assert other.results is not None
    if first.results.task == "classification":
        return np.asarray(first.results.predicted != other.results.predicted, dtype=np.float64)
    assert first.scored is not None
    assert other.scored is not None
    found = np.zeros(len(first.results.known))
    for start, stop, rows in read_blocks(first.scored.scores):
        differs = (rows > 0) != (other.scored.scores[start:stop] > 0)
        found[start:stop] = differs.sum(dim=1).cpu().numpy()
    return found
