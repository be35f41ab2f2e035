"""Feeding a GPU from a store on disk: how long the model waits for sub-graphs.

python -m benchmarks.feed [--device cuda] [--nodes N] [--edges N] [--features F] [--steps N]
    [--threads N ...] [--out FILE] [--quick]

A generated store is trained on with the defaults for stores, on sub-graphs that threads select from
the mapped files. Measured per number of threads: steps per second, and the share of the time that
the model waits for its next batch.

In the committed record, `prefetch` names a variant that copied batches from pinned memory while the
step before was computed. It was not faster, and is not in the code.
"""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks._common import add_quick, machine, make_parser, write
from lgcn.graph import Graph
from lgcn.store.generate import generate_store
from lgcn.store.open_store import open_store
from lgcn.training import Settings, loop
from lgcn.training.data import TrainingData

WARM_UP = 10  # steps that compile the kernels and fill the caches


def measure(graph: Graph, device: str, threads: int, steps: int) -> dict[str, Any]:
    settings = Settings.create(
        dataset="store",
        training="subgraph",
        device=device,
        num_workers=threads,
        max_nodes=min(20_000, graph.num_nodes),
        subgraphs_per_epoch=steps,
        n_init=500 if graph.num_nodes > 20_000 else 20,
    )
    data = TrainingData(graph, settings)
    model, _, loader, step = loop._prepare(data, torch.device(device))
    loop._train_epoch(model, step, loader, 1, WARM_UP)
    _wait(device)
    began, done, waited, epoch = time.perf_counter(), 0, 0.0, 1
    while done < steps:
        epoch += 1
        _, some, seconds = loop._train_epoch(model, step, loader, epoch, steps - done)
        done, waited = done + some, waited + seconds
    _wait(device)
    total = time.perf_counter() - began
    return {
        "threads": threads,
        "steps_per_second": round(done / total, 2),
        "waited_share": round(waited / total, 3),
    }


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = make_parser("feed", __doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 8])
    add_quick(parser)
    arguments = parser.parse_args()
    nodes, edges, steps = arguments.nodes, arguments.edges, arguments.steps
    if arguments.quick:
        nodes, edges, steps, arguments.threads = 2000, 10_000, 3, [1]
    warnings.simplefilter("ignore")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        generate_store(path, num_nodes=nodes, num_edges=edges, num_features=arguments.features)
        graph = open_store(path, verify=False).graph
        for threads in arguments.threads:
            results.append(measure(graph, arguments.device, threads, steps))
            print(results[-1], flush=True)
    sizes = {"nodes": nodes, "edges": edges, "features": arguments.features, "steps": steps}
    record = {"machine": machine(arguments.device), **sizes, "results": results}
    write(arguments.out, arguments.device, record)


if __name__ == "__main__":
    main()
