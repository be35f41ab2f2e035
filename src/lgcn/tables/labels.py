"""Label and split columns of a node table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.tables.cell_options import CellOptions
from lgcn.tables.cells import read_cells
from lgcn.tables.column_kinds import infer
from lgcn.tables.columns import (
    is_single,
    listed,
    one_column,
    quoted,
    row_name,
    storage,
    texts,
)
from lgcn.tables.missing_words import missing_words

_FLAGS = {"0": 0, "false": 0, "1": 1, "true": 1}
_SPLITS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
    "testing": 2,
}


class ColumnLabels(NamedTuple):
    """The labels of a table's rows.

    `y` is [N] with -1 if no class is known, [N, L] of zeros and ones (rows of zeros if nothing
    is known), or for a regression [N] in float64 with NaN; `names` the classes or labels; `known`
    the rows that have a label; `notes` what a user should know about cells that count as empty.
    """

    y: Tensor
    names: tuple[str, ...]
    known: np.ndarray[Any, np.dtype[np.bool_]]
    notes: tuple[str, ...] = ()


def read_label_columns(
    table: Any,
    columns: str | Sequence[str],
    separator: str | None = None,
    names: Sequence[str] | None = None,
    *,
    first_line: int | None = None,
    task: str = "auto",
    na_values: Sequence[str] = (),
) -> ColumnLabels:
    """Reads the label column or columns of a table.

    One column is one class per row. Blanks around a name do not count, and a row with an empty cell
    can be predicted. A column of lists, or of strings that `separator` splits, is several labels
    per row.
    Several columns are one label each, with 0 and 1 or false and true in them; a row with an empty
    cell in any of them can be predicted. Words for nothing (such as NA or NaN, see
    `lgcn.tables.missing_words`) count as empty cells, and so does -1 among classes 0, 1, ... (but
    not if the classes are -1 and 1). The notes say what counted as empty.

    Args:
        table: A `pyarrow.Table`.
        columns: Name of the column, or names of several.
        separator: Separates the labels in a cell, such as `";"`. (default: a cell is one label)
        names: The labels that a model knows; others are an error, and a table need not have any.
            (default: those in the table, sorted, numbers by size)
        first_line: Line of the first row in its file; messages then speak of lines. (default: of
            rows, counted from 0)
        task: `"classification"` if numbers are surely classes. (default: `"auto"`, numbers that
            look like a quantity are an error that asks for the task)
        na_values: More words for nothing. (default: none)
    """
    columns = [columns] if isinstance(columns, str) else list(columns)
    if not columns:
        raise UsageError("label_column must name at least one column, got none")
    if len(set(columns)) < len(columns):
        raise UsageError(f"label_column must name every column once, got {', '.join(columns)}")
    data = [one_column(table, name, "label_column") for name in columns]

    def where(row: int) -> str:
        return row_name(row, first_line)

    if len(columns) > 1:
        if separator is not None:
            raise UsageError(
                "label_separator is for one label column, but label_column names "
                f"{len(columns)}; omit one of the two"
            )
        return _from_columns(columns, data, names, where, na_values)
    column, name = data[0], columns[0]
    if _is_list(column.type):
        if separator is not None:
            raise UsageError(
                f"label_separator is for strings, but {name!r} already holds lists; omit it"
            )
        return _from_lists(column, name, names, where, na_values)
    if not is_single(column):
        raise DataError(
            f"label column {name!r} holds {column.type}; want a string or number per row"
        )
    cells = texts(column)
    if separator is not None:
        if not separator:
            raise UsageError("label_separator must be at least one character, got an empty string")
        return _from_lists(pc.split_pattern(cells, separator), name, names, where, na_values)
    cells, notes = _without_empty(cells, name, names, na_values, minus_one=True)
    if names is None and task == "auto":
        _refuse_quantity(cells, name, na_values)
    classes = _classes(cells, name, names, notes)
    y = _codes(cells, name, classes, where)
    return ColumnLabels(torch.from_numpy(y), classes, y >= 0, notes)


def read_split(
    table: Any, column: str, known: Any, *, first_line: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of training, validation and test rows from a column that names the split of each.

    The words are train, val (valid, validation) and test in any case; an empty cell is a row in no
    split, and so is a row without a label, which cannot be trained on or scored.

    Args:
        table: A `pyarrow.Table`.
        column: Name of the column.
        known: Boolean mask of the rows that have a label.
        first_line: As in `read_label_columns`.
    """
    split = _words(
        one_column(table, column, "split_column"),
        f"split column {column!r}",
        _SPLITS,
        "train, val or test",
        lambda row: row_name(row, first_line),
    )
    split[~np.asarray(known)] = -1
    train_mask, val_mask, test_mask = (torch.from_numpy(split == number) for number in range(3))
    if not train_mask.any():
        raise DataError(
            f"split column {column!r} marks no labelled row as train; mark those to train on"
        )
    return train_mask, val_mask, test_mask


def _words(
    column: Any,
    what: str,
    words: Mapping[str, int],
    wanted: str,
    where: Callable[[int], str],
    remedy: str = "",
) -> Any:
    """The number that stands for each cell's word, in any case; -1 if the cell is empty."""
    if not is_single(column):
        raise DataError(f"{what} holds {column.type}; want {wanted}")
    cells = pc.utf8_lower(texts(column))
    index = pc.index_in(cells, value_set=pa.array(list(words), pa.large_string()))
    wrong = pc.and_(pc.is_null(index), pc.is_valid(cells)).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{what}, {where(row)}: want {wanted} (or an empty cell), got "
            f"{quoted(column[row].as_py())}{remedy}"
        )
    return np.array([*words.values(), -1])[pc.fill_null(index, -1).to_numpy()]


def _is_list(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _without_empty(
    cells: Any,
    column: str,
    names: Sequence[str] | None,
    na_values: Sequence[str],
    *,
    minus_one: bool = False,
) -> tuple[Any, tuple[str, ...]]:
    """The cells with null if a string stands for nothing, and a note on these.

    Args:
        cells: What `texts` returns.
        column: Its name.
        names: The labels that a model knows, which are never nothing. (default: any)
        na_values: The user's words for nothing.
        minus_one: Whether -1 is nothing among whole numbers of at least 0. (default: `False`)
    """
    signs = bool(pc.any(pc.equal(cells, "+")).as_py())
    words = set(missing_words(na_values, signs=signs))
    if minus_one and pc.any(pc.equal(cells, "-1")).as_py():
        others = set(pc.unique(cells.drop_null()).to_pylist() if names is None else names)
        others -= {"-1", *words}
        if others != {"1"} and all(name.isdecimal() for name in others):
            words.add("-1")
    words -= set(names or ())
    empty = pc.is_in(cells, value_set=pa.array(words, pa.large_string()))
    counts = pc.value_counts(cells.filter(empty)).to_pylist()
    if not counts:
        return cells, ()
    found = ", ".join(f"{quoted(c['values'])} ({c['counts']})" for c in counts)
    note = (
        f"label column {column!r} has cells that count as no label: {found}. If it is a class, "
        "give that class another name"
    )
    return pc.if_else(empty, pa.scalar(None, cells.type), cells), (note,)


def _classes(
    cells: Any, column: str, names: Sequence[str] | None, notes: Sequence[str]
) -> tuple[str, ...]:
    """The names given, or those in the cells after a check that they can be classes."""
    if names is not None:
        return tuple(names)
    cells = cells.drop_null()
    found = pc.unique(cells).to_pylist()
    also = "".join(f". The {note}" for note in notes)
    if not found:
        raise DataError(
            f"label column {column!r} has no label; fill it in for the rows to train on{also}"
        )
    if len(found) == 1:
        raise DataError(
            f"label column {column!r} has one class only, {quoted(found[0])}; want two or "
            f"more. Fill in rows of another class, or name another column{also}"
        )
    if len(found) > max(20, len(cells) / 2):
        raise DataError(
            f"label column {column!r} has {len(found)} different values in {len(cells)} labelled "
            f"rows, such as {listed(found[:2])}: want classes that repeat. Name another "
            "column, or group its values"
        )
    try:
        numbers = {name: float(name) for name in found}
    except ValueError:
        return tuple(sorted(found))
    if not all(map(math.isfinite, numbers.values())):  # a class may be called "inf"
        return tuple(sorted(found))
    return tuple(sorted(found, key=lambda name: (numbers[name], name)))


def _refuse_quantity(cells: Any, column: str, na_values: Sequence[str]) -> None:
    """Raises DataError if the labels look like a number to predict rather than like classes.

    That is: more than ten values that are amounts such as € 1.234,50 or 12 %, or that are not all
    whole numbers; or more than twenty whole numbers, unless they are 0, 1, 2, ... or 1, 2, 3, ...
    and at most a hundred that occur five times each.
    """
    counts = cells.drop_null()
    found = pc.unique(counts).to_pylist()
    if len(found) <= 10:
        return
    amounts = False
    try:
        numbers = [float(name) for name in found]
    except ValueError:
        kind = infer(counts, CellOptions(na_values=tuple(na_values)))
        if kind.kind != "number":
            return
        values, wrong = read_cells(pa.array(found, pa.large_string()), "number", kind.reading)
        numbers = np.delete(values, wrong).tolist()
        amounts = not len(wrong)
    if not all(map(math.isfinite, numbers)):
        return
    if not amounts and all(map(float.is_integer, numbers)):
        low, high = min(numbers), max(numbers)
        in_order = low in (0, 1) and high - low + 1 == len(found)
        if len(found) <= 20 or (in_order and len(found) <= min(100, len(counts) / 5)):
            return
    raise DataError(
        f"label column {column!r} has {len(found)} different numbers in {len(counts)} labelled "
        f"rows, such as {listed(found[:3])}. To predict the number, give task='regression'; if "
        "each number is a class, give task='classification'"
    )


def _codes(
    cells: Any, column: str, classes: Sequence[str], where: Callable[[int], str]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of each cell's class, -1 if it is null."""
    index = pc.index_in(cells, value_set=pa.array(list(classes), pa.large_string()))
    codes: np.ndarray[Any, np.dtype[np.int64]] = pc.fill_null(index, -1).to_numpy().astype(np.int64)
    wrong = (codes < 0) & pc.is_valid(cells).to_numpy()
    if wrong.any():
        i = int(wrong.argmax())
        raise DataError(
            f"label column {column!r}, {where(i)}: {quoted(cells[i].as_py())} is not a label the "
            f"model knows ({listed(classes)}). Empty the cell, or train a model on tables that "
            "have this label"
        )
    return codes


def _from_lists(
    lists: Any,
    column: str,
    names: Sequence[str] | None,
    where: Callable[[int], str],
    na_values: Sequence[str],
) -> ColumnLabels:
    """Labels from a column of lists."""
    cells = pc.list_flatten(lists)
    if not is_single(cells):
        raise DataError(f"label column {column!r} holds {lists.type}; want lists of strings")
    cells, notes = _without_empty(texts(cells), column, names, na_values)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    row = np.repeat(np.arange(len(lists)), lengths)
    classes = _classes(cells, column, names, notes)
    filled = lengths[lengths > 0]
    if set(classes) <= set(_FLAGS) and len(filled) and filled.min() == filled.max() > 1:
        raise DataError(
            f"label column {column!r} holds lists of {filled[0]} zeros and ones, where a list must "
            "have the names of a row's labels. Use one column per label, and name them all in "
            "label_column"
        )
    codes = _codes(cells, column, classes, lambda i: where(int(row[i])))
    row, codes = row[codes >= 0], codes[codes >= 0]
    y = torch.zeros(len(lists), len(classes))
    y.numpy()[row, codes] = 1
    known = np.zeros(len(lists), dtype=bool)
    known[row] = True
    return ColumnLabels(y, classes, known, notes)


def _from_columns(
    columns: list[str],
    data: list[Any],
    names: Sequence[str] | None,
    where: Callable[[int], str],
    na_values: Sequence[str],
) -> ColumnLabels:
    """Labels from one column each."""
    if names is not None:
        if set(names) != set(columns):
            raise DataError(
                f"the label columns must be those of the model, {listed(names)}, got "
                f"{listed(columns)}"
            )
        data = [data[columns.index(name)] for name in names]
        columns = list(names)
    y = torch.zeros(len(data[0]), len(columns))
    known = np.ones(len(data[0]), dtype=bool)
    notes: tuple[str, ...] = ()
    for j, (name, column) in enumerate(zip(columns, data, strict=True)):
        if storage(column) == "string":
            column, found = _without_empty(texts(column), name, None, na_values)
            notes += found
        flags = _words(
            column,
            f"label column {name!r}",
            _FLAGS,
            "0 or 1, false or true",
            where,
            ". For a column of class names, name it alone in label_column",
        )
        y.numpy()[:, j] = flags
        known &= flags >= 0
    y[torch.from_numpy(~known)] = 0
    if names is None and not known.any():
        raise DataError(
            f"the label columns {listed(columns)} have no row without an empty cell; "
            "fill them in for the rows to train on"
        )
    return ColumnLabels(y, tuple(columns), known, notes)
