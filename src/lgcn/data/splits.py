"""Random splits for graphs that come without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.data.options import whole_number
from lgcn.errors import UsageError


def random_split(
    y: Tensor | Any, labels_per_class: int = 20, num_val: int = 500, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws masks of training, validation and test nodes.

    Args:
        y: Class of every node, -1 where it is unknown; such nodes are in no mask.
        labels_per_class: Training nodes of each class. A class with fewer than twice as many nodes
            gives half of them, at least one. (default: 20)
        num_val: Validation nodes, at most half of what training leaves; all others are test nodes.
            (default: 500)
        seed: The same seed gives the same masks. (default: 0)
    """
    labels_per_class = whole_number("labels_per_class", labels_per_class, 1)
    num_val = whole_number("num_val", num_val, 0)
    rng = np.random.default_rng(whole_number("split_seed", seed, 0))
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise UsageError(
            "y must hold one class a node as integers, "
            f"got {labels.dtype} in shape {list(labels.shape)}"
        )

    nodes = rng.permutation(np.flatnonzero(labels >= 0))
    train = [np.empty(0, dtype=np.int64)]
    by_class = nodes[np.argsort(labels[nodes], kind="stable")]
    _, counts = np.unique(labels[nodes], return_counts=True)
    for start, count in zip(np.cumsum(counts) - counts, counts, strict=True):
        few = count < 2 * labels_per_class
        train.append(by_class[start : start + (max(1, count // 2) if few else labels_per_class)])
    masks = np.zeros((3, len(labels)), dtype=bool)
    masks[0, np.concatenate(train)] = True
    rest = nodes[~masks[0, nodes]]
    num_val = min(num_val, len(rest) // 2)
    masks[1, rest[:num_val]] = True
    masks[2, rest[num_val:]] = True
    train_mask, val_mask, test_mask = torch.from_numpy(masks)
    return train_mask.clone(), val_mask.clone(), test_mask.clone()
