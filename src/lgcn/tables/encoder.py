"""The columns of a node table as a feature matrix, fitted to training rows and unlabelled rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.graph.csr import sparse_features
from lgcn.tables.cell_options import CellOptions, Reading
from lgcn.tables.cells import Tally
from lgcn.tables.column_encoders import (
    CategoryEncoder,
    ColumnEncoder,
    NumberEncoder,
    TextEncoder,
    read_column,
)
from lgcn.tables.column_kinds import Kind, infer, named_kind, unread_note
from lgcn.tables.columns import column_hint, listed, row_name, without_views
from lgcn.tables.list_encoder import ListEncoder
from lgcn.utils import stored_json
from lgcn.utils.numbers import whole_number
from lgcn.utils.row_blocks import row_blocks

FORMAT = 1
_BY_DEFAULT = CellOptions()
# Features are stored sparse if there are many and few of them differ from zero. A sparse entry
# takes three times the memory of a dense one, and a dense product is several times faster.
SPARSE_WIDTH, SPARSE_SHARE = 256, 0.1


class NoFeatures(DataError):
    """No column can become a feature.

    Args:
        notes: Why, column by column.
    """

    def __init__(self, notes: Sequence[str]) -> None:
        why = "; ".join(notes[:5]) or "the table has no feature column"
        super().__init__(
            f"no feature is left: {why}. Add a column that varies over the training rows"
        )
        self.notes = list(notes)


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
        self,
        columns: Sequence[ColumnEncoder],
        notes: Sequence[str],
        sparse: bool,
        na_values: tuple[str, ...] = (),
    ) -> None:
        self._columns = tuple(columns)
        self._na_values = na_values
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
        cells: CellOptions = _BY_DEFAULT,
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
            cells: How numbers, dates and missing values in strings are written. (default: found
                out, see `lgcn.tables.column_kinds.infer`)
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
        for name, found in _kinds(table, named, cells).items():
            data = without_views(table.column(name))
            kind = found.kind
            column: ColumnEncoder | None = None
            if kind is None:
                note = f"left out: it {found.reason}"
            elif kind == "category":
                column, note = CategoryEncoder.fit(name, data, rows, found.reading)
            elif kind == "text":
                column, note = TextEncoder.fit(name, data, rows, max_words, found.reading)
            elif kind in ("list", "long"):
                column, note = ListEncoder.fit(name, data, rows, kind, found.reading)
            else:
                column, note = NumberEncoder.fit(name, data, rows, kind, first_line, found.reading)
            if column is not None:
                columns.append(column)
            notes += [f"column {name!r} {note}" for note in (*found.notes, note) if note]
        if not columns:
            raise NoFeatures(notes)
        width = sum(column.width for column in columns)
        entries = sum(column.entries for column in columns)
        is_sparse = width >= SPARSE_WIDTH and entries <= SPARSE_SHARE * width
        return cls(columns, notes, is_sparse, tuple(cells.na_values))

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

    def read_as(self, cells: CellOptions) -> FeatureEncoder:
        """This encoder for tables whose text is written differently.

        Args:
            cells: How; what is `"auto"` stays as it was in training, and words for missing values
                are added.
        """
        if cells == _BY_DEFAULT:
            return self
        decimal = None if cells.decimal == "auto" else cells.decimal
        order = None if cells.date_order == "auto" else cells.date_order
        na_values = tuple(dict.fromkeys((*self._na_values, *cells.na_values)))
        columns = [
            replace(
                column,
                reading=Reading(
                    decimal or column.reading.decimal,
                    order or column.reading.date_order,
                    na_values,
                ),
            )
            for column in self._columns
        ]
        return FeatureEncoder(columns, self.notes, self._sparse, na_values)

    @property
    def comma_columns(self) -> tuple[str, ...]:
        """Number columns with decimal commas; a text file must not read 1.234 in them as 1.234."""
        return tuple(
            c.name for c in self._columns if c.kind == "number" and c.reading.decimal == ","
        )

    def transform(
        self, table: Any, *, first_line: int | None = None, surprises: Surprises | None = None
    ) -> Tensor:
        """The features of a table's rows, [N, F] in float32.

        The layout is `sparse_csr` if the encoder gives many features of which few differ from zero.
        Other columns are ignored. Categories that `fit` did not see become zeros, and cells that
        are no number or date count as missing, with one warning per column.

        Args:
            table: A `pyarrow.Table` that has all of `columns`.
            first_line: As in `fit`.
            surprises: Counts such cells instead of warnings, for tables in parts. (default: warn)
        """
        names = {column.name for column in self._columns}
        there = set(table.column_names)
        missing = [column.name for column in self._columns if column.name not in there]
        if missing:
            raise DataError(
                f"the table lacks the column{'s' if len(missing) > 1 else ''} {listed(missing)}, "
                "which the features are made of: add them, with empty cells if nothing is "
                f"known; {column_hint(missing[0], table.column_names)}"
            )
        if not self._columns:
            return torch.zeros(table.num_rows, 0)
        _check_distinct(name for name in table.column_names if name in names)
        found = Surprises() if surprises is None else surprises
        found.rows += table.num_rows
        blocks = self._blocks(table, found, first_line)
        x = self._sparse_rows(blocks) if self._sparse else self._dense_rows(blocks, table.num_rows)
        if surprises is None:
            for message in found.messages(self):
                warnings.warn(message, stacklevel=2)
        return x

    def _blocks(
        self, table: Any, surprises: Surprises, first_line: int | None
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
                parts.append(column.encode(cells, where, surprises.of(column.name)))
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
        stored = {
            "format": FORMAT,
            "sparse": self._sparse,
            "columns": [column.to_dict() for column in self._columns],
            "notes": list(self.notes),
        }
        return stored | ({"na_values": list(self._na_values)} if self._na_values else {})

    @classmethod
    def from_dict(cls, stored: Any) -> FeatureEncoder:
        """The encoder that `to_dict` described; anything else raises `DataError`."""
        what = "a stored encoder"
        names = ("format", "sparse", "columns", "notes")
        stored = stored_json.fields(stored, what, *names, optional=("na_values",))
        if type(stored["format"]) is not int or stored["format"] != FORMAT:
            raise DataError(
                f"{what} must have format {FORMAT}, got {stored['format']!r:.80}; this version of "
                "lgcn reads no other"
            )
        described = stored["columns"]
        if not isinstance(described, list):  # empty for a table without features
            raise DataError(f"columns of {what} must be a list of columns")
        words = stored_json.strings(stored.get("na_values", []), f"na_values of {what}")
        try:
            na_values = tuple(CellOptions(na_values=words).na_values)
        except UsageError as error:
            raise DataError(f"{what}: {error}") from None
        columns = [
            read_column(column, f"column {i} of {what}", na_values)
            for i, column in enumerate(described)
        ]
        _check_distinct(column.name for column in columns)
        notes = stored_json.strings(stored["notes"], f"notes of {what}")
        is_sparse = stored_json.truth(stored["sparse"], f"sparse of {what}")
        return cls(columns, notes, is_sparse, na_values)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self._columns)
        return f"FeatureEncoder({kinds}; num_features={self.num_features})"


class Surprises:
    """Cells that an encoder did not expect, counted per column over tables or parts of one."""

    def __init__(self) -> None:
        self.rows = 0
        self._tallies: dict[str, Tally] = {}

    def of(self, column: str) -> Tally:
        return self._tallies.setdefault(column, Tally())

    def messages(self, encoder: FeatureEncoder, *, numbers: bool = True) -> list[str]:
        """One sentence per column.

        Args:
            encoder: The encoder.
            numbers: Whether to speak of cells that are no number or date. (default: `True`; not
                needed for the table that the encoder was fitted to, where its notes do)
        """
        found = []
        for column in encoder.columns:
            tally = self.of(column.name)
            if not tally.total:
                continue
            if column.kind == "category":
                found.append(
                    f"column {column.name!r} has categories in {tally.total} rows that the encoder "
                    "has not seen in the rows it was fitted on, for example "
                    f"{listed(tally.examples)}; they become zeros"
                )
            elif numbers:
                note = unread_note(column.kind, tally.total, self.rows, tally.examples)
                found.append(f"column {column.name!r} {note}")
        return found


def _kinds(table: Any, named: dict[str, str], cells: CellOptions) -> dict[str, Kind]:
    """The kind of each column that the user does not ignore.

    A column whose cells do not show which decimal separator they have follows the other columns,
    if these agree.
    """

    def kind_of(name: str, usual: str | None) -> Kind:
        data, argument = without_views(table.column(name)), named.get(name)
        if argument is None:
            return infer(data, cells, usual)
        return named_kind(data, name, argument, cells, usual)

    names = [name for name in table.column_names if named.get(name) != "ignore_columns"]
    found = {name: kind_of(name, None) for name in names}
    columns = [kind for kind in found.values() if kind.kind == "number"]
    decimals = {kind.reading.decimal for kind in columns if kind.decided}
    if len(decimals) == 1:
        usual = decimals.pop()
        for name, kind in found.items():
            if kind.is_open:
                found[name] = kind_of(name, usual)
            elif not kind.decided:  # so that new tables are read alike
                reading = replace(kind.reading, decimal=usual)
                found[name] = kind._replace(reading=reading)
    return found


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
