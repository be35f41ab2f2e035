"""Losses and scores for single-label and multi-label nodes."""

import torch
import torch.nn.functional as F
from torch import Tensor


def metric_name(multi_label: bool) -> str:
    return "micro_f1" if multi_label else "accuracy"


def loss(logits: Tensor, y: Tensor) -> Tensor:
    """Softmax cross-entropy for classes, sigmoid cross-entropy for several labels a node."""
    if y.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
    return F.cross_entropy(logits, y)


def score(logits: Tensor, y: Tensor) -> float:
    """Accuracy for classes, micro-averaged F1 for several labels a node."""
    return micro_f1(logits, y) if y.dim() == 2 else accuracy(logits, y)


def accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of nodes whose highest score is their class."""
    return float((logits.argmax(dim=1) == y).double().mean())


def micro_f1(logits: Tensor, y: Tensor) -> float:
    """F1 over all node-label pairs together; 0 where nothing is predicted and nothing is true."""
    predicted, true = logits > 0, y > 0.5
    hits = int((predicted & true).sum())
    total = int(predicted.sum()) + int(true.sum())
    return 2 * hits / total if total else 0.0


def label_accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of node-label pairs that are right: the released program's score for PPI.

    It calls this a micro-F1, but predicting no label at all scores about 0.7 on PPI.
    """
    return float(((logits > 0) == (y > 0.5)).double().mean())


def probabilities(logits: Tensor, multi_label: bool) -> Tensor:
    return logits.sigmoid() if multi_label else torch.softmax(logits, dim=1)
