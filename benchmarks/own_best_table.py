"""The table of `benchmarks.own_best`, from its records."""

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks._common import results_file
from benchmarks.report_tables import Record, machine_line, table
from lgcn.paper.json_lines import read_lines

SYSTEMS = ("default", "best", "gcn", "gat", "sage", "mlp", "boosting", "boosting, structural")
OWN = ("default", "best")


def own_best() -> str:
    """The table with its caption and the machine, empty if there is no record."""
    path = results_file("own_best")
    records = list(read_lines(path, key).records.values()) if path.exists() else []
    if not records:
        return ""
    commands = dict.fromkeys(record["machine"]["command"] for record in records)
    machine = {**records[0]["machine"], "command": "; ".join(commands)}
    trials = records[0]["machine"]["best"]["max_trials"]
    caption = (
        "Test scores in per cent, mean ± standard deviation (splits that all systems finished): "
        f"ROC AUC for published splits, else accuracy. *best* has {trials} trials. Bold: highest "
        "mean. *Difference*: best minus the highest of the others, with its standard error over "
        "splits."
    )
    return "\n\n".join([_rows(records), caption, machine_line("own_best", {"machine": machine})])


def key(record: Record) -> tuple[Any, ...]:
    """What a record is of."""
    return record["dataset"], record["split"], record["number"], record["system"]


def common_scores(records: Sequence[Record]) -> dict[str, list[float]]:
    """The test scores of each system in per cent, over the splits that all systems have."""
    found: dict[str, dict[int, float]] = {}
    for record in records:
        found.setdefault(record["system"], {})[record["number"]] = 100 * record["test_score"]
    if set(found) != set(SYSTEMS):
        return {}
    numbers = sorted(set.intersection(*(set(scores) for scores in found.values())))
    return {system: [found[system][number] for number in numbers] for system in SYSTEMS}


def _rows(records: Sequence[Record]) -> str:
    rows = []
    for dataset, split in sorted({(r["dataset"], r["split"]) for r in records}):
        own = [r for r in records if (r["dataset"], r["split"]) == (dataset, split)]
        scores = common_scores(own)
        if len(scores.get("best", [])) < 2:
            continue
        means = {system: statistics.mean(values) for system, values in scores.items()}
        highest = max(means.values())
        cells = []
        for system, values in scores.items():
            text = f"{means[system]:.1f} ± {statistics.stdev(values):.1f}"
            cells.append(f"**{text}**" if means[system] == highest else text)
        other = max((s for s in SYSTEMS if s not in OWN), key=lambda system: means[system])
        apart = [a - b for a, b in zip(scores["best"], scores[other], strict=True)]
        error = statistics.stdev(apart) / len(apart) ** 0.5
        difference = f"{statistics.mean(apart):+.1f} ± {error:.1f} ({other})"
        rows.append([f"{dataset}, {split} ({len(apart)})", *cells, difference])
    return table(["graph, split", *SYSTEMS, "difference"], rows)
