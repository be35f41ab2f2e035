"""Collects what a report shows about a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from lgcn.errors import LGCNError, one_line
from lgcn.report.bins import Bin, calibration_bins, residual_bins
from lgcn.report.drawings import Drawings, drawings
from lgcn.report.importance import Importance, importance
from lgcn.report.layout import Layout, layouts
from lgcn.report.neighbourhoods import Neighbourhoods, neighbourhoods
from lgcn.report.node_results import SPLITS, Array, NodeResults, node_results
from lgcn.report.sample import SAMPLE, Listed, Sample, listed_nodes, sample_nodes
from lgcn.report.score_groups import ScoreGroups, graph_groups, node_groups
from lgcn.report.selection import selection_shares
from lgcn.training.run_metrics import graph_adds, never_predicted
from lgcn.training.scoring import Scoring
from lgcn.training.split_reports import split_reports

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.graph import Graph, GraphSet
    from lgcn.inference.explanations import RunExplainer
    from lgcn.inference.run_data import NewData
    from lgcn.inference.trained_run import ScoredGraph, TrainedRun
    from lgcn.utils.choices import Unit
    from lgcn.utils.progress import OnProgress

EMBEDDING_MEMORY = "1GB"


@dataclass(frozen=True)
class Facts:
    """What a report shows. Where a part is a string, it is absent, and the string says why.

    Of a model of whole graphs, a node stands for a graph, see `lgcn.graph.GraphSet.targets`.

    Args:
        run: The run.
        graph: Its graph, with features as the model takes them.
        graphs: The whole graphs, if these are predicted.
        node_ids: Gives the ids of a range of nodes; `None` if they have none.
        is_own: Whether it is the graph of the training.
        metric: The metric that was chosen.
        reports: The report of each split with labelled nodes, see `lgcn.training.score_report`.
        baselines: Scores of simple models, see `lgcn.training.simple_models`.
        summary: What the graph adds, in a sentence; `None` if it is not known.
        warnings: What the user should know.
        result: What the training recorded, with the history of its epochs.
        results: What is known of each node.
        groups: The score by degree and the like.
        calibration: Bins of confidence.
        residuals: A histogram of a regression's errors.
        listed: The nodes of the tables.
        sample: The nodes that are shown one by one.
        maps: Their coordinates.
        near: Their neighbours; `None` for whole graphs.
        selection: Why the neighbours come without what the LGCLs selected; `None` if they do not.
        importance: Which columns matter; `None` for whole graphs.
        drawings: The pictures of whole graphs; `None` for nodes.
    """

    run: TrainedRun
    graph: Graph
    graphs: GraphSet | None
    node_ids: Callable[[int, int], Any] | None
    is_own: bool
    metric: str
    reports: Mapping[str, Mapping[str, Any]]
    baselines: Mapping[str, Any] | str
    summary: str | None
    warnings: tuple[str, ...]
    result: Mapping[str, Any]
    results: NodeResults
    groups: list[ScoreGroups]
    calibration: list[Bin]
    residuals: list[Bin]
    listed: Listed
    sample: Sample
    maps: list[Layout] | str
    near: Neighbourhoods | None
    selection: str | None
    importance: Importance | str | None
    drawings: Drawings | None

    @property
    def unit(self) -> Unit:
        """What is predicted."""
        return self.run.spec.unit

    @property
    def units(self) -> str:
        """What is predicted, as the page calls several of them."""
        return f"{self.unit}s"

    @property
    def task(self) -> str:
        return self.results.task

    @property
    def main(self) -> str | None:
        """The split that counts."""
        return self.results.main


def collect(
    run: TrainedRun,
    *,
    sample: int = SAMPLE,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
    **data: Unpack[NewData],
) -> tuple[Facts, Tensor]:
    """The facts of a run on the graph of its training, or on another one; and all scores.

    Args:
        run: The run.
        sample: How many nodes are shown one by one, at most.
        memory, on_progress: See `lgcn.inference.trained_run.TrainedRun.predict`.
        **data: New data, see `lgcn.inference.run_data.NewData`.
    """
    scored = run.scored_graph(memory=memory, on_progress=on_progress, **data)
    results = node_results(run, scored)
    stored = run.metrics() if scored.is_own else None
    scoring = replace(
        Scoring.of(run.settings, run.spec), threshold=run.threshold, temperature=run.temperature
    )
    graph = _with_split(scored, results)
    reports = split_reports([(graph, scored.scores)], SPLITS, scoring, run.interval)
    baselines = _baselines(stored, scored.is_own)
    known = None if isinstance(baselines, str) else baselines
    unit = run.spec.unit
    compared = {"splits": reports, "metric": scoring.metric, "baselines": known, "unit": unit}
    listed = listed_nodes(results)
    chosen = sample_nodes(results, listed, sample)
    tell = on_progress or (lambda *_: None)
    tell("map of the embeddings", 0, 0)
    maps = _maps(run.model(), scored, chosen.nodes, memory, on_progress)
    near, why, columns, pictures = None, None, None, None
    if scored.graphs is None:
        near, why, columns = _of_nodes(run, scored, results, chosen, on_progress)
        groups = node_groups(scored.graph, results)
    else:
        pictures = drawings(scored.graphs, chosen.nodes, listed, run.spec, on_progress)
        groups = graph_groups(scored.graphs, results)
    facts = Facts(
        run=run,
        graph=scored.graph,
        graphs=scored.graphs,
        node_ids=scored.node_ids,
        is_own=scored.is_own,
        metric=scoring.metric,
        reports=reports,
        baselines=baselines,
        summary=graph_adds(compared) if reports else None,
        warnings=_warnings(stored, reports, unit),
        result=run.result(),
        results=results,
        groups=groups,
        calibration=calibration_bins(results),
        residuals=residual_bins(results) if results.task == "regression" else [],
        listed=listed,
        sample=chosen,
        maps=maps,
        near=near,
        selection=why,
        importance=columns,
        drawings=pictures,
    )
    return facts, scored.scores


def _of_nodes(
    run: TrainedRun,
    scored: ScoredGraph,
    results: NodeResults,
    sample: Sample,
    on_progress: OnProgress | None,
) -> tuple[Neighbourhoods, str | None, Importance | str]:
    """The neighbours of the sampled nodes, what the LGCLs selected, and the columns that matter."""
    tell = on_progress or (lambda *_: None)
    tell("neighbourhoods", 0, 0)
    explainer = _explainer(run, scored)
    if isinstance(explainer, str):
        return neighbourhoods(scored.graph, sample.nodes, []), explainer, explainer
    selected = selection_shares(explainer, sample.nodes)
    why = selected if isinstance(selected, str) else None
    layers = [] if isinstance(selected, str) else selected
    near = neighbourhoods(scored.graph, sample.nodes, layers)
    tell("columns that matter", 0, 0)
    return near, why, importance(explainer, results, sample, on_progress)


def _with_split(scored: ScoredGraph, results: NodeResults) -> Graph:
    """The graph with the masks of the run's split, or all labelled nodes as test nodes."""
    import torch

    masks: dict[str, Any] = {
        f"{name}_mask": torch.from_numpy(results.labelled(place))
        for place, name in enumerate(SPLITS)
    }
    return replace(scored.graph, **masks)


def _baselines(stored: Mapping[str, Any] | None, is_own: bool) -> Mapping[str, Any] | str:
    if not is_own:
        return "The baselines were computed on the graph of the training, and this is another one."
    if stored is None:
        return (
            "The run has no metrics.json, as earlier versions wrote none. Train it again for the "
            "baselines."
        )
    if stored["baselines"] is None:
        return "The training was told not to compute the baselines, or could not."
    found: Mapping[str, Any] = stored["baselines"]
    return found


def _warnings(
    stored: Mapping[str, Any] | None, reports: Mapping[str, Any], unit: Unit
) -> tuple[str, ...]:
    """Those of the training, or of this graph."""
    return tuple(never_predicted(reports, unit) if stored is None else stored["warnings"])


def _maps(
    model: Any, scored: ScoredGraph, nodes: Array, memory: str | int | None, on_progress: Any
) -> list[Layout] | str:
    from lgcn.inference.trained_run import embeddings
    from lgcn.training.graph_scores import score_graphs

    unit: Unit = "node" if scored.graphs is None else "graph"
    try:
        if scored.graphs is None:
            every = embeddings(model, scored.graph, -1, memory or EMBEDDING_MEMORY, on_progress)
            found = every[_index(nodes)]
        else:
            found = score_graphs(model, scored.graphs.select(_index(nodes)), embed=True)
    except LGCNError as error:  # such as a model of trees
        return f"The model has no embeddings: {one_line(error)}."
    rows = found.float().numpy()
    if not np.isfinite(rows).all():
        return "Some embeddings are not finite."
    return layouts(rows, unit)


def _explainer(run: TrainedRun, scored: ScoredGraph) -> RunExplainer | str:
    try:
        return run.explainer(scored)
    except LGCNError as error:  # such as a model of trees
        return f"The model cannot be explained: {one_line(error)}."


def _index(nodes: Array) -> Any:
    import torch

    return torch.from_numpy(nodes)
