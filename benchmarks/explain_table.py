"""The tables of `benchmarks.explain`, from its records."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks._common import results_file
from benchmarks.report_tables import Record, machine_line, table
from lgcn.paper.json_lines import read_lines

ORDER = (
    *("ours", "ours, thorough", "GNNExplainer", "PGExplainer", "integrated gradients"),
    *("saliency", "PageRank", "random"),
)
# Column, how a record gives it, digits, and which numbers are better.
COLUMNS: tuple[tuple[str, str, int, Callable[[Sequence[float]], float] | None], ...] = (
    ("fidelity plus ↑", "fidelity_plus", 2, max),
    ("fidelity minus ↓", "fidelity_minus", 2, min),
    ("unfaithfulness ↓", "unfaithfulness", 2, min),
    ("motif AUC ↑", "auc", 2, max),
    ("again ↑", "again", 2, max),
    ("1 % noise ↑", "perturbed", 2, max),
    ("ms per node", "milliseconds", 1, None),
)


def key(record: Record) -> tuple[Any, ...]:
    """What a record is of."""
    return record["dataset"], record["seed"], record["method"]


def explanations() -> str:
    """The tables with their captions and the machine, empty if there is no record."""
    path = results_file("explain")
    records = list(read_lines(path, key).records.values()) if path.exists() else []
    if not records:
        return ""
    commands = dict.fromkeys(record["machine"]["command"] for record in records)
    machine = {**records[0]["machine"], "command": "; ".join(commands)}
    parts = []
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        found = common(record for record in records if record["dataset"] == dataset)
        if found:
            parts += [_title(dataset, found), _rows(found)]
    return "\n\n".join([*parts, machine_line("explain", {"machine": machine})])


def common(records: Any) -> dict[str, list[Record]]:
    """The records of each method, of the networks that all methods explained."""
    by_method: dict[str, dict[int, Record]] = {}
    for record in records:
        by_method.setdefault(record["method"], {})[record["seed"]] = record
    if not by_method:
        return {}
    seeds = sorted(set.intersection(*(set(found) for found in by_method.values())))
    methods = [method for method in ORDER if method in by_method]
    return {method: [by_method[method][seed] for seed in seeds] for method in methods if seeds}


def _title(dataset: str, found: dict[str, list[Record]]) -> str:
    records = next(iter(found.values()))
    accuracy = statistics.mean(100 * record["accuracy"] for record in records)
    edges = statistics.median(record["edges"] for record in records)
    networks = "1 network" if len(records) == 1 else f"{len(records)} networks"
    return (
        f"**{dataset}**: {networks}, test accuracy {accuracy:.0f} %, "
        f"{sum(record['nodes'] for record in records)} nodes; {edges:.0f} edges in a node's "
        "neighbourhood (median)"
    )


def _rows(found: dict[str, list[Record]]) -> str:
    columns = [c for c in COLUMNS if all(r[c[1]] is not None for rs in found.values() for r in rs)]
    means = {
        method: {name: statistics.mean(r[name] for r in records) for _, name, _, _ in columns}
        for method, records in found.items()
    }
    slow = means.get("GNNExplainer", {}).get("milliseconds")
    rows = []
    for method, records in found.items():
        cells = []
        for _, name, digits, best in columns:
            mean = means[method][name]
            text = f"{mean:.{digits}f}"
            if len(records) > 1 and best is not None:
                text += f" ± {statistics.stdev(r[name] for r in records):.{digits}f}"
            others = [one[name] for other, one in means.items() if other != "random"]
            leads = best is not None and method != "random" and mean == best(others)
            cells.append(f"**{text}**" if leads else text)
        faster = "" if slow is None else f"{slow / means[method]['milliseconds']:.1f}"
        rows.append([method, *cells, faster])
    return table(
        ["method", *(title for title, *_ in columns), "times faster than GNNExplainer"], rows
    )
