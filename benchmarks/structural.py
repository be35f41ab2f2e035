"""Says when features that the edges give help, on validation nodes alone.

python -m benchmarks.structural --name NAME [--device cuda] [--seeds N] [--first-seed N]
    [--datasets NAME ...] [--candidates NAME ...] [--splits NAME ...] [--max-epochs N]
    [--processes N]

A data set NAME:bare is NAME without its features. minesweeper and tolokers have their published
splits, and ROC AUC as score; the others have random splits, and accuracy. Test nodes are never
scored. The epoch is chosen by accuracy.
"""

import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.metrics import roc_auc_score

from benchmarks import validation
from benchmarks._common import machine, make_parser, read, write
from benchmarks.own_defaults import SPLITS, behind, most_for_training, summary
from lgcn import Graph, load_dataset
from lgcn.datasets import random_split
from lgcn.inference import predict
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Result, Settings, train
from lgcn.utils.memory import release_memory

PUBLISHED = ("minesweeper", "tolokers")
BARE = ":bare"
DATASETS = (
    "cora:bare",
    "amazon_computers:bare",
    "debian_bookworm:bare",
    "cora",
    "amazon_computers",
    *PUBLISHED,
)
CANDIDATES: dict[str, dict[str, str]] = {
    "none": {"structural_features": "no", "positions": "none"},
    "structural": {"structural_features": "yes", "positions": "none"},
    "spectral": {"structural_features": "no", "positions": "spectral"},
    "learnt": {"structural_features": "no", "positions": "learnt"},
    "structural and spectral": {"structural_features": "yes", "positions": "spectral"},
    "structural and learnt": {"structural_features": "yes", "positions": "learnt"},
}

Task = tuple[int, str, str, str]  # seed, data set, split, candidate


def tasks(
    seeds: range, datasets: list[str], splits: list[str], candidates: list[str]
) -> list[Task]:
    """All runs. Without features, something has to be added; published splits replace others."""
    found = [
        (seed, dataset, "published" if dataset in PUBLISHED else split, candidate)
        for seed, dataset, split, candidate in itertools.product(
            seeds, datasets, splits, candidates
        )
        if not (dataset.endswith(BARE) and candidate == "none")
    ]
    return list(dict.fromkeys(found))


def train_once(task: Task, max_epochs: int, device: str) -> dict[str, Any]:
    """One run in a process with one thread."""
    seed, dataset, split, candidate = task
    graph = _graph(dataset, split, seed)
    settings = Settings.create(
        dataset="tables",
        seed=seed,
        device=device,
        num_workers=0,
        max_epochs=max_epochs,
        **CANDIDATES[candidate],
    )
    result = train(replace(graph, test_mask=None), settings)
    run: dict[str, Any] = {"dataset": dataset, "split": split, "candidate": candidate, "seed": seed}
    run |= {key: result.record[key] for key in validation.KEPT}
    run["seconds"] = round(run["seconds"], 1)
    if split == "published":
        run["val_score"] = _roc_auc(result, graph)
    release_memory()  # others run beside this one
    return run


def _graph(dataset: str, split: str, seed: int) -> Graph:
    name = dataset.removesuffix(BARE)
    options: Mapping[str, Any] = {"split": seed % 10} if split == "published" else {}
    graph = load_dataset(name, **options)
    assert graph.y is not None
    if split != "published":
        train_mask, val_mask = (
            random_split(graph.y, 20, 500, seed)[:2]
            if split == SPLITS[0]
            else most_for_training(graph.y, seed)
        )
        graph = replace(graph, train_mask=train_mask, val_mask=val_mask)
    return replace(graph, x=None) if dataset.endswith(BARE) else graph


def _roc_auc(result: Result, graph: Graph) -> float:
    assert graph.y is not None
    assert graph.val_mask is not None
    scores = predict(result.model, result.spec.prepare(graph)).cpu()[graph.val_mask]
    return float(roc_auc_score(graph.y[graph.val_mask].numpy(), (scores[:, 1] - scores[:, 0])))


def main() -> None:
    parser = make_parser("structural", __doc__)
    count = validation.at_least_one
    parser.add_argument("--name", required=True, help="name of the comparison in the file")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seeds", type=count, default=2, help="number of seeds (default: 2)")
    parser.add_argument("--first-seed", type=int, default=2000, help="(default: 2000)")
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=list(DATASETS),
        metavar="NAME",
        help=f"(default: {' '.join(DATASETS)})",
    )
    parser.add_argument(
        "--splits", nargs="+", default=list(SPLITS), choices=SPLITS, help="(default: both)"
    )
    parser.add_argument(
        "--candidates",
        nargs="+",
        default=list(CANDIDATES),
        choices=CANDIDATES,
        metavar="NAME",
        help=f"(default: all) {'; '.join(CANDIDATES)}",
    )
    parser.add_argument("--max-epochs", type=count, default=300, help="(default: 300)")
    parser.add_argument(
        "--processes", type=count, default=os.cpu_count(), help="(default: one per core)"
    )
    arguments = parser.parse_args()
    name = f"{arguments.name}-{arguments.device}"
    if name in read(arguments.out):
        parser.error(f"{arguments.out} has a run {name} already: choose another --name or --out")
    loaded = [dataset.removesuffix(BARE) for dataset in arguments.datasets]
    validation.check(parser, loaded, arguments.device)
    runs: list[dict[str, Any]] = []
    failed: list[str] = []

    def done(task: Task, run: dict[str, Any] | Failure) -> None:
        if isinstance(run, Failure):
            failed.append(f"{task}: {run.message}")
            return
        runs.append(run)
        print(
            f"{run['dataset']:21} {run['split']:12} {run['candidate']:24} seed {run['seed']}  "
            f"validation {100 * run['val_score']:5.1f}  epoch {run['best_epoch']}/{run['epochs']}  "
            f"{run['seconds']} s",
            flush=True,
        )
        results = summary(runs)
        content = {"results": results, "behind_the_best": behind(results), "runs": runs}
        # After each run, so that an interruption loses nothing.
        write(arguments.out, name, {"machine": machine(arguments.device), **content})

    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    listed = tasks(seeds, arguments.datasets, arguments.splits, arguments.candidates)
    one = partial(train_once, max_epochs=arguments.max_epochs, device=arguments.device)
    run_tasks(listed, one, done, processes=arguments.processes)
    if failed:
        parser.exit(1, "\n".join(["these runs failed:", *failed, ""]))


if __name__ == "__main__":
    main()
