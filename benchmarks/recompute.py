"""A wide LGConv on a large graph: what its grid costs, and what making it again saves.

python -m benchmarks.recompute [--device cpu|cuda] [--out FILE] [--quick]

On a GPU the graph has the size of ogbn-products: 2.4 million nodes, 124 million entries, random
neighbours, degrees that differ as widely. The layer has one convolution, as those of the residual
network, over own features, the k = 8 largest values and the mean: 100 to 64 features. Beside it,
PyG's SAGEConv on a CSR matrix. All take turns in one process.

Measured are the forward without gradients; a training step of a first layer, whose input needs no
gradient; and one of a hidden layer, whose input needs one. Peak memory is what each takes beside
graph and features.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import SAGEConv

from benchmarks._common import compare, machine, parse_arguments, peak_megabytes, write
from benchmarks.graphs import csr_matrix, random_graph
from lgcn import Graph, LGConv

# Nodes, mean degree, input features, output features, k.
SIZES = {"cpu": (100_000, 20, 100, 64, 8), "cuda": (2_449_029, 50.5, 100, 64, 8)}
QUICK = (200, 5, 12, 8, 4)
BUDGET = {"cpu": 30.0, "cuda": 3.0}


def layers(graph: Graph, size: tuple[int, float, int, int, int], device: str) -> dict[str, Any]:
    """The layers, each with the graph in its own format."""
    channels, out, k = size[2:]
    torch.manual_seed(0)
    made = {
        "LGConv": (LGConv(channels, out, k, "single", mean=True), graph),
        "LGConv, recompute": (LGConv(channels, out, k, "single", mean=True, recompute=True), graph),
        "SAGEConv, CSR": (SAGEConv(channels, out), csr_matrix(graph)),
    }
    return {name: (layer.to(device), form) for name, (layer, form) in made.items()}


def forward(layer: Module, x: Tensor, graph: Any) -> Tensor:
    layer.eval()
    with torch.no_grad():
        out: Tensor = layer(x, graph)
    return out


def first_layer(layer: Module, x: Tensor, graph: Any) -> tuple[Tensor, ...]:
    layer.train()
    out = layer(x, graph)
    return torch.autograd.grad(out, list(layer.parameters()), torch.ones_like(out))


def hidden_layer(layer: Module, x: Tensor, graph: Any) -> tuple[Tensor, ...]:
    layer.train()
    leaf = x.detach().requires_grad_()
    out = layer(leaf, graph)
    return torch.autograd.grad(out, [leaf, *layer.parameters()], torch.ones_like(out))


def measure(
    size: tuple[int, float, int, int, int], device: str, repeats: int, degrees: str
) -> dict[str, Any]:
    nodes, degree, channels, out, k = size
    graph = Graph(*random_graph(nodes, degree, degrees=degrees, device=device))
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(nodes, channels, device=device, generator=generator)
    made = layers(graph, size, device)
    results: dict[str, dict[str, float]] = {name: {} for name in made}
    for run in (forward, first_layer, hidden_layer):
        variants: dict[str, Callable[[], object]] = {
            name: partial(run, layer, x, form) for name, (layer, form) in made.items()
        }
        seconds = compare(variants, repeats, device, BUDGET[device])
        for name, variant in variants.items():
            results[name][f"seconds_{run.__name__}"] = seconds[name]
            results[name][f"megabytes_{run.__name__}"] = peak_megabytes(variant, device)
            print(
                f"    {name:18} {run.__name__:13} {1e3 * seconds[name]:8.1f} ms, "
                f"{results[name][f'megabytes_{run.__name__}']:8.0f} MB",
                flush=True,
            )
    return {
        "nodes": nodes,
        "edges": graph.num_edges,
        "longest_row": int(graph.rowptr.diff().max()),
        "in_channels": channels,
        "out_channels": out,
        "k": k,
        "repeats": repeats,
        "layers": results,
    }


def main() -> None:
    arguments = parse_arguments("recompute", __doc__)
    device = arguments.device
    warnings.filterwarnings("ignore", "Sparse invariant checks")  # of PyG's own CSR matrices
    size = QUICK if arguments.quick else SIZES[device]
    result = measure(size, device, 1 if arguments.quick else 5, "skewed")
    write(arguments.out, device, {"results": [result], "machine": machine(device)})


if __name__ == "__main__":
    main()
