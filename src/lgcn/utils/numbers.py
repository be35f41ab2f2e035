"""Checks of numbers that users set. Errors name the option, the value and the range."""

from __future__ import annotations

import math
import operator
from typing import Any

from lgcn.errors import UsageError


def whole_number(option: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int from `low` to `high`, both inclusive."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < low or not _below(number, high):
        raise UsageError(f"{option} must be a whole number {_range(low, high)}, got {value!r}")
    return number


def real_number(option: str, value: Any, low: float, high: float | None = None) -> float:
    """`value` as a finite float from `low` to `high`, both inclusive."""
    try:
        number = math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < low or not _below(number, high):
        raise UsageError(f"{option} must be a number {_range(low, high)}, got {value!r}")
    return number


def _below(number: float, high: float | None) -> bool:
    return high is None or number <= high


def _range(low: float, high: float | None) -> str:
    return f"of at least {low}" if high is None else f"from {low} to {high}"
