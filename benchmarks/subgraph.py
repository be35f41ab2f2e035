"""Sub-graph selection (Algorithm 1), compared with the same algorithm in Python sets and in NumPy.

python -m benchmarks.subgraph [--out FILE] [--repeats N] [--quick]

All use one thread, and times are CPU times, so that other load on the machine does not count.
Selecting many sub-graphs in a row finds the graph in the caches. "cold" runs the baseline in
between, as training does, and is slower. A third figure is the wall time of two threads, as in the
loader: the kernel releases Python's lock, which sets need. --quick takes one small random graph.

NumPy has an array with an entry for every node of the graph, and the faster of two ways to find
distinct nodes counts. For "cold", every call follows one that writes to more memory than the caches
have.
"""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from benchmarks._common import add_quick, machine, make_parser, write
from lgcn import Graph, load_dataset, select_subgraph
from lgcn.errors import DataError

N_INIT = 140
MAX_NODES = 2000
NUMPY_N_INIT = (N_INIT, MAX_NODES // 4)  # the latter is the loader's default
FLUSH = 1 << 26  # bytes
# The last has hubs of more than 100,000 neighbours.
SYNTHETIC: tuple[dict[str, Any], ...] = (
    {"num_nodes": 20_000},
    {"num_nodes": 200_000},
    {"num_nodes": 1_000_000, "skew": 0.9},
)
QUICK: tuple[dict[str, Any], ...] = ({"num_nodes": 5000},)
BUDGET = 20.0  # seconds that the baseline may take per graph

# Selects with a seed and at most so many iterations.
Select = Callable[[int, int], Any]


def select_with_sets(
    neighbors: list[list[int]], n_init: int, max_nodes: int, seed: int, max_hops: int
) -> set[int]:
    """Algorithm 1, line by line."""
    rng = random.Random(seed)
    chosen = set(rng.sample(range(len(neighbors)), n_init))
    new = chosen
    hop = 0
    while len(chosen) < max_nodes and new and hop < max_hops:
        new = set().union(*[neighbors[i] for i in new]) - chosen
        if len(new) + len(chosen) > max_nodes:
            new = set(rng.sample(list(new), max_nodes - len(chosen)))
        chosen = chosen | new
        hop += 1
    return chosen


class WithNumpy:
    """Algorithm 1 with arrays over all nodes, which are kept between the sub-graphs."""

    def __init__(self, graph: Graph, n_init: int, distinct: str) -> None:
        self.rowptr, self.col = graph.rowptr.numpy(), graph.col.numpy()
        self.n_init = n_init
        self.distinct = {"marks": self.by_marks, "sort": self.by_sorting}[distinct]
        self.chosen = np.zeros(graph.num_nodes, bool)
        self.marks = np.zeros(graph.num_nodes, bool)

    def __call__(self, seed: int, max_hops: int) -> Any:
        rng = np.random.default_rng(seed)
        new = rng.choice(self.chosen.size, self.n_init, replace=False, shuffle=False)
        self.chosen[new] = True
        parts, size, hop = [new], self.n_init, 0
        while size < MAX_NODES and new.size and hop < max_hops:
            starts = self.rowptr[new]
            counts = self.rowptr[new + 1] - starts
            ends = np.cumsum(counts)
            entries = np.repeat(starts - ends + counts, counts)
            entries += np.arange(entries.size)
            found = self.col[entries]
            new = self.distinct(found[~self.chosen[found]])
            if size + new.size > MAX_NODES:
                new = rng.choice(new, MAX_NODES - size, replace=False, shuffle=False)
            self.chosen[new] = True
            parts.append(new)
            size += new.size
            hop += 1
        nodes = np.sort(np.concatenate(parts))
        self.chosen[nodes] = False  # faster than all of it
        return nodes

    def by_marks(self, nodes: Any) -> Any:
        self.marks[nodes] = True
        found = np.flatnonzero(self.marks)
        self.marks[found] = False
        return found

    def by_sorting(self, nodes: Any) -> Any:
        nodes.sort()
        return nodes[np.diff(nodes, prepend=-1) != 0]  # as np.unique, which hashes


def edges_looked_at(graph: Graph, select: Select, seed: int) -> int:
    """The edges of all nodes but those added in the last iteration."""
    hops = 0
    while len(select(seed, hops + 1)) < MAX_NODES:
        hops += 1
    before_last = torch.tensor([int(node) for node in select(seed, hops)])
    return int(graph.rowptr.diff()[before_last].sum())


def processor_seconds(
    variants: Mapping[str, Select],
    seeds: range,
    in_a_row: int,
    repeats: int,
    before: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Median over the repeats of the time per sub-graph; variants take turns.

    What is called before each turn is not timed.
    """
    taken: dict[str, list[float]] = {name: [0.0] * repeats for name in variants}
    for repeat in range(repeats):
        for first in range(0, len(seeds), in_a_row):
            for name, select in variants.items():
                if before is not None:
                    before()
                start = time.thread_time()
                for seed in seeds[first : first + in_a_row]:
                    select(seed, MAX_NODES)
                taken[name][repeat] += time.thread_time() - start
    return {name: statistics.median(times) / len(seeds) for name, times in taken.items()}


def two_thread_ratio(
    variants: Mapping[str, Select], seeds: range, repeats: int, baseline: str = "sets"
) -> float:
    """Wall time of the baseline in one thread, divided by that of the kernel in two."""
    taken: dict[str, list[float]] = {"numba": [], baseline: []}

    def run(name: str, part: range) -> None:
        for seed in part:
            variants[name](seed, MAX_NODES)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(repeats + 1):  # the first turn makes each thread's scratch memory
            for name, parts in (("numba", (seeds[::2], seeds[1::2])), (baseline, (seeds,))):
                start = time.perf_counter()
                list(pool.map(run, [name] * len(parts), parts))
                taken[name].append(time.perf_counter() - start)
    return statistics.median(taken[baseline][1:]) / statistics.median(taken["numba"][1:])


def measure(graph: Graph, repeats: int) -> dict[str, Any]:
    starts, col = graph.rowptr.tolist(), graph.col.tolist()
    neighbors = [col[a:b] for a, b in itertools.pairwise(starts)]

    def numba(seed: int, max_hops: int) -> Any:
        return select_subgraph(
            graph, n_init=N_INIT, max_nodes=MAX_NODES, max_hops=max_hops, seed=seed
        )

    def sets(seed: int, max_hops: int) -> Any:
        return select_with_sets(neighbors, N_INIT, MAX_NODES, seed, max_hops)

    variants = {"numba": numba, "sets": sets}
    if {len(select(0, MAX_NODES)) for select in variants.values()} != {MAX_NODES}:
        raise RuntimeError(f"both must select {MAX_NODES} nodes of {graph.name}")
    once = processor_seconds(variants, range(1), 1, 1)["sets"]
    seeds = range(max(5, min(50, int(BUDGET / (2 * repeats * once)))))
    warm = processor_seconds(variants, seeds, len(seeds), repeats)
    cold = processor_seconds(variants, seeds, 1, repeats)
    edges = {
        name: statistics.mean(edges_looked_at(graph, select, seed) for seed in seeds[:5])
        for name, select in variants.items()
    }
    return {
        "graph": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "largest_degree": int(graph.rowptr.diff().max()),
        "speedup": warm["sets"] / warm["numba"],
        "speedup_cold": cold["sets"] / cold["numba"],
        "speedup_two_threads": two_thread_ratio(variants, seeds, repeats),
        "subgraphs_in_a_row": len(seeds),
        "microseconds_per_subgraph": {name: 1e6 * value for name, value in warm.items()},
        "microseconds_per_subgraph_cold": {name: 1e6 * value for name, value in cold.items()},
        "edges_looked_at": edges,
        "nanoseconds_per_edge": {name: 1e9 * warm[name] / edges[name] for name in warm},
    }


def against_numpy(graph: Graph, n_init: int, repeats: int) -> dict[str, Any]:
    def numba(seed: int, max_hops: int) -> Any:
        return select_subgraph(
            graph, n_init=n_init, max_nodes=MAX_NODES, max_hops=max_hops, seed=seed
        )

    ways = {way: WithNumpy(graph, n_init, way) for way in ("marks", "sort")}
    variants: dict[str, Select] = {"numba": numba, **ways}
    if {len(select(0, MAX_NODES)) for select in variants.values()} != {MAX_NODES}:
        raise RuntimeError(f"all must select {MAX_NODES} nodes of {graph.name}")
    seeds = range(20)
    memory = np.zeros(FLUSH, np.uint8)
    found: dict[str, Any] = {}
    for name, in_a_row in (("warm", len(seeds)), ("cold", 1)):
        before = (lambda: memory.fill(1)) if name == "cold" else None
        seconds = processor_seconds(variants, seeds, in_a_row, repeats, before)
        faster = min(ways, key=seconds.__getitem__)
        times = {"numba": seconds["numba"], "numpy": seconds[faster]}
        found[name] = {
            "speedup": times["numpy"] / times["numba"],
            "microseconds": {program: 1e6 * time for program, time in times.items()},
        }
        if name == "warm":
            found["two_threads"] = two_thread_ratio(variants, seeds, repeats, faster)
    edges = statistics.mean(edges_looked_at(graph, numba, seed) for seed in seeds[:5])
    return {"graph": graph.name, "nodes": graph.num_nodes, "n_init": n_init, **found} | {
        "edges_looked_at": edges,
        "nanoseconds_per_edge": 1e3 * found["warm"]["microseconds"]["numba"] / edges,
    }


def graphs(quick: bool) -> Iterator[Graph]:
    """The graphs, one at a time in memory."""
    if not quick:
        try:
            yield load_dataset("pubmed")
        except DataError as error:
            print(f"pubmed is left out: {error}")
    for options in QUICK if quick else SYNTHETIC:
        yield load_dataset("synthetic", mean_degree=10, num_features=1, **options)


def main() -> None:
    parser = make_parser("subgraph", __doc__)
    parser.add_argument("--repeats", type=int, default=9)
    add_quick(parser)
    arguments = parser.parse_args()
    results, numpy = [], []
    repeats = 1 if arguments.quick else arguments.repeats
    for graph in graphs(arguments.quick):
        for n_init in NUMPY_N_INIT:
            compared = against_numpy(graph, n_init, repeats)
            numpy.append(compared)
            print(
                f"{graph.name}, {graph.num_nodes} nodes, n_init {n_init}: "
                f"{compared['warm']['speedup']:.1f} times faster than NumPy "
                f"({compared['cold']['speedup']:.1f} with cold caches, "
                f"{compared['two_threads']:.1f} with two threads), "
                f"{compared['warm']['microseconds']['numba']:.1f} us a sub-graph",
                flush=True,
            )
        result = measure(graph, repeats)
        results.append(result)
        print(
            f"{result['graph']}, {result['nodes']} nodes: {result['speedup']:.0f} times faster "
            f"than Python sets ({result['speedup_cold']:.0f} with cold caches, "
            f"{result['speedup_two_threads']:.0f} with two threads), "
            f"{result['microseconds_per_subgraph']['numba']:.0f} us a sub-graph, "
            f"{result['nanoseconds_per_edge']['numba']:.1f} ns an edge "
            f"({result['nanoseconds_per_edge']['sets']:.0f} in sets)",
            flush=True,
        )
    write(
        arguments.out,
        "cpu",
        {
            "machine": machine(),
            "n_init": N_INIT,
            "max_nodes": MAX_NODES,
            "results": results,
            "numpy": numpy,
        },
    )


if __name__ == "__main__":
    main()
