"""Dates and times as people write them, as seconds since 1970.

Everything works on Arrow arrays of distinct strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.tables.written_numbers import short

_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ZONE = r"(?: ?(?:Z|UTC|GMT|(?P<sign>[-+])(?P<east>\d{2}):?(?P<more>\d{2})?))?"
_TIME = rf"(?:(?:T|,? ){_CLOCK}{_ZONE})?$"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<b>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))"
)
_WEEKDAY = r"^(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
# What a date can begin with; most strings that are none are told by that, which is fast.
_START = (
    r"^(?:\d{1,2}(?:st|nd|rd|th)?[./: -]|\d{4}[./-]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|"
    r"nov|dec|mon|tue|wed|thu|fri|sat|sun))"
)
_FORMS = {
    "ymd": (
        rf"^(?P<a>\d{{4}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P<other>[./-])"
        rf"(?P<c>\d{{1,2}}){_TIME}"
    ),
    "numbers": (
        rf"^(?P<a>\d{{1,2}})(?P<mark>[./-]) ?(?P<b>\d{{1,2}})(?P<other>[./-]) ?"
        rf"(?P<c>\d{{4}}|\d{{2}}){_TIME}"
    ),
    "d month y": rf"{_WEEKDAY}(?P<a>\d{{1,2}})(?:st|nd|rd|th|\.)?[ -]{_MONTH}[.,]?[ -]"
    rf"(?P<c>\d{{4}}|\d{{2}}){_TIME}",
    "month d y": rf"{_WEEKDAY}{_MONTH}\.? (?P<a>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<c>\d{{4}}){_TIME}",
    "time": rf"^{_CLOCK}$",
}


def parse_dates(values: Any, order: str | None) -> Any:
    """Strings as seconds since 1970 in float64, NaN if one is no date.

    Known are a year, month and day of numbers, names of months in English, times of day, and zones
    as UTC or an offset; a time without a zone counts as UTC. Two digits of a year mean 1969 to
    2068. A time of day alone gives its seconds.

    Args:
        values: Arrow array of `large_string`, no nulls.
        order: The order of day, month and year where the year does not come first with four
            digits: dmy, mdy or ymd; `None` for dmy with points, and mdy otherwise.
    """
    try:
        return values.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
    except pa.ArrowInvalid:
        pass
    result = np.full(len(values), np.nan)
    likely = np.flatnonzero(pc.match_substring_regex(short(values), _START))
    values = values.take(pa.array(likely))
    for form, pattern in _FORMS.items():
        found = pc.extract_regex(values, pattern)
        rows = np.flatnonzero(pc.is_valid(found))
        if len(rows):
            found = found.take(pa.array(rows))
            parts = {
                found.type.field(i).name: field.to_numpy(zero_copy_only=False).astype(str)
                for i, field in enumerate(found.flatten())
            }
            result[likely[rows]] = _seconds(parts, form, order)
    return result


def _seconds(parts: Mapping[str, Any], form: str, order: str | None) -> Any:
    right, micros = _time_of_day(parts)
    if form != "time":
        valid, days = _days(parts, form, order)
        right, micros = right & valid, micros + days * 86_400_000_000
    return np.where(right, micros / 1e6, np.nan)


def _time_of_day(parts: Mapping[str, Any]) -> tuple[Any, Any]:
    """Whether each time is right, and its microseconds; less the offset of its zone."""
    hour, minute, second = (_whole(parts[name]) for name in ("hour", "minute", "second"))
    half = np.char.lower(parts["half"])
    right = (minute < 60) & (second < 60) & (hour < 24)
    right &= (half == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    part = _whole(np.char.ljust(parts["part"].astype("U6"), 6, "0"))
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + part
    if "sign" in parts:
        offset = _whole(parts["east"]) * 60 + _whole(parts["more"])
        right &= offset < 24 * 60
        micros -= np.where(parts["sign"] == "-", -1, 1) * offset * 60_000_000
    return right, micros


def _days(parts: Mapping[str, Any], form: str, order: str | None) -> tuple[Any, Any]:
    """Whether each date is right, and its days since 1970."""
    first, last = _whole(parts["a"]), _whole(parts["c"])
    if form in ("d month y", "month d y"):
        name = np.char.lower(parts["b"]).astype("U3")
        number = {month: i + 1 for i, month in enumerate(_MONTHS)}
        year, month, day = last, np.array([number[month] for month in name]), first
        right, digits = np.ones(len(day), bool), parts["c"]
    else:
        middle = _whole(parts["b"])
        right = parts["mark"] == parts["other"]
        if form == "ymd":
            year, month, day, digits = first, middle, last, parts["a"]
        elif order == "ymd":
            year, month, day, digits = first, middle, last, parts["a"]
            right &= (np.char.str_len(parts["c"]) == 2) & (np.char.str_len(digits) == 2)
        else:
            day_first = parts["mark"] == "." if order is None else order == "dmy"
            day, month = np.where(day_first, first, middle), np.where(day_first, middle, first)
            year, digits = last, parts["c"]
            # 1.2.10 is rather a version or a section than a date.
            two = (np.char.str_len(parts["a"]) == 2) & (np.char.str_len(parts["b"]) == 2)
            right &= (parts["mark"] == "/") | two | (np.char.str_len(digits) == 4)
    year = np.where(np.char.str_len(digits) == 4, year, year + np.where(year < 69, 2000, 1900))
    right &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(right, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + np.where(right, day - 1, 0)
    right &= dates.astype("datetime64[M]") == months  # not 31 February
    return right, dates.astype(np.int64)


def _whole(digits: Any) -> Any:
    return np.where(digits == "", "0", digits).astype(np.int64)
