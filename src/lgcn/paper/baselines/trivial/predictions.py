"""Predictions without a model, which show what the scores of several labels per node are worth."""

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.training.metrics import label_accuracy, micro_f1


def predict_nothing(graph: Graph, *, seed: int = 0, **_: Any) -> dict[str, Any]:
    """Scores the prediction that no node has any label.

    Its micro-F1 is 0. Its label-cell accuracy, which the released program reports, is the share of
    zeros among the labels: about 0.7 on PPI.

    Args:
        graph: A graph whose nodes can have several labels.
        seed: Only recorded: nothing is random here. (default: 0)

    Returns:
        The record of a run.
    """
    began = time.perf_counter()
    y = _labels(graph)
    return _record(graph, torch.zeros(y.shape, dtype=torch.bool), seed, began)


def look_up_genes(graph: Graph, *, seed: int = 0, **_: Any) -> dict[str, Any]:
    """Scores the prediction that a node has the labels of the training nodes of the same gene.

    A label is predicted where most of them have it (of two that differ, neither counts), and no
    label at all for a gene that no training graph has. Neither features nor edges are looked at:
    what this scores, a model can gain by recognising genes.

    Args:
        graph: A graph whose nodes can have several labels, with each node's gene in ``node_ids``,
            as ``ppi-rederived`` has it.
        seed: Only recorded: nothing is random here. (default: 0)

    Returns:
        The record of a run.
    """
    began = time.perf_counter()
    y = _labels(graph)
    if graph.node_ids is None:
        raise UsageError(
            f"{graph.name} does not tell which gene a node is (node_ids is none), so that genes "
            "cannot be looked up: the files of ppi hold no genes, that of ppi-rederived does"
        )
    if graph.train_mask is None:
        raise UsageError(f"{graph.name} has no training nodes (train_mask) to look genes up in")
    genes, number = np.unique(graph.node_ids, return_inverse=True)
    gene = torch.from_numpy(number)
    train = graph.train_mask.nonzero().squeeze(1)
    has_label = (y[train] > 0.5).long()
    known = torch.bincount(gene[train], minlength=len(genes))
    counts = torch.zeros(len(genes), y.size(1), dtype=torch.long)
    counts.index_add_(0, gene[train], has_label)
    return _record(graph, (2 * counts > known[:, None])[gene], seed, began)


def _labels(graph: Graph) -> Tensor:
    if graph.y is None or not graph.multi_label:
        kind = "none" if graph.y is None else "one class per node"
        raise UsageError(f"{graph.name} must have several labels per node (y), it has {kind}")
    return graph.y


def _record(graph: Graph, predicted: Tensor, seed: int, began: float) -> dict[str, Any]:
    val, test = (_of_split(graph, predicted, split) for split in ("val", "test"))
    return {
        "metric": "micro_f1",
        "seed": seed,
        "val_score": None if val is None else micro_f1(*val),
        "test_score": None if test is None else micro_f1(*test),
        "test_score_released_rule": None if test is None else micro_f1(*test),
        "best_epoch": 0,
        "epochs": 0,
        "seconds": time.perf_counter() - began,
        "parameters": 0,
        "test_label_accuracy": None if test is None else label_accuracy(*test),
    }


def _of_split(graph: Graph, predicted: Tensor, split: str) -> tuple[Tensor, Tensor] | None:
    """Predictions, as scores that are above zero where a label is predicted, and labels."""
    mask = graph.mask(split)
    if mask is None or not bool(mask.any()):
        return None
    return predicted[mask].float(), _labels(graph)[mask]
