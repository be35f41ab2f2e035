"""Sub-graph selection (Algorithm 1) against the same algorithm in Python sets.

python -m benchmarks.subgraph [--out FILE] [--repeats N]
"""

import argparse
import itertools
import random
from pathlib import Path
from typing import Any

from benchmarks._common import compare, machine, write
from lgcn import Graph, load_dataset, select_subgraph

N_INIT = 140
MAX_NODES = 2000


def select_with_sets(
    neighbors: list[list[int]], n_init: int, max_nodes: int, seed: int
) -> set[int]:
    """Algorithm 1, line by line."""
    rng = random.Random(seed)
    chosen = set(rng.sample(range(len(neighbors)), n_init))
    new = set(chosen)
    while len(chosen) < max_nodes and new:
        new = {j for i in new for j in neighbors[i]} - chosen
        if len(new) + len(chosen) > max_nodes:
            new = set(rng.sample(sorted(new), max_nodes - len(chosen)))
        chosen |= new
    return chosen


def measure(graph: Graph, repeats: int) -> dict[str, Any]:
    starts, col = graph.rowptr.tolist(), graph.col.tolist()
    neighbors = [col[a:b] for a, b in itertools.pairwise(starts)]
    seeds = range(10)

    def numba() -> list[int]:
        return [
            select_subgraph(graph, n_init=N_INIT, max_nodes=MAX_NODES, seed=seed).numel()
            for seed in seeds
        ]

    def sets() -> list[int]:
        return [len(select_with_sets(neighbors, N_INIT, MAX_NODES, seed)) for seed in seeds]

    if numba() != sets():
        raise RuntimeError("both must select sub-graphs of the same size")
    seconds = compare({"numba": numba, "sets": sets}, repeats)
    return {
        "graph": graph.name,
        "nodes": graph.num_nodes,
        "speedup": seconds["sets"] / seconds["numba"],
        "microseconds_per_subgraph": {
            name: 1e6 * value / len(seeds) for name, value in seconds.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/subgraph.json"))
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    graphs = [load_dataset("pubmed")] + [
        load_dataset("synthetic", num_nodes=n, mean_degree=10, num_features=1)
        for n in (20_000, 200_000)
    ]
    results = [measure(graph, arguments.repeats) for graph in graphs]
    for result in results:
        print(
            f"{result['graph']}, {result['nodes']} nodes: {result['speedup']:.0f} times faster "
            f"than Python sets, {result['microseconds_per_subgraph']['numba']:.0f} us a sub-graph"
        )
    write(
        arguments.out,
        {"machine": machine(), "n_init": N_INIT, "max_nodes": MAX_NODES, "results": results},
    )


if __name__ == "__main__":
    main()
