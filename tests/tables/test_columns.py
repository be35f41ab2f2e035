import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn.tables.cell_options import Reading
from lgcn.tables.cells import Tally
from lgcn.tables.columns import CellError, column_hint, listed, numbers, quoted, texts


@given(st.text() | st.integers() | st.lists(st.integers()))
def test_quoted_values_are_short(value: Any) -> None:
    shown = quoted(value)
    assert len(shown) <= 80
    assert shown == repr(value) or (shown.endswith("...") and repr(value).startswith(shown[:-3]))


def test_lists_are_short() -> None:
    assert listed([]) == ""
    assert listed(["a", "b"], 2) == "'a', 'b'"
    assert listed(list("abc"), 2) == "'a', 'b', ..."
    assert column_hint("Age", []) == "known: none"
    assert column_hint("Agee", ["x", "age"]) == "did you mean 'age'?"
    assert column_hint("z", ["x", "a\nb"]) == "known: x, a\\nb"
    assert column_hint("z", [f"column {i}" for i in range(30)]).endswith("column 19, ...")


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([1.0, -0.0, float("nan")]), ["1", "0", None]),
        (pa.array([np.float16(0.5), None], pa.float16()), ["0.5", None]),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), ["1.5", "2"]),
        (pa.array([" a ", "", " "], pa.string_view()), ["a", None, None]),
        (pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([dt.date(2024, 1, 2)]), ["2024-01-02"]),
        (pa.nulls(1), [None]),
    ],
)
def test_texts(column: Any, wanted: list[str | None]) -> None:
    assert texts(pa.chunked_array([column])).to_pylist() == wanted


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "-nan", "NULL", "<NA>", "NaT", "None", " "])
def test_words_for_nothing(word: str) -> None:
    for kind, value in (("number", "2.5"), ("date", "1970-01-01T00:00:02.5")):
        column = pa.chunked_array([pa.array([word, value])])
        values = numbers(column, kind, "v", 1, str)
        np.testing.assert_array_equal(values, [[np.nan], [2.5]])


def test_strings_that_are_no_numbers_are_an_error_unless_counted() -> None:
    column = pa.chunked_array([pa.array(["1", "x", "y", "x"])])
    with pytest.raises(CellError, match="'v', row 1: want a number, got 'x'"):
        numbers(column, "number", "v", 1, lambda row: f"row {row}")
    tally = Tally()
    values = numbers(column, "number", "v", 1, str, Reading(), tally)
    np.testing.assert_array_equal(values, [[1], [np.nan], [np.nan], [np.nan]])
    assert (tally.total, tally.examples) == (3, ["x", "y"])
