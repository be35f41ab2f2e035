"""The tables of `lgcn reproduce` in the documents, from the records in benchmarks/paper."""

import math
from dataclasses import replace
from pathlib import Path

from benchmarks.report_tables import table as rows_as_table
from lgcn.experiments.layout import Entry, honest_score
from lgcn.experiments.plans import BEST, SEARCHED_WITHOUT, make_plans
from lgcn.experiments.render import wide
from lgcn.experiments.tables import Table, make_table, title_of

PAPER = Path("benchmarks/paper")


def paper_table(target: str, folder: Path = PAPER) -> str:
    """The table of a target, honest column first; empty where it has no records."""
    table = _table(target, folder)
    seen = {entry["dataset"] for entry in table.entries if entry["seeds"]}
    if not seen:
        return ""
    order = sorted(table.columns, key=lambda column: column.title == "paper")
    datasets = tuple(name for name in table.datasets if name in seen)
    shown = replace(table, columns=tuple(order), datasets=datasets)
    return "\n".join(wide(shown))


def summary(folder: Path = PAPER) -> str:
    """Of each data set in one line: the best recipe, itself without LGCLs, and the best rival.

    Of the rows without LGCLs it is the one with the better validation score. The highest mean of a
    line is bold.
    """
    # The best recipe's own table has no rivals on the paper's graphs.
    rivals = [_table(target, folder) for target in ("table2", *BEST)]
    rows = []
    for target in BEST:
        table = _table(target, folder)
        for dataset in table.datasets:
            own = table.entry(table.labels[0], dataset)
            if own is None or own["honest"] is None:
                continue
            rows_without = [
                entry
                for label in (table.labels[1], SEARCHED_WITHOUT.label)
                if (entry := table.entry(label, dataset)) is not None
            ]
            without = max(rows_without, key=_validation, default=None)
            others = [
                entry
                for other in rivals
                for entry in other.entries
                if entry["dataset"] == dataset
                and not entry["system"].startswith("lgcn")
                and entry["honest"] is not None
            ]
            best = max(others, key=_mean, default=None)
            shown = [own, without, best]
            highest = max(map(_mean, shown))
            line = [
                "-" if entry is None else _cell(entry, bold=_mean(entry) == highest)
                for entry in shown
            ]
            rival = line[2] if best is None else f"{line[2]} {best['row']}"
            rows.append([title_of(dataset), *line[:2], rival])
    header = ["graph", "LGCN", "without its LGCLs", "the best of the others"]
    return rows_as_table(header, rows) if rows else ""


def _table(target: str, folder: Path) -> Table:
    [plan] = make_plans(target)
    return make_table(plan, folder)


def _cell(entry: Entry, *, bold: bool) -> str:
    text = honest_score(entry)
    return f"**{text}**" if bold else text


def _mean(entry: Entry | None) -> float:
    return -math.inf if entry is None or entry["honest"] is None else float(entry["honest"])


def _validation(entry: Entry) -> float:
    return -math.inf if entry["val"] is None else float(entry["val"])
