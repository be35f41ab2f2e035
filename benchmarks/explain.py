"""Our explanations beside others, on the same trained networks, at equal sparsity.

python -m benchmarks.explain [--datasets NAME ...] [--seeds N] [--nodes N] [--minutes M]
    [--methods NAME ...] [--processes N] [--out FILE]

For each data set and seed one LGCN is trained. Every method explains the same nodes by giving each
edge of the node's neighbourhood an importance. The most important edges are kept (fidelity minus,
unfaithfulness) or removed (fidelity plus), the same number for each method; the metrics are those
of PyG. Where the graph was built from motifs, the area under the ROC curve says how well the edges
of the node's motif are found. Stability is the share of the 10 most important edges that stay: if
a method runs again with another seed, and if the features change by 1 %. Times are those of the
processor, with one thread, with the cutting out of the neighbourhood and without the training of
networks and of PGExplainer. All methods of one network run one after the other in one process.

With one process, the file gets a line per method as soon as it is finished, else all lines of a
network at once. A run that stops goes on with the next call. `python -m benchmarks.report` writes
the tables.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import torch
from torch import Tensor
from torch_geometric.explain import Explanation, fidelity, unfaithfulness

from benchmarks import validation
from benchmarks._common import machine, make_parser
from benchmarks.explain_graphs import GRAPHS, Task, make_task, trained
from benchmarks.explain_methods import (
    METHODS,
    PG_NODES,
    Field,
    Method,
    TrainedPGExplainer,
    cut,
    make_explainer,
    make_field,
    masked_score,
    noisy,
    ours,
    saliency,
    thorough,
)
from benchmarks.explain_table import key
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.pool import Failure, run_tasks

KEPT = (2, 4, 8, 16, 32)  # edges of an explanation, up to half of those that there are
TOP = 10  # edges whose change is instability
SMALLEST, LARGEST = 16, 5_000  # edges of a neighbourhood that is explained
STABILITY_NODES = 3
FEWER = {"wordnet31": 5}  # nodes of which a fifth is explained: each takes as long as ten others


def top_edges(importance: Tensor, count: int, seed: int) -> Tensor:
    """The most important edges, ties in random order."""
    order = torch.randperm(len(importance), generator=torch.Generator().manual_seed(seed))
    return order[importance[order].argsort(descending=True, stable=True)][:count]


def at_sparsity(field: Field, importance: Tensor, count: int, seed: int) -> dict[str, float]:
    """PyG's metrics of the explanation by some number of edges, and those of probabilities."""
    mask = torch.zeros(len(importance))
    mask[top_edges(importance, count, seed)] = 1
    explainer = make_explainer(field)
    prediction = explainer.get_prediction(field.x, field.edge_index)
    explanation = Explanation(
        x=field.x,
        edge_index=field.edge_index,
        edge_mask=mask,
        index=torch.tensor([0]),
        target=prediction.argmax(1),
        prediction=prediction,
    )
    explanation._model_args = []
    plus, minus = fidelity(explainer, explanation)
    with torch.no_grad():
        full, kept, left = (
            float(masked_score(field, m).exp()) for m in (torch.ones_like(mask), mask, 1 - mask)
        )
    return {
        "fidelity_plus": plus,
        "fidelity_minus": minus,
        "unfaithfulness": unfaithfulness(explainer, explanation),
        "drop_without": full - left,
        "drop_with_only": full - kept,
    }


def roc_auc(importance: Tensor, reasons: Tensor) -> float | None:
    """The probability that an edge of the motif ranks above another; ties count a half."""
    inside, outside = importance[reasons], importance[~reasons]
    if not len(inside) or not len(outside):
        return None
    higher = (inside[:, None] > outside).double() + 0.5 * (inside[:, None] == outside)
    return float(higher.mean())


def overlap(a: Tensor, b: Tensor, seed: int) -> float:
    """The share of the most important edges that two explanations have in common."""
    count = min(TOP, len(a))
    first, second = (set(top_edges(one, count, seed).tolist()) for one in (a, b))
    return len(first & second) / count


def measure(
    method: Method, fields: Sequence[Field], task: Task, seed: int, cutting: float
) -> dict[str, Any]:
    """All numbers of one method on one network.

    Args:
        method: Gives the importance of edges.
        fields: The neighbourhoods of the nodes.
        task: The graph, with the edges that are reasons if they are known.
        seed: The seed.
        cutting: Seconds that a neighbourhood took, for methods that do not cut it themselves.
    """
    by_count: dict[int, list[dict[str, float]]] = {count: [] for count in KEPT}
    aucs, again, perturbed, seconds = [], [], [], []
    for place, field in enumerate(fields):
        start = time.process_time()
        importance = method(field, seed).detach()
        seconds.append(time.process_time() - start + cutting)
        for count in KEPT:
            if 2 * count <= len(importance):
                by_count[count].append(at_sparsity(field, importance, count, seed))
        reasons = task.reasons(field.part.nodes, field.edge_index)
        auc = None if reasons is None else roc_auc(importance, reasons)
        if auc is not None:
            aucs.append(auc)
        if place < STABILITY_NODES:
            again.append(overlap(importance, method(field, seed + 1000).detach(), seed))
            changed = method(noisy(field, seed), seed).detach()
            perturbed.append(overlap(importance, changed, seed))
    names = by_count[KEPT[0]][0]
    means = {
        str(count): {name: statistics.mean(one[name] for one in found) for name in names}
        for count, found in by_count.items()
        if found
    }
    return {
        "nodes": len(fields),
        "edges": statistics.median(field.part.graph.num_edges for field in fields),
        "by_kept_edges": means,
        **{name: statistics.mean(one[name] for one in means.values()) for name in names},
        "auc": statistics.mean(aucs) if aucs else None,
        "again": statistics.mean(again),
        "perturbed": statistics.mean(perturbed),
        "milliseconds": 1e3 * statistics.median(seconds),
    }


def choose_fields(task: Task, model: Any, count: int, seed: int) -> tuple[list[Field], float]:
    """Neighbourhoods of random nodes that leave a choice, and the seconds that one took."""
    generator = torch.Generator().manual_seed(seed)
    nodes = task.nodes[torch.randperm(len(task.nodes), generator=generator)].tolist()
    fields: list[Field] = []
    seconds = []
    cut(model, task.graph, nodes[0])  # compiles the kernels
    for node in nodes:
        start = time.process_time()
        part = cut(model, task.graph, node)
        taken = time.process_time() - start
        if SMALLEST <= part.graph.num_edges <= LARGEST:
            fields.append(make_field(model, task.graph, node, part))
            seconds.append(taken)
        if len(fields) == count:
            break
    return fields, statistics.median(seconds)


def measure_all(
    name: str, seed: int, count: int, methods: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The numbers of each method on one data set with one network."""
    task = make_task(name, seed)
    model, accuracy = trained(task, name, seed)
    fields, cutting = choose_fields(task, model, count + PG_NODES, seed)
    fields, others = fields[:count], fields[count:]
    for warm_up in (ours, saliency):  # compiles the kernels, forward and backward
        warm_up(fields[0], seed)
    for method in methods:
        start, function, extra = time.process_time(), METHODS[method], {}
        if function is None:
            function = TrainedPGExplainer(others or fields, seed)
            extra = {"training_seconds": round(time.process_time() - start, 1)}
        found = measure(
            function, fields, task, seed, 0 if function in (ours, thorough) else cutting
        )
        yield method, {"accuracy": accuracy, **found, **extra}


def main() -> None:
    parser = make_parser("explain", __doc__)
    count = validation.at_least_one
    parser.add_argument("--datasets", nargs="+", default=list(GRAPHS), choices=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=count, default=3, help="(default: 3)")
    parser.add_argument("--nodes", type=count, default=20, help="per network (default: 20)")
    parser.add_argument("--minutes", type=float, help="start no network after so many")
    parser.add_argument("--processes", type=count, default=1, help="networks at once (default: 1)")
    run(parser.parse_args())


@dataclass(frozen=True)
class Job:
    """The methods to measure on one network, to be started before some time (`time.time`)."""

    dataset: str
    seed: int
    methods: tuple[str, ...]
    nodes: int
    until: float


def run(arguments: argparse.Namespace) -> None:
    """Measures what the file does not have yet."""
    out: Path = arguments.out
    known = read_lines(out, key).records if out.exists() else {}
    minutes = math.inf if arguments.minutes is None else arguments.minutes
    until = time.time() + 60 * minutes
    jobs = []
    for name in reversed(arguments.datasets):  # those that take longest are last in the list
        for seed in range(arguments.seeds):
            methods = tuple(m for m in arguments.methods if (name, seed, m) not in known)
            if methods:
                nodes = max(2, arguments.nodes // FEWER.get(name, 1))
                jobs.append(Job(name, seed, methods, nodes, until))
    on = machine()

    def write(records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            put_lines(out, [{**record, "machine": on}], key)
            _tell(record)

    def finished(job: Job, result: Any) -> None:
        if isinstance(result, Failure):
            print(f"{job.dataset} {job.seed}: {result.message}", flush=True)
        else:
            write(result)

    if arguments.processes == 1:
        for job in jobs:
            write(measured(job))
    else:
        run_tasks(jobs, measured_list, finished, processes=arguments.processes)


def measured(job: Job) -> Iterator[dict[str, Any]]:
    """The records of one network, none if it is too late."""
    if time.time() > job.until:
        return
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    warnings.simplefilter("ignore")
    for method, found in measure_all(job.dataset, job.seed, job.nodes, job.methods):
        yield {"dataset": job.dataset, "seed": job.seed, "method": method, **found}


def measured_list(job: Job) -> list[dict[str, Any]]:
    """`measured` for another process."""
    return list(measured(job))


def _tell(found: dict[str, Any]) -> None:
    auc = "   " if found["auc"] is None else f"{found['auc']:.2f}"
    print(
        f"{found['dataset']:13} {found['seed']} {found['method']:21} "
        f"fidelity + {found['fidelity_plus']:.2f} ({found['drop_without']:.2f}) "
        f"- {found['fidelity_minus']:.2f} ({found['drop_with_only']:.2f}) "
        f"unfaithfulness {found['unfaithfulness']:.2f} AUC {auc} again {found['again']:.2f} "
        f"{found['perturbed']:.2f} {found['milliseconds']:8.1f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
