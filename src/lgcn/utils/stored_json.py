"""Checks of values from a JSON file, which anyone may have written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lgcn.errors import DataError


def fields(
    stored: Any, what: str, *names: str, optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """Checks for an object with these names and no others; `what` is its name in errors.

    Args:
        stored: The object.
        what: Its name in errors.
        *names: Names that it must have.
        optional: Names that it may have. (default: none)
    """
    if not isinstance(stored, Mapping) or set(stored) - set(optional) != set(names):
        got = ", ".join(map(repr, stored)) if isinstance(stored, Mapping) else type(stored).__name__
        raise DataError(f"{what} must have {', '.join(names)} and nothing else, got {got:.200}")
    return stored


def truth(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{what} must be true or false")
    return value


def strings(values: Any, what: str, *, distinct: bool = False) -> list[str]:
    """A list of strings that Arrow can hold; if `distinct`, at least one, none empty or twice."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{what} must be a list of strings")
    try:
        "".join(values).encode()
    except UnicodeEncodeError as error:  # JSON can hold half of a surrogate pair
        raise DataError(f"{what} must be valid Unicode: {error.reason}") from None
    if distinct and (not values or "" in values or len(set(values)) < len(values)):
        raise DataError(f"{what} must be at least one string, none of them empty or twice")
    return list(values)


def numbers(values: Any, what: str, low: float, high: float) -> list[float]:
    """A list of at least one number from `low` to `high`."""
    if (
        not isinstance(values, list)
        or not values
        or any(isinstance(v, bool) or not isinstance(v, int | float) for v in values)
        or not all(low <= value <= high for value in values)  # not true of NaN either
    ):
        raise DataError(f"{what} must be a list of numbers from {low:g} to {high:g}")
    return [float(value) for value in values]
