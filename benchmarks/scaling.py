"""How the cost grows when one of nodes, degree, features and k doubles.

python -m benchmarks.scaling [--device cpu|cuda] [--out FILE] [--quick]

Times k_largest_values forward and backward, and one training step of an LGCN of that width. An
exponent is the least-squares slope in log-log, R2 its coefficient of determination.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks._common import compare, machine, parse_arguments, write
from benchmarks.graphs import Structure, random_graph
from lgcn import LGCN, Graph
from lgcn.ops import k_largest_values

CLASSES = 8
BUDGET = {"cpu": 5.0, "cuda": 1.0}


class Size(NamedTuple):
    """The sizes that the cost depends on."""

    nodes: int
    degree: int
    channels: int
    k: int


BASE = {"cpu": Size(10_000, 16, 32, 8), "cuda": Size(800_000, 16, 64, 8)}
QUICK = Size(200, 4, 8, 4)
# The first value of each series, which then doubles.
FIRST = {"cpu": Size(5_000, 8, 8, 2), "cuda": Size(200_000, 8, 16, 2)}
POINTS = {"cpu": Size(6, 5, 5, 5), "cuda": Size(5, 5, 5, 5)}


def series(device: str, quick: bool) -> dict[str, list[Size]]:
    base = QUICK if quick else BASE[device]
    first = QUICK if quick else FIRST[device]
    return {
        name: [
            base._replace(**{name: getattr(first, name) << i}) for i in range(2 if quick else count)
        ]
        for name, count in POINTS[device]._asdict().items()
    }


def selection(x: Tensor, graph: Structure, k: int) -> Tensor:
    """Forward and backward of the selection."""
    leaf = x.detach().requires_grad_()
    values = k_largest_values(leaf, *graph, k)
    return torch.autograd.grad(values, leaf, torch.ones_like(values))[0]


class Step:
    """One training step of an LGCN whose input has as many features as its embedding."""

    def __init__(self, x: Tensor, structure: Structure, k: int) -> None:
        self.x, self.graph = x, Graph(*structure)
        self.y = torch.arange(len(x), device=x.device) % CLASSES
        self.model = LGCN(x.size(1), CLASSES, hidden_channels=x.size(1), k=k).to(x.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.x, self.graph), self.y).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def measure(size: Size, device: str, repeats: int) -> dict[str, Any]:
    dtype = torch.int32 if device == "cuda" else torch.int64
    graph = random_graph(size.nodes, size.degree, device=device, dtype=dtype)
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(size.nodes, size.channels, device=device, generator=generator)
    variants: dict[str, Callable[[], object]] = {
        "k_largest": lambda: selection(x, graph, size.k),
        "training_step": Step(x, graph, size.k),
    }
    return {**size._asdict(), "seconds": compare(variants, repeats, device, BUDGET[device])}


def fit(sizes: list[float], seconds: list[float]) -> dict[str, float]:
    """seconds = factor * size ** exponent, by least squares of the logarithms."""
    log_size, log_seconds = np.log(sizes), np.log(seconds)
    exponent, intercept = np.polyfit(log_size, log_seconds, 1)
    residual = log_seconds - (exponent * log_size + intercept)
    spread = log_seconds - log_seconds.mean()
    return {
        "exponent": float(exponent),
        "factor": math.exp(intercept),
        "r2": float(1 - (residual @ residual) / (spread @ spread)),
    }


def main() -> None:
    arguments = parse_arguments("scaling", __doc__)
    device = arguments.device
    repeats = 1 if arguments.quick else 7
    results: dict[str, Any] = {}
    lines = series(device, arguments.quick)
    measure(
        lines["nodes"][-1], device, 1
    )  # the allocator and the clocks settle at the largest size
    for name, sizes in lines.items():
        points = [measure(size, device, repeats) for size in sizes]
        along = [float(point[name]) for point in points]
        fits = {
            what: fit(along, [point["seconds"][what] for point in points])
            for what in ("k_largest", "training_step")
        }
        results[name] = {"points": points, "fits": fits}
        for what, found in fits.items():
            print(
                f"{what} grows with {name} to the power of {found['exponent']:.2f} "
                f"(R2 = {found['r2']:.3f}, {name} = {along[0]:.0f} to {along[-1]:.0f})",
                flush=True,
            )
        write(arguments.out, device, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
