"""100 epochs of training with the settings of the paper's Table 5.

python -m benchmarks.training_step [--device cpu|cuda] [--out FILE] [--quick]

LGCN_sub trains on one fixed sub-graph, one hop around the training nodes; LGCN_whole and GCN (with
PyG's layers) train on the whole graph. Only training is timed, from new weights, without
evaluation; on a GPU that includes capturing the CUDA graph.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import lgcn.paper  # noqa: F401 (registers GCN)
from benchmarks._common import QUICK_GRAPH, compare, machine, parse_arguments, write
from lgcn import Graph, load_dataset
from lgcn.training import Settings
from lgcn.training.loop import train_epochs
from lgcn.training.setup import make_loader

EPOCHS = 100
BUDGET = 40.0  # seconds per variant over all turns
# Table 5 of the paper, seconds on a TITAN Xp and nodes per iteration.
PAPER = {
    "cora": {"GCN": 7, "LGCN_whole": 58, "LGCN_sub": 14, "nodes": 644},
    "citeseer": {"GCN": 4, "LGCN_whole": 30, "LGCN_sub": 3.6, "nodes": 442},
    "pubmed": {"GCN": 38, "LGCN_whole": 1080, "LGCN_sub": 2.6, "nodes": 354},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "LGCN_sub": {"max_hops": 1, "max_nodes": None, "resample": False},
    "LGCN_whole": {"training": "whole"},
    "GCN": {"preset": "gcn"},
}
# Further variants on a GPU.
CUDA_OPTIONS: dict[str, dict[str, Any]] = {
    "bfloat16": {"precision": "bfloat16"},
    "no CUDA graph": {"capture": False},
}


def measure(graph: Graph, device: str, epochs: int, repeats: int) -> dict[str, Any]:
    settings = dict(SETTINGS)
    if device == "cuda":
        for name, given in SETTINGS.items():
            for what, option in CUDA_OPTIONS.items():
                settings[f"{name}, {what}"] = {**given, **option}
    chosen = {
        name: Settings.create(dataset=graph.name, device=device, **given)
        for name, given in settings.items()
    }
    variants: dict[str, Callable[[], object]] = {
        name: partial(train_epochs, graph, one, epochs) for name, one in chosen.items()
    }
    assert graph.x is not None
    dense = replace(graph, x=graph.x.to_dense())
    variants["GCN, dense features"] = partial(train_epochs, dense, chosen["GCN"], epochs)
    loader = make_loader(graph, chosen["LGCN_sub"])
    return {
        "dataset": graph.name,
        "epochs": epochs,
        "repeats": repeats,
        "nodes": graph.num_nodes,
        "nodes_per_iteration": sum(batch.num_nodes for batch in loader.epoch(1)) / len(loader),
        "seconds": compare(variants, repeats, device, BUDGET),
        "paper": PAPER.get(graph.name),
    }


def main() -> None:
    arguments = parse_arguments("training_step", __doc__)
    device = arguments.device
    results = []
    for dataset in ["synthetic"] if arguments.quick else PAPER:
        epochs, repeats = (2, 1) if arguments.quick else (EPOCHS, 3)
        graph = load_dataset(dataset, **(QUICK_GRAPH if arguments.quick else {}))
        result = measure(graph, device, epochs, repeats)
        results.append(result)
        print(f"{dataset}: {result['nodes_per_iteration']:.0f} of {result['nodes']} nodes a step")
        for name, seconds in result["seconds"].items():
            paper = (result["paper"] or {}).get(name, "not known")
            print(f"    {name:25} {seconds:.3g} s; the paper's: {paper}", flush=True)
        write(arguments.out, device, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
