"""The tables of docs/evidence/robustness.md, from the reports of `make fuzz` and `make crash`."""

from typing import Any

from benchmarks.report_tables import load, table

ATTACKS = ("fuzz", "crash")


def attack_table(name: str) -> str:
    """The table of a report in results/NAME-cpu.json, empty if there is none."""
    report = load(name, "cpu")
    if report is None:
        return ""
    body = _fuzz(report) if name == "fuzz" else _crash(report)
    versions = report["versions"]
    cores = report["machine"]["cores"] if name == "fuzz" else report["cores"]
    where = f"{cores} cores, Python {versions['python']}, torch {versions['torch']}"
    return f"{body}\n\n*{where}; `{report['command']}`, seed {report['seed']}*"


def _fuzz(report: dict[str, Any]) -> str:
    rows = [
        [name, f"{found['cases']:,}", f"{found['refused']:,}", f"{found['failed']:,}"]
        for name, found in report["targets"].items()
    ]
    sums = [
        f"{sum(found[key] for found in report['targets'].values()):,}"
        for key in ("cases", "refused", "failed")
    ]
    header = ("target", "cases", "refused in one line", "failed")
    return table(header, [*rows, ["**all**", *(f"**{value}**" for value in sums)]])


def _crash(report: dict[str, Any]) -> str:
    rows = []
    for name, found in report["commands"].items():
        left = found["left"]
        counts = [found["calls"], found["trials"], *(left.get(k, 0) for k in _STATES)]
        rows.append([name, *map(str, counts), str(found["next command equal"])])
    sums = [f"**{sum(int(row[i]) for row in rows)}**" for i in range(2, 7)]
    header = ("command", "file changes", "kills", *_HEADINGS, "next command equal")
    return table(header, [*rows, ["**all**", "", *sums]])


_STATES = ("old", "new", "absent")
_HEADINGS = ("old result left", "new result left", "none left")
