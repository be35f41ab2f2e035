"""Python's own formatting of numbers is the oracle."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.tables.written_numbers import parse_numbers, units


def parsed(values: list[str], decimal: str) -> list[float]:
    found: list[float] = parse_numbers(pa.array(values, pa.large_string()), decimal).tolist()
    return found


def one(value: str, decimal: str = ".") -> float | None:
    (found,) = parsed([value], decimal)
    return None if math.isnan(found) else found


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("1.234,56", None, 1234.56),
        ("40,44", None, 40.44),
        ("40.44", 40.44, None),
        ("1,234,567.8", 1234567.8, None),
        ("1.234.567", None, 1234567),
        ("1,234", 1234, 1.234),
        ("0,125", None, 0.125),
        ("1 234", 1234, 1234),
        ("1'234.5", 1234.5, None),
        ("1\u2019234", 1234, 1234),
        ("1\xa0234,5", None, 1234.5),
        ("1\u202f234\u2009567", 1234567, 1234567),
        ("12,34,567.5", 1234567.5, None),  # as in India
        ("€ 12.50", 12.5, None),
        ("12,50 €", None, 12.5),
        ("$1,200", 1200, 1.2),
        ("-$5", -5, -5),
        ("$ -5", -5, -5),
        ("USD 5", 5, 5),
        ("5 eur", 5, 5),
        ("R$ 1.234,50", None, 1234.5),
        ("1 200 kr", 1200, 1200),
        ("12 %", 12, 12),
        ("12.5%", 12.5, None),
        ("(1,200.50)", -1200.5, None),
        ("($5)", -5, -5),
        ("\u221217.5", -17.5, None),
        ("+3", 3, 3),
        ("1e5", 1e5, 1e5),
        ("1,5E-3", None, 1.5e-3),
        (".5", 0.5, None),
        ("5.", 5, None),
        ("-inf", -math.inf, -math.inf),
    ],
)
def test_forms(text: str, point: float | None, comma: float | None) -> None:
    assert one(text, ".") == point
    assert one(text, ",") == comma


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-", "$", "%", "()", "1,2,3", "1.2.3", "12 34", "1,234 567", "1 234,567.8"),
        *("1-2", "--5", "(-5)", "5 kg", "about 5", "ABC 5", "0x10", "1_000", "1e", "192.168.1.1"),
        *("2024-01-01", "12:30", "5€€", "\u0661\u0662", "9" * 65),
    ],
)
def test_other_strings(text: str) -> None:
    assert one(text, ".") is None
    assert one(text, ",") is None


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=5),
    digits=st.integers(0, 6),
    decimal=st.sampled_from(".,"),
    group=st.sampled_from(["", "other", " ", "'", "\xa0", "\u202f"]),
    unit=st.sampled_from(["{}", "€ {}", "{} €", "{}%", "USD {}", "{} kr"]),
    minus=st.sampled_from(["-", "\u2212", "()"]),
)
def test_round_trips(
    values: list[float], digits: int, decimal: str, group: str, unit: str, minus: str
) -> None:
    group = {".": ",", ",": "."}[decimal] if group == "other" else group
    texts = []
    for value in values:
        text = f"{abs(value):,.{digits}f}".replace(",", "G").replace(".", decimal)
        text = unit.format(text.replace("G", group))
        if math.copysign(1, value) < 0:
            text = f"({text})" if minus == "()" else minus + text
        texts.append(text)
    assert parsed(texts, decimal) == [float(f"{value:.{digits}f}") for value in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters() | st.sampled_from("0123456789.,'- €$%()eE"), max_size=9)))
def test_any_string(values: list[Any]) -> None:
    """No string raises, and what Python reads as a plain number is that number."""
    for decimal in ".,":
        found = parsed(values, decimal)
        assert len(found) == len(values)
        for text, number in zip(values, found, strict=True):
            if decimal == "." and text.isascii() and "_" not in text and text == text.strip():
                try:
                    wanted = float(text)
                except ValueError:
                    continue
                np.testing.assert_equal(number, wanted)


def test_units() -> None:
    assert units(pa.array(["€ 5", "5 eur", "1e5", "1 200 %", "7"], pa.large_string())) == [
        *("", "%", "EUR", "€"),
    ]
