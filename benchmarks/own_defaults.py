"""Chooses the defaults for users' own graphs among candidates, on validation nodes alone.

python -m benchmarks.own_defaults --name NAME [--device cuda] [--seeds N] [--first-seed N]
    [--datasets NAME ...] [--candidates NAME ...] [--splits NAME ...] [--max-epochs N]
    [--processes N]

Each candidate trains with 20 labels per class and with 60/20/20 % of the nodes. Test nodes are
never scored. A seed changes the split and the weights; no reported result uses seeds from
2000 on. The record has every run; the last lines say how far each candidate is behind the best one,
on average over graphs and splits.
"""

import itertools
import os
import statistics
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import validation
from benchmarks._common import machine, make_parser, read, write
from lgcn import load_dataset
from lgcn.datasets import random_split
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings

DATASETS = ("digits", "cora", "pubmed", "amazon_computers", "coauthor_cs", "debian_bookworm")
SPLITS = ("20 per class", "60/20/20")

# The preset's settings for few and many labels, and variants of each. The whole graph is one batch
# unless a variant says otherwise. With few labels, all views have the LGCL here; the preset omits
# it in half of the views, which was compared last.
FEW: dict[str, Any] = {"labels": "few", "training": "whole", "layer_dropout": 0.0}
MANY: dict[str, Any] = {"labels": "many", "training": "whole"}
# The defaults of earlier versions.
EARLIER: dict[str, Any] = {
    **FEW,
    "embedding": "gcn",
    "hidden_channels": 64,
    "lgcl_channels": 32,
    "cnn": "double",
    "zeros": "compete",
    "classifier": "normalized",
    "activation": "none",
    "input_dropout": None,
    "input_scale": 1.0,
    "node_dropout": 0.0,
    "adj_dropout": 0.001,
    "views": 1,
    "agreement": 0.0,
    "lr": 0.01,
    "weight_decay": 0.0005,
    "dropout": 0.5,
    "k": None,
}
MANY_BEFORE: dict[str, Any] = {
    **MANY,
    "num_layers": 2,
    "lgcl_channels": 128,
    "hops": 2,
    "weight_decay": 0.0,
}
# Weaker regularisation.
MILDER: dict[str, Any] = {
    **FEW,
    "node_dropout": 0.2,
    "input_dropout": 0.2,
    "lr": 0.01,
    "weight_decay": 0.001,
}
MILDEST: dict[str, Any] = {
    **MILDER,
    "hops": 2,
    "dropout": 0.1,
    "lr": 0.005,
    "weight_decay": 0.0001,
}
# What the search found for the network without LGCLs on wordnet31.
SLOWER: dict[str, Any] = {
    **FEW,
    "hops": 10,
    "node_dropout": 0.2,
    "input_dropout": 0.2,
    "agreement": 1.5,
    "lr": 0.005,
    "weight_decay": 0.0005,
}
SUBGRAPHS: dict[str, Any] = {**FEW, "training": "subgraph"}
CANDIDATES: dict[str, dict[str, Any]] = {
    "earlier": EARLIER,
    "few": FEW,
    "few, narrower": {**FEW, "hidden_channels": 64},
    "few, 10 hops": {**FEW, "hops": 10},
    "few, narrower, 10 hops": {**FEW, "hidden_channels": 64, "hops": 10},
    "few, milder": MILDER,
    "few, mildest": MILDEST,
    "few, slower": SLOWER,
    "few, slower, 5 hops": {**SLOWER, "hops": 5},
    "few, slower, narrower": {**SLOWER, "hidden_channels": 64},
    "few, slower, lr 0.01": {**SLOWER, "lr": 0.01},
    "few, slower, no LGCL": {**SLOWER, "num_layers": 0},
    "few, dropout 0.5": {**FEW, "dropout": 0.5},
    "few, decay 0.005": {**FEW, "weight_decay": 0.005},
    "few, no agreement": {**FEW, "views": 1, "agreement": 0.0},
    "few, no LGCL": {**FEW, "num_layers": 0},
    "few, LGCL in half of the views": {**FEW, "layer_dropout": 0.5},
    "few, agreement 2": {**FEW, "agreement": 2.0},
    "many": MANY,
    "many, as before": MANY_BEFORE,
    "many, as before, three LGCLs": {**MANY_BEFORE, "num_layers": 3},
    "many, as before, decay 0.00001": {**MANY_BEFORE, "weight_decay": 0.00001},
    "many, wider LGCLs": {**MANY, "lgcl_channels": 128},
    "many, wider LGCLs, no decay": {**MANY, "lgcl_channels": 128, "weight_decay": 0.0},
    "sub-graphs": SUBGRAPHS,
    "sub-graphs, 10 hops": {**SUBGRAPHS, "hops": 10},
    "sub-graphs of 5000": {**SUBGRAPHS, "max_nodes": 5000},
    "sub-graphs, degrees of the graph": {**SUBGRAPHS, "keep_degree": True},
}


Task = tuple[int, str, str, str]  # seed, data set, split, candidate


def train_once(task: Task, max_epochs: int, device: str) -> dict[str, Any]:
    """One run in a process with one thread."""
    seed, dataset, split, candidate = task
    graph = load_dataset(dataset)
    assert graph.y is not None
    train_mask, val_mask = (
        random_split(graph.y, 20, 500, seed)[:2]
        if split == SPLITS[0]
        else most_for_training(graph.y, seed)
    )
    graph = replace(graph, train_mask=train_mask, val_mask=val_mask)
    settings = Settings.create(
        dataset="tables",
        seed=seed,
        device=device,
        num_workers=0,
        max_epochs=max_epochs,
        **CANDIDATES[candidate],
    ).resolve(graph)
    run = {
        "dataset": dataset,
        "split": split,
        "candidate": candidate,
        "seed": seed,
        "k": settings.model.k,
    }
    return run | validation.validate(graph, settings)


def most_for_training(y: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Masks of 60 % training and 20 % validation nodes."""
    nodes = np.random.default_rng(seed).permutation(np.flatnonzero(np.asarray(y) >= 0))
    masks = torch.zeros(2, len(y), dtype=torch.bool)
    first, second = round(0.6 * len(nodes)), round(0.8 * len(nodes))
    masks[0, nodes[:first]] = True
    masks[1, nodes[first:second]] = True
    return masks[0], masks[1]


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean validation score of each candidate in each setting, in percent."""
    keys = sorted({(r["dataset"], r["split"], r["candidate"]) for r in runs})
    results = []
    for key in keys:
        own = [r for r in runs if (r["dataset"], r["split"], r["candidate"]) == key]
        scores = [100 * r["val_score"] for r in own]
        results.append(
            {
                "dataset": key[0],
                "split": key[1],
                "candidate": key[2],
                "seeds": len(own),
                "val_score": round(statistics.mean(scores), 2),
                "spread": round(max(scores) - min(scores), 2),
                "seconds": round(statistics.mean(r["seconds"] for r in own), 1),
            }
        )
    return results


def behind(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many points each candidate is behind the best one, smallest first.

    Only settings that all candidates were run in count, so that none has easier ones.
    """
    candidates = {r["candidate"] for r in results}
    by_setting: dict[tuple[str, str], dict[str, float]] = {}
    for r in results:
        by_setting.setdefault((r["dataset"], r["split"]), {})[r["candidate"]] = r["val_score"]
    complete = [scores for scores in by_setting.values() if set(scores) == candidates]
    rows = []
    for name in sorted(candidates):
        gaps = [max(scores.values()) - scores[name] for scores in complete]
        if gaps:
            row = {"mean": round(statistics.mean(gaps), 2), "most": round(max(gaps), 2)}
            rows.append({"candidate": name, **row, "settings": len(gaps)})
    return sorted(rows, key=lambda row: row["mean"])


def main() -> None:
    parser = make_parser("own_defaults", __doc__)
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
        help="(default: six graphs)",
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
    validation.check(parser, arguments.datasets, arguments.device)
    runs: list[dict[str, Any]] = []
    failed: list[str] = []

    def done(task: Task, run: dict[str, Any] | Failure) -> None:
        if isinstance(run, Failure):
            failed.append(f"{task}: {run.message}")
            return
        runs.append(run)
        print(
            f"{run['dataset']:17} {run['split']:10} {run['candidate']:32} seed {run['seed']} "
            f"k {run['k']:2}  validation {100 * run['val_score']:5.1f}  "
            f"epoch {run['best_epoch']}/{run['epochs']}  {run['seconds']} s",
            flush=True,
        )
        results = summary(runs)
        content = {"results": results, "behind_the_best": behind(results), "runs": runs}
        # After each run, so that an interruption loses nothing.
        write(arguments.out, name, {"machine": machine(arguments.device), **content})

    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    tasks = itertools.product(seeds, arguments.datasets, arguments.splits, arguments.candidates)
    one = partial(train_once, max_epochs=arguments.max_epochs, device=arguments.device)
    run_tasks(list(tasks), one, done, processes=arguments.processes)
    for row in behind(summary(runs)):
        print(f"{row['candidate']:32} behind the best by {row['mean']:5.2f}, at most {row['most']}")
    if failed:
        parser.exit(1, "\n".join(["these runs failed:", *failed, ""]))


if __name__ == "__main__":
    main()
