"""What the model says about each node, and whether it is right: a few numbers per node.

All nodes of a graph are looked at, in blocks, so that a graph of ten million nodes takes some
hundred megabytes here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lgcn.nn.layerwise import read_blocks
from lgcn.training.calibration import confidence, decide, probabilities
from lgcn.training.run_metrics import main_split

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.inference.trained_run import ScoredGraph, TrainedRun

Array = np.ndarray[Any, Any]
CALIBRATION_BINS = 15
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Calibration:
    """Sums over bins of equal width of the confidence, of the main split's nodes.

    Args:
        count: Predictions per bin. With several labels per node, each pair of node and label is a
            prediction.
        confidence: Sum of their confidences.
        right: How many are right.
    """

    count: Array
    confidence: Array
    right: Array

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and accuracy."""
        total = self.count.sum()
        return float(np.abs(self.right - self.confidence).sum() / total) if total else 0.0


@dataclass(frozen=True)
class NodeResults:
    """One entry per node of a graph.

    Args:
        task: `"classification"`, `"multilabel"` or `"regression"`.
        known: Whether the true label is known.
        split: 0 for training, 1 for validation, 2 for test, -1 for none of them.
        predicted: The predicted class, or value; with several labels, how many are predicted.
        confidence: That of the prediction, NaN for a regression.
        wrong: For a class 1 if it is wrong, with several labels how many of them are, for a
            regression the predicted value minus the true one; NaN if the truth is unknown.
        hits: With several labels per node, how many predicted labels are right.
        truths: With several labels per node, how many it has.
        calibration: Of the main split; `None` for a regression, and without labelled nodes.
    """

    task: str
    known: Array
    split: Array
    predicted: Array
    confidence: Array
    wrong: Array
    hits: Array | None
    truths: Array | None
    calibration: Calibration | None

    @functools.cached_property
    def main(self) -> str | None:
        """The split that counts: test nodes if there are any, else validation, then training."""
        present = {name for place, name in enumerate(SPLITS) if (self.labelled(place)).any()}
        return main_split(dict.fromkeys(present))

    def labelled(self, place: int) -> Array:
        """A mask of the labelled nodes of a split, by its place in `SPLITS`."""
        return np.asarray(self.known & (self.split == place))

    @functools.cached_property
    def scored(self) -> Array:
        """A mask of the labelled nodes of the main split."""
        main = self.main
        if main is None:
            return np.zeros(len(self.known), dtype=bool)
        return self.labelled(SPLITS.index(main))


def split_numbers(scored: ScoredGraph, known: Array) -> Array:
    """The place of each node's split in `SPLITS`, -1 for none.

    Without a split, as in new tables, all labelled nodes are test nodes.
    """
    if scored.split is None:
        return np.where(known, 2, -1).astype(np.int8)
    number = np.full(len(known), -1, dtype=np.int8)
    for place in reversed(range(len(SPLITS))):  # the first one wins, as in predictions
        number[scored.split[SPLITS[place]] != 0] = place
    return number


def node_results(run: TrainedRun, scored: ScoredGraph) -> NodeResults:
    """Looks at every node once.

    Args:
        run: The run.
        scored: Its graph with all scores.
    """
    graph, task, size = scored.graph, run.spec.task, scored.graph.num_nodes
    known = ~graph.unlabelled().cpu().numpy()
    split = split_numbers(scored, known)
    several = task == "multilabel"
    number = np.float64 if task == "regression" else np.int32
    found = NodeResults(
        task,
        known,
        split,
        np.zeros(size, dtype=number),
        np.full(size, np.nan, dtype=np.float32),
        np.full(size, np.nan, dtype=np.float64 if task == "regression" else np.float32),
        np.zeros(size, dtype=np.int32) if several else None,
        np.zeros(size, dtype=np.int32) if several else None,
        None if task == "regression" or not known.any() else _no_calibration(),
    )
    counted = found.scored
    for start, stop, logits in read_blocks(scored.scores):
        rows = slice(start, stop)
        y = None if graph.y is None else graph.y[rows].cpu()
        if task == "regression":
            values = run.spec.values(logits.cpu()).numpy()
            found.predicted[rows] = values
            if y is not None:
                found.wrong[rows] = values - y.double().numpy()
        elif several:
            _labels(found, run, rows, logits, y, counted[rows])
        else:
            _classes(found, run, rows, logits, y, counted[rows])
    found.wrong[~known] = np.nan
    return found


def _classes(
    found: NodeResults,
    run: TrainedRun,
    rows: slice,
    logits: Tensor,
    y: Tensor | None,
    counted: Array,
) -> None:
    chances = probabilities(logits.cpu(), False, run.temperature)
    chosen = decide(chances, run.threshold)
    found.predicted[rows] = chosen.numpy()
    found.confidence[rows] = chances.gather(1, chosen.unsqueeze(1)).squeeze(1).numpy()
    if y is not None:
        found.wrong[rows] = (chosen != y).numpy()
        # The calibration error is about the most likely class, whatever the threshold.
        sure, likeliest = chances.double().max(dim=1)
        _add(found, sure.numpy()[counted], (likeliest == y).numpy()[counted])


def _labels(
    found: NodeResults,
    run: TrainedRun,
    rows: slice,
    logits: Tensor,
    y: Tensor | None,
    counted: Array,
) -> None:
    assert found.hits is not None
    assert found.truths is not None
    chances = probabilities(logits.cpu(), True, run.temperature)
    marked = chances > 0.5
    found.predicted[rows] = marked.sum(dim=1).numpy()
    found.confidence[rows] = confidence(chances, True).numpy()
    if y is not None:
        true = y > 0.5
        found.wrong[rows] = (marked != true).sum(dim=1).numpy()
        found.hits[rows] = (marked & true).sum(dim=1).numpy()
        found.truths[rows] = true.sum(dim=1).numpy()
        sure = torch.maximum(chances, 1 - chances).double().numpy()[counted]
        _add(found, sure.reshape(-1), (marked == true).numpy()[counted].reshape(-1))


def _no_calibration() -> Calibration:
    return Calibration(*(np.zeros(CALIBRATION_BINS) for _ in range(3)))


def _add(found: NodeResults, sure: Array, right: Array) -> None:
    """Adds predictions to the bins of the calibration. A bin holds its upper end."""
    if found.calibration is None:
        return
    place = np.clip(np.ceil(sure * CALIBRATION_BINS).astype(np.int64), 1, CALIBRATION_BINS) - 1
    sums = found.calibration
    for total, weights in ((sums.count, None), (sums.confidence, sure), (sums.right, right)):
        total += np.bincount(place, weights, CALIBRATION_BINS)
