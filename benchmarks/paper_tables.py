"""The tables of `lgcn reproduce` in the documentation, from the records in benchmarks/paper."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from benchmarks.report_tables import table as rows_as_table
from lgcn.paper.graph_plan import GraphPlan
from lgcn.paper.layout import Entry, honest_score
from lgcn.paper.plans import BEST, BEST_ROW, SEARCHED_WITHOUT, WITHOUT, make_plans
from lgcn.paper.render import LONG, wide
from lgcn.paper.tables import Table, make_table, title_of

PAPER = Path("benchmarks/paper")
# ROC AUC has a table of its own.
ACCURACIES = tuple(target for target in BEST if target != "best-published")


def paper_table(target: str, folder: Path = PAPER) -> str:
    """The table of a target, honest column first; empty if there are no records."""
    table = _table(target, folder)
    seen = {entry["dataset"] for entry in table.entries if entry["seeds"]}
    if not seen:
        return ""
    order = sorted(table.columns, key=lambda column: column.title == "paper")
    datasets = tuple(name for name in table.datasets if name in seen)
    shown = replace(table, columns=tuple(order), datasets=datasets)
    if target == "graphs":
        return _by_set(shown)
    return _long(shown) if target in LONG else "\n".join(wide(shown))


def summary(folder: Path = PAPER) -> str:
    """One line per data set: the LGCN, the same network without LGCLs, and the best baseline.

    The network without LGCLs has its own settings where they were searched. Bold: the highest mean
    of a line.
    """
    # The LGCN's own table has no baselines on the paper's graphs.
    tables = {target: _table(target, folder) for target in ("table2", *BEST)}
    scored = [e for table in tables.values() for e in table.entries if e["honest"] is not None]
    lines = []
    for dataset in (name for target in ACCURACIES for name in tables[target].datasets):
        entries = [entry for entry in scored if entry["dataset"] == dataset]
        own = _best(entries, [BEST_ROW])
        if own is None:
            continue
        searched = _best(entries, [SEARCHED_WITHOUT.label])
        without = searched or _best(entries, [WITHOUT.label])
        baselines = {entry["row"] for entry in entries if not entry["system"].startswith("lgcn")}
        shown = [own, without, _best(entries, baselines)]
        highest = max(entry["honest"] for entry in shown if entry is not None)
        lines.append([title_of(dataset), *(_cell(entry, highest) for entry in shown)])
    header = ["graph", "LGCN", "without its LGCLs", "the best of the others"]
    return rows_as_table(header, lines) if lines else ""


def _table(target: str, folder: Path) -> Table:
    [plan] = make_plans(target)
    if isinstance(plan, GraphPlan):  # its search may be unfinished: the widest that has results
        searches = (replace(plan, trials=trials) for trials in range(plan.trials, 0, -1))
        tables = [make_table(search, folder) for search in searches]
        return next((t for t in tables if any(e["seeds"] for e in t.entries)), tables[0])
    return make_table(plan, folder)


def _by_set(table: Table) -> str:
    """One row per set of graphs: the score of each system, and what is published for it."""
    rows = []
    for dataset in table.datasets:
        entries = [table.entry(label, dataset) for label in table.labels]
        highest = max(e["honest"] for e in entries if e is not None and e["honest"] is not None)
        cells = ["-" if e is None or e["honest"] is None else _marked(e, highest) for e in entries]
        published = ["-" if e is None or e["paper"] is None else f"{e['paper']}" for e in entries]
        both = (f"{own} / {other}" for own, other in zip(cells, published, strict=True))
        rows.append([title_of(dataset), *both])
    return rows_as_table(["set", *table.labels], rows)


def _long(table: Table) -> str:
    """One row per data set and system."""
    rows = []
    for dataset in table.datasets:
        for label in table.labels:
            entry = table.entry(label, dataset)
            if entry is not None:
                cells = (column.text(entry) for column in table.columns)
                rows.append([title_of(dataset), label, *cells])
    return rows_as_table(["data set", table.rows, *(c.title for c in table.columns)], rows)


def _best(entries: list[Entry], rows: Collection[str]) -> Entry | None:
    """The entry with the highest mean among those in these rows."""
    found = [entry for entry in entries if entry["row"] in rows]
    return max(found, key=lambda entry: float(entry["honest"]), default=None)


def _cell(entry: Entry | None, highest: float) -> str:
    if entry is None:
        return "-"
    shown = _marked(entry, highest)
    return shown if entry["system"].startswith("lgcn") else f"{shown} {entry['row']}"


def _marked(entry: Entry, highest: float) -> str:
    """The score of an entry, bold if it is the highest."""
    text = honest_score(entry)
    return f"**{text}**" if entry["honest"] == highest else text
