"""The default and the best model for a graph of your own, beside tuned baselines.

python -m benchmarks.own_best [--device cuda] [--processes N] [--out FILE] [--minutes M]
    [--datasets NAME ...] [--tasks NAME ...] [--systems NAME ...] [--splits N] [--first-split N]
    [--time-limit 10m | --max-trials N]

Each system trains on the same splits: 60/20/20 % and 20 labels per class, drawn by the number of
the split, or the published ones of minesweeper and tolokers, which are scored by ROC AUC. Every
system chooses its epoch and its settings by the score of the validation nodes. The file gets one
line per graph, split and system as soon as it is finished; a run that stops, for example after M
minutes, goes on with the next call. `python -m benchmarks.report` writes the table.
"""

import argparse
import itertools
import json
import os
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import own_best_networks, validation
from benchmarks._common import machine, make_parser
from benchmarks.own_best_table import SYSTEMS, key
from lgcn import Graph, load_dataset
from lgcn.datasets import random_split
from lgcn.datasets.locate import data_folders
from lgcn.graph.splits import fraction_split
from lgcn.graph.structural import structural_features, suitable_names
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings, train
from lgcn.training.portfolio import train_as_asked
from lgcn.utils.memory import release_memory

PUBLISHED = ("minesweeper", "tolokers")
RANDOM = (
    *("cora", "citeseer", "pubmed", "amazon_computers", "coauthor_cs"),
    *("debian_bookworm", "wordnet31"),
)
TASKS = ("60/20/20", "20 per class", "published")
assert own_best_networks  # registers the model

# Settings of the graph neural networks and the perceptron, by kind. The first ones are the networks
# of the papers.
_WHOLE: dict[str, Any] = {"training": "whole", "evaluate_on": "graph"}
_EPOCHS: dict[str, Any] = {"max_epochs": 500, "patience": 100, **_WHOLE}
_STRONG: tuple[dict[str, Any], ...] = (
    {"num_layers": 3, "hidden_channels": 256, "dropout": 0.5, "lr": 0.005},
    {"num_layers": 5, "hidden_channels": 128, "dropout": 0.2, "lr": 0.005},
    {"num_layers": 2, "hidden_channels": 512, "dropout": 0.5, "lr": 0.001, "norm": "layer"},
    {
        **{"num_layers": 12, "hidden_channels": 64, "dropout": 0.2, "lr": 0.01},
        **{"max_epochs": 2000, "patience": 200},
    },
    {
        **{"num_layers": 3, "hidden_channels": 256, "dropout": 0.5, "lr": 0.005},
        "residual": False,
    },
    {
        **{"num_layers": 1, "hidden_channels": 128, "dropout": 0.7, "lr": 0.01, "norm": "none"},
        **{"residual": False, "weight_decay": 0.0005, "input_dropout": 0.5},
    },
)
_PERCEPTRONS: tuple[dict[str, Any], ...] = (
    {"num_layers": 2, "hidden_channels": 256, "dropout": 0.5, "lr": 0.005},
    {"num_layers": 2, "hidden_channels": 256, "dropout": 0.2, "lr": 0.005},
    {"num_layers": 1, "hidden_channels": 512, "dropout": 0.5, "lr": 0.001, "norm": "layer"},
    {"num_layers": 4, "hidden_channels": 128, "dropout": 0.3, "lr": 0.005},
    {
        **{"num_layers": 1, "hidden_channels": 128, "dropout": 0.7, "lr": 0.01, "norm": "none"},
        **{"weight_decay": 0.005, "input_dropout": 0.5},
    },
)
GRIDS: dict[str, list[dict[str, Any]]] = {
    kind: [
        {"model": kind, **_WHOLE},
        {
            **{"model": kind, **_WHOLE, "dropout": 0.5},
            "hidden_channels": 32 if kind == "gat" else 256,  # of each head
        },
        *(
            {"model": "tuned", "kind": kind, "weight_decay": 0.0, **_EPOCHS, **one}
            for one in (_PERCEPTRONS if kind == "mlp" else _STRONG)
        ),
    ]
    for kind in ("gcn", "gat", "sage", "mlp")
}
BOOSTING: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.1, "max_leaf_nodes": 31},
    {"learning_rate": 0.05, "max_leaf_nodes": 15, "l2_regularization": 1.0},
    {"learning_rate": 0.1, "max_leaf_nodes": 7, "max_features": 0.5},
)
TREES, WIDE, COLUMNS = 200, 500, 128  # trees per class; more features than WIDE become COLUMNS
assert tuple(GRIDS) == SYSTEMS[2:6]

Task = tuple[int, str, str, str]  # number of the split, data set, kind of split, system


def run_one(task: Task, device: str, limits: dict[str, Any]) -> dict[str, Any]:
    """One system on one split, in a process with one thread."""
    number, dataset, split, system = task
    warnings.simplefilter("ignore")
    graph = split_graph(dataset, split, number)
    metric = "roc_auc" if split == "published" else "accuracy"
    common = {"dataset": "tables", "seed": number, "device": device, "num_workers": 0}
    common["metric"] = metric
    began = time.perf_counter()
    if system in ("default", "best"):
        asked = Settings.create(**common, **(limits if system == "best" else {}))
        record = train_as_asked(graph, asked).record
        found = {key: record[key] for key in ("val_score", "test_score")}
        if "leaderboard" in record:
            found["leaderboard"] = [
                {key: row[key] for key in ("name", "val_score", "seconds", "weight", "error")}
                for row in record["leaderboard"]
            ]
    elif system in GRIDS:
        found = tuned(graph, system, common)
    else:
        found = boosted(graph, metric, number, structural=system.endswith("structural"))
    release_memory()
    seconds = round(time.perf_counter() - began, 1)
    return {**found, "metric": metric, "seconds": seconds}


def split_graph(dataset: str, split: str, number: int) -> Graph:
    """The graph with a split."""
    graph = _load(dataset)
    assert graph.y is not None
    if split == "published":
        with np.load(_published(dataset)) as file:
            masks = [torch.from_numpy(file[f"{part}_masks"][number]) for part in _PARTS]
    elif split == "60/20/20":
        masks = list(fraction_split(graph.y, val=0.2, test=0.2, seed=number))
    else:
        masks = list(random_split(graph.y, 20, 500, number))
    return replace(graph, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])


_PARTS = ("train", "val", "test")


def _published(dataset: str) -> Path:
    paths = [folder / "heterophilous" / f"{dataset}.npz" for folder in data_folders()]
    return next((path for path in paths if path.exists()), paths[0])


@lru_cache(2)
def _load(dataset: str) -> Graph:
    if dataset not in PUBLISHED:
        return load_dataset(dataset)
    with np.load(_published(dataset)) as file:
        edges = torch.from_numpy(file["edges"]).t().long()
        x, y = (torch.from_numpy(file[name]) for name in ("node_features", "node_labels"))
    return Graph.from_edge_index(edges, len(y), x=x, y=y, directed=False, name=dataset)


def tuned(graph: Graph, system: str, common: dict[str, Any]) -> dict[str, Any]:
    """The settings of a grid that score best on the validation nodes."""
    found = []
    for settings in GRIDS[system]:
        record = train(graph, Settings.create(**common, **settings)).record
        found.append((record["val_score"], record["test_score"], settings))
        release_memory()
    best = max(found, key=lambda one: one[0])
    return {"val_score": best[0], "test_score": best[1], "settings": best[2]}


def boosted(graph: Graph, metric: str, seed: int, *, structural: bool) -> dict[str, Any]:
    """scikit-learn's gradient boosting on the features, and structural features by choice."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import accuracy_score, roc_auc_score

    x: Any = graph.features()
    if x.layout == torch.sparse_csr:
        from scipy.sparse import csr_matrix

        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        x = csr_matrix(parts, shape=tuple(x.shape))
    else:
        x = x.numpy()
    if x.shape[1] > WIDE:
        x = TruncatedSVD(COLUMNS, random_state=0).fit_transform(x)
    x = x.toarray() if hasattr(x, "toarray") else x
    if structural:
        x = np.hstack([x, structural_features(graph, suitable_names(graph))])
    assert graph.y is not None
    y = graph.y.numpy()
    train_rows, val, test = (np.flatnonzero(graph.mask(part).numpy()) for part in _PARTS)  # type: ignore[union-attr]

    def score(model: Any, chances: Any, rows: Any) -> float:
        if metric == "roc_auc":
            return float(roc_auc_score(y[rows], chances[:, 1]))
        return float(accuracy_score(y[rows], model.classes_[chances.argmax(1)]))

    found = []
    trees = min(TREES, max(20, 6000 // graph.num_classes))
    for settings in BOOSTING:
        model = HistGradientBoostingClassifier(
            **settings,
            max_iter=trees,
            early_stopping=False,
            min_samples_leaf=int(np.clip(len(train_rows) // 20, 1, 20)),
            random_state=seed,
        ).fit(x[train_rows], y[train_rows])
        on_val = model.staged_predict_proba(x[val])
        scores = [score(model, chances, val) for chances in on_val]
        best = int(np.argmax(scores))
        on_test = next(itertools.islice(model.staged_predict_proba(x[test]), best, None))
        found.append((scores[best], score(model, on_test, test), {**settings, "trees": best + 1}))
    best_one = max(found, key=lambda one: one[0])
    return {"val_score": best_one[0], "test_score": best_one[1], "settings": best_one[2]}


def all_tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """Split after split, so that an early end leaves whole comparisons."""
    first = arguments.first_split
    for number in range(first, first + arguments.splits):
        for dataset, split in itertools.product(arguments.datasets, arguments.tasks):
            if (dataset in PUBLISHED) == (split == "published"):
                for system in arguments.systems:
                    yield number, dataset, split, system


class _TimeIsUp(Exception):
    """The minutes of --minutes are over."""


def _stop(number: int, frame: Any) -> None:
    raise _TimeIsUp


def main() -> None:
    parser = make_parser("own_best", __doc__)
    count = validation.at_least_one
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=count, default=os.cpu_count())
    parser.add_argument("--ray", metavar="ADDRESS", help="do the runs on this cluster")
    parser.add_argument("--minutes", type=float, help="stop after so many (default: no limit)")
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=[*RANDOM, *PUBLISHED],
        metavar="NAME",
        help="(default: all)",
    )
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--splits", type=count, default=10, help="(default: 10)")
    parser.add_argument("--first-split", type=int, default=0, help="(default: 0)")
    parser.add_argument("--time-limit", help="of `best` (default: none)")
    parser.add_argument("--max-trials", type=count, help="of `best` (default: 16)")
    arguments = parser.parse_args()
    out: Path = arguments.out
    known = read_lines(out, key).records
    limits = {"time_limit": arguments.time_limit, "max_trials": arguments.max_trials}
    limits = {name: value for name, value in limits.items() if value is not None}
    limits = limits or {"max_trials": 16}
    on = {**machine(arguments.device), "best": limits}

    def done(task: Task, found: dict[str, Any] | Failure) -> None:
        number, dataset, split, system = task
        if isinstance(found, Failure):
            print(f"{task} failed: {found.message}", flush=True)
            return
        record = {"dataset": dataset, "split": split, "number": number, "system": system, **found}
        known[key(record)] = record
        put_lines(out, [{**record, "machine": on}], key)
        print(
            f"{dataset:17} {split:12} {number} {system:21} validation "
            f"{100 * found['val_score']:5.1f} test {100 * found['test_score']:5.1f} "
            f"{found['seconds']:6.1f} s {json.dumps(found.get('settings', {}))}",
            flush=True,
        )

    tasks = [t for t in all_tasks(arguments) if (t[1], t[2], t[0], t[3]) not in known]
    if arguments.minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, 60 * arguments.minutes)
    try:
        one = partial(run_one, device=arguments.device, limits=limits)
        run_tasks(tasks, one, done, processes=arguments.processes, address=arguments.ray)
    except _TimeIsUp:
        print(f"stopped after {arguments.minutes} minutes", flush=True)


if __name__ == "__main__":
    main()
