"""Accuracy of training from a store and of training on the same graph in memory.

python -m benchmarks.store_accuracy [--out FILE] [--seeds N] [--datasets NAME ...] [--quick]

In memory: sub-graphs of 2000 nodes, scored on the whole graph after every epoch. From the store:
the same sub-graphs, read from mapped files, scored on sub-graphs around validation nodes, as for
large graphs. The final test scores are exact in both.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._common import QUICK_GRAPH, add_quick, machine, make_parser, write
from lgcn import load_dataset
from lgcn.graph import Graph
from lgcn.store.open_store import open_store
from lgcn.store.write_store import write_store
from lgcn.training import Settings, train

OPTIONS: dict[str, dict[str, Any]] = {"synthetic": {"num_nodes": 50_000, "num_features": 32}}


def scores(graph: Graph, seed: int, quick: bool, **given: Any) -> dict[str, float]:
    settings = Settings.create(
        dataset="store",
        training="subgraph",
        seed=seed,
        k=8,
        max_epochs=3 if quick else 100,
        evaluate_every=1 if quick else 5,
        **given,
    )
    record = train(graph, settings).record
    return {key: record[key] for key in ("val_score", "test_score", "best_epoch", "seconds")}


def measure(dataset: str, seeds: int, quick: bool) -> dict[str, Any]:
    graph = load_dataset(dataset, **(QUICK_GRAPH if quick else OPTIONS.get(dataset, {})))
    runs: dict[str, list[dict[str, float]]] = {"memory": [], "store": []}
    with tempfile.TemporaryDirectory() as folder:
        write_store(Path(folder) / "store", graph)
        stored = open_store(Path(folder) / "store").graph
        for seed in range(seeds):
            runs["memory"].append(scores(graph, seed, quick, evaluate_on="graph"))
            runs["store"].append(scores(stored, seed, quick, evaluate_on="sampled"))
    summary = {}
    for name, found in runs.items():
        tests = [100 * run["test_score"] for run in found]
        spread = statistics.stdev(tests) if len(tests) > 1 else 0.0
        summary[name] = {"mean": statistics.mean(tests), "std": spread}
    return {"dataset": dataset, "seeds": seeds, "test_score": summary, "runs": runs}


def main() -> None:
    parser = make_parser("store_accuracy", __doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=["pubmed", "wordnet31", "synthetic"])
    add_quick(parser)
    arguments = parser.parse_args()
    datasets, seeds = arguments.datasets, arguments.seeds
    if arguments.quick:
        datasets, seeds = ["synthetic"], 1
    results = []
    for dataset in datasets:
        results.append(measure(dataset, seeds, arguments.quick))
        found = results[-1]["test_score"]
        print(
            f"{dataset}: in memory {found['memory']['mean']:.1f} ± {found['memory']['std']:.1f}, "
            f"from the store {found['store']['mean']:.1f} ± {found['store']['std']:.1f}",
            flush=True,
        )
        write(arguments.out, "cpu", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
