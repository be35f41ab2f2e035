"""Tables of the records on disk: no number comes from anywhere else."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lgcn.paper import layout
from lgcn.paper import printed as paper
from lgcn.paper.graph_plan import GraphPlan
from lgcn.paper.graph_table import fold_results, graph_entry
from lgcn.paper.jobs import GRAPH_SETS, GRAPHS, PUBLISHED, Job, command
from lgcn.paper.layout import DEVICES, Column, Entry
from lgcn.paper.plan import PROTEINS, Plan, Row
from lgcn.paper.plans import BEST
from lgcn.paper.records import Records
from lgcn.paper.systems import SYSTEMS
from lgcn.paper.timing import EPOCHS, QUICK_REPEATS, REPEATS, Timing, read_times
from lgcn.paper.timing import QUICK_EPOCHS as QUICK_TIMED

DATASETS = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed", "ppi": "PPI"}
# In the ablation: only the selection rule changes, which needs no runs of its own.
RULE_ROW = "reported by the released rule"
ROUGH_PRODUCTS = (
    'Runs with "float32_products": "high" in their record computed matrix products in '
    "TensorFloat-32 (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1)."
)
# Records or results by seed, or by fold of a set of graphs.
Results = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table: one entry of numbers per row and data set, which columns show as text.

    Accuracies and ROC AUC are in percent and micro-F1 is a fraction, as in the paper.
    """

    target: str
    title: str
    rows: str  # header of the first column
    datasets: tuple[str, ...]
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...]
    commands: Mapping[str, str] = field(default_factory=dict)  # of one run, by row

    def entry(self, row: str, dataset: str) -> Entry | None:
        found = (e for e in self.entries if e["row"] == row and e["dataset"] == dataset)
        return next(found, None)

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(entry["row"] for entry in self.entries))


def make_table(plan: Plan, folder: Path, notes: Sequence[str] = ()) -> Table:
    """The table of a plan.

    Args:
        plan: The plan.
        folder: Output folder of ``lgcn reproduce`` with the records.
        notes: Further notes, such as what is left out. (default: none)
    """
    stored = Records(folder)
    entries, results, products = [], {}, set()
    for dataset in plan.datasets:
        for row in plan.on(dataset):
            if isinstance(plan, GraphPlan):
                found, records = fold_results(plan, row, dataset, stored)
                entries.append(graph_entry(plan, row, dataset, found, len(records)))
            else:
                by_seed = _records(plan, row, dataset, stored)
                found = {seed: record["result"] for seed, record in by_seed.items()}
                records = list(by_seed.values())
                entries.append(_entry(plan, row, dataset, found))
            results[row.label, dataset] = found
            products |= {record["machine"].get("float32_products") for record in records}
    own_notes = _add_times(plan, folder, entries) if plan.target == "table5" else []
    if "high" in products:
        own_notes.append(ROUGH_PRODUCTS)
    if plan.target in ("ablation", "graphs", "graph-parts", *BEST):
        entries = _with_differences(entries, plan.rows[0].label, results)
    if plan.target == "ablation":
        entries = _with_rule(entries, plan.rows[0].label)
    return Table(
        target=plan.target,
        title=plan.title,
        rows={"figure5": "k", "ablation": "changed", "text": "changed"}.get(plan.target, "system"),
        datasets=plan.datasets,
        columns=layout.columns(plan.target, entries),
        entries=tuple(entries),
        notes=(*layout.notes(plan, entries), *own_notes, *notes),
        commands={row.label: _general_command(plan, row) for row in plan.rows},
    )


def title_of(dataset: str) -> str:
    return DATASETS.get(dataset, dataset.replace("-half", " (half)"))


def timings(plan: Plan, dataset: str, device: str) -> Timing:
    """What Table 5 measures on a data set: the training time of each row."""
    full = Plan(plan.target, plan.title, plan.datasets, plan.rows)  # no limit of epochs
    variants = {row.label: full.jobs(row, dataset)[0] for row in plan.on(dataset)}
    if plan.quick:
        return Timing(dataset, device, variants, QUICK_TIMED, QUICK_REPEATS)
    return Timing(dataset, device, variants, EPOCHS, REPEATS)


def _records(plan: Plan, row: Row, dataset: str, stored: Records) -> Results:
    records = {job.seed: stored.find(job)[0] for job in plan.jobs(row, dataset)}
    return {seed: record for seed, record in records.items() if record is not None}


def _entry(plan: Plan, row: Row, dataset: str, found: Results) -> Entry:
    jobs = plan.jobs(row, dataset)
    results = list(found.values())
    fraction = dataset in PROTEINS
    printed = row.printed.get(dataset)
    entry: Entry = {
        "row": row.label,
        "system": row.system,
        "dataset": dataset,
        "metric": _metric(dataset),
        "seeds": len(results),
        "seeds_wanted": len(jobs),
        "paper": printed.mean if printed else None,
        "paper_std": printed.std if printed else None,
    }
    scores = {"honest": "test_score", "released": "test_score_released_rule", "val": "val_score"}
    if fraction:
        scores["label_accuracy"] = "test_label_accuracy"
    for name, key in scores.items():
        values = [result[key] for result in results if result.get(key) is not None]
        mean, std = mean_and_std(values if fraction else [100 * value for value in values])
        entry |= {name: mean, f"{name}_std": std}
    gains = [r["test_score_released_rule"] - r["test_score"] for r in results]
    entry["rule_gain"], spread = mean_and_std(gains if fraction else [100 * g for g in gains])
    entry["rule_gain_error"] = spread / math.sqrt(len(gains)) if spread is not None else None
    entry["epochs"] = mean_and_std([result["epochs"] for result in results])[0]
    entry["seconds"] = mean_and_std([result["seconds"] for result in results])[0]
    if plan.target == "table5":
        printed = None if row.printed == {} else paper.NODES[row.system].get(dataset)
        nodes = [n for result in results for n in result.get("nodes_per_batch", ())]
        entry |= {
            "nodes_paper": printed.mean if printed else None,
            "nodes": mean_and_std(nodes)[0],
        }
    entry["command"] = command(jobs[0])
    return entry


def _metric(dataset: str) -> str:
    if dataset in PROTEINS:
        return "micro-F1"
    return "ROC AUC (%)" if dataset in PUBLISHED else "accuracy (%)"


def mean_and_std(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, and the sample standard deviation if there are at least two values."""
    if not values:
        return None, None
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None


def _add_times(plan: Plan, folder: Path, entries: list[Entry]) -> list[str]:
    """Adds the training times; returns a note that names the machines."""
    machines: list[str] = []
    printed = {row.label: paper.SECONDS[row.system] for row in plan.rows if row.printed}
    first = plan.rows[0].label if plan.rows[0].system == "gcn" else None
    for dataset in plan.datasets:
        own = [entry for entry in entries if entry["dataset"] == dataset]
        times: dict[str, dict[str, float]] = {
            "paper": {label: numbers[dataset].mean for label, numbers in printed.items()}
        }
        for device in DEVICES:
            found = read_times(folder, timings(plan, dataset, device))
            times[device] = found.seconds if found else {}
            machines += [found.machine] if found else []
        for entry in own:
            for where, seconds in times.items():
                mine, base = seconds.get(entry["row"]), seconds.get(first or "")
                entry[f"train_seconds_{where}"] = mine
                entry[f"times_gcn_{where}"] = mine / base if mine and base else None
    return [f"Our times: {'; '.join(dict.fromkeys(machines))}."] if machines else []


def _with_differences(
    entries: list[Entry], base_row: str, results: Mapping[tuple[str, str], Results]
) -> list[Entry]:
    """Adds the difference of each entry to the first row."""
    bases = {entry["dataset"]: entry for entry in entries if entry["row"] == base_row}
    result = []
    for entry in entries:
        dataset = entry["dataset"]
        base = bases.get(dataset)
        if base in (None, entry):
            shift, error = None, None
        elif dataset in (*GRAPHS, *PUBLISHED, *GRAPH_SETS):
            own = results[entry["row"], dataset]
            shift, error = _paired_difference(own, results[base_row, dataset])
        else:
            shift, error = _difference(entry, base)
        result.append(entry | {"difference": shift, "difference_error": error})
    return result


def _with_rule(entries: list[Entry], base_row: str) -> list[Entry]:
    """Adds a row below the first: the same runs, reported by the released rule."""
    result = []
    for entry in entries:
        result.append(entry)
        if entry["row"] == base_row:  # the standard error is that of differences within a run
            rule = {"row": RULE_ROW, "honest": None, "honest_std": None}
            gain = {"difference": entry["rule_gain"], "difference_error": entry["rule_gain_error"]}
            result.append(entry | rule | gain)
    return result


def _difference(entry: Entry, base: Entry) -> tuple[float | None, float | None]:
    """The difference of two means, and its standard error for independent runs."""
    if entry["honest"] is None or base["honest"] is None:
        return None, None
    shift = entry["honest"] - base["honest"]
    if entry["honest_std"] is None or base["honest_std"] is None:
        return shift, None
    parts = (e["honest_std"] ** 2 / e["seeds"] for e in (entry, base))
    return shift, math.sqrt(sum(parts))


def _paired_difference(own: Results, base: Results) -> tuple[float | None, float | None]:
    """The mean difference between runs with the same split, and its standard error."""
    seeds = own.keys() & base.keys()
    shifts = [100 * (own[seed]["test_score"] - base[seed]["test_score"]) for seed in seeds]
    shift, spread = mean_and_std(shifts)
    return shift, None if spread is None else spread / math.sqrt(len(seeds))


def _general_command(plan: Plan, row: Row) -> str:
    """The command of a run of the row, with placeholders for data set and seed."""
    dataset = plan.datasets[0]
    if isinstance(plan, GraphPlan):
        text = command(plan.trial_jobs(row, dataset)[0]).replace("--seed 0", "--seed SEED")
        return text.replace(f"--graphs {dataset} --fold 0", "--graphs NAME --fold FOLD")
    own = plan.settings(row, dataset)
    job = Job(row.system, dataset, 0, {**SYSTEMS[row.system].settings, **own})
    text = command(job).replace("--seed 0", "--seed SEED").replace("seed=0", "seed=SEED")
    text = text.replace(f"--dataset {dataset} ", "--dataset DATASET ")
    return text.replace(f'load_dataset("{dataset}")', 'load_dataset("DATASET")')
