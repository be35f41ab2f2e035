"""What an LGConv would gain from fusing selection and convolution, or from recomputing.

python -m benchmarks.fusion [--device cpu|cuda] [--out FILE] [--quick]

A fused kernel would neither write nor read the grid [N, k + 1, C]; the backward would still need
it, or select again. A copy of the grid reads and writes it once and bounds what fusing can save in
the forward. Recomputing (torch.utils.checkpoint) keeps only the input of each of three layers, for
the price of a second forward.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from benchmarks._common import compare, machine, parse_arguments, peak_megabytes, write
from benchmarks.graphs import random_graph
from lgcn import Graph, LGConv

# Nodes, mean degree, features, k.
SIZES = {
    "cpu": ((50_000, 10, 32, 8), (20_000, 10, 64, 8), (5_000, 28, 64, 64)),
    "cuda": ((1_000_000, 10, 32, 8), (1_000_000, 10, 64, 8), (56_944, 28, 128, 64)),
}
QUICK = ((200, 5, 8, 4),)
BUDGET = {"cpu": 20.0, "cuda": 1.0}
LAYERS = 3


def train_step(
    layers: Sequence[LGConv], x: Tensor, graph: Graph, *, recompute: bool
) -> tuple[Tensor, ...]:
    """Forward and backward of a stack of layers."""
    leaf = x.detach().requires_grad_()
    out = leaf
    for conv in layers:
        out = checkpoint(conv, out, graph, use_reentrant=False) if recompute else conv(out, graph)
    weights = [weight for conv in layers for weight in conv.parameters()]
    return torch.autograd.grad(out, [leaf, *weights], torch.ones_like(out))


def measure(size: tuple[int, ...], device: str, repeats: int) -> dict[str, Any]:
    nodes, degree, channels, k = size
    dtype = torch.int32 if device == "cuda" else torch.int64
    graph = Graph(*random_graph(nodes, degree, device=device, dtype=dtype))
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(nodes, channels, device=device, generator=generator)
    torch.manual_seed(0)
    layers = [LGConv(channels, channels, k).to(device) for _ in range(LAYERS)]
    conv = layers[0]
    adjacency = graph.adjacency()
    with torch.no_grad():
        grid = conv.select(x, x, adjacency)

    def no_grad(function: Any, *inputs: Any) -> Any:
        with torch.no_grad():
            return function(*inputs)

    steps: dict[str, Callable[[], object]] = {
        "training": partial(train_step, layers, x, graph, recompute=False),
        "training, recomputed": partial(train_step, layers, x, graph, recompute=True),
    }
    variants: dict[str, Callable[[], object]] = {
        "forward": partial(no_grad, conv, x, graph),
        "selection": partial(no_grad, conv.select, x, x, adjacency),
        "convolutions": partial(no_grad, conv.convolve, grid),
        "copy of the grid": grid.clone,
        **steps,
    }
    seconds = compare(variants, repeats, device, BUDGET[device])
    return {
        "nodes": nodes,
        "edges": graph.num_edges,
        "layers": LAYERS,
        "channels": channels,
        "k": k,
        "seconds": seconds,
        "megabytes": {name: peak_megabytes(step, device) for name, step in steps.items()},
        "fusion_saves_at_most": seconds["copy of the grid"] / seconds["forward"],
        "recomputing_takes_times": seconds["training, recomputed"] / seconds["training"],
    }


def main() -> None:
    arguments = parse_arguments("fusion", __doc__)
    device = arguments.device
    results = []
    for size in QUICK if arguments.quick else SIZES[device]:
        results.append(measure(size, device, 1 if arguments.quick else 7))
        found = results[-1]
        times = ", ".join(f"{name} {1e3 * s:.3g}" for name, s in found["seconds"].items())
        peaks = " against ".join(f"{found['megabytes'][name]:.0f}" for name in found["megabytes"])
        print(
            f"N = {found['nodes']}, C = {found['channels']}, k = {found['k']}: fusing saves at "
            f"most {100 * found['fusion_saves_at_most']:.0f} % of the forward; recomputing takes "
            f"{found['recomputing_takes_times']:.2f} times as long, peak {peaks} MB; ms: {times}",
            flush=True,
        )
        write(arguments.out, device, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
