"""The record of a finished training: what ``result.json`` holds."""

import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch.nn import Module

from lgcn.graph import Graph, GraphSet
from lgcn.sampling.batches import BatchLoader
from lgcn.training.data import Loader
from lgcn.training.evaluation import Scored, calibration, interval, split_outputs, split_scores
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.state import Rates, State

BATCHES_LISTED = 100  # batches of the first epoch whose size is recorded


def run_record(
    model: Module,
    graph: Graph,
    settings: Settings,
    loader: Loader,
    state: State,
    rates: Rates,
    scored: Scored,
    scoring: Scoring,
) -> dict[str, Any]:
    """Scores, calibration and speed of a training.

    Args:
        model: The model with the best weights.
        graph, settings, loader, state, rates, scoring: Those of the training.
        scored: The final scores of all nodes.
    """
    calibrated: dict[str, Any] = {"threshold": None}
    if graph.task == "regression":
        calibrated["interval"] = interval(scored, scoring.spec)
    else:
        calibrated |= calibration(scored)
        scoring = replace(scoring, temperature=calibrated["temperature"])
    if graph.task == "classification" and scoring.spec.num_classes == 2:
        scoring = scoring.tuned(*split_outputs(scored, ("val",))["val"])
        calibrated["threshold"] = 0.5 if scoring.threshold is None else scoring.threshold
    scores = split_scores(scored, ("val", "test"), scoring)
    test = scores.get("test", {})
    record: dict[str, Any] = {
        "model": settings.model.name,
        "dataset": settings.dataset,
        "graph": graph.name,
        "metric": scoring.metric,
        "seed": settings.seed,
        "val_score": scores["val"]["score"],
        "test_score": test.get("score"),
        "test_score_released_rule": state.released_test_score,
        "best_epoch": state.best_epoch,
        "epochs": state.epoch,
        "steps": state.steps,
        "seconds": state.seconds,
        "nodes_per_batch": _nodes_per_batch(loader),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    if graph.multi_label:
        record["test_label_accuracy"] = test.get("label_accuracy")
    speed = rates.record(loader) if isinstance(loader, BatchLoader) else {}
    return {**record, **calibrated, **speed}


def final_scoring(
    record: Mapping[str, Any], scoring: Scoring
) -> tuple[Scoring, tuple[float, float | None] | None]:
    """The scoring with the temperature and threshold of a record, and the record's interval."""
    interval = record.get("interval")
    found = replace(
        scoring, threshold=record.get("threshold"), temperature=record.get("temperature", 1.0)
    )
    return found, None if interval is None else (interval["level"], interval["half_width"])


def _nodes_per_batch(loader: Loader) -> list[int]:
    with contextlib.closing(loader.epoch(1)) as batches:
        return [_num_nodes(batch) for batch in itertools.islice(batches, BATCHES_LISTED)]


def _num_nodes(batch: Any) -> int:
    if isinstance(batch, Graph | GraphSet):
        return batch.num_nodes
    return sum(unit.graph.num_nodes for unit in batch)  # of a shared step
