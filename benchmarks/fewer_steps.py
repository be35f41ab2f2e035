"""Fewer or cheaper training steps for the same validation score, on own tables with defaults.

python -m benchmarks.fewer_steps --name NAME [--device cpu|cuda] [--seeds N] [--first-seed N]
    [--datasets NAME ...] [--splits NAME ...] [--candidates NAME ...] [--processes N] [--quick]

Each candidate changes the optimisation of the default preset, whose settings for few or many labels
are chosen by its own rule. It trains until it stops by itself, on one thread per process. The curve
of a run has the validation score and loss, and the seconds so far, of each epoch: processor time on
the CPU, time on the clock on a GPU, from the end of the first epoch on. Test scores, at the epoch
that is best on validation nodes, are recorded and choose nothing. A command that was interrupted
resumes from its record.
"""

import itertools
import os
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from benchmarks import validation
from benchmarks._common import QUICK_GRAPH, add_quick, machine, make_parser, read, write
from benchmarks.own_defaults import most_for_training
from lgcn import Graph, load_dataset
from lgcn.datasets import random_split
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings, State, train
from lgcn.training.early_stop import EarlyStop
from lgcn.training.groups import OptimisationSettings
from lgcn.utils.memory import release_memory

DATASETS = (
    *("digits", "cora", "citeseer", "minesweeper"),
    *("pubmed", "coauthor_cs", "amazon_computers"),
)
FEW_LABELS, MANY_LABELS = "20 per class", "60/20/20"
SPLITS = (FEW_LABELS, MANY_LABELS)
PUBLISHED = ("minesweeper", "tolokers")  # they have ten splits of their own

DEFAULTS = "defaults"


def scheduled(
    schedule: str, epochs: int, *, rate: int = 1, **changes: Any
) -> dict[str, dict[str, Any]]:
    """A schedule over so many epochs. The agreement of views grows over a third of them."""
    common = {"lr_schedule": schedule, "max_epochs": epochs}
    few = {"lr": rate * 0.02, "agreement_epochs": max(1, epochs // 3)}
    return {"few": {**common, **few, **changes}, "many": {**common, "lr": rate * 0.01}}


def only_few(changes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A candidate that says nothing new for many labels."""
    return {"few": dict(changes["few"])}


def stopped(**changes: Any) -> dict[str, Any]:
    """Early stopping by trend."""
    return {"early_stop": "trend", "patience": 30, **changes}


def for_all(**changes: Any) -> dict[str, dict[str, Any]]:
    return {"few": changes, "many": changes}


# Changes of the settings for few and for many labels.
CANDIDATES: dict[str, dict[str, dict[str, Any]]] = {
    DEFAULTS: {"few": {}, "many": {}},
    "cosine, 60 epochs": scheduled("cosine", 60),
    "cosine, 100 epochs": scheduled("cosine", 100),
    "cosine, 150 epochs": scheduled("cosine", 150),
    "one cycle, 60 epochs": scheduled("one_cycle", 60),
    "one cycle, 100 epochs": scheduled("one_cycle", 100),
    "one cycle, 100 epochs, twice the rate": scheduled("one_cycle", 100, rate=2),
    "one cycle, 150 epochs, twice the rate": scheduled("one_cycle", 150, rate=2),
    "one cycle, 100 epochs, four times the rate": scheduled("one_cycle", 100, rate=4),
    "one cycle, 100 epochs, one view until 30": only_few(
        scheduled("one_cycle", 100, views_from=31)
    ),
    "trend, 30 epochs": for_all(**stopped()),
    "trend, 30 epochs, twice the rate": {"few": stopped(lr=0.04), "many": stopped(lr=0.02)},
    "trend, 30 epochs, agreement grows over 50": {"few": stopped(agreement_epochs=50)},
    "trend, 30 epochs, one view until 40": {"few": stopped(views_from=41)},
    "trend, 30 epochs, one view until 80": {"few": stopped(views_from=81)},
    "trend, 25 epochs, many at twice the rate": {
        "few": stopped(patience=25),
        "many": stopped(patience=25, lr=0.02),
    },
}
# Early stopping only cuts a run short. These are read off the curves of the defaults, whose own
# early stopping is later.
REPLAYED: dict[str, dict[str, Any]] = {
    "patience 50": {"early_stop": "patience", "patience": 50},
    **{f"trend, {n} epochs": stopped(patience=n) for n in (25, 40, 50)},
}

Task = tuple[int, str, str, str, str]  # as TASK names it
TASK = ("seed", "dataset", "split", "labels", "candidate")


def tasks(
    seeds: Iterable[int],
    places: Iterable[tuple[str, str, str]],
    candidates: Iterable[str],
) -> list[Task]:
    """All runs; seeds come first, so that a command that is stopped has all graphs."""
    return [
        (seed, *place, name)
        for seed, place, name in itertools.product(seeds, places, candidates)
        if place[2] in CANDIDATES[name]
    ]


def find_places(
    datasets: Iterable[str], splits: Iterable[str], seed: int
) -> list[tuple[str, str, str]]:
    """Data sets, splits, and whether the default preset takes the settings for few labels."""
    found: list[tuple[str, str, str]] = []
    for dataset, split in itertools.product(datasets, splits):
        if dataset in PUBLISHED and split == FEW_LABELS:
            continue
        resolved = Settings.create(dataset="tables").resolve(split_graph(dataset, split, seed))
        found.append((dataset, split, "few" if resolved.labels == "auto" else resolved.labels))
    return found


def train_once(task: Task, device: str, max_epochs: int | None) -> dict[str, Any]:
    """One run in a process with one thread."""
    seed, dataset, split, labels, candidate = task
    changes = dict(CANDIDATES[candidate][labels])
    if max_epochs is not None:
        changes["max_epochs"] = max_epochs
    settings = Settings.create(
        dataset="tables",
        **changes,
        labels=labels,
        seed=seed,
        device=device,
        num_workers=0,
        baselines=False,
    )
    curve: list[tuple[float, float, float]] = []
    clock = time.process_time if device == "cpu" else time.perf_counter
    started = 0.0

    def on_epoch(state: State) -> None:
        nonlocal started
        if state.epoch == 1:  # it also compiles or loads kernels
            started = clock()
        now = state.history[-1]
        seconds = round(clock() - started, 4)
        curve.append((round(now["val_score"], 5), round(now["val_loss"], 5), seconds))

    record = train(split_graph(dataset, split, seed), settings, on_epoch=on_epoch).record
    release_memory()  # others run beside this one
    scores, losses, seconds = zip(*curve, strict=True)
    run = {"dataset": dataset, "split": split, "labels": labels, "candidate": candidate}
    kept = {key: record[key] for key in ("val_score", "test_score", "best_epoch", "epochs")}
    curves = {"val_score": scores, "val_loss": losses, "seconds": seconds}
    return {**run, "seed": seed, **kept, "seconds": seconds[-1], "curve": curves}


def split_graph(dataset: str, split: str, seed: int) -> Graph:
    """A graph with the split of a seed. All nodes that are in neither part are test nodes."""
    if dataset in PUBLISHED:
        return _load(dataset, split=seed % 10)
    graph = _load(dataset, **(QUICK_GRAPH if dataset == "synthetic" else {}))
    assert graph.y is not None
    if split == FEW_LABELS:
        train_mask, val_mask, test_mask = random_split(graph.y, 20, 500, seed)
    else:
        train_mask, val_mask = most_for_training(graph.y, seed)
        test_mask = ~(train_mask | val_mask) & (graph.y >= 0)
    return replace(graph, train_mask=train_mask, val_mask=val_mask, test_mask=test_mask)


@lru_cache(2)
def _load(dataset: str, **options: Any) -> Graph:
    return load_dataset(dataset, **options)


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each candidate beside the defaults on the same seeds, for each graph and split.

    The gain in points is that of the best validation score. The target of a graph is the mean best
    score of the defaults, less its standard error; a run that never reaches it counts in full.
    """
    by_key: dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]] = {}
    replayed = [replay(r, name) for r in runs if r["candidate"] == DEFAULTS for name in REPLAYED]
    for run in [*runs, *replayed]:
        found = by_key.setdefault((run["dataset"], run["split"]), {})
        found.setdefault(run["candidate"], {})[run["seed"]] = run
    results = []
    for (dataset, split), candidates in sorted(by_key.items()):
        now = candidates.get(DEFAULTS, {})
        for name, own in sorted(candidates.items()):
            seeds = sorted(own.keys() & now.keys())
            if seeds:
                pairs = [(now[seed], own[seed]) for seed in seeds]
                results.append(
                    {
                        "dataset": dataset,
                        "split": split,
                        "labels": pairs[0][0]["labels"],
                        "candidate": name,
                        "seeds": len(seeds),
                        **_beside(pairs),
                    }
                )
    return results


def replay(run: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a run of the defaults would have been with another early stopping."""
    stop = EarlyStop(OptimisationSettings(**REPLAYED[name]), greater_is_better=True)
    state, curve = State(), run["curve"]
    for epoch, (score, loss) in enumerate(
        zip(curve["val_score"], curve["val_loss"], strict=True), start=1
    ):
        entry = {"epoch": epoch, "val_score": score, "val_loss": loss, "test_score": None}
        stop.add(entry, better=state.record(entry))
        if stop.is_due(epoch):
            break
    found = {"candidate": name, "val_score": state.best_val_score, "best_epoch": state.best_epoch}
    cut = {key: values[:epoch] for key, values in curve.items()}
    # Test scores are known at the best epoch of the whole run only.
    same = state.best_epoch == run["best_epoch"]
    test = {"test_score": run["test_score"] if same else None}
    return {**run, **found, **test, "epochs": epoch, "seconds": cut["seconds"][-1], "curve": cut}


def _beside(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    before = [100 * one["val_score"] for one, _ in pairs]
    gains = [100 * (own["val_score"] - one["val_score"]) for one, own in pairs]
    known = all(own["test_score"] is not None for _, own in pairs)
    tests = [100 * (own["test_score"] - one["test_score"]) for one, own in pairs] if known else []
    target = (statistics.mean(before) - standard_error(before)) / 100
    reached = [(reach(one, target), reach(own, target)) for one, own in pairs]
    return {
        "val_score": round(statistics.mean(100 * own["val_score"] for _, own in pairs), 2),
        "gain": round(statistics.mean(gains), 2),
        "gain_error": round(standard_error(gains), 2),
        "error": round(standard_error(before), 2),
        "test_gain": round(statistics.mean(tests), 2) if tests else None,
        "epochs": round(statistics.mean(own["epochs"] for _, own in pairs), 1),
        "epochs_ratio": round(_ratio((one["epochs"], own["epochs"]) for one, own in pairs), 3),
        "time": round(_ratio((one["seconds"], own["seconds"]) for one, own in pairs), 3),
        "time_to_score": round(_ratio(reached), 3),
    }


def reach(run: Mapping[str, Any], target: float) -> float:
    """Seconds until a validation score is reached; all of the run's if it never is."""
    curve = run["curve"]
    for score, seconds in zip(curve["val_score"], curve["seconds"], strict=True):
        if score >= target:
            return float(seconds)
    return float(run["seconds"])


def standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """What a candidate takes, of what the defaults take."""
    before, own = zip(*pairs, strict=True)
    return float(sum(own) / sum(before))


def show(results: list[dict[str, Any]]) -> None:
    for row in results:
        test = "" if row["test_gain"] is None else f"  test {row['test_gain']:+6.2f}"
        print(
            f"{row['dataset']:17} {row['split']:13} {row['labels']:5} {row['candidate']:43} "
            f"{row['seeds']} seeds  validation {row['val_score']:6.2f}"
            f" {row['gain']:+6.2f} ± {row['gain_error']:.2f}{test}"
            f"  {row['epochs']:5.1f} epochs  time {row['time']:.2f}"
            f"  to score {row['time_to_score']:.2f}"
        )


def main() -> None:
    parser = make_parser("fewer_steps", __doc__)
    count = validation.at_least_one
    parser.add_argument("--name", required=True, help="name of the comparison in the file")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seeds", type=count, default=5, help="number of seeds (default: 5)")
    parser.add_argument("--first-seed", type=int, default=2000, help="(default: 2000)")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument(
        "--candidates",
        nargs="+",
        default=list(CANDIDATES),
        choices=CANDIDATES,
        metavar="NAME",
        help=f"(default: all) {'; '.join(CANDIDATES)}",
    )
    parser.add_argument(
        "--processes", type=count, default=os.cpu_count(), help="(default: one per core)"
    )
    add_quick(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.datasets, arguments.seeds = ["synthetic"], 1
    validation.check(parser, arguments.datasets, arguments.device)
    name = f"{arguments.name}-{arguments.device}"
    runs: list[dict[str, Any]] = read(arguments.out).get(name, {"runs": []})["runs"]
    known = {tuple(r[key] for key in TASK) for r in runs}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    places = find_places(arguments.datasets, arguments.splits, arguments.first_seed)
    wanted = tasks(seeds, places, arguments.candidates)
    failed: list[str] = []

    def done(task: Task, run: dict[str, Any] | Failure) -> None:
        if isinstance(run, Failure):
            failed.append(f"{task}: {run.message}")
            return
        runs.append(run)
        print(
            f"{run['dataset']:17} {run['split']:13} {run['candidate']:43} seed {run['seed']}"
            f"  validation {100 * run['val_score']:5.1f}  epoch {run['best_epoch']}/{run['epochs']}"
            f"  {run['seconds']:.1f} s",
            flush=True,
        )
        # After each run, so that an interruption loses nothing.
        content = {"machine": machine(arguments.device), "results": summary(runs), "runs": runs}
        write(arguments.out, name, content)

    max_epochs = 3 if arguments.quick else None
    one = partial(train_once, device=arguments.device, max_epochs=max_epochs)
    left = [task for task in wanted if task not in known]
    run_tasks(left, one, done, processes=arguments.processes)
    show(summary(runs))
    if failed:
        parser.exit(1, "\n".join(["these runs failed:", *failed, ""]))


if __name__ == "__main__":
    main()
