"""Sample weights and class weights, as users pass them to the estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.utils.numbers import real_number

Array = np.ndarray[Any, Any]


def read_sample_weight(sample_weight: Any, rows: int) -> Array:
    """One weight per row of `X`, float64; raises UsageError unless they are usable.

    Args:
        sample_weight: One number per row, or one number for all rows.
        rows: Number of rows.
    """
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"sample_weight must hold one number per row of X, got {sample_weight!r:.80}"
        ) from None
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.ndim != 1:  # scikit-learn's words, by which its checks know the error
        raise UsageError(
            "Sample weights must be 1D array or scalar, got sample_weight of shape "
            f"{list(weight.shape)}: pass one number per row of X"
        )
    if len(weight) != rows:
        raise UsageError(
            f"sample_weight must have one number per row of X ({rows}), got {len(weight)}"
        )
    if not np.isfinite(weight).all():
        raise UsageError("sample_weight must be finite, some are NaN or infinite")
    if (weight < 0).any():
        raise UsageError(
            f"sample_weight must not be negative, the smallest is {weight.min():g}: use 0 for "
            "nodes that do not count"
        )
    if not weight.any():
        raise UsageError("sample_weight must not sum to zero: give some nodes a weight above 0")
    return weight


def spread_weight(weight: Array, nodes: Tensor | None, num_nodes: int) -> Array:
    """Weights of all nodes of a graph; all but `nodes` have 0, unless that is `None`."""
    if nodes is None:
        return weight
    spread = np.zeros(num_nodes)
    spread[nodes.numpy()] = weight
    return spread


def name_class_weight(
    class_weight: Any, classes: Array, names: tuple[str, ...]
) -> str | dict[str, float] | None:
    """The setting `class_weight`, which goes by the names of classes.

    Args:
        class_weight: What the user passes: `"balanced"`, a mapping from classes, or `None`.
        classes: The user's classes.
        names: Their names.
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight
    if not isinstance(class_weight, Mapping):
        raise UsageError(
            "class_weight must be 'balanced', None or a mapping from classes to numbers, "
            f"got {class_weight!r:.80}"
        )
    number = {label: i for i, label in enumerate(classes.tolist())}
    weights = {}
    for key, value in class_weight.items():
        label = key.item() if isinstance(key, np.generic) else key
        if label not in number:
            raise UsageError(
                f"class_weight has the class {label!r:.80}, which y does not have: "
                f"{', '.join(map(repr, number)):.200}"
            )
        weights[names[number[label]]] = real_number(f"class_weight of {label!r:.80}", value, 0)
    if len(weights) == len(number) and not any(weights.values()):
        raise UsageError("class_weight must not be zero for every class")
    return weights


def as_float32(weight: Array) -> Tensor:
    """Weights as training takes them: with mean one, so that float32 holds them."""
    shares = weight / weight.max()
    return torch.from_numpy((shares / shares.mean()).astype(np.float32))
