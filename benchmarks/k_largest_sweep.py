"""Selecting the k largest neighbours with node ids, over a grid of features and k, on a CPU.

python -m benchmarks.k_largest_sweep [--out FILE] [--quick]

Compares `k_largest` with the fastest way to write it in torch, padding by degree and `torch.topk`,
which gives equal values. Both take turns in one process; the ratio is that of their median times.
Random graphs, float32, int64 node ids. The records tell the worst shape and the named ones apart.
"""

from typing import Any, NamedTuple

import torch

from benchmarks._common import add_quick, compare, machine, make_parser, write
from benchmarks.baselines import bucketed_topk
from benchmarks.graphs import Structure, random_graph
from lgcn.ops import k_largest

DEGREES = ("skewed", "poisson")
BUDGET = 4.0  # seconds per variant and shape; slow ones get fewer turns
REPEATS = 9
RESULT_BYTES = 2**31  # shapes with larger results get fewer nodes


class Shape(NamedTuple):
    """What is asked of a graph."""

    channels: int
    k: int


NAMED = (Shape(48, 8), Shape(96, 48))
GRID = (
    *(Shape(channels, k) for channels in (1, 2, 3, 8, 17, 64, 300) for k in (1, 8, 32, 100)),
    *(Shape(33, 5), Shape(128, 16), Shape(200, 64)),
)
NODES, MEAN_DEGREE = 20_000, 30
QUICK = (Shape(3, 2), Shape(20, 9))
QUICK_NODES, QUICK_DEGREE = 60, 4


def result_bytes(shape: Shape, nodes: int) -> int:
    """Values in float32 and node ids in int64."""
    return nodes * shape.k * shape.channels * 12


def graph_for(shape: Shape, degrees: str, quick: bool) -> Structure:
    """A random graph, with fewer nodes where the result would be too large."""
    nodes, degree = (QUICK_NODES, QUICK_DEGREE) if quick else (NODES, MEAN_DEGREE)
    fewer = max(1, -(-result_bytes(shape, nodes) // RESULT_BYTES))
    return random_graph(nodes // fewer, degree, degrees=degrees)


def measure(
    graph: Structure, degrees: str, shape: Shape, repeats: int, budget: float = BUDGET
) -> dict[str, Any]:
    """The seconds of both, and the ratio."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.num_nodes, shape.channels, generator=generator)
    baseline = bucketed_topk(graph, shape.k)
    if not torch.equal(baseline.select(x)[0], k_largest(x, *graph, shape.k)[0]):
        raise RuntimeError(f"k_largest and bucketed_topk differ for {shape}")
    seconds = compare(
        {
            "k_largest": lambda: k_largest(x, *graph, shape.k),
            "bucketed_topk": lambda: baseline.select(x),
        },
        repeats,
        budget=budget,
    )
    return {
        "degrees": degrees,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "channels": shape.channels,
        "k": shape.k,
        "named": shape in NAMED,
        "seconds": seconds,
        "ratio": seconds["bucketed_topk"] / seconds["k_largest"],
    }


def describe(result: dict[str, Any]) -> str:
    return (
        f"{result['degrees']}, N = {result['nodes']}, C = {result['channels']}, k = {result['k']}: "
        f"{result['ratio']:.1f} times as fast, "
        f"{result['seconds']['k_largest'] * 1e3:.3g} ms"
    )


def main() -> None:
    parser = make_parser("k_largest_sweep", __doc__)
    add_quick(parser)
    arguments = parser.parse_args()
    shapes = QUICK if arguments.quick else (*NAMED, *GRID)
    results: list[dict[str, Any]] = []
    for degrees in DEGREES:
        for shape in shapes:
            graph = graph_for(shape, degrees, arguments.quick)
            results.append(measure(graph, degrees, shape, 1 if arguments.quick else REPEATS))
            print(describe(results[-1]), flush=True)
            worst = min(results, key=lambda result: result["ratio"])
            record = {"results": results, "worst": worst, "machine": machine()}
            write(arguments.out, "cpu", record)  # after each, so that an interruption loses nothing
    print(f"the worst: {describe(worst)}")
    for result in results:
        if result["named"]:
            print(f"named: {describe(result)}")


if __name__ == "__main__":
    main()
