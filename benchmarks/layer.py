"""LGConv beside PyG's GCNConv, SAGEConv and GATConv, 64 to 64 features on one graph.

python -m benchmarks.layer [--device cpu|cuda] [--out FILE] [--quick]

PyG's layers take the graph as edge_index and, where they can, as a CSR matrix, which is faster.
GCNConv caches its normalisation, as a Graph does for LGConv. The two convolutions of an LGConv
multiply about (k / 2 + 1)(k / 2 + 2) times as much as one linear map.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from benchmarks._common import compare, machine, parse_arguments, peak_megabytes, write
from benchmarks.graphs import csr_matrix, random_graph
from lgcn import Graph, LGConv, load_dataset
from lgcn.errors import DataError

WIDTH = 64
BUDGET = {"cpu": 20.0, "cuda": 1.0}
SYNTHETIC_NODES = {"cpu": 100_000, "cuda": 1_000_000}


def synthetic(num_nodes: int, device: str) -> Graph:
    structure = random_graph(num_nodes, 10, distinct=True, device=device)
    return Graph(*structure, name="random, degree 10")


def graphs(device: str, quick: bool) -> list[Graph]:
    if quick:
        return [synthetic(200, device)]
    try:
        pubmed = [load_dataset("pubmed").to(device)]
    except DataError as error:
        print(f"pubmed is left out: {error}")
        pubmed = []
    return [*pubmed, synthetic(SYNTHETIC_NODES[device], device)]


def layers(graph: Graph, device: str) -> dict[str, tuple[Module, Any]]:
    """The layers, each with the graph in its own format."""
    edge_index = graph.edge_index
    csr = csr_matrix(graph)
    torch.manual_seed(0)
    made = {
        "LGConv, k = 8": (LGConv(WIDTH, WIDTH, k=8), graph),
        "LGConv, k = 16": (LGConv(WIDTH, WIDTH, k=16), graph),
        "GCNConv": (GCNConv(WIDTH, WIDTH, cached=True), edge_index),
        "GCNConv, CSR": (GCNConv(WIDTH, WIDTH, cached=True), csr),
        "SAGEConv": (SAGEConv(WIDTH, WIDTH), edge_index),
        "SAGEConv, CSR": (SAGEConv(WIDTH, WIDTH), csr),
        "GATConv": (GATConv(WIDTH, WIDTH), edge_index),
    }
    return {name: (layer.to(device), form) for name, (layer, form) in made.items()}


def forward(layer: Module, x: Tensor, graph: Any) -> Tensor:
    with torch.no_grad():
        out: Tensor = layer(x, graph)
    return out


def both_directions(layer: Module, x: Tensor, graph: Any) -> tuple[Tensor, ...]:
    leaf = x.detach().requires_grad_()
    out = layer(leaf, graph)
    return torch.autograd.grad(out, [leaf, *layer.parameters()], torch.ones_like(out))


def measure(graph: Graph, device: str, repeats: int) -> dict[str, Any]:
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(graph.num_nodes, WIDTH, device=device, generator=generator)
    made = layers(graph, device)
    results: dict[str, dict[str, float]] = {name: {} for name in made}
    for way, run in (("forward", forward), ("forward_backward", both_directions)):
        variants: dict[str, Callable[[], object]] = {
            name: partial(run, layer, x, form) for name, (layer, form) in made.items()
        }
        seconds = compare(variants, repeats, device, BUDGET[device])
        for name, variant in variants.items():
            results[name][f"seconds_{way}"] = seconds[name]
            results[name][f"megabytes_{way}"] = peak_megabytes(variant, device)
    return {
        "graph": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "width": WIDTH,
        "repeats": repeats,
        "layers": results,
    }


def main() -> None:
    arguments = parse_arguments("layer", __doc__)
    device = arguments.device
    warnings.filterwarnings("ignore", "Sparse invariant checks")  # of PyG's own CSR matrices
    results = []
    for graph in graphs(device, arguments.quick):
        results.append(measure(graph, device, 1 if arguments.quick else 7))
        print(f"{graph.name}, {graph.num_nodes} nodes, {graph.num_edges} edges")
        for name, numbers in results[-1]["layers"].items():
            print(
                f"    {name:15} {1e3 * numbers['seconds_forward']:8.3g} ms, with backward "
                f"{1e3 * numbers['seconds_forward_backward']:8.3g} ms, "
                f"{numbers['megabytes_forward_backward']:.0f} MB",
                flush=True,
            )
        write(arguments.out, device, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
