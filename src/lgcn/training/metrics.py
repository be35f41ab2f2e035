"""Losses and scores for single-label and multi-label nodes."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor


def metric_name(multi_label: bool) -> str:
    """The name of `score` in records."""
    return "micro_f1" if multi_label else "accuracy"


def loss(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """Softmax cross-entropy for classes, sigmoid cross-entropy for several labels per node.

    Args:
        logits, y: Scores and labels of the nodes.
        weight: Weight of each node in the sum of losses. (default: one over the number of nodes,
            which is the mean)
    """
    if weight is not None:
        return (node_losses(logits, y) * weight).sum()
    if y.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
    return F.cross_entropy(logits, y)


def node_losses(logits: Tensor, y: Tensor) -> Tensor:
    """The loss of each node; with several labels, the mean over them."""
    if y.dim() == 2:
        y = y.to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, y, reduction="none").mean(1)
    return F.cross_entropy(logits, y, reduction="none")


def score(logits: Tensor, y: Tensor) -> float:
    """Accuracy for classes, micro-averaged F1 for several labels per node."""
    return micro_f1(logits, y) if y.dim() == 2 else accuracy(logits, y)


def accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of nodes whose highest score is their class."""
    return float((logits.argmax(dim=1) == y).double().mean())


def micro_f1(logits: Tensor, y: Tensor) -> float:
    """F1 over all node-label pairs together; 0 if no label is predicted or true."""
    predicted, true = logits > 0, y > 0.5
    hits = int((predicted & true).sum())
    total = int(predicted.sum()) + int(true.sum())
    return 2 * hits / total if total else 0.0


def label_accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of node-label pairs that are right: the released program's score for PPI.

    The program calls it micro-F1, but predicting no label at all scores about 0.7 on PPI.
    """
    return float(((logits > 0) == (y > 0.5)).double().mean())


@dataclass
class Tally:
    """Loss and scores of many nodes, added up block by block."""

    nodes: int = 0
    loss: float = 0.0
    hits: int = 0
    marked: int = 0  # node-label pairs that are predicted, plus those that are true
    right: float | None = None

    def add(self, logits: Tensor, y: Tensor) -> None:
        """Adds a block of nodes, which may be empty."""
        if len(y) == 0:
            return
        self.nodes += len(y)
        self.loss += len(y) * float(loss(logits, y))
        if y.dim() == 1:
            # With one class and one prediction per node, F1 is the accuracy.
            self.hits += int((logits.argmax(dim=1) == y).sum())
            self.marked += 2 * len(y)
            return
        predicted, true = logits > 0, y > 0.5
        self.hits += int((predicted & true).sum())
        self.marked += int(predicted.sum()) + int(true.sum())
        self.right = (self.right or 0) + len(y) * label_accuracy(logits, y)

    def scores(self) -> dict[str, float]:
        """Loss and scores of all blocks, as `lgcn.training.evaluate` gives them per split."""
        found = {
            "nodes": self.nodes,
            "loss": self.loss / self.nodes,
            "score": 2 * self.hits / self.marked if self.marked else 0.0,
        }
        if self.right is not None:
            found["label_accuracy"] = self.right / self.nodes
        return found
