"""The tables of `lgcn reproduce` in the documents, from the records in benchmarks/paper."""

from dataclasses import replace
from pathlib import Path

from lgcn.experiments.plans import make_plans
from lgcn.experiments.render import wide
from lgcn.experiments.tables import make_table

PAPER = Path("benchmarks/paper")


def paper_table(target: str, folder: Path = PAPER) -> str:
    """The table of a target, honest column first; empty where it has no records."""
    [plan] = make_plans(target)
    table = make_table(plan, folder)
    seen = {entry["dataset"] for entry in table.entries if entry["seeds"]}
    if not seen:
        return ""
    order = sorted(table.columns, key=lambda column: column.title == "paper")
    datasets = tuple(name for name in table.datasets if name in seen)
    shown = replace(table, columns=tuple(order), datasets=datasets)
    return "\n".join(wide(shown))
