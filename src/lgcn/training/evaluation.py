"""Scores of validation and test nodes, on whole graphs or on sub-graphs around them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from lgcn.graph import Graph
from lgcn.nn.layerwise import layerwise, read_blocks
from lgcn.nn.rows import RowModel
from lgcn.nn.whole_graph import forward
from lgcn.sampling import NeighborLoader, select_subgraph
from lgcn.training import metrics
from lgcn.training.calibration import expected_calibration_error, find_temperature, probabilities
from lgcn.training.model_spec import ModelSpec
from lgcn.training.scoring import Scoring, conformal_half_width
from lgcn.training.settings import Settings

# Scores of larger graphs are processed in blocks.
BLOCK_NODES = 2**18
# At most so many nodes of a split are used to find and measure the temperature.
CALIBRATION_NODES = 100_000
# evaluate_on=sampled: the number of sub-graphs, the nodes of all of them, so that there are fewer
# large ones, and how many nodes a sub-graph has per scored node.
# With less room around the scored nodes, scores were up to 0.12 below those of the whole graph.
SAMPLED_SUBGRAPHS = 20
SAMPLED_NODES = 40_000
SAMPLED_ROOM = 40
SAMPLED_MAX_NODES = 2000  # if max_nodes is none

INTERVAL_LEVEL = 0.9  # share of targets that the interval around a prediction is to hold

# Graphs with the scores of all their nodes, before softmax or sigmoid.
Scored = list[tuple[Graph, Tensor]]
# For each split: nodes, loss, score, and with several labels per node label_accuracy.
SplitScores = dict[str, dict[str, Any]]


@torch.no_grad()
def evaluate(
    model: Module,
    graphs: list[Graph],
    splits: tuple[str, ...],
    scoring: Scoring | None = None,
) -> SplitScores:
    """Loss and score of each split that has nodes, over all graphs together.

    A score is ``None`` if the metric is not defined for the nodes of the split, for example the
    ROC AUC of nodes of one class.

    Args:
        model: The model.
        graphs: Graphs with labels, on the model's device.
        splits: Some of ``"train"``, ``"val"`` and ``"test"``.
        scoring: The metric, and how outputs become predictions. (default: the default metric)
    """
    return split_scores([(graph, forward(model, graph)) for graph in graphs], splits, scoring)


def score_graphs(model: Module, graphs: list[Graph], settings: Settings) -> Scored:
    """The scores of all nodes. Those of a large graph are computed layer by layer, into a file."""
    if settings.evaluation.evaluate_on != "sampled" or not isinstance(model, RowModel):
        return [(graph, forward(model, graph)) for graph in graphs]
    memory = settings.hardware.memory
    return [(graph, layerwise(model, graph, memory=memory)[:]) for graph in graphs]


def split_scores(
    scored: Scored, splits: tuple[str, ...], scoring: Scoring | None = None
) -> SplitScores:
    """Loss and score of each split that has nodes, over all graphs together, see `evaluate`.

    The default metrics of large graphs are added up block by block. Others need the outputs of all
    nodes of a split at once.
    """
    if not scored:
        return {}
    if scoring is None:
        scoring = Scoring.default(scored[0][0])
    if scoring.is_default and any(len(logits) > BLOCK_NODES for _, logits in scored):
        return _scores_by_blocks(scored, splits)
    return scores_of_outputs(split_outputs(scored, splits), scoring)


def scores_of_outputs(
    outputs: Mapping[str, tuple[Tensor, Tensor]], scoring: Scoring
) -> SplitScores:
    """Loss and score of each split, from the outputs and labels of its nodes."""
    if "val" in outputs:
        scoring = scoring.tuned(*outputs["val"])
    scores: SplitScores = {}
    for split, (logits, y) in outputs.items():
        scores[split] = {
            "nodes": len(y),
            "loss": scoring.loss(logits, y),
            "score": scoring.score(logits, y),
        }
        if y.dim() == 2:
            scores[split]["label_accuracy"] = metrics.label_accuracy(logits, y)
    return scores


def _scores_by_blocks(scored: Scored, splits: tuple[str, ...]) -> SplitScores:
    tallies = {split: metrics.Tally() for split in splits}
    for graph, all_logits in scored:
        masks = {split: mask for split in splits if (mask := graph.mask(split)) is not None}
        for start, stop, logits in read_blocks(all_logits):
            for split, mask in masks.items():
                if graph.y is not None:
                    inside = mask[start:stop].to(logits.device)
                    labels = graph.y[start:stop].to(logits.device)
                    tallies[split].add(logits[inside], labels[inside])
    return {split: tally.scores() for split, tally in tallies.items() if tally.nodes}


def split_outputs(
    scored: Scored, splits: tuple[str, ...], at_most: int | None = None
) -> dict[str, tuple[Tensor, Tensor]]:
    """Scores and labels per split that has nodes; of more than ``at_most``, every n-th node."""
    found = {}
    for split in splits:
        parts = [
            (logits, graph.y, mask.nonzero().squeeze(1))
            for graph, logits in scored
            if (mask := graph.mask(split)) is not None and graph.y is not None
        ]
        total = sum(len(nodes) for _, _, nodes in parts)
        step = 1 if at_most is None else max(1, -(-total // at_most))
        if total:
            found[split] = (
                torch.cat([logits[nodes[::step].to(logits.device)] for logits, _, nodes in parts]),
                torch.cat([y[nodes[::step]].to(logits.device) for logits, y, nodes in parts]),
            )
    return found


def calibration(scored: Scored) -> dict[str, Any]:
    """The temperature, and the calibration errors without and with it.

    It is found on the validation nodes. Test nodes are only measured.
    """
    outputs = split_outputs(scored, ("val", "test"), CALIBRATION_NODES)
    temperature = find_temperature(*outputs["val"])

    def error(split: str, at: float) -> float:
        logits, y = outputs[split]
        return expected_calibration_error(probabilities(logits, y.dim() == 2, at), y)

    gaps = {"val_before": error("val", 1.0), "val_after": error("val", temperature)}
    test = error("test", temperature) if "test" in outputs else None
    return {"temperature": temperature, "calibration": {**gaps, "test_after": test}}


def interval(scored: Scored, spec: ModelSpec) -> dict[str, Any]:
    """The width of the interval around each prediction of a regression, by the validation nodes.

    ``half_width`` is in the units of the target; ``None`` if there are too few validation nodes.
    """
    outputs, y = split_outputs(scored, ("val",), CALIBRATION_NODES)["val"]
    half_width = conformal_half_width(y.double() - spec.values(outputs), INTERVAL_LEVEL)
    return {"level": INTERVAL_LEVEL, "half_width": half_width}


def evaluation_graphs(graph: Graph, settings: Settings) -> list[Graph]:
    """The graphs on which nodes are scored after an epoch.

    They depend on ``evaluate_on``:

    - ``"graph"``: whole graphs.
    - ``"subgraph"``: the sub-graph around the nodes of each split, as in the released program.
    - ``"neighbors"``: batches of a split's nodes with sampled neighbours.
    - ``"sampled"``: sub-graphs around a sample of the validation nodes, for large graphs.

    Samples are the same after every epoch.
    """
    if settings.evaluation.evaluate_on == "graph":
        return whole_graphs(graph)
    if settings.evaluation.evaluate_on == "sampled":
        return sampled_graphs(graph, settings)
    around = []
    for split, other in (("val", "test_mask"), ("test", "val_mask")):
        mask = graph.mask(split)
        if mask is not None and bool(mask.any()):
            without: dict[str, Any] = {other: None}
            around += [replace(part, **without) for part in _around(graph, mask, settings)]
    return around


def _around(graph: Graph, roots: Tensor, settings: Settings) -> Iterable[Graph]:
    """Graphs in which each root occurs once, with the nodes around it."""
    if settings.evaluation.evaluate_on == "neighbors":
        return NeighborLoader(
            graph,
            roots=roots,
            fanout=settings.sampling.fanout,
            with_replacement=settings.sampling.with_replacement,
            keep_degree=settings.sampling.keep_degree,
            seed=settings.seed,
            num_workers=0,
        ).epoch(0)
    nodes = select_subgraph(
        graph, roots=roots, max_nodes=None, max_hops=settings.sampling.max_hops, seed=settings.seed
    )
    return [graph.subgraph(nodes, keep_degree=settings.sampling.keep_degree)]


def whole_graphs(graph: Graph) -> list[Graph]:
    """The separate graphs that have validation or test nodes."""
    masks = ("val_mask", "test_mask")
    return [
        part
        for part in graph.separate()
        if any(getattr(part, key) is not None and bool(getattr(part, key).any()) for key in masks)
    ]


def sampled_graphs(graph: Graph, settings: Settings, *, share: int = 1) -> list[Graph]:
    """Sub-graphs around a sample of the validation nodes, for large graphs.

    Args:
        graph: The graph.
        settings: The settings.
        share: Only the n-th part of the usual number of sub-graphs. (default: all)
    """
    assert graph.val_mask is not None
    rng = np.random.default_rng([settings.seed, 0, 0, 3])  # not used in training
    nodes = graph.val_mask.nonzero().squeeze(1).cpu().numpy()
    max_nodes = settings.sampling.max_nodes or SAMPLED_MAX_NODES
    roots = max(1, max_nodes // SAMPLED_ROOM)
    subgraphs = min(SAMPLED_SUBGRAPHS, max(2, SAMPLED_NODES // max_nodes))
    subgraphs = -(-subgraphs // share)
    chosen = rng.permutation(nodes)[: subgraphs * roots]
    parts = []
    for number, start in enumerate(np.array_split(chosen, -(-chosen.size // roots))):
        selected = select_subgraph(
            graph,
            roots=torch.from_numpy(start),
            max_nodes=max_nodes,
            max_expand=settings.sampling.max_expand,
            max_hops=settings.sampling.max_hops,
            seed=number,
        )
        part = graph.subgraph(selected, keep_degree=settings.sampling.keep_degree)
        # Only the start nodes are scored here: others of the split lack room around them.
        mask = torch.from_numpy(np.isin(selected.numpy(), start))
        parts.append(replace(part, val_mask=mask, test_mask=None))
    return parts
