"""The best trial of a search with one thing changed, or a few together: which of them matter?

python -m benchmarks.variants DATASET [--seeds 6] [--device cuda] [--processes N]

By validation scores alone; the test nodes are not scored. Seeds are from 1100 on, which no reported
result and no search has. On Pubmed, whose search is short, the recipe `best` has the best of these
that has an LGCL. The record is written after each run, and the same command goes on where it was
ended.
"""

import argparse
import json
import os
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from lgcn.experiments.plans import CITATIONS
from lgcn.experiments.pool import Failure, run_tasks

FIRST_SEED = 1100
STUDIES = Path("benchmarks/search")
UNCHANGED = "nothing changed"
NO_LGCL = "no LGCL"
VARIANTS: dict[str, dict[str, Any]] = {
    UNCHANGED: {},
    # The LGCL.
    NO_LGCL: {"num_layers": 0},
    "two LGCLs": {"num_layers": 2},
    "the paper's CNN, 8 features": {"cnn": "double", "lgcl_channels": 8},
    "values ranked as they are": {"rank": "raw", "self_loops": False},
    "mean beside the largest": {"mean": True},
    "k = 4": {"k": 4},
    "k = 32": {"k": 32},
    # What surrounds it.
    "one view, no agreement": {"views": 1, "agreement": 0.0},
    "four views": {"views": 4},
    "no node dropout": {"node_dropout": 0.0},
    "edges dropped, 0.2": {"adj_dropout": 0.2},
    "no diffusion": {"hops": 0},
    "10 hops": {"hops": 10},
    "64 features": {"hidden_channels": 64},
    "no ReLU": {"activation": "none"},
    "sharpened to 0.3": {"sharpen": 0.3},
}
# What did no harm alone, in trials on Pubmed with other seeds.
TOGETHER: dict[str, dict[str, dict[str, Any]]] = {
    "pubmed": {
        "10 hops, 64 features": {"hops": 10, "hidden_channels": 64},
        "10 hops, sharpened to 0.3": {"hops": 10, "sharpen": 0.3},
        "10 hops, mean beside the largest": {"hops": 10, "mean": True},
        "64 features, sharpened to 0.3": {"hidden_channels": 64, "sharpen": 0.3},
        "64 features, mean beside the largest": {"hidden_channels": 64, "mean": True},
        "10 hops, 64 features, sharpened to 0.3": {
            "hops": 10,
            "hidden_channels": 64,
            "sharpen": 0.3,
        },
        "all four: 10 hops, 64 features, mean, sharpened to 0.3": {
            "hops": 10,
            "hidden_channels": 64,
            "sharpen": 0.3,
            "mean": True,
        },
    }
}

Run = dict[str, Any]


def variants(dataset: str) -> dict[str, dict[str, Any]]:
    return {**VARIANTS, **TOGETHER.get(dataset, {})}


def best_settings(dataset: str) -> dict[str, Any]:
    """What the search found, for as many epochs as it had."""
    from benchmarks.search import best_trial

    study = json.loads((STUDIES / f"{dataset}-lgcn.json").read_text("utf-8"))
    return {**study["given"], **best_trial(study["trials"])["params"]}


def train_once(task: tuple[str, str, int], base: dict[str, Any], device: str) -> Run:
    """One run, in a process of one thread."""
    from dataclasses import replace

    from lgcn import load_dataset
    from lgcn.memory import release_memory
    from lgcn.training import Config, train

    dataset, name, seed = task
    graph = replace(load_dataset(dataset), test_mask=None)
    settings = {**base, **variants(dataset)[name]}
    record = train(graph, Config.create(**settings, seed=seed, device=device)).record
    release_memory()  # others run beside this one
    kept = {key: record[key] for key in ("val_score", "best_epoch", "epochs")}
    return {"variant": name, "seed": seed, **kept}


def summary(runs: list[Run]) -> list[dict[str, Any]]:
    """Mean and deviation of each variant in percent, best first, and what its change does.

    The difference is that of runs of one seed, with its standard error.
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
        row["val_score"] = round(statistics.mean(values), 2)
        row["std"] = round(statistics.stdev(values), 2) if len(values) > 1 else None
        if both and name != UNCHANGED:
            row["difference"] = round(statistics.mean(both), 2)
            if len(both) > 1:
                row["error"] = round(statistics.stdev(both) / len(both) ** 0.5, 2)
        rows.append(row)
    return sorted(rows, key=lambda row: -row["val_score"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=CITATIONS)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--out", type=Path, help="(default: benchmarks/results/variants_DATASET-DEVICE.json)"
    )
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {arguments.seeds}")
    from benchmarks._common import RESULTS, machine, write

    dataset, device = arguments.dataset, arguments.device
    out = arguments.out or RESULTS / f"variants_{dataset}-{device}.json"
    base = best_settings(dataset)
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    tasks = [(dataset, name, seed) for seed in seeds for name in variants(dataset)]
    runs = _runs_so_far(out, base, tasks)
    known = {(dataset, run["variant"], run["seed"]) for run in runs}
    failed: list[str] = []

    def done(task: tuple[str, str, int], result: Run | Failure) -> None:
        if isinstance(result, Failure):
            failed.append(f"{task[1]}, seed {task[2]}: {result.message}")
            return
        runs.append(result)
        print(f"{len(runs)}/{len(tasks)} {task[1]}: {100 * result['val_score']:.1f}", flush=True)
        # In the order of the tasks, whatever order the runs end in.
        ordered = sorted(runs, key=lambda run: tasks.index((dataset, run["variant"], run["seed"])))
        record = {"base": base, "results": summary(ordered), "runs": ordered}
        write(out, {"machine": machine(device), **record})

    one = partial(train_once, base=base, device=device)
    todo = [task for task in tasks if task not in known]
    run_tasks(todo, one, done, processes=arguments.processes)
    for row in summary(runs):
        print(f"{row['val_score']:6.2f}  {row['variant']}")
    if failed:
        parser.exit(1, "\n".join(["these runs failed:", *failed, ""]))


def _runs_so_far(out: Path, base: dict[str, Any], tasks: list[tuple[str, str, int]]) -> list[Run]:
    """Those in the file that are asked for, unless they started from other settings."""
    record = json.loads(out.read_text("utf-8")) if out.exists() else {}
    if record.get("base") != base:
        return []
    wanted = {(name, seed) for _, name, seed in tasks}
    return [run for run in record["runs"] if (run["variant"], run["seed"]) in wanted]


if __name__ == "__main__":
    main()
