"""The numbers of the table of whole graphs: means over folds of means over runs."""

import statistics
from typing import Any

from lgcn.paper.graph_plan import GraphPlan
from lgcn.paper.jobs import command
from lgcn.paper.layout import Entry
from lgcn.paper.plan import Row
from lgcn.paper.records import Records


def fold_results(
    plan: GraphPlan, row: Row, dataset: str, stored: Records
) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """The mean result of each fold, and the records of all runs with the chosen settings."""
    folds, records = {}, []
    for fold, jobs in plan.runs(row, dataset, stored).items():
        found = [record for job in jobs if (record := stored.find(job)[0]) is not None]
        results = [record["result"] for record in found]
        records += found
        keys = ("test_score", "test_score_released_rule", "val_score", "epochs", "seconds")
        folds[fold] = {key: statistics.mean(result[key] for result in results) for key in keys}
    return folds, records


def graph_entry(
    plan: GraphPlan, row: Row, dataset: str, folds: dict[int, dict[str, Any]], runs: int
) -> Entry:
    """What the table says of a system on a set of graphs.

    Args:
        plan, row, dataset: The entry.
        folds: From `fold_results`.
        runs: Number of runs with the chosen settings.
    """
    printed = row.printed.get(dataset)
    wanted = plan.seeds_per_fold * plan.folds
    entry: Entry = {
        "row": row.label,
        "system": row.system,
        "dataset": dataset,
        "metric": "accuracy (%)",
        "seeds": len(folds),
        "seeds_wanted": plan.folds,
        "runs": runs,
        "runs_wanted": wanted,
        "paper": printed.mean if printed else None,
        "paper_std": None,
    }
    for name, key in (("honest", "test_score"), ("val", "val_score")):
        entry |= {name: None, f"{name}_std": None}
        values = [100 * fold[key] for fold in folds.values()]
        if values:
            entry[name] = statistics.mean(values)
        if len(values) > 1:
            entry[f"{name}_std"] = statistics.stdev(values)
    for key in ("epochs", "seconds"):
        values = [fold[key] for fold in folds.values()]
        entry[key] = statistics.mean(values) if values else None
    entry["command"] = command(plan.trial_jobs(row, dataset)[0])
    return entry
