"""The best trial of a search with one thing changed at a time.

python -m benchmarks.variants DATASET [--seeds 6] [--device cuda] [--processes N]

Only validation nodes are scored. Seeds start at 1100; no reported result and no search uses them.
The record is written after each run, and the same command resumes where it stopped.
"""

import os
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import validation
from benchmarks._common import machine, make_parser, read, results_file, write
from lgcn.errors import LGCNError
from lgcn.paper.plans import CITATIONS
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings

FIRST_SEED = 1100
STUDIES = results_file("search")
MODELS = ("lgcn", "propagated", "plain-propagated")  # of which a preset has the best
UNCHANGED = "nothing changed"
VARIANTS: dict[str, dict[str, Any]] = {
    UNCHANGED: {},
    # The LGCL.
    "no LGCL": {"num_layers": 0},
    "LGCL in every view": {"layer_dropout": 0.0},
    "LGCL in half of the views": {"layer_dropout": 0.5},
    "two LGCLs": {"num_layers": 2},
    "the paper's CNN, 8 features": {"cnn": "double", "lgcl_channels": 8},
    "values ranked as they are": {"rank": "raw", "self_loops": False},
    "mean beside the largest": {"mean": True},
    "one kernel per feature": {"cnn": "depthwise"},
    "one kernel over all features": {"cnn": "single"},
    "selected values dropped, 0.2": {"lgcl_dropout": 0.2},
    "k = 4": {"k": 4},
    "k = 32": {"k": 32},
    # What surrounds it.
    "one view, no agreement": {"views": 1, "agreement": 0.0},
    "four views": {"views": 4},
    "agreement from the start": {"agreement_epochs": 1},
    "agreement after 300 epochs": {"agreement_epochs": 300},
    "no node dropout": {"node_dropout": 0.0},
    "edges dropped, 0.2": {"adj_dropout": 0.2},
    "no diffusion": {"hops": 0},
    "propagated input": {"embedding": "propagated", "input_hops": 2, "input_norm": "none"},
    "10 hops": {"hops": 10},
    "32 features": {"hidden_channels": 32},
    "64 features": {"hidden_channels": 64},
    "128 features": {"hidden_channels": 128},
    "no ReLU": {"activation": "none"},
    "sharpened to 0.3": {"sharpen": 0.3},
}

Run = dict[str, Any]


def variants(base: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All variants that change something on this data set."""
    unchanged = Settings.create(**base)
    return {
        name: own
        for name, own in VARIANTS.items()
        if name == UNCHANGED
        or not (validation.has(base, own) or Settings.create(**{**base, **own}) == unchanged)
    }


def best_settings(dataset: str) -> dict[str, Any]:
    """The settings that the searches found, with their number of epochs."""
    from benchmarks.search import best_trial, score_of

    studies = read(STUDIES)
    found = [studies[f"{dataset}-{model}"] for model in MODELS if f"{dataset}-{model}" in studies]
    best = max(found, key=lambda study: score_of(best_trial(study["trials"])))
    return {**best["given"], **best_trial(best["trials"])["params"]}


def train_once(task: tuple[str, int], base: dict[str, Any], device: str) -> Run:
    """One run in a process with one thread."""
    name, seed = task
    run = validation.validate_on({**base, **VARIANTS[name], "device": device}, seed)
    return {"variant": name, "seed": seed, **run}


def summary(runs: list[Run]) -> list[dict[str, Any]]:
    """Mean and deviation per variant in percent, best first, and the effect of its change.

    A difference compares runs of the same seed, with its standard error.
    """
    scores: dict[str, dict[int, float]] = {}
    for run in runs:
        scores.setdefault(run["variant"], {})[run["seed"]] = 100 * run["val_score"]
    base = scores.get(UNCHANGED, {})
    rows = []
    for name, by_seed in scores.items():
        values = list(by_seed.values())
        both = [by_seed[seed] - base[seed] for seed in by_seed if seed in base]
        row: dict[str, Any] = {"variant": name, "seeds": len(values)}
        row["val_score"] = round(statistics.mean(values), 4)
        row["std"] = round(statistics.stdev(values), 4) if len(values) > 1 else None
        if both and name != UNCHANGED:
            row["difference"] = round(statistics.mean(both), 4)
            if len(both) > 1:
                row["error"] = round(statistics.stdev(both) / len(both) ** 0.5, 4)
        rows.append(row)
    return sorted(rows, key=lambda row: -row["val_score"])


def main() -> None:
    parser = make_parser("variants", __doc__)
    parser.add_argument("dataset", choices=CITATIONS)
    parser.add_argument(
        "--seeds", type=validation.at_least_one, default=6, help="runs per variant (default: 6)"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--processes",
        type=validation.at_least_one,
        default=os.cpu_count(),
        help="runs at the same time (default: one per core)",
    )
    arguments = parser.parse_args()
    dataset, device = arguments.dataset, arguments.device
    if f"{dataset}-lgcn" not in read(STUDIES):
        parser.error(
            f"{STUDIES} has no study of {dataset} to start from; make it with "
            f"python -m benchmarks.search {dataset}"
        )
    validation.check(parser, [dataset], device)
    name, out = f"{dataset}-{device}", arguments.out
    base = best_settings(dataset)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    tasks = [(name, seed) for seed in seeds for name in variants(base)]
    try:
        runs = _runs_so_far(out, name, base, tasks)
    except LGCNError as error:
        parser.error(str(error))
    known = {(run["variant"], run["seed"]) for run in runs}
    failed: list[str] = []

    def done(task: tuple[str, int], result: Run | Failure) -> None:
        if isinstance(result, Failure):
            failed.append(f"{task[0]}, seed {task[1]}: {result.message}")
            return
        runs.append(result)
        print(f"{len(runs)}/{len(tasks)} {task[0]}: {100 * result['val_score']:.1f}", flush=True)
        # In the order of the tasks, whatever order the runs end in.
        ordered = sorted(runs, key=lambda run: tasks.index((run["variant"], run["seed"])))
        record = {"base": base, "results": summary(ordered), "runs": ordered}
        write(out, name, {"machine": machine(device), **record})

    one = partial(train_once, base=base, device=device)
    todo = [task for task in tasks if task not in known]
    run_tasks(todo, one, done, processes=arguments.processes)
    for row in summary(runs):
        print(f"{row['val_score']:6.2f}  {row['variant']}")
    if failed:
        parser.exit(1, "\n".join(["these runs failed:", *failed, ""]))


def _runs_so_far(
    out: Path, name: str, base: dict[str, Any], tasks: list[tuple[str, int]]
) -> list[Run]:
    """The runs in the file that belong to this command."""
    record = read(out).get(name)
    if record is None:
        return []
    if record["base"] != base:
        changed = sorted(name for name, _ in record["base"].items() ^ base.items())
        raise LGCNError(
            f"{out} has variants of another trial than the one that is the best now (other "
            f"{', '.join(dict.fromkeys(changed))}): name another --out, or move it away"
        )
    return [run for run in record["runs"] if (run["variant"], run["seed"]) in tasks]


if __name__ == "__main__":
    main()
