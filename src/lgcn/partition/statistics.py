"""Numbers of a whole graph that settings need, since a shard shows only a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lgcn.graph import SPLITS, Graph
from lgcn.graph.statistics import (
    feature_length,
    labels_per_class,
    neighbour_agreement,
    suggest_k,
)
from lgcn.utils.row_blocks import row_blocks

_BLOCK = 1 << 22  # labels at a time


def graph_statistics(graph: Graph) -> dict[str, Any]:
    """The statistics that a partition has of the graph, as JSON holds them.

    Args:
        graph: The whole graph. Its tensors may be mapped files.
    """
    agreement = neighbour_agreement(graph)
    counts = {
        split: 0 if (mask := graph.mask(split)) is None else int(mask.sum()) for split in SPLITS
    }
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        **{f"num_{split}": count for split, count in counts.items()},
        "task": graph.task,
        "inductive": graph.inductive,
        "labels_per_class": labels_per_class(graph),
        "class_counts": _class_counts(graph),
        "neighbour_agreement": None if agreement is None else agreement._asdict(),
        "feature_length": feature_length(graph),
        "suggested_k": suggest_k(graph),
        "target": _target(graph),
    }


def _class_counts(graph: Graph) -> list[int] | None:
    """Training nodes of each class, or with each label; none for a regression."""
    y, mask = graph.y, graph.train_mask
    if y is None or mask is None or graph.task == "regression":
        return None
    counts = torch.zeros(graph.num_classes, dtype=torch.long)
    for start, stop in row_blocks(graph.num_nodes, max(1, _BLOCK // (y[:1].numel() or 1))):
        chosen = y[start:stop][mask[start:stop]]
        if y.dim() == 2:
            counts += chosen.sum(0, dtype=torch.long)
        else:
            counts += torch.bincount(chosen[chosen >= 0], minlength=len(counts))
    return counts.tolist()


def _target(graph: Graph) -> dict[str, float] | None:
    """Mean and standard deviation of the training targets of a regression."""
    if graph.task != "regression" or graph.train_mask is None:
        return None
    assert graph.y is not None
    targets = graph.y[graph.train_mask].double().numpy()
    targets = targets[~np.isnan(targets)]
    if not len(targets):
        return None
    return {"mean": float(targets.mean()), "deviation": float(targets.std())}
