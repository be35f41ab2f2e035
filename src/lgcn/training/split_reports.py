"""Score reports of the splits of a graph, in bounded memory."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.nn.layerwise import read_blocks
from lgcn.training.calibration import decide, probabilities
from lgcn.training.evaluation import Scored
from lgcn.training.score_report import MAX_VALUES, score_report
from lgcn.training.scoring import Scoring


def split_reports(
    scored: Scored,
    splits: tuple[str, ...],
    scoring: Scoring,
    interval: tuple[float, float | None] | None = None,
) -> dict[str, dict[str, Any]]:
    """The report (`lgcn.training.score_report`) of each split that has nodes.

    Args:
        scored: Graphs with the outputs of all their nodes.
        splits: Some of ``"train"``, ``"val"`` and ``"test"``.
        scoring: How outputs become predictions.
        interval: For a regression, level and half width of the interval. (default: none)
    """
    reports = {}
    for split in splits:
        step = _step(scored, split, scoring.spec.num_classes)
        blocks = list(_blocks(scored, split, scoring, step))
        if not blocks:
            continue
        predicted, y, outputs, nodes = (
            np.concatenate(parts) for parts in zip(*blocks, strict=True)
        )
        is_class = scoring.spec.task != "regression"
        reports[split] = score_report(
            scoring.spec.task,
            outputs,
            y,
            scoring.spec.class_names,
            predicted=predicted if is_class else None,
            nodes=nodes if is_class else None,
            interval=interval,
        )
    return reports


def _step(scored: Scored, split: str, num_classes: int) -> int:
    """Of so many nodes one is used for the scores of probabilities."""
    masks = [graph.mask(split) for graph, _ in scored if graph.y is not None]
    total = sum(int(mask.sum()) for mask in masks if mask is not None)
    return max(1, -(-total * num_classes // MAX_VALUES))


def _blocks(scored: Scored, split: str, scoring: Scoring, step: int) -> Any:
    """Predictions and labels of a split's nodes; outputs of some of them, and their places."""
    place = 0
    for graph, every in scored:
        mask, y = graph.mask(split), graph.y
        if mask is None or y is None:
            continue
        for start, stop, rows in read_blocks(every):
            inside = mask[start:stop]
            if not bool(inside.any()):
                continue
            logits = rows.detach()[inside.to(rows.device)].cpu()
            labels = y[start:stop][inside.to(y.device)].cpu().numpy()
            chosen = torch.arange(-place % step, len(logits), step)
            predicted, outputs = _outcome(logits, chosen, scoring)
            yield predicted, labels, outputs, chosen.numpy() + place
            place += len(logits)


def _outcome(logits: Tensor, chosen: Tensor, scoring: Scoring) -> tuple[Any, Any]:
    spec, threshold = scoring.spec, scoring.threshold
    if spec.task == "regression":
        values = spec.values(logits).numpy()
        return values, values
    chances = probabilities(logits[chosen].double(), spec.multi_label, scoring.temperature)
    if spec.multi_label:
        return (logits > 0).numpy(), chances.numpy()
    if threshold in (None, 0.5):
        return logits.argmax(dim=1).numpy(), chances.numpy()
    assert not isinstance(threshold, str)
    every = probabilities(logits.double(), False, scoring.temperature)
    return decide(every, threshold).numpy(), chances.numpy()
