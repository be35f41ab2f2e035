"""Which convention a column of strings follows: decimal point or comma, day or month first.

Cells that only one convention can read decide, each as often as it occurs in the column.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lgcn.tables.cell_options import CellOptions, Reading
from lgcn.tables.cells import parse
from lgcn.tables.written_numbers import parse_plain, plain_numbers, units

_DECIMALS = {".": "point", ",": "comma"}
_ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year"}


@dataclass(frozen=True)
class Convention:
    """How a column's numbers or dates are written.

    Args:
        reading: The convention.
        parsed: Which of the distinct values it reads.
        notes: What a user should know. (default: nothing)
        decided: Whether cells of the column decided it. (default: no)
        is_open: Whether no cell decides, and it makes a difference. (default: no)
        clash: Both conventions with examples, if cells follow both. (default: they do not)
        either: Values that one of the conventions reads. (default: `parsed`)
    """

    reading: Reading
    parsed: Any
    notes: list[str] = field(default_factory=list)
    decided: bool = False
    is_open: bool = False
    clash: str = ""
    either: Any = None


class _Vote(NamedTuple):
    """Two conventions for the same strings: what they read, and how many cells only one reads."""

    parsed: tuple[Any, Any]
    votes: tuple[int, int]
    examples: tuple[str, str]
    differ: Any

    @property
    def winner(self) -> int | None:
        first, second = self.votes
        return None if first == second else int(second > first)


def number_convention(
    values: Any, counts: Any, options: CellOptions, usual: str | None = None
) -> Convention:
    """The decimal separator of a column.

    Args:
        values: Distinct strings of the column, none of them missing.
        counts: How often each occurs.
        options: The user's.
        usual: What other columns of the table have; it holds if no cell of this column decides.
            (default: not known, a point)
    """
    reading = options.reading()
    if options.decimal != "auto":
        parsed = ~np.isnan(parse(values, "number", reading))
        return Convention(reading, parsed, _unit_notes(values, parsed))
    readings = [replace(reading, decimal=decimal) for decimal in _DECIMALS]
    vote = _vote(values, counts, "number", readings)
    index = vote.winner
    if index is None:
        index = int(usual == ",")
    chosen = readings[index].decimal
    is_open = not any(vote.votes) and bool(vote.differ.any())
    notes, clash = [], ""
    if all(vote.votes):
        clash = (
            f"has numbers with a decimal point such as {vote.examples[0]} and with a decimal comma "
            f"such as {vote.examples[1]}"
        )
        notes.append(
            f"{clash}; it is read with a decimal {_DECIMALS[chosen]}. Write all alike, or give "
            "decimal='.' or decimal=',' to choose"
        )
    elif is_open:
        cell = values[int(vote.differ.argmax())].as_py()
        if "," in cell or chosen == ",":
            mark = "," if "," in cell else "."
            meaning = "decimals" if mark == chosen else "thousands"
            other = "." if chosen == "," else ","
            notes.append(
                f"has numbers such as {cell!r}, and no cell shows what the {_DECIMALS[mark]} "
                f"separates: it is taken to separate {meaning}"
                f"{'' if usual is None else ', as in other columns'}. If not, give "
                f"decimal={other!r}"
            )
    parsed = vote.parsed[index]
    notes += _unit_notes(values, parsed)
    return Convention(
        readings[index],
        parsed,
        notes,
        any(vote.votes),
        is_open,
        clash,
        vote.parsed[0] | vote.parsed[1],
    )


def date_convention(values: Any, counts: Any, options: CellOptions) -> Convention:
    """The order of day, month and year in a column; see `number_convention`."""
    reading = options.reading()
    if options.date_order != "auto":
        return Convention(reading, ~np.isnan(parse(values, "date", reading)))
    readings = [replace(reading, date_order=order) for order in _ORDERS]
    vote = _vote(values, counts, "date", readings)
    index, notes, clash = vote.winner, [], ""
    if index is None and not vote.differ.any() and not any(vote.votes):
        return Convention(reading, vote.parsed[0])  # the order makes no difference
    if index is None:  # with points the day comes first everywhere
        cell = values[int(vote.differ.argmax())].as_py() if vote.differ.any() else vote.examples[0]
        index = int("." not in cell)
    order = list(_ORDERS)[index]
    if all(vote.votes):
        clash = (
            f"has dates with the day first such as {vote.examples[0]} and with the month first "
            f"such as {vote.examples[1]}"
        )
        notes.append(
            f"{clash}; it is read as {_ORDERS[order]}. Write all alike, or give date_order='dmy' "
            "or date_order='mdy' to choose"
        )
    elif not any(vote.votes):
        cell = values[int(vote.differ.argmax())].as_py()
        other = "mdy" if order == "dmy" else "dmy"
        notes.append(
            f"has dates such as {cell!r}, and no cell shows the order: they are read as "
            f"{_ORDERS[order]}. If not, give date_order={other!r}"
        )
    both = vote.parsed[0] | vote.parsed[1]
    return Convention(
        readings[index], vote.parsed[index], notes, any(vote.votes), clash=clash, either=both
    )


def _vote(values: Any, counts: Any, kind: str, readings: list[Reading]) -> _Vote:
    if kind == "number":
        plain = plain_numbers(values)
        first, second = (parse_plain(plain, reading.decimal) for reading in readings)
    else:
        first, second = (parse(values, kind, reading) for reading in readings)
    parsed = ~np.isnan(first), ~np.isnan(second)
    only = parsed[0] & ~parsed[1], parsed[1] & ~parsed[0]
    examples = [repr(values[int(mask.argmax())].as_py()) if mask.any() else "" for mask in only]
    return _Vote(
        parsed,
        (int(counts[only[0]].sum()), int(counts[only[1]].sum())),
        (examples[0], examples[1]),
        parsed[0] & parsed[1] & (first != second),
    )


def _unit_notes(values: Any, parsed: Any) -> list[str]:
    """A note if numbers of one column have different units."""
    found = units(values.filter(pa.array(parsed))) if parsed.any() else []
    named = [unit for unit in found if unit]
    if len(named) < 2 and ("%" not in named or "" not in found):
        return []
    shown = " and ".join(map(repr, named)) if len(named) > 1 else "some with '%' and some without"
    return [f"has numbers in different units ({shown}); only the numbers are read"]
