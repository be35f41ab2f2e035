"""Columns of numbers with a meaning of their own: targets of a regression, and weights of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.tables.cell_options import CellOptions, Reading
from lgcn.tables.cells import Tally
from lgcn.tables.column_kinds import infer
from lgcn.tables.columns import CellError, is_single, numbers, one_column, row_name, storage
from lgcn.tables.labels import ColumnLabels


def read_targets(
    table: Any,
    columns: Sequence[str],
    separator: str | None = None,
    *,
    first_line: int | None = None,
    need_different: bool = True,
    cells: CellOptions | None = None,
) -> ColumnLabels:
    """Reads the label column of a regression: a number per row, nothing for rows to predict.

    Args:
        table: A `pyarrow.Table`.
        columns: The name of the column, the only one.
        separator: Must be `None`: a row has one target. (default: none)
        first_line: As in `lgcn.tables.labels.read_label_columns`.
        need_different: Whether targets must differ, as in training. (default: `True`)
        cells: How the text in cells is read. (default: by their look)
    """
    if len(columns) != 1 or separator is not None:
        found = f"label_column names {len(columns)}" if len(columns) != 1 else "label_separator"
        raise UsageError(f"task='regression' needs one label column with a number per row: {found}")
    what = f"label column {columns[0]!r}"
    column = one_column(table, columns[0], "label_column")
    values, notes = _read(column, columns[0], what, first_line, cells)
    known = ~np.isnan(values)
    if need_different:
        if not known.any():
            raise DataError(f"{what} has no number; fill it in for the rows to train on")
        if values[known].min() == values[known].max():
            raise DataError(
                f"{what} has the same number in all {known.sum()} labelled rows, "
                f"{values[known][0]:g}: there is nothing to learn. Name another column"
            )
    return ColumnLabels(torch.from_numpy(values), (), known, notes)


def read_sample_weight(
    table: Any,
    column: str,
    known: Any,
    *,
    first_line: int | None = None,
    cells: CellOptions | None = None,
) -> Tensor:
    """Reads the column with the weight of each row in the loss, numbers of at least 0.

    Args:
        table: A `pyarrow.Table`.
        column: Name of the column.
        known: Boolean mask of the rows that have a label. Others may have no weight; it is 0 then.
        first_line: As in `lgcn.tables.labels.read_label_columns`.
        cells: As in `read_targets`.
    """
    what = f"sample_weight_column {column!r}"
    data = one_column(table, column, "sample_weight_column")
    weights, _ = _read(data, column, what, first_line, cells)
    wrong = (weights < 0) | (np.isnan(weights) & np.asarray(known))
    if wrong.any():
        row = int(wrong.argmax())
        got = "an empty cell" if math.isnan(weights[row]) else f"{weights[row]:g}"
        raise DataError(
            f"{what}, {row_name(row, first_line)}: want a weight of at least 0, got {got}"
        )
    weights = np.nan_to_num(weights)
    if weights.max(initial=0) > np.finfo(np.float32).max:
        raise DataError(f"{what} has weights up to {weights.max():.2g}, beyond what float32 holds")
    if np.asarray(known).any() and not weights[known].sum() > 0:
        raise DataError(f"{what}: the weights of all labelled rows sum to zero; raise some")
    return torch.from_numpy(weights.astype(np.float32))


def _read(
    column: Any, name: str, what: str, first_line: int | None, cells: CellOptions | None
) -> tuple[Any, tuple[str, ...]]:
    """The numbers of a column in float64, NaN where a cell is empty; and notes on its cells."""
    if not is_single(column) or storage(column) == "date":
        raise DataError(f"{what} holds {column.type}; want a number per row")
    reading, unread = Reading(), None
    notes: tuple[str, ...] = ()
    if storage(column) == "string":
        found = infer(column, CellOptions() if cells is None else cells)
        if found.kind == "number":  # else the first cell that is none is an error
            reading, unread = found.reading, Tally()
            notes = tuple(f"{what} {note}" for note in found.notes)
    try:
        values = numbers(
            column, "number", name, 1, lambda row: row_name(row, first_line), reading, unread
        )
    except CellError as error:
        raise DataError(f"{what}: {error.remedy}") from error
    values = np.array(values[:, 0])  # a copy: columns of Arrow are read-only
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DataError(f"{what}, {row_name(row, first_line)}: want a finite number, got infinity")
    return values, notes
