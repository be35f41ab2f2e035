"""Where sorted selection pays: one network with an LGCL, the mean, maximum, sum or attention.

python -m benchmarks.aggregators [--device cuda] [--processes N] [--out FILE] [--minutes M]
    [--datasets NAME ...] [--aggregates NAME ...] [--seeds N] [--max-epochs N] [--patience N]

The networks differ in what a layer makes of the neighbours, and have as many parameters. Each is
tried with the same few settings on two seeds that are not reported; the one with the best mean
score on validation nodes is trained with every seed. The search never sees the test nodes. The file
gets one line per run as soon as it is finished; a command that stops, for example after M minutes,
goes on with the next call. `python -m benchmarks.report` writes the tables.
"""

import os
import signal
import statistics
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import validation
from benchmarks._common import machine, make_parser
from benchmarks.aggregators_plan import (
    MAX_EPOCHS,
    OPTIONAL,
    PATIENCE,
    PUBLISHED,
    SEARCH_SEEDS,
    SEEDS,
    SETTINGS,
    SYSTEMS,
    TASKS,
    K,
    Run,
    data_options,
    key,
    model_settings,
    plan,
)
from lgcn import Graph, load_dataset
from lgcn.graph.statistics import labels_per_class, neighbour_agreement
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings, train
from lgcn.utils.memory import release_memory

# Seconds that a run waits for the last runs of its search, which other processes do.
WAIT, LOOK = 300.0, 0.5
KEPT = ("val_score", "test_score", "best_epoch", "epochs", "seconds", "parameters")


def do(run: Run, device: str, limits: dict[str, int], out: Path) -> dict[str, Any]:
    """One run, in a process with one thread."""
    warnings.simplefilter("ignore")
    seed = 0 if run.part == "graph" else run.seed
    graph = load_dataset(run.task, **data_options(run.task, seed))
    if run.part == "graph":
        return facts(graph)
    search = run.part == "search"
    setting = run.setting if search else best_setting(run, out)
    settings = Settings.create(
        dataset="tables",
        model="residual",
        seed=run.seed,
        device=device,
        num_workers=0,
        structural_features="no",
        training="whole",
        evaluate_on="graph",
        **({"metric": "roc_auc"} if run.task in PUBLISHED else {}),
        **limits,
        **model_settings(run.system, setting, graph.num_features, graph.num_classes),
    )
    if search:
        graph = replace(graph, test_mask=None)
    record = train(graph, settings).record
    release_memory()
    found = {name: record[name] for name in KEPT if not (search and name == "test_score")}
    found["seconds"] = round(found["seconds"], 1)
    width = {"width": settings.model.hidden_channels, **limits}
    return {**({} if search else {"chosen": setting}), **width, **found}


def best_setting(run: Run, out: Path) -> int:
    """The number of the settings with the best mean score in the search."""
    wanted = [
        (run.task, "search", run.system, setting, seed)
        for setting in range(len(SETTINGS))
        for seed in SEARCH_SEEDS
    ]
    end = time.monotonic() + WAIT
    while True:
        known = read_lines(out, key).records
        if all(one in known for one in wanted):
            break
        if time.monotonic() > end:
            raise RuntimeError(f"the search of {run.system} on {run.task} is not complete")
        time.sleep(LOOK)
    means: list[float] = []
    for setting in range(len(SETTINGS)):
        scores = [known[one]["val_score"] for one in wanted if one[3] == setting]
        complete = [score for score in scores if score is not None]  # a run may have failed
        means.append(statistics.mean(complete) if len(complete) == len(scores) else -1.0)
    return means.index(max(means))


def facts(graph: Graph) -> dict[str, Any]:
    """Numbers of a graph that may say where a layer pays. Agreement is that of all labels."""
    degree = graph.rowptr.diff().numpy()
    x = graph.features()
    values = x.values() if x.layout == torch.sparse_csr else x
    everywhere = torch.ones(graph.num_nodes, dtype=torch.bool)
    agreement = neighbour_agreement(
        replace(graph, train_mask=everywhere, val_mask=None, test_mask=None)
    )
    train_mask = graph.train_mask
    assert train_mask is not None
    found = {
        "nodes": graph.num_nodes,
        "mean_degree": float(degree.mean()),
        "degree_90": float(np.percentile(degree, 90)),
        "more_than_k": float((degree > K).mean()),
        "features": graph.num_features,
        "non_zeros": int(values.count_nonzero()) / (graph.num_nodes * graph.num_features),
        "classes": graph.num_classes,
        "training_nodes": int(train_mask.sum()),
        "labels_per_class": labels_per_class(graph),
        "homophily": None if agreement is None else agreement.alike,
        "adjusted_homophily": (
            None
            if agreement is None
            else (agreement.alike - agreement.by_chance) / (1 - agreement.by_chance)
        ),
    }
    return {
        name: round(value, 5) if isinstance(value, float) else value
        for name, value in found.items()
    }


class _TimeIsUp(Exception):
    """The minutes of --minutes are over."""


def _stop(number: int, frame: Any) -> None:
    raise _TimeIsUp


def main() -> None:
    parser = make_parser("aggregators", __doc__)
    count = validation.at_least_one
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--processes", type=count, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, help="stop after so many (default: no limit)")
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=list(TASKS),
        choices=(*TASKS, *OPTIONAL),
        metavar="NAME",
        help=f"of {', '.join((*TASKS, *OPTIONAL))} (default: all but the last)",
    )
    parser.add_argument(
        "--aggregates", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, help="(default: all)"
    )
    parser.add_argument("--seeds", type=count, default=SEEDS, help=f"(default: {SEEDS})")
    parser.add_argument("--max-epochs", type=count, default=MAX_EPOCHS)
    parser.add_argument("--patience", type=count, default=PATIENCE)
    arguments = parser.parse_args()
    validation.check(parser, arguments.datasets, arguments.device)
    out: Path = arguments.out
    limits = {"max_epochs": arguments.max_epochs, "patience": arguments.patience}
    known = read_lines(out, key).records
    others = {
        (record["max_epochs"], record["patience"])
        for record in known.values()
        if "max_epochs" in record
    }
    if others - {tuple(limits.values())}:
        parser.error(
            f"{out} has runs with other limits (--max-epochs, --patience): "
            f"{', '.join(map(str, sorted(others)))}; give the same, or another --out"
        )
    on = machine(arguments.device)
    of_machine = {**Run("", "machine", on["command"])._asdict(), "machine": on}
    put_lines(out, [of_machine], key)

    def done(run: Run, found: dict[str, Any] | Failure) -> None:
        if isinstance(found, Failure):
            print(f"{tuple(run)} failed: {found.message}", flush=True)
            if run.part != "search":
                return
            # Its setting is not chosen. The next call tries it again.
            found = {"val_score": None, "error": found.message}
        put_lines(out, [{**run._asdict(), **found}], key)
        scores = {name: found[name] for name in (*KEPT[:2], "seconds") if name in found}
        print(" ".join(map(str, run)), scores, flush=True)

    runs = [
        run
        for run in plan(arguments.datasets, arguments.aggregates, arguments.seeds)
        if run not in known or "error" in known[run]
    ]
    if arguments.minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, 60 * arguments.minutes)
    try:
        one = partial(do, device=arguments.device, limits=limits, out=out)
        run_tasks(runs, one, done, processes=arguments.processes)
    except _TimeIsUp:
        print(f"stopped after {arguments.minutes} minutes", flush=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
