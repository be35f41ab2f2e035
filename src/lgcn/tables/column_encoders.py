"""Encoders of one column each: what they learn from the allowed rows, and how they encode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from lgcn.errors import DataError
from lgcn.tables.cell_options import DATE_ORDERS, DECIMALS, Reading
from lgcn.tables.cells import Tally
from lgcn.tables.columns import LARGEST, is_single, listed, numbers, quoted, row_name, texts
from lgcn.tables.list_encoder import LIST_KINDS, ListEncoder
from lgcn.tables.missing_words import missing_words
from lgcn.utils import stored_json
from lgcn.utils.row_blocks import row_blocks

_BY_DEFAULT = Reading()
MAX_CATEGORIES = 1000
LARGEST_SCALED = 1e18  # the square of a feature must fit in float32
LARGEST_IDF = 1e6  # far above any logarithm of a number of rows
EMPTY = "left out: it is empty in the rows used for fitting"


@dataclass(frozen=True, eq=False)
class NumberEncoder:
    """Scaled numbers, dates or lists of numbers. Deviation 0: a constant, encoded as 0."""

    name: str
    kind: str
    mean: Any
    deviation: Any
    reading: Reading = _BY_DEFAULT

    @classmethod
    def fit(
        cls,
        name: str,
        column: Any,
        rows: Any,
        kind: str,
        first_line: int | None,
        reading: Reading,
    ) -> tuple[NumberEncoder | None, str]:
        """The encoder, `None` if the column is left out, and a note for the user."""
        width = _list_length(column, rows) if kind == "vector" else 1
        found = _Moments(width)
        # Some rows at a time, so that the column is not copied as a whole.
        for start, stop in row_blocks(len(column), 2**18 // max(width, 1)):
            allowed = np.flatnonzero(rows[start:stop]) + start
            if not len(allowed):
                continue
            block = column.slice(start, stop - start)
            if len(allowed) < len(block):
                block = block.take(pa.array(allowed - start))

            def where(i: int, allowed: Any = allowed) -> str:
                return row_name(int(allowed[i]), first_line)

            # Cells that are no number are noted where the kind is found out, for all rows.
            found.add(numbers(block, kind, name, width, where, reading, Tally()))
        if not found.count.any():
            return None, EMPTY
        deviation = found.deviation()
        constant = int((deviation == 0).sum())
        if constant == width:
            value = f" ({found.low[0]:g})" if kind == "number" else ""
            return None, f"left out: it is constant{value} in the rows used for fitting"
        empty = 1 - found.count.mean() / rows.sum()
        note = ""
        if constant:
            note = f"has {constant} of {width} numbers that are constant; they become zeros"
        elif empty > 0.5:
            note = f"is empty in {empty:.0%} of the rows; they count as its mean"
        return cls(name, kind, found.mean, deviation, reading), note

    @property
    def width(self) -> int:
        return len(self.mean)

    @property
    def entries(self) -> float:
        """Features of a row that differ from zero."""
        return float(self.width)

    def feature_names(self) -> list[str]:
        if self.kind == "vector":
            return [f"{self.name}[{i}]" for i in range(self.width)]
        return [self.name]

    def encode(self, cells: Any, where: Callable[[int], str], surprises: Tally) -> Any:
        values = numbers(cells, self.kind, self.name, self.width, where, self.reading, surprises)
        with np.errstate(over="ignore"):  # infinity is refused below
            scaled = (values - self.mean) / np.where(self.deviation == 0, 1, self.deviation)
        scaled[np.isnan(scaled)] = 0
        scaled[:, self.deviation == 0] = 0
        far = np.abs(scaled) > LARGEST_SCALED
        if far.any():
            row, place = np.argwhere(far)[0]
            raise DataError(
                f"column {self.name!r}, {where(int(row))}: {values[row, place]:g} is too far from "
                f"what the encoder was fitted on (mean {self.mean[place]:g}, deviation "
                f"{self.deviation[place]:g}). Correct or empty the cell"
            )
        return scaled

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        if self.kind == "number" and self.reading.decimal != ".":
            found["decimal"] = self.reading.decimal
        if self.kind == "date" and self.reading.date_order is not None:
            found["date_order"] = self.reading.date_order
        return {"name": self.name, "kind": self.kind, **found}

    @classmethod
    def from_dict(cls, stored: Any, what: str, na_values: tuple[str, ...] = ()) -> NumberEncoder:
        names = ("name", "kind", "mean", "deviation")
        stored = stored_json.fields(stored, what, *names, optional=("decimal", "date_order"))
        kind = stored["kind"]
        mean = stored_json.numbers(stored["mean"], f"mean of {what}", -LARGEST, LARGEST)
        deviation = stored_json.numbers(stored["deviation"], f"deviation of {what}", 0, LARGEST)
        if len(mean) != len(deviation) or (kind != "vector" and len(mean) != 1):
            raise DataError(
                f"{what} must have as many means as deviations, one for a {kind}, "
                f"got {len(mean)} and {len(deviation)}"
            )
        if not any(deviation):
            raise DataError(f"{what} must have a deviation above 0")
        reading = Reading(
            _choice(stored.get("decimal", "."), f"decimal of {what}", DECIMALS),
            _choice(stored.get("date_order"), f"date_order of {what}", (None, *DATE_ORDERS)),
            na_values,
        )
        return cls(_name(stored, what), kind, np.array(mean), np.array(deviation), reading)


class _Moments:
    """Running means and deviations of matrices, ignoring NaN.

    Merged matrix by matrix (Chan, Golub and LeVeque 1979), so that a large mean loses no digits.
    """

    def __init__(self, width: int) -> None:
        self.count, self.mean, self._squares = np.zeros(width), np.zeros(width), np.zeros(width)
        self.low, self._high = np.full(width, np.inf), np.full(width, -np.inf)

    def add(self, values: Any) -> None:
        here = ~np.isnan(values)
        number = here.sum(axis=0)
        total = np.maximum(self.count + number, 1)
        mean = np.where(here, values, 0).sum(axis=0) / np.maximum(number, 1)
        self._squares += (np.where(here, values - mean, 0) ** 2).sum(axis=0)
        self._squares += (mean - self.mean) ** 2 * self.count * number / total
        self.mean += (mean - self.mean) * number / total
        self.low = np.fmin(self.low, np.fmin.reduce(values, axis=0))
        self._high = np.fmax(self._high, np.fmax.reduce(values, axis=0))
        self.count += number

    def deviation(self) -> Any:
        """0 if all values are equal, or differ by rounding only."""
        deviation = np.sqrt(self._squares / np.maximum(self.count, 1))
        noise = 8 * np.finfo(np.float64).eps * np.abs(self.mean)
        deviation[(self.low >= self._high) | (deviation <= noise)] = 0
        return deviation


def _list_length(column: Any, rows: Any) -> int:
    """The length of the first list in the allowed rows."""
    lengths = pc.list_value_length(column).filter(pa.array(rows)).drop_null()
    return lengths[0].as_py() if len(lengths) else 0


@dataclass(frozen=True, eq=False)
class CategoryEncoder:
    """One feature per category. `complete`: the fit saw no other categories."""

    name: str
    categories: list[str]
    complete: bool
    reading: Reading = _BY_DEFAULT
    kind = "category"
    entries = 1.0

    @classmethod
    def fit(
        cls, name: str, column: Any, rows: Any, reading: Reading
    ) -> tuple[CategoryEncoder | None, str]:
        """The encoder, `None` if the column is left out, and a note for the user."""
        every = texts(column)
        signs = bool(pc.any(pc.equal(every, "+")).as_py())
        cells = _without(
            every.filter(pa.array(rows)), missing_words(reading.na_values, signs=signs)
        )
        counts = pc.value_counts(cells.drop_null())
        found = pa.table({"value": counts.field("values"), "count": counts.field("counts")})
        if len(found) == 0:
            return None, EMPTY
        if len(found) == 1 and cells.null_count == 0:
            value = quoted(found["value"][0].as_py())
            return None, f"left out: it is {value} in all rows used for fitting"
        ranked = found.sort_by([("count", "descending"), ("value", "ascending")])
        kept = sorted(ranked["value"].slice(0, MAX_CATEGORIES).to_pylist())
        if len(found) == len(kept):
            return cls(name, kept, complete=True, reading=reading), ""
        note = f"has {len(found)} categories; the {len(kept)} most frequent become features"
        return cls(name, kept, complete=False, reading=reading), note

    @property
    def width(self) -> int:
        return len(self.categories)

    def feature_names(self) -> list[str]:
        return [f"{self.name}={category}" for category in self.categories]

    @cached_property
    def _value_set(self) -> Any:
        return pa.array(self.categories, pa.large_string())

    def encode(self, cells: Any, where: Callable[[int], str], surprises: Tally) -> Any:
        cells = _texts(cells, self.name, "one category per cell")
        codes = pc.index_in(cells, value_set=self._value_set)
        if self.complete and codes.null_count > cells.null_count:
            unknown = cells.filter(pc.is_null(codes))
            unknown = _without(unknown, missing_words(self.reading.na_values))
            surprises.add(unknown.drop_null())
        index = pc.fill_null(codes, -1).to_numpy()
        known = index >= 0
        rowptr = np.concatenate([[0], known.cumsum()])
        ones = np.ones(rowptr[-1], dtype=np.float32)
        return sparse.csr_matrix((ones, index[known], rowptr), shape=(len(cells), self.width))

    def to_dict(self) -> dict[str, Any]:
        found = {"categories": list(self.categories), "complete": self.complete}
        return {"name": self.name, "kind": self.kind, **found}

    @classmethod
    def from_dict(cls, stored: Any, what: str, na_values: tuple[str, ...] = ()) -> CategoryEncoder:
        stored = stored_json.fields(stored, what, "name", "kind", "categories", "complete")
        return cls(
            _name(stored, what),
            stored_json.strings(stored["categories"], f"categories of {what}", distinct=True),
            stored_json.truth(stored["complete"], f"complete of {what}"),
            Reading(na_values=na_values),
        )


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """TF-IDF of words. `entries`: how many of them a row of the fit had on average."""

    name: str
    words: list[str]
    idf: list[float]
    entries: float
    reading: Reading = _BY_DEFAULT
    kind = "text"

    @classmethod
    def fit(
        cls, name: str, column: Any, rows: Any, max_words: int, reading: Reading
    ) -> tuple[TextEncoder | None, str]:
        """The encoder, `None` if the column is left out, and a note for the user."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        cells = texts(column.filter(pa.array(rows)))
        cells = _without(cells, missing_words(reading.na_values)).drop_null()
        if not len(cells):
            return None, EMPTY
        vectorizer = TfidfVectorizer(max_features=max_words)
        try:
            matrix = vectorizer.fit_transform(cells.to_pylist())
        except ValueError:  # scikit-learn's way to say that it found no word
            return None, "left out: it has no word of two letters or more"
        words = [str(word) for word in vectorizer.get_feature_names_out()]
        entries = matrix.nnz / len(cells)
        return cls(name, words, vectorizer.idf_.tolist(), entries, reading), ""

    @property
    def width(self) -> int:
        return len(self.words)

    def feature_names(self) -> list[str]:
        return [f"{self.name}:{word}" for word in self.words]

    @cached_property
    def _vectorizer(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(vocabulary={word: i for i, word in enumerate(self.words)})
        vectorizer.idf_ = np.array(self.idf)
        return vectorizer

    def encode(self, cells: Any, where: Callable[[int], str], surprises: Tally) -> Any:
        cells = _texts(cells, self.name, "texts")
        cells = _without(cells, missing_words(self.reading.na_values))
        return self._vectorizer.transform(pc.fill_null(cells, "").to_pylist())

    def to_dict(self) -> dict[str, Any]:
        found = {"words": list(self.words), "idf": list(self.idf), "entries": self.entries}
        return {"name": self.name, "kind": self.kind, **found}

    @classmethod
    def from_dict(cls, stored: Any, what: str, na_values: tuple[str, ...] = ()) -> TextEncoder:
        stored = stored_json.fields(stored, what, "name", "kind", "words", "idf", "entries")
        words = stored_json.strings(stored["words"], f"words of {what}", distinct=True)
        idf = stored_json.numbers(stored["idf"], f"idf of {what}", 0, LARGEST_IDF)
        if len(idf) != len(words):
            raise DataError(f"{what} must have one idf per word ({len(words)}), got {len(idf)}")
        entries = stored_json.numbers([stored["entries"]], f"entries of {what}", 0, len(words))
        reading = Reading(na_values=na_values)
        return cls(_name(stored, what), words, idf, entries[0], reading)


ColumnEncoder = NumberEncoder | CategoryEncoder | TextEncoder | ListEncoder
_CLASSES: dict[str, type[ColumnEncoder]] = {
    "number": NumberEncoder,
    "date": NumberEncoder,
    "vector": NumberEncoder,
    "category": CategoryEncoder,
    "text": TextEncoder,
    **LIST_KINDS,
}


def read_column(stored: Any, what: str, na_values: tuple[str, ...] = ()) -> ColumnEncoder:
    """The encoder that `to_dict` described; anything else raises `DataError`."""
    kind = stored.get("kind") if isinstance(stored, Mapping) else None
    if not isinstance(kind, str) or kind not in _CLASSES:
        raise DataError(f"{what} must be of the kind {', '.join(_CLASSES)}, got {quoted(kind)}")
    return _CLASSES[kind].from_dict(stored, what, na_values)


def _name(stored: Mapping[str, Any], what: str) -> str:
    return stored_json.strings([stored["name"]], f"name of {what}")[0]


def _choice(value: Any, what: str, choices: tuple[Any, ...]) -> Any:
    if value not in choices or isinstance(value, bool):
        raise DataError(f"{what} must be one of {listed(choices)}, got {quoted(value)}")
    return value


def _without(cells: Any, words: frozenset[str]) -> Any:
    """The cells with null in place of words for a missing value."""
    missing = pc.is_in(cells, value_set=pa.array(sorted(words), pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, cells.type), cells)


def _texts(cells: Any, name: str, wanted: str) -> Any:
    if not is_single(cells):
        raise DataError(
            f"column {name!r} must hold {wanted}, got {cells.type}; give it the type it had in "
            "training"
        )
    return texts(cells)
