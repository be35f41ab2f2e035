"""Numbers as people write them: decimal commas, separated thousands, currencies, per cent.

Everything works on Arrow arrays of distinct strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 64  # characters of a cell that may be a number or a date

_BLANKS = r"[\x{a0}\x{2000}-\x{200a}\x{202f}\x{205f}\t]"
_MINUS = r"[\x{2010}-\x{2013}\x{2212}\x{fe63}\x{ff0d}]"
_APOSTROPHES = r"[\x{2019}\x{2bc}\x{60}\x{b4}]"
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KRW|"
    "KZT|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_CURRENCY = rf"(?:(?:US|CA|AU|NZ|HK|MX|A|C|R|S)?\p{{Sc}}|{_CODES}|kr\.?|zł|Kč|Ft|Fr\.|SFr\.?|Rs\.?)"
_UNIT = rf"(?:{_CURRENCY}|%|‰|percent|per cent|pct)"


# What a number can begin with; most strings that are none are told by that, which is fast.
_START = rf"^(?:[^\pL]{{0,4}}\d|[^\pL]{{0,4}}(?i:{_CURRENCY}|inf))"


def _pattern(decimal: str) -> str:
    point, comma = (r"\.", ",") if decimal == "." else (",", r"\.")
    plain = rf"(?:\d+{point}?\d*|{point}\d+)(?:[eE][-+]?\d+)?"
    groups = "|".join(rf"(?:{mark}\d{{3}})+" for mark in (comma, " ", "'"))
    grouped = rf"[1-9]\d{{0,2}}(?:{groups})(?:{point}\d*)?"
    lakhs = r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d*)?" if decimal == "." else "(?:inf)"
    return rf"^[-+]?(?:{plain}|{grouped}|{lakhs}|(?i:inf|infinity))$"


_PATTERNS = {decimal: _pattern(decimal) for decimal in (".", ",")}


def parse_numbers(values: Any, decimal: str) -> Any:
    """Strings as float64, NaN if one is no number.

    Blanks and apostrophes separate thousands in either convention. Currencies and per cent signs
    do not count: `12 %` is 12. Parentheses around a number make it negative.

    Args:
        values: Arrow array of `large_string`, no nulls.
        decimal: The decimal separator, a point or a comma; the other one separates thousands.
    """
    return parse_plain(plain_numbers(values), decimal)


def plain_numbers(values: Any) -> Any:
    """What `parse_plain` reads: without currencies and per cent signs, "" for other strings."""
    values = pc.if_else(pc.match_substring_regex(short(values), _START), values, "")
    if pc.all(pc.match_substring_regex(values, r"^[-+\d.,eE]*$")).as_py():
        return values
    return _without_unit(_normal(values))


def parse_plain(plain: Any, decimal: str) -> Any:
    """The second half of `parse_numbers`, the only one in which the convention counts."""
    result = np.full(len(plain), np.nan)
    is_number = pc.match_substring_regex(plain, _PATTERNS[decimal])
    found = plain.filter(is_number)
    found = pc.replace_substring_regex(found, "[,' +]" if decimal == "." else "[.' +]", "")
    if decimal == ",":
        found = pc.replace_substring(found, ",", ".")
    result[np.asarray(is_number)] = found.cast(pa.float64()).to_numpy()
    return result


def units(values: Any) -> list[str]:
    """The currencies and per cent signs of strings that are numbers; "" for a number alone."""
    if not pc.any(pc.match_substring_regex(values, r"[^-+\d.,' ()eE]")).as_py():
        return [""]
    found = pc.replace_substring_regex(_normal(values), r"[eE][-+]?\d+|[-+\d.,' ()]", "")
    return sorted(pc.unique(pc.utf8_upper(found)).to_pylist())


def has_leading_zero(values: Any) -> Any:
    """Which strings look like codes: several digits of which the first is 0."""
    return pc.match_substring_regex(values, r"^[-+]?0\d")


def short(values: Any) -> Any:
    """The strings, empty where they are too long for a number or a date."""
    return pc.if_else(pc.less_equal(pc.utf8_length(values), LONGEST), values, "")


def _normal(values: Any) -> Any:
    values = short(values)
    for pattern, character in ((_BLANKS, " "), (_MINUS, "-"), (_APOSTROPHES, "'")):
        values = pc.replace_substring_regex(values, pattern, character)
    return pc.utf8_trim_whitespace(values)


def _without_unit(values: Any) -> Any:
    values = pc.replace_substring_regex(values, r"^\(([^-+()]+)\)$", r"-\1")
    values = pc.replace_substring_regex(values, rf"^([-+]?) ?(?i:{_CURRENCY}) ?", r"\1")
    values = pc.replace_substring_regex(values, rf" ?(?i:{_UNIT})$", "")
    return pc.replace_substring_regex(values, r"^([-+]) +", r"\1")
