"""Random splits for graphs that come without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import UsageError
from lgcn.utils.numbers import real_number, whole_number

if TYPE_CHECKING:
    from torch import Tensor


def random_split(
    y: Tensor | Any, labels_per_class: int = 20, num_val: int = 500, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws masks of training, validation and test nodes.

    Args:
        y: Class of each node, -1 if unknown. Nodes of unknown class are in no mask.
        labels_per_class: Number of training nodes per class. Of a class with fewer than twice as
            many nodes, half are used, but at least one. (default: 20)
        num_val: Number of validation nodes, at most half of those not used for training. All
            others are test nodes. (default: 500)
        seed: The same seed gives the same masks. (default: 0)
    """
    labels_per_class = whole_number("labels_per_class", labels_per_class, 1)
    num_val = whole_number("num_val", num_val, 0)
    rng = np.random.default_rng(whole_number("split_seed", seed, 0))
    labels = np.asarray(y)
    _check_classes(labels)

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
    return _tensors(masks)


def fraction_split(
    y: Tensor | Any, known: Any = None, val: float = 0.2, test: float = 0.2, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws masks of training, validation and test nodes as fractions of the labelled nodes.

    The split is stratified: the fractions hold in every class up to rounding. If a node can have
    several labels, or for a regression, they hold over all nodes. Every class keeps a training
    node, and no split with a fraction above 0 is empty as long as there are enough nodes.

    Args:
        y: Class of each node, -1 if unknown; a [N, L] matrix of labels; or, for a regression, a
            number per node, NaN if unknown.
        known: Boolean mask of the labelled nodes; the others are in no mask. (default: nodes whose
            class is not -1, or whose number is not NaN)
        val, test: Fractions of validation and test nodes, together below 1. The rest are training
            nodes. (default: 0.2 each)
        seed: The same seed gives the same masks. (default: 0)
    """
    shares = {2: real_number("test", test, 0, 1), 1: real_number("val", val, 0, 1)}
    if sum(shares.values()) >= 1:
        raise UsageError(
            f"val + test must be below 1, which leaves nodes to train on, got {val} + {test}"
        )
    rng = np.random.default_rng(whole_number("split_seed", seed, 0))
    labels = np.asarray(y)
    if labels.ndim == 2:
        labels = np.zeros(len(labels), dtype=np.int64)
    elif labels.ndim == 1 and labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), -1, 0)
    _check_classes(labels)
    labelled = labels >= 0
    if known is not None:
        given = np.asarray(known)
        if given.dtype != np.bool_ or given.shape != labels.shape:
            raise UsageError(
                f"known must be a boolean mask of the {len(labels)} nodes, got {given.dtype} in "
                f"shape {list(given.shape)}"
            )
        labelled &= given

    # The nodes are in random order, class after class. Each split takes nodes at equal distances,
    # so that its count in any run of nodes, such as a class, is off by at most one.
    nodes = rng.permutation(np.flatnonzero(labelled))
    nodes = nodes[np.argsort(labels[nodes], kind="stable")]
    split = np.zeros(len(nodes), dtype=np.int8)  # 0: training
    left = 1.0
    for number, share in shares.items():
        rest = np.flatnonzero(split == 0)
        steps = np.floor(np.arange(len(rest) + 1) * (share / left) + rng.random())
        split[rest[np.diff(steps) > 0]] = number
        left -= share
    if len(nodes):
        _, first, counts = np.unique(labels[nodes], return_index=True, return_counts=True)
        training = np.add.reduceat(split == 0, first, dtype=np.int64)
        split[first[training == 0]] = 0
        training = np.maximum(training, 1)
        for number, share in shares.items():
            if share == 0 or (split == number).any():
                continue
            largest = training.argmax()
            if training[largest] > 1:
                start = first[largest]
                split[start + (split[start : start + counts[largest]] == 0).argmax()] = number
                training[largest] -= 1
            elif (split > 0).sum() > 1:  # all of the other share
                split[(split > 0).argmax()] = number
    masks = np.zeros((3, len(labels)), dtype=bool)
    masks[split, nodes] = True
    return _tensors(masks)


def _tensors(masks: Any) -> tuple[Tensor, Tensor, Tensor]:
    import torch

    train_mask, val_mask, test_mask = torch.from_numpy(masks)
    return train_mask.clone(), val_mask.clone(), test_mask.clone()


def _check_classes(labels: Any) -> None:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise UsageError(
            "y must hold one class per node as integers, "
            f"got {labels.dtype} in shape {list(labels.shape)}"
        )
