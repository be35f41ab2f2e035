"""The columns of a node table as a feature matrix, fitted to training rows and unlabelled rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from scipy import sparse
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.graph.csr import sparse_features
from lgcn.tables.column_encoders import (
    CategoryEncoder,
    ColumnEncoder,
    NumberEncoder,
    TextEncoder,
    read_column,
)
from lgcn.tables.column_kinds import infer, named_kind
from lgcn.tables.columns import column_hint, listed, row_name, without_views
from lgcn.tables.list_encoder import ListEncoder
from lgcn.utils import stored_json
from lgcn.utils.numbers import whole_number
from lgcn.utils.row_blocks import row_blocks

FORMAT = 1
# Features are stored sparse if there are many and few of them differ from zero. A sparse entry
# takes three times the memory of a dense one, and a dense product is several times faster.
SPARSE_WIDTH, SPARSE_SHARE = 256, 0.1


class ColumnInfo(NamedTuple):
    """A column that became features: its name, its kind and how many features it gives."""

    name: str
    kind: str
    width: int


class FeatureEncoder:
    """Columns of a table as a feature matrix: numbers scaled, categories one-hot, texts TF-IDF.

    | kind | features |
    |---|---|
    | number | (value - mean) / deviation; missing values count as the mean. Booleans are 0 and 1 |
    | date | the same of the seconds since 1970 (of a time of day or a duration: its seconds) |
    | vector | a list of numbers per row, each scaled like a number column |
    | category | one feature per category, 1 if the row has it; missing and unseen: all zero |
    | text | TF-IDF of the most frequent words, by scikit-learn's `TfidfVectorizer` |
    | list | one feature per item that the lists hold, 1 if the row's list has it |
    | long | one feature per name in a table of (node, feature, value), scaled by the largest |

    Made by `fit`, which learns from the allowed rows only, or by `from_dict`. `notes`
    says what a user should know: which columns were left out, and why.
    """

    def __init__(
        self, columns: Sequence[ColumnEncoder], notes: Sequence[str], sparse: bool
    ) -> None:
        self._columns = tuple(columns)
        self._sparse = sparse
        self.notes = list(notes)

    @classmethod
    def fit(
        cls,
        table: Any,
        rows: Any,
        *,
        numeric: str | Sequence[str] = (),
        categorical: str | Sequence[str] = (),
        text: str | Sequence[str] = (),
        lists: str | Sequence[str] = (),
        ignore: str | Sequence[str] = (),
        max_words: int = 2000,
        first_line: int | None = None,
    ) -> FeatureEncoder:
        """Learns scales, categories and words.

        Args:
            table: A `pyarrow.Table` of feature columns, no ids or labels.
            rows: Boolean mask of the rows to learn from: training rows and rows without a label.
            numeric, categorical, text, lists: Columns of these kinds. (default: what
                `lgcn.tables.column_kinds.infer` takes a column for)
            ignore: Columns to leave out. (default: none)
            max_words: Largest number of features of a text column. (default: 2000)
            first_line: Line of the first row in its file; messages then speak of lines. (default:
                of rows, counted from 0)
        """
        rows = np.asarray(rows)
        if rows.dtype != np.bool_ or rows.shape != (table.num_rows,):
            raise ValueError(
                f"rows must be a boolean mask of the {table.num_rows} rows, got {rows.dtype} in "
                f"shape {list(rows.shape)}"
            )
        max_words = whole_number("max_words", max_words, 1)
        _check_distinct(table.column_names)
        named = _check_named(
            table,
            numeric_columns=numeric,
            categorical_columns=categorical,
            text_columns=text,
            list_columns=lists,
            ignore_columns=ignore,
        )
        if not rows.any():
            raise DataError(
                "no row is left to learn the features' scales from: all rows are validation or "
                "test rows, or the table is empty. Label some rows for training"
            )
        columns: list[ColumnEncoder] = []
        notes: list[str] = []
        for name in table.column_names:
            argument = named.get(name)
            if argument == "ignore_columns":
                continue
            data = without_views(table.column(name))
            if argument is None:
                kind, reason = infer(data, pa.array(rows))
            else:
                kind, reason = named_kind(data, pa.array(rows), name, argument)
            column: ColumnEncoder | None = None
            if kind is None:
                note = f"left out: it {reason}"
            elif kind == "category":
                column, note = CategoryEncoder.fit(name, data, rows)
            elif kind == "text":
                column, note = TextEncoder.fit(name, data, rows, max_words)
            elif kind in ("list", "long"):
                column, note = ListEncoder.fit(name, data, rows, kind)
            else:
                column, note = NumberEncoder.fit(name, data, rows, kind, first_line)
            if column is not None:
                columns.append(column)
            if note:
                notes.append(f"column {name!r} {note}")
        if not columns:
            why = "; ".join(notes[:5]) or "the table has no feature column"
            raise DataError(
                f"no feature is left: {why}. Add a column that varies over the training rows"
            )
        width = sum(column.width for column in columns)
        entries = sum(column.entries for column in columns)
        return cls(columns, notes, width >= SPARSE_WIDTH and entries <= SPARSE_SHARE * width)

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        """The columns that became features, in their order in x."""
        return tuple(ColumnInfo(c.name, c.kind, c.width) for c in self._columns)

    @property
    def num_features(self) -> int:
        return sum(column.width for column in self._columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per feature: `age`, `embedding[0]`, `color=red`, `title:graph`."""
        return tuple(name for column in self._columns for name in column.feature_names())

    def transform(self, table: Any, *, first_line: int | None = None) -> Tensor:
        """The features of a table's rows, [N, F] in float32.

        The layout is `sparse_csr` if the encoder gives many features of which few differ from zero.
        Other columns are ignored. Categories that `fit` did not see become zeros, with one warning
        per column.

        Args:
            table: A `pyarrow.Table` that has all of `columns`.
            first_line: As in `fit`.
        """
        unseen = {column.name: Counter[str]() for column in self._columns}
        there = set(table.column_names)
        missing = [name for name in unseen if name not in there]
        if missing:
            raise DataError(
                f"the table lacks the column{'s' if len(missing) > 1 else ''} {listed(missing)}, "
                "which the features are made of: add them, with empty cells if nothing is "
                f"known; {column_hint(missing[0], table.column_names)}"
            )
        _check_distinct(name for name in table.column_names if name in unseen)
        blocks = self._blocks(table, unseen, first_line)
        x = self._sparse_rows(blocks) if self._sparse else self._dense_rows(blocks, table.num_rows)
        for name, counts in unseen.items():
            if counts:
                warnings.warn(
                    f"column {name!r} has categories in {counts.total()} rows that the encoder has "
                    "not seen in the rows it was fitted on, for example "
                    f"{listed(list(counts), 3)}; they become zeros",
                    stacklevel=2,
                )
        return x

    def _blocks(
        self, table: Any, unseen: dict[str, Counter[str]], first_line: int | None
    ) -> Iterator[tuple[int, list[Any]]]:
        """(First row, a matrix of each column), in blocks of rows: what lies between the table and
        x stays small and in the cache.
        """
        step = min(max(2**18 // self.num_features, 2**12), 2**16)
        for start, stop in row_blocks(table.num_rows, step):

            def where(i: int, start: int = start) -> str:
                return row_name(start + i, first_line)

            parts = []
            for column in self._columns:
                cells = table.column(column.name).slice(start, stop - start)
                parts.append(column.encode(cells, where, unseen[column.name]))
            yield start, parts

    def _dense_rows(self, blocks: Iterator[tuple[int, list[Any]]], size: int) -> Tensor:
        x = np.zeros((size, self.num_features), dtype=np.float32)
        for start, parts in blocks:
            offset = 0
            for part in parts:
                stop = start + part.shape[0]
                if isinstance(part, np.ndarray):
                    x[start:stop, offset : offset + part.shape[1]] = part
                else:
                    row = np.repeat(np.arange(start, stop), np.diff(part.indptr))
                    x[row, offset + part.indices] = part.data
                offset += part.shape[1]
        return torch.from_numpy(x)

    def _sparse_rows(self, blocks: Iterator[tuple[int, list[Any]]]) -> Tensor:
        counts: list[Any] = [np.zeros(1, dtype=np.int64)]
        col: list[Any] = [np.empty(0, dtype=np.int32)]
        values: list[Any] = [np.empty(0, dtype=np.float32)]
        for _, parts in blocks:
            matrix = sparse.hstack([sparse.csr_matrix(part) for part in parts], format="csr")
            matrix.sort_indices()
            counts.append(np.diff(matrix.indptr))
            col.append(matrix.indices.astype(np.int32))
            values.append(matrix.data.astype(np.float32))
        return sparse_features(
            torch.from_numpy(np.concatenate(counts).cumsum()),
            torch.from_numpy(np.concatenate(col, dtype=np.int64)),
            torch.from_numpy(np.concatenate(values)),
            self.num_features,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything that `from_dict` needs, as JSON can hold it."""
        return {
            "format": FORMAT,
            "sparse": self._sparse,
            "columns": [column.to_dict() for column in self._columns],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: Any) -> FeatureEncoder:
        """The encoder that `to_dict` described; anything else raises `DataError`."""
        what = "a stored encoder"
        stored = stored_json.fields(stored, what, "format", "sparse", "columns", "notes")
        if type(stored["format"]) is not int or stored["format"] != FORMAT:
            raise DataError(
                f"{what} must have format {FORMAT}, got {stored['format']!r:.80}; this version of "
                "lgcn reads no other"
            )
        described = stored["columns"]
        if not isinstance(described, list) or not described:
            raise DataError(f"columns of {what} must be a list of at least one column")
        columns = [
            read_column(column, f"column {i} of {what}") for i, column in enumerate(described)
        ]
        _check_distinct(column.name for column in columns)
        notes = stored_json.strings(stored["notes"], f"notes of {what}")
        return cls(columns, notes, stored_json.truth(stored["sparse"], f"sparse of {what}"))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self._columns)
        return f"FeatureEncoder({kinds}; num_features={self.num_features})"


def _check_named(table: Any, **named: str | Sequence[str]) -> dict[str, str]:
    """The argument that names each column. A column must exist, and be named once."""
    there = table.column_names
    place: dict[str, str] = {}
    for argument, names in named.items():
        for name in [names] if isinstance(names, str) else names:
            if name not in there:
                raise UsageError(
                    f"{argument} names {name!r}, which is not a feature column; "
                    f"{column_hint(name, there)}"
                )
            if name in place:
                raise UsageError(
                    f"column {name!r} is named twice, in {place[name]} and in {argument}; "
                    "name it once"
                )
            place[name] = argument
    return place


def _check_distinct(names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{count} columns have the name {name!r}; rename all but one")
