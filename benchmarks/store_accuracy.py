"""Accuracy of training on sub-graphs, as stores and clusters do, and of training on whole graphs.

python -m benchmarks.store_accuracy [--device cuda] [--processes N] [--out FILE] [--seeds N]
    [--first-seed N] [--datasets NAME ...] [--variants NAME ...] [--minutes M] [--quick]

Every variant trains the default network for own tables. `whole` sees the whole graph in each step,
the others sub-graphs of 20,000 nodes: grown from start nodes, on which alone the loss is taken
unless the name says otherwise, or made of METIS's clusters, with a halo of one hop or none. In
`parts`, a step takes a sub-graph of each of four parts, as several workers would do. Epochs are
chosen on validation nodes, and final scores are exact. A seed changes the split (where it is
random) and the weights.
"""

import os
import signal
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import validation
from benchmarks._common import QUICK_GRAPH, add_quick, machine, make_parser
from lgcn import load_dataset
from lgcn.graph import Graph
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.pool import Failure, run_tasks
from lgcn.partition import Partition, open_partition, write_partition
from lgcn.store.write_store import write_store
from lgcn.training import Settings, train

DATASETS = (
    *("wordnet31", "wordnet31-half", "debian_bookworm", "debian_bookworm-half"),
    *("amazon_computers", "coauthor_cs", "pubmed"),
)
_SUB: dict[str, Any] = {"training": "subgraph", "evaluate_on": "graph", "evaluate_every": 2}
_LARGE: dict[str, Any] = {**_SUB, "max_nodes": 20_000, "n_init": 500}
_START: dict[str, Any] = {**_SUB, "max_nodes": 20_000, "n_init": 2000, "scored_nodes": "start"}
_CLUSTERS: dict[str, Any] = {**_SUB, "max_nodes": 20_000, "sampler": "clusters"}
# What the defaults are for a partition, but for the exact scores after every second epoch.
_PARTS: dict[str, Any] = {"evaluate_on": "graph", "evaluate_every": 2}
# By the number of labels; the first is the reference.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "few": {
        "whole": {"training": "whole", "evaluate_on": "graph"},
        "500 start nodes, all scored": _LARGE,
        "500 start nodes": {**_LARGE, "scored_nodes": "start"},
        "2,000 start nodes": _START,
        "2,000 start nodes, degrees": {**_START, "keep_degree": True},
        "2,000 start nodes of 50,000": {**_START, "max_nodes": 50_000},
        "125 start nodes of 5,000": {**_START, "max_nodes": 5000, "n_init": 125},
        "20 clusters, halo": {**_CLUSTERS, "clusters": 20, "halo": 1},
        "4 parts by metis": {"parts": "metis", **_PARTS},
        "4 parts by ldg": {"parts": "ldg", **_PARTS},
        "4 parts by hash": {"parts": "hash", **_PARTS},
    },
    "many": {
        "whole": {"training": "whole", "evaluate_on": "graph"},
        "500 start nodes, all scored": {**_LARGE, "subgraphs_per_epoch": 8},
        "500 start nodes, complete": {
            **{**_LARGE, "subgraphs_per_epoch": 8},
            "scored_nodes": "complete",
        },
        "500 start nodes": {**_LARGE, "subgraphs_per_epoch": 8, "scored_nodes": "start"},
        "2,000 start nodes": {**_START, "subgraphs_per_epoch": 8},
        "4 clusters": _CLUSTERS,
        "20 clusters, halo": {**_CLUSTERS, "clusters": 20, "halo": 1},
    },
}
Task = tuple[int, str, str]  # seed, data set, variant


def kind_of(dataset: str) -> str:
    return "many" if dataset.endswith("-half") else "few"


def run_one(task: Task, device: str) -> dict[str, Any]:
    """Trains one variant, in a process with one thread."""
    seed, dataset, variant = task
    warnings.simplefilter("ignore")
    graph = load(dataset, seed)
    given: dict[str, Any] = {"dataset": "tables", "seed": seed, "device": device}
    given |= {"baselines": False}
    given |= VARIANTS[kind_of(dataset)][variant]
    method = given.pop("parts", None)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        parts = None if method is None else cut(graph, Path(folder), method)
        record = train(parts or graph, Settings.create(**given)).record
    found = {key: record[key] for key in ("val_score", "test_score", "best_epoch", "epochs")}
    return {**found, "seconds": round(time.perf_counter() - began, 1)}


def cut(graph: Graph, folder: Path, method: str) -> Partition:
    """The graph in four parts."""
    write_store(folder / "store", graph)
    write_partition(folder / "store", folder / "parts", 4, method=method)
    return open_partition(folder / "parts")


def load(dataset: str, seed: int) -> Graph:
    options: dict[str, Any] = {} if dataset == "pubmed" else {"split_seed": seed}
    return load_dataset(dataset, **(QUICK_GRAPH if dataset == "synthetic" else options))


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["dataset"], record["variant"], record["seed"]


class _TimeIsUp(Exception):
    """The minutes of --minutes are over."""


def _stop(number: int, frame: Any) -> None:
    raise _TimeIsUp


def main() -> None:
    parser = make_parser("store_accuracy", __doc__)
    count = validation.at_least_one
    names = list(dict.fromkeys(name for kind in VARIANTS.values() for name in kind))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=count, default=os.cpu_count())
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--variants", nargs="+", default=names, choices=names)
    parser.add_argument("--minutes", type=float, help="stop after so many (default: no limit)")
    add_quick(parser)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    datasets, variants = arguments.datasets, arguments.variants
    if arguments.quick:
        seeds, datasets, variants = range(1), ["synthetic"], ["whole", "125 start nodes of 5,000"]
    known = read_lines(arguments.out, key).records
    on = machine(arguments.device)

    def done(task: Task, found: dict[str, Any] | Failure) -> None:
        seed, dataset, variant = task
        if isinstance(found, Failure):
            print(f"{task} failed: {found.message}", flush=True)
            return
        record = {"dataset": dataset, "variant": variant, "seed": seed, **found}
        put_lines(arguments.out, [{**record, "machine": on}], key)
        print(
            f"{dataset:21} {variant:26} {seed} validation {100 * found['val_score']:5.1f} test "
            f"{100 * found['test_score']:5.1f} epoch {found['best_epoch']:4} "
            f"{found['seconds']:6.1f} s",
            flush=True,
        )

    tasks = [
        (seed, dataset, variant)
        for seed in seeds
        for dataset in datasets
        for variant in variants
        if variant in VARIANTS[kind_of(dataset)] and (dataset, variant, seed) not in known
    ]
    if arguments.minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, 60 * arguments.minutes)
    try:
        one = partial(run_one, device=arguments.device)
        run_tasks(tasks, one, done, processes=arguments.processes)
    except _TimeIsUp:
        print(f"stopped after {arguments.minutes} minutes", flush=True)


if __name__ == "__main__":
    main()
