"""Strings as numbers or dates, by the convention of their column."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.tables.cell_options import Reading
from lgcn.tables.missing_words import missing_numbers
from lgcn.tables.written_dates import parse_dates
from lgcn.tables.written_numbers import parse_numbers

EXAMPLES = 3


class Tally:
    """How many cells something is true of, and the first few different ones."""

    def __init__(self) -> None:
        self.total = 0
        self.examples: list[str] = []

    def add(self, cells: Any) -> None:
        """Counts strings without nulls."""
        self.total += len(cells)
        for start in range(0, len(cells), 100):  # mostly the first ones are enough
            if len(self.examples) == EXAMPLES:
                break
            for cell in pc.unique(cells.slice(start, 100)).to_pylist():
                if len(self.examples) < EXAMPLES and cell not in self.examples:
                    self.examples.append(cell)


def parse(values: Any, kind: str, reading: Reading) -> Any:
    """Distinct strings as float64, NaN if one is no number or date; see `read_cells`."""
    if kind == "date":
        return parse_dates(values, reading.date_order)
    return parse_numbers(values, reading.decimal)


def read_cells(cells: Any, kind: str, reading: Reading) -> tuple[Any, Any]:
    """Strings as float64, NaN if missing; and the places of those that are of another kind.

    Args:
        cells: What `lgcn.tables.columns.texts` returns.
        kind: number, or date for seconds since 1970.
        reading: How they are written.
    """
    missing = pc.is_in(cells, value_set=_missing(reading.na_values))
    cells = pc.if_else(missing, pa.scalar(None, cells.type), cells)
    if kind == "number" and reading.decimal == ".":
        try:  # far faster where all numbers are as a program writes them
            values = pc.fill_null(cells.cast(pa.float64()), np.nan).to_numpy()
            return without_marks(values, kind, reading), np.empty(0, np.int64)
        except pa.ArrowInvalid:
            pass
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    encoded = cells.dictionary_encode()
    values = np.append(parse(encoded.dictionary, kind, reading), np.nan)
    index = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy()
    values = values[index]
    wrong = np.flatnonzero(np.isnan(values) & (index < len(encoded.dictionary)))
    return without_marks(values, kind, reading), wrong


def without_marks(values: Any, kind: str, reading: Reading) -> Any:
    """NaN in place of numbers that the user calls missing, such as -999."""
    marks = _marks(kind, reading)
    return np.where(np.isin(values, marks), np.nan, values) if len(marks) else values


@lru_cache(64)
def _marks(kind: str, reading: Reading) -> Any:
    values = parse(pa.array(reading.na_values, pa.large_string()), kind, reading)
    return values[~np.isnan(values)]


@lru_cache(64)
def _missing(na_values: tuple[str, ...]) -> Any:
    return pa.array(sorted(missing_numbers(na_values)), pa.large_string())
