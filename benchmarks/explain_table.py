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
FIDELITY = ("fidelity_plus", "fidelity_minus", "unfaithfulness")
MINE = ("ours", "ours, thorough")


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
    parts, by_dataset = [], []
    for dataset in sorted({record["dataset"] for record in records}):
        found = common(record for record in records if record["dataset"] == dataset)
        if found:
            parts += [_title(dataset, found), _rows(found)]
            by_dataset.append(found)
    summary = [f"**Mean over {len(by_dataset)} graphs**", overview(by_dataset)]
    return "\n\n".join([*summary, *parts, machine_line("explain", {"machine": machine})])


def overview(by_dataset: Sequence[dict[str, list[Record]]]) -> str:
    """Each method over all graphs, and how often ours has the better mean.

    Args:
        by_dataset: The records of each method, for each graph.
    """
    fidelity = [column for column in COLUMNS if column[1] in FIDELITY]
    methods = [method for method in ORDER if all(method in found for found in by_dataset)]
    means = {
        method: [
            {
                c[1]: statistics.mean(r[c[1]] for r in found[method])
                for c in COLUMNS
                if c[1] != "auc"
            }
            for found in by_dataset
        ]
        for method in methods
    }
    rows = []
    for method in methods:
        cells = [f"{statistics.mean(one[c[1]] for one in means[method]):.2f}" for c in fidelity]
        for mine in MINE:
            pairs = [
                (ours[name], other[name], best)
                for ours, other in zip(means.get(mine, []), means[method], strict=False)
                for _, name, _, best in fidelity
            ]
            better = sum(a != b and best is not None and best((a, b)) == a for a, b, best in pairs)
            equal = sum(a == b for a, b, _ in pairs)
            cells.append("" if method in MINE else f"{better} / {equal} / {len(pairs)}")
        faster = [
            slow["milliseconds"] / one["milliseconds"]
            for slow, one in zip(means.get("GNNExplainer", []), means[method], strict=False)
        ]
        rows.append([method, *cells, f"{min(faster):.1f} to {max(faster):.1f}" if faster else ""])
    titles = [f"{mine}: better / equal / of" for mine in MINE]
    speed = "times faster than GNNExplainer"
    return table(["method", *(title for title, *_ in fidelity), *titles, speed], rows)


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
