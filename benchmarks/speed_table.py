"""The rows of `benchmarks.speed`, and their table."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.report_tables import Record, milliseconds, number, table


class Row(NamedTuple):
    """One line of the table.

    Args:
        about: What this line and others are about.
        what: What was measured.
        value: The number that is compared with the target.
        unit: What it counts and in comparison with what, such as "times as long as GCN".
        target: The number to reach; `None` if there is none.
        at_least: Whether larger is better.
        details: What the number was made from.
    """

    about: str
    what: str
    value: float
    unit: str
    target: float | None
    at_least: bool = False
    details: Mapping[str, Any] = {}

    def record(self) -> Record:
        return {**self._asdict(), "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        if self.target is None:
            return "-"
        reached = self.value >= self.target if self.at_least else self.value <= self.target
        return "reached" if reached else "missed"


def ms(seconds: float) -> str:
    return f"{milliseconds(seconds)} ms"


def speed(record: Record) -> str:
    """The rows, each group below its heading."""
    rows, about = [], ""
    for result in record["results"]:
        if result["about"] != about:
            about = result["about"]
            rows.append([f"**{about}**", "", "", ""])
        bound = "at least" if result["at_least"] else "at most"
        target = "-" if result["target"] is None else f"{bound} {result['target']:g}"
        measured = f"{number(result['value'])} {result['unit']}"
        rows.append([result["what"], measured, target, result["verdict"]])
    minutes = f"The whole run took {record['seconds'] / 60:.1f} minutes."
    return f"{table(['what', 'measured', 'target', 'verdict'], rows)}\n\n{minutes}"
