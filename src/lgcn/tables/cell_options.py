"""How the text in cells is read: what a user says, and what holds for a column.

Nothing here imports torch or Arrow, so that the command line can report a mistake at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lgcn.errors import UsageError

DECIMALS = (".", ",")
DATE_ORDERS = ("dmy", "mdy", "ymd")
MAX_WORDS, LONGEST_WORD = 1000, 100


@dataclass(frozen=True)
class Reading:
    """How the cells of a column are read.

    Args:
        decimal: The decimal separator. (default: a point)
        date_order: The order of day, month and year: dmy, mdy or ymd. (default: day first with
            points, month first otherwise)
        na_values: The user's words for a missing value. (default: none)
    """

    decimal: str = "."
    date_order: str | None = None
    na_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellOptions:
    """What a user says about the text in cells; see `lgcn.from_tables`."""

    decimal: str = "auto"
    date_order: str = "auto"
    na_values: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_choice("decimal", self.decimal, DECIMALS)
        _check_choice("date_order", self.date_order, DATE_ORDERS)
        words = self.na_values
        words = (words,) if isinstance(words, str) else words
        if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
            raise UsageError(f"na_values must be words, got {words!r:.80}")
        if len(words) > MAX_WORDS or any(len(word) > LONGEST_WORD for word in words):
            raise UsageError(
                f"na_values must be at most {MAX_WORDS} words of at most {LONGEST_WORD} characters"
            )
        object.__setattr__(self, "na_values", tuple(word.strip() for word in words))

    def reading(self) -> Reading:
        """What holds for a column whose cells say nothing else."""
        return Reading(
            "." if self.decimal == "auto" else self.decimal,
            None if self.date_order == "auto" else self.date_order,
            tuple(self.na_values),
        )


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in ("auto", *choices):
        listed = ", ".join(map(repr, choices[:-1]))
        raise UsageError(f"{name} must be 'auto', {listed} or {choices[-1]!r}, got {value!r:.80}")
