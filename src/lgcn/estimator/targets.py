"""The labels and numbers that users pass to the estimators as `y`, as training needs them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import SPLITS, Graph
from lgcn.graph.splits import fraction_split
from lgcn.utils.choices import Unit
from lgcn.utils.numbers import real_number

Array = np.ndarray[Any, Any]
_HOW = "-1, NaN and None mark entries without a label"


class Targets(NamedTuple):
    """The targets of nodes.

    `y` holds class numbers (int64, -1 if unknown), zeros and ones [nodes, labels] (uint8), or the
    numbers of a regression (float64, NaN if unknown). `known` marks the nodes that have a target,
    `classes` are the user's classes.
    """

    y: Array
    known: Array
    classes: Array = np.empty(0)

    def take(self, nodes: Tensor | None) -> Targets:
        """The labels of some nodes; `None` is all."""
        if nodes is None:
            return self
        return self._replace(y=self.y[nodes.numpy()], known=self.known[nodes.numpy()])

    def spread(self, nodes: Tensor, num_nodes: int) -> Targets:
        """Labels for all nodes of a graph; all but `nodes` have none."""
        if len(torch.unique(nodes)) < len(nodes):
            raise UsageError("X must name each node once, got some node numbers several times")
        unknown = np.nan if self.y.dtype.kind == "f" else -1 if self.y.ndim == 1 else 0
        y = np.full((num_nodes, *self.y.shape[1:]), unknown, self.y.dtype)
        known = np.zeros(num_nodes, dtype=bool)
        y[nodes.numpy()], known[nodes.numpy()] = self.y, self.known
        return Targets(y, known, self.classes)


def read_targets(y: Any, classes: Array | None = None) -> Targets:
    """Reads labels in any form that `lgcn.LGCNClassifier.fit` takes.

    Args:
        y: The labels.
        classes: The classes that are allowed. (default: those in `y`)
    """
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    values = y.toarray() if scipy.sparse.issparse(y) else np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return _read_indicator(values, classes)
    values = column_or_1d(values, warn=True)
    known = ~unlabelled(values)
    chosen = _one_type(values[known])
    if len(chosen) == 0:
        raise UsageError(f"y must have some labels, got none in {len(values)} entries: {_HOW}")
    if chosen.dtype.kind == "f":
        assert_all_finite(chosen, input_name="y")
    check_classification_targets(chosen)
    if classes is None:
        classes = np.unique(chosen)
    if len(classes) < 2:
        raise UsageError(
            f"y must have at least two classes, got one class: {classes.tolist()[0]!r}. "
            f"({_HOW}: for two classes use 0 and 1, or strings)"
        )
    number = {label: i for i, label in enumerate(classes.tolist())}
    codes = np.full(len(values), -1, dtype=np.int64)
    try:
        codes[known] = [number[label] for label in chosen.tolist()]
    except KeyError as error:
        raise UsageError(
            f"y has the class {error.args[0]!r}, which the model does not know: "
            f"{', '.join(map(repr, number))}"
        ) from None
    return Targets(codes, known, classes)


def unlabelled(values: Array) -> Array:
    """Which entries of one-dimensional labels are missing: -1, NaN or None."""
    nothing: Array = np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "if":
        nothing = np.isnan(values) | (values == -1)
    elif values.dtype.kind == "O":
        nothing[:] = [_is_nothing(value) for value in values]
    return nothing


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas has its own None


def _is_nothing(value: Any) -> bool:
    return _is_missing(value) or (
        isinstance(value, int | float | np.number) and (value != value or value == -1)
    )


def _one_type(values: Array) -> Array:
    """Labels of dtype object as an array of their own type."""
    if values.dtype.kind != "O":
        return values
    kinds = {"str" if isinstance(v, str) else type(v).__name__ for v in values}
    if "str" in kinds and len(kinds) > 1:
        raise UsageError(
            f"y must hold labels of one type, got {', '.join(sorted(kinds))}. ({_HOW})"
        )
    return values if "str" in kinds else np.array(values.tolist())


def _read_indicator(values: Array, classes: Array | None) -> Targets:
    try:
        numbers = values.astype(np.float32)
    except (TypeError, ValueError):
        raise UsageError(
            f"y in shape {list(values.shape)} must hold a 0 or 1 for every label, "
            f"got {values.dtype}"
        ) from None
    known = ~(np.isnan(numbers) | (numbers == -1)).any(axis=1)
    chosen = numbers[known]
    if len(chosen) == 0:
        raise UsageError(f"y must have some labels, got none in {len(values)} rows: {_HOW}")
    if not np.isin(chosen, (0, 1)).all():
        raise UsageError(
            f"y in shape {list(values.shape)} must hold a 0 or 1 for every label, got "
            f"{chosen[~np.isin(chosen, (0, 1))][0]:g}. ({_HOW})"
        )
    if classes is not None and len(classes) != values.shape[1]:
        raise UsageError(
            f"y must have one column per label of the model ({len(classes)}), got {values.shape[1]}"
        )
    zeros_and_ones = np.where(known[:, None], numbers, 0).astype(np.uint8)
    return Targets(
        zeros_and_ones, known, np.arange(values.shape[1]) if classes is None else classes
    )


def graph_targets(graph: Graph, classes: Array | None = None) -> Targets:
    """The labels of a graph, by their names if it has them."""
    if graph.y is None:
        raise UsageError(f"{graph.name} has no labels (y); pass them as y=")
    y = graph.y.detach().cpu().numpy()
    if graph.label_names is None or graph.multi_label:
        return read_targets(y, classes)
    names = np.array(graph.label_names, dtype=object)
    known = y >= 0
    if classes is None and known.any() and len(names) > 1:  # the graph's order, and all its classes
        return Targets(y.astype(np.int64, copy=False), known, names.astype(str))
    by_name = np.full(len(y), None, dtype=object)
    by_name[known] = names[y[known]]
    return read_targets(by_name, classes)


def read_numbers(y: Any) -> Targets:
    """Reads the targets of a regression, in any form that `lgcn.LGCNRegressor.fit` takes."""
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    values = y.toarray() if scipy.sparse.issparse(y) else np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise UsageError(
            f"y must hold one number per node, got shape {list(values.shape)}: fit one regressor "
            "per column"
        )
    values = column_or_1d(values, warn=True)
    if values.dtype.kind == "O":
        values = np.array([np.nan if _is_missing(value) else value for value in values.tolist()])
    try:
        if values.dtype.kind not in "biufO":  # strings of digits would be read as numbers
            raise TypeError
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"y must hold numbers, NaN if unknown, got {values.dtype}: for classes use "
            "lgcn.LGCNClassifier"
        ) from None
    known = ~np.isnan(numbers)
    if not known.any():
        raise UsageError(
            f"y must have some numbers, got none in {len(numbers)} entries: NaN and None mark "
            "entries without one"
        )
    assert_all_finite(numbers[known], input_name="y")
    return Targets(numbers, known)


def graph_numbers(graph: Graph) -> Targets:
    """The targets of a graph for a regression."""
    if graph.y is None:
        raise UsageError(f"{graph.name} has no targets (y); pass them as y=")
    if not graph.y.is_floating_point():
        raise UsageError(
            f"y of {graph.name} must hold floating-point numbers, NaN if unknown, got "
            f"{str(graph.y.dtype).removeprefix('torch.')}, which are classes: pass the numbers as "
            "y=, or use lgcn.LGCNClassifier"
        )
    return read_numbers(graph.y)


def split_masks(
    graph: Graph | None,
    labels: Targets,
    validation_fraction: float,
    seed: int,
    unit: Unit = "node",
) -> dict[str, Any]:
    """The masks of training, validation and test nodes.

    Args:
        graph: The graph whose masks are used, if it has any. (`None`: no test nodes)
        labels: The labels of all nodes.
        validation_fraction: See `lgcn.LGCNClassifier`.
        seed: Seed for drawing validation nodes.
        unit: What the nodes stand for. (default: `"node"`)
    """
    known = torch.from_numpy(labels.known)
    train, val, test = (None if graph is None else graph.mask(split) for split in SPLITS)
    test = torch.zeros_like(known) if test is None else test & known
    if train is None:
        train = known & ~test if val is None else known & ~test & ~val
    if val is None or not bool(val.any()):
        fraction = real_number("validation_fraction", validation_fraction, 0, 1)
        if fraction == 1:
            raise UsageError(f"validation_fraction must leave {unit}s to train on, got 1")
        if fraction == 0:
            val = train
        else:
            drawn = (train & known).numpy()
            numbers = labels.y.dtype.kind == "f"
            groups = _groups(labels.y, drawn, fraction) if numbers else labels.y
            train, val, _ = fraction_split(groups, drawn, fraction, 0.0, seed)
            if not bool(val.any()):
                few = (
                    f"n_samples={drawn.sum()} is too few"
                    if numbers
                    else "no class has enough labels"
                )
                raise UsageError(
                    f"{few} to spare one for validation: label more {unit}s, or validate on "
                    f"the training {unit}s with validation_fraction=0"
                )
    return {"train_mask": train, "val_mask": val, "test_mask": test}


def _groups(y: Array, drawn: Array, fraction: float) -> Array:
    """Groups of nodes with similar targets, up to ten, from which validation nodes are drawn.

    So the targets of few validation nodes differ, which R² needs.
    """
    number = int(np.clip(drawn.sum() * min(fraction, 1 - fraction), 1, 10))
    if number == 1:
        return np.zeros(len(y), dtype=np.int64)
    return np.searchsorted(np.quantile(y[drawn], np.arange(1, number) / number), y)
