"""Steps on sub-graphs that Algorithm 1 draws anew for each step.

python -m benchmarks.changing_subgraphs [--device cpu|cuda] [--out FILE] [--quick]

LGCN has the settings of each graph, GCN two layers of PyG's `GCNConv` with 64 hidden channels, both
on the same sub-graphs. On a GPU the sub-graphs are padded, and one CUDA graph is replayed for all;
"not captured" are steps on the sub-graphs as they are. "with loader" includes drawing sub-graphs in
threads; without it, they were drawn, and padded, before. The variants take turns.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import torch

import lgcn.paper  # noqa: F401 (registers GCN)
from benchmarks._common import QUICK_GRAPH, compare, machine, parse_arguments, write
from lgcn import Graph, load_dataset
from lgcn.training import Settings, loop
from lgcn.training.data import TrainingData

STEPS = 50
REPEATS = 3
WORKERS = 2
GRAPHS: dict[str, dict[str, Any]] = {
    "cora": {},
    "pubmed": {},
    "synthetic": {"num_nodes": 200_000, "labels_per_class": 2000, "num_features": 64},
}
MODELS: dict[str, dict[str, Any]] = {
    "LGCN": {},
    "GCN": {"preset": "gcn", "hidden_channels": 64},
}


class Training:
    """A model in training on sub-graphs that change.

    Args:
        graph: The graph.
        device: The device.
        steps: Steps per measurement.
        given: Settings.
    """

    def __init__(self, graph: Graph, device: str, steps: int, given: dict[str, Any]) -> None:
        settings = Settings.create(
            dataset=graph.name, training="subgraph", device=device, num_workers=WORKERS, **given
        )
        data = TrainingData(graph, settings)
        self.model, _, self.loader, self.step = loop._prepare(data, torch.device(device))
        self.steps = steps
        self.epoch = 0
        self.drawn: list[Any] = []
        while len(self.drawn) < steps:
            self.epoch += 1
            with closing(self.step.batches(self.loader, self.epoch)) as batches:
                self.drawn += batches
        self.on_drawn()  # compiles and captures

    def with_loader(self) -> None:
        """Steps on new sub-graphs."""
        left = self.steps
        while left > 0:
            self.epoch += 1
            self.step.begin_epoch(self.epoch)
            left -= loop._train_epoch(self.model, self.step, self.loader, self.epoch, left)[1]

    def on_drawn(self) -> None:
        """Steps on sub-graphs that were drawn before."""
        self.model.train()
        self.step.begin_epoch(self.epoch)
        for batch in self.drawn[: self.steps]:
            self.step(batch)


def measure(graph: Graph, device: str, steps: int, repeats: int) -> dict[str, Any]:
    captures = [True, False] if device == "cuda" else [False]
    variants: dict[str, Callable[[], object]] = {}
    for (model, given), capture in ((m, c) for m in MODELS.items() for c in captures):
        training = Training(graph, device, steps, {**given, "capture": capture})
        name = model if capture or device == "cpu" else f"{model}, not captured"
        variants[name] = partial(training.on_drawn)
        variants[f"{name}, with loader"] = partial(training.with_loader)
    seconds = compare(variants, repeats, device)
    drawn = training.drawn[:steps]
    return {
        "dataset": graph.name,
        "nodes": graph.num_nodes,
        "nodes_per_step": sum(batch.num_nodes for batch in drawn) / len(drawn),
        "entries_per_step": sum(batch.num_edges for batch in drawn) / len(drawn),
        "subgraphs_per_epoch": len(training.loader),
        "steps": steps,
        "steps_per_second": {name: steps / spent for name, spent in seconds.items()},
    }


def main() -> None:
    arguments = parse_arguments("changing_subgraphs", __doc__)
    device = arguments.device
    steps, repeats = (3, 1) if arguments.quick else (STEPS, REPEATS)
    graphs = {"synthetic": QUICK_GRAPH} if arguments.quick else GRAPHS
    results = []
    for dataset, options in graphs.items():
        result = measure(load_dataset(dataset, **options), device, steps, repeats)
        results.append(result)
        print(
            f"{dataset}: {result['nodes_per_step']:.0f} nodes and "
            f"{result['entries_per_step']:.0f} entries per step, "
            f"{result['subgraphs_per_epoch']} steps per epoch"
        )
        for name, rate in result["steps_per_second"].items():
            print(f"    {name:28} {rate:8.1f} steps per second", flush=True)
        write(arguments.out, device, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
