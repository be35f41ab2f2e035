"""Columns whose cells hold several items: lists of words or ids, and features with values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from lgcn.errors import DataError
from lgcn.tables.cell_options import Reading
from lgcn.tables.cells import Tally
from lgcn.tables.columns import LARGEST, is_single, quoted, storage, texts
from lgcn.tables.missing_words import missing_words
from lgcn.utils import stored_json

MAX_ITEMS = 100_000
LONGEST_ITEM = 1000  # characters, which a run folder keeps
SMALLEST = 1e-30  # values that are all smaller than this count as zero
LARGEST_SCALED = 1e18  # the square of a feature must fit in float32
SEPARATORS = (";", "|", ",", " ")  # of the items in a cell of text, tried in this order
BRACKETS = "[]"  # of cells such as ["x", "y"], as JSON and Python write lists
# An item between brackets: in double or single quotes, or bare.
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^,\[\]\s][^,\[\]]*)')

_BY_DEFAULT = Reading()


@dataclass(frozen=True, eq=False)
class ListEncoder:
    """One feature per item: 1 if the row has it (kind `list`), or its value (kind `long`).

    Values are divided by the largest in the rows used for fitting, as scikit-learn's `MaxAbsScaler`
    does, so that zeros stay zeros. Items that the fit did not see are left out.

    Args:
        name: The column.
        kind: `"list"` or `"long"`.
        items: The items, one feature each.
        scale: What the values of each item are divided by.
        separator: Between the items in a cell of text, or `"[]"`.
        entries: Items per row of the fit, on average.
        reading: Its words for missing values count in cells of text. (default: the usual ones)
    """

    name: str
    kind: str
    items: list[str]
    scale: list[float]
    separator: str
    entries: float
    reading: Reading = _BY_DEFAULT

    @classmethod
    def fit(
        cls, name: str, column: Any, rows: Any, kind: str, reading: Reading
    ) -> tuple[ListEncoder | None, str]:
        """The encoder, `None` if the column is left out, and a note for the user."""
        column = _without_missing(column, reading)
        separator = _find_separator(column, rows) if is_single(column) else ""
        number: dict[str, int] = {}
        counts: list[Any] = []
        largest: list[Any] = []
        total = 0
        for start, row, words, codes, values in _entries(column, separator, name):
            allowed = rows[start + row]
            values, codes = values[allowed], codes[allowed]
            _check_values(values, name)
            _check_words(words, name)
            here = np.array([number.setdefault(w, len(number)) for w in words], np.int64)[codes]
            size = len(number)
            if kind == "list":  # an item that a cell has twice counts once
                here = np.unique(row[allowed] * size + here) % size
                values = np.ones(len(here))
            counts.append(np.bincount(here, minlength=size))
            most = np.zeros(size)
            np.maximum.at(most, here, np.abs(values))
            largest.append(most)
            total += len(here)
        if total == 0:
            return None, "left out: it is empty in the rows used for fitting"
        size = len(number)
        count = np.sum([np.pad(c, (0, size - len(c))) for c in counts], axis=0)
        most = np.max([np.pad(m, (0, size - len(m))) for m in largest], axis=0)
        words = list(number)
        # An item that all rows have says nothing.
        limit = rows.sum() if kind == "list" else np.inf
        seen = [i for i in range(size) if 0 < count[i] < limit and most[i] >= SMALLEST]
        ranked = sorted(seen, key=lambda i: (-count[i], words[i]))
        kept = sorted(ranked[:MAX_ITEMS], key=lambda i: words[i])
        note = ""
        if len(kept) < len(seen):
            note = f"has {len(seen)} items; the {len(kept)} most frequent become features"
        if not kept:
            return None, "left out: all rows used for fitting have the same items"
        scale = [float(most[i]) if kind == "long" else 1.0 for i in kept]
        entries = float(count[kept].sum() / max(1, rows.sum()))
        found = cls(name, kind, [words[i] for i in kept], scale, separator, entries, reading)
        return found, note

    @property
    def width(self) -> int:
        return len(self.items)

    def feature_names(self) -> list[str]:
        return [f"{self.name}:{item}" for item in self.items]

    @cached_property
    def _value_set(self) -> Any:
        return pa.array(self.items, pa.large_string())

    def encode(self, cells: Any, where: Callable[[int], str], surprises: Tally) -> Any:
        cells = _without_missing(cells, self.reading)
        if is_single(cells) and not self.separator and storage(cells) != "null":
            raise DataError(
                f"column {self.name!r} must hold lists, got {cells.type}; give it the type it had "
                "in training"
            )
        row, col, data = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        for start, rows, words, codes, values in _entries(cells, self.separator, self.name):
            found = pc.index_in(pa.array(words, pa.large_string()), value_set=self._value_set)
            place = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)[codes]
            known = place >= 0
            _check_values(values[known], self.name)
            row.append(start + rows[known])
            col.append(place[known])
            data.append(values[known])
        shape = (len(cells), self.width)
        ends = (np.concatenate(row), np.concatenate(col))
        matrix = sparse.coo_matrix((np.concatenate(data), ends), shape=shape).tocsr()
        if self.kind == "list":
            matrix.data[:] = 1  # also of items that a cell has twice
        else:
            matrix.data /= np.array(self.scale)[matrix.indices]
        far = np.abs(matrix.data) > LARGEST_SCALED
        if far.any():
            place = int(far.argmax())
            at = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
            item = quoted(self.items[matrix.indices[place]])
            raise DataError(
                f"column {self.name!r}, {where(at)}: the value of {item} is more than "
                f"{LARGEST_SCALED:g} times the largest that the encoder was fitted on. Correct it"
            )
        matrix.data = matrix.data.astype(np.float32)
        return matrix

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "items": list(self.items),
            "scale": list(self.scale),
            "separator": self.separator,
            "entries": self.entries,
        }

    @classmethod
    def from_dict(cls, stored: Any, what: str, na_values: tuple[str, ...] = ()) -> ListEncoder:
        keys = ("name", "kind", "items", "scale", "separator", "entries")
        stored = stored_json.fields(stored, what, *keys)
        items = stored_json.strings(stored["items"], f"items of {what}", distinct=True)
        scale = stored_json.numbers(stored["scale"], f"scale of {what}", SMALLEST, LARGEST)
        if not items or len(scale) != len(items):
            raise DataError(f"{what} must have one scale per item ({len(items)}), got {len(scale)}")
        separator = stored["separator"]
        if separator not in ("", BRACKETS, *SEPARATORS):
            raise DataError(f"separator of {what} is unknown, got {quoted(separator)}")
        # A row may have an item twice.
        entries = stored_json.numbers([stored["entries"]], f"entries of {what}", 0, LARGEST)[0]
        name = stored_json.strings([stored["name"]], f"name of {what}")[0]
        reading = Reading(na_values=na_values)
        return cls(name, stored["kind"], items, scale, separator, entries, reading)


def long_column(rowptr: Any, codes: Any, values: Any, names: Any) -> Any:
    """A column of the kind `long`: for each row some features with values.

    Args:
        rowptr: Where the entries of each row begin, one more than there are rows.
        codes: The feature of each entry, as a place in `names`.
        values: The value of each entry, float64.
        names: Arrow array of the features' names.
    """
    features = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)
    pairs = pa.StructArray.from_arrays([features, pa.array(values)], ["feature", "value"])
    return pa.ListArray.from_arrays(pa.array(rowptr, pa.int32()), pairs)


def _without_missing(column: Any, reading: Reading) -> Any:
    """A column in which cells of text that stand for a missing value are null."""
    if not is_single(column) or storage(column) == "null":
        return column
    cells = texts(column)
    words = pa.array(sorted(missing_words(reading.na_values)), pa.large_string())
    missing = pc.is_in(cells, value_set=words)
    return pc.if_else(missing, pa.scalar(None, cells.type), cells)


def _entries(column: Any, separator: str, name: str) -> Iterator[tuple[int, Any, Any, Any, Any]]:
    """(First row, row of each entry after that, words, word of each entry, value of each entry)."""
    if storage(column) == "null":
        return
    if is_single(column):
        column = _split(texts(column), separator)
    elif storage(column) not in ("list", "long", "vector"):
        raise DataError(
            f"column {name!r} must hold lists of strings or of numbers, got {column.type}; "
            "give it the type it had in training"
        )
    start = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        lengths = pc.fill_null(pc.list_value_length(chunk), 0).to_numpy(zero_copy_only=False)
        row = np.repeat(np.arange(len(chunk)), lengths)
        flat = chunk.flatten()
        values: Any = np.ones(len(flat))
        if storage(pa.chunked_array([chunk])) == "long":
            feature, value = flat.flatten()
            values = value.to_numpy(zero_copy_only=False)
        else:
            feature = texts(flat).dictionary_encode()
        codes = pc.fill_null(feature.indices, -1).to_numpy(zero_copy_only=False)
        here = (codes >= 0) & ~np.isnan(values)
        yield start, row[here], feature.dictionary.to_pylist(), codes[here], values[here]
        start += len(chunk)


def _check_words(words: list[str], name: str) -> None:
    longest = max(words, key=len, default="")
    if len(longest) > LONGEST_ITEM:
        raise DataError(
            f"column {name!r}: an item must have at most {LONGEST_ITEM} characters, got "
            f"{quoted(longest)} with {len(longest)}. Check what separates the items"
        )


def _check_values(values: Any, name: str) -> None:
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        raise DataError(
            f"column {name!r}: a value must be a finite number of at most {LARGEST:g}, got "
            f"{values[int(wrong.argmax())]}"
        )


def _find_separator(column: Any, rows: Any) -> str:
    """What separates the items in cells of text, by the rows used for fitting."""
    cells = texts(column.filter(pa.array(rows))).drop_null()
    if len(cells) and pc.mean(pc.starts_with(cells, "[")).as_py() >= 0.5:
        return BRACKETS
    for separator in SEPARATORS:
        if pc.any(pc.match_substring(cells, separator)).as_py():
            return separator
    return SEPARATORS[0]


def _split(cells: Any, separator: str) -> Any:
    """Cells of text as lists of items, without blanks and empty ones."""
    if separator == BRACKETS:
        found = [
            None if cell is None else ["".join(item).strip() for item in _ITEM.findall(cell)]
            for cell in cells.to_pylist()
        ]
        return pa.chunked_array([pa.array(found, pa.list_(pa.large_string()))])
    return pc.split_pattern(cells, separator)


LIST_KINDS: Mapping[str, type[ListEncoder]] = {"list": ListEncoder, "long": ListEncoder}
