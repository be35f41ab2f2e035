"""Sub-graphs of 2000 nodes from stores of different sizes, compared with NumPy.

python -m benchmarks.store_loader [--out FILE] [--repeats N] [--stores FOLDER] [--quick]

A sub-graph is Algorithm 1, the edges among its nodes, and their features; both programs make it. A
"batch" adds what the loader needs: labels, masks, degrees, and the checks of a Graph. Both programs
use one thread, and times are CPU times. "cold" is the first time that sub-graphs are made: their
pages are in the page cache but not yet mapped by the process, as in training on a large graph. One
NumPy program allocates only what the sub-graph needs, as lgcn does; the other one has an array
entry for every node of the graph.

Loader and model then run together as in training, with one worker thread. Memory is the peak of
anonymous memory beyond what the process had before it opened the graph.

--stores names a folder that keeps the stores (nodes-N each). By default they are made in a
temporary folder; the one with 10 million nodes takes 3.6 GB and some minutes.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._common import add_quick, machine, make_parser, write
from benchmarks.scaling import fit
from lgcn import Graph, SubgraphLoader, select_subgraph
from lgcn.ops.induced_subgraph import induced_subgraph
from lgcn.store.generate import generate_store
from lgcn.store.open_store import open_store
from lgcn.training import Settings, loop
from lgcn.training.data import TrainingData
from lgcn.training.state import Rates
from lgcn.utils.memory import PeakMemory, anonymous_memory

SIZES = (100_000, 1_000_000, 10_000_000)
QUICK = (3000, 6000)
EDGES_PER_NODE = 10
N_INIT = 500
MAX_NODES = 2000
SUBGRAPHS = 100  # of each repeat
STEPS = 60

Make = Callable[[int], Any]


class WithNumpy:
    """The same with NumPy arrays instead of loops, in memory of the sub-graph's size."""

    def __init__(self, graph: Graph) -> None:
        assert graph.x is not None
        self.rowptr, self.col = graph.rowptr.numpy(), graph.col.numpy()
        self.x = graph.x.numpy()

    def __call__(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        nodes = np.sort(rng.choice(self.rowptr.size - 1, N_INIT, replace=False, shuffle=False))
        new = nodes
        while nodes.size < MAX_NODES and new.size:
            found = np.sort(self.col[self.entries(new)[0]])
            found = found[np.diff(found, prepend=-1) != 0]  # as np.unique, which hashes
            new = found[self.places(nodes, found) < 0]
            if nodes.size + new.size > MAX_NODES:
                new = rng.choice(new, MAX_NODES - nodes.size, replace=False, shuffle=False)
            nodes = np.sort(np.concatenate([nodes, new]))
        entries, counts = self.entries(nodes)
        place = self.places(nodes, self.col[entries])
        inside = place >= 0
        ends = np.concatenate([[0], np.cumsum(inside)])
        rowptr = ends[np.concatenate([[0], np.cumsum(counts)])]
        return nodes, rowptr, place[inside], self.x[nodes]

    def entries(self, nodes: Any) -> Any:
        """The places of these rows' entries, and how many each has."""
        starts = self.rowptr[nodes]
        counts = self.rowptr[nodes + 1] - starts
        first = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(starts - first, counts), counts

    def places(self, nodes: Any, sought: Any) -> Any:
        """Where each is in ``nodes``, which are sorted, or -1. As np.isin, which sorts both."""
        place = np.minimum(np.searchsorted(nodes, sought), nodes.size - 1)
        return np.where(nodes[place] == sought, place, -1)


class WithNumpyAndPlaces(WithNumpy):
    """Faster: an array with an entry for every node of the graph is kept between sub-graphs."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.place = np.full(graph.num_nodes, -1, np.int32)

    def places(self, nodes: Any, sought: Any) -> Any:
        self.place[nodes] = np.arange(nodes.size)
        place = self.place[sought]
        self.place[nodes] = -1
        return place


def with_numba(graph: Graph) -> Make:
    def make(seed: int) -> Any:
        nodes = select_subgraph(graph, n_init=N_INIT, max_nodes=MAX_NODES, seed=seed)
        return induced_subgraph(graph.rowptr, graph.col, nodes), graph.features(nodes)

    return make


def as_batch(graph: Graph) -> Make:
    def make(seed: int) -> Any:
        nodes = select_subgraph(graph, n_init=N_INIT, max_nodes=MAX_NODES, seed=seed)
        return graph.subgraph(nodes)

    return make


def seconds_per_subgraph(make: Make, seeds: range) -> float:
    start = time.thread_time()
    for seed in seeds:
        make(seed)
    return (time.thread_time() - start) / len(seeds)


def check(graph: Graph) -> None:
    """Checks that NumPy gives the sub-graph on its nodes."""
    for baseline in (WithNumpy(graph), WithNumpyAndPlaces(graph)):
        nodes, rowptr, col, x = baseline(0)
        index = torch.from_numpy(nodes).long()
        expected = induced_subgraph(graph.rowptr, graph.col, index)
        same = expected[0].tolist() == rowptr.tolist() and expected[1].tolist() == col.tolist()
        if not same or not np.array_equal(graph.features(index), x) or len(nodes) != MAX_NODES:
            raise RuntimeError(f"the programs disagree on {graph.name}")


def side_by_side(graph: Graph, steps: int) -> dict[str, float]:
    """Rates of loader and model in training."""
    settings = Settings.create(dataset="store", k=8, max_nodes=MAX_NODES, n_init=N_INIT)
    data = TrainingData(graph, settings)
    settings = data.settings
    model, _, _, step = loop._prepare(data, torch.device("cpu"))
    loader = SubgraphLoader(
        graph,
        max_nodes=MAX_NODES,
        n_init=N_INIT,
        keep_degree=settings.sampling.keep_degree,
        num_workers=1,
    )
    rates, epoch = Rates(), 0
    loop._train_epoch(model, step, loader, epoch, 5)  # compiles
    loader._made, loader._seconds = 0, 0.0
    while rates.steps < steps:
        epoch += 1
        start = time.perf_counter()
        total, done, waited = loop._train_epoch(model, step, loader, epoch, steps - rates.steps)
        float(total)
        rates.seconds += time.perf_counter() - start
        rates.steps, rates.waited = rates.steps + done, rates.waited + waited
    return {
        **rates.record(loader),
        "steps_per_second": rates.steps / rates.seconds,
        "share_of_time_waited": rates.waited / rates.seconds,
    }


def measure(path: Path, repeats: int, count: int, steps: int) -> dict[str, Any]:
    before = anonymous_memory()
    with PeakMemory() as memory:
        graph = open_store(path, verify=False).graph
        numba = with_numba(graph)
        numba(0)
        seeds = range(1, count + 1)
        cold = seconds_per_subgraph(numba, seeds)
        rates = side_by_side(graph, steps)
    check(graph)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # They take turns, so that other load on the machine affects all of them.
    variants: dict[str, Make] = {
        "numba": numba,
        "batch": as_batch(graph),
        "numpy": WithNumpy(graph),
        "numpy_with_places": WithNumpyAndPlaces(graph),
    }
    turns = [
        {name: seconds_per_subgraph(make, seeds) for name, make in variants.items()}
        for _ in range(repeats + 1)
    ]
    torch.set_num_threads(threads)
    seconds = {name: statistics.median(turn[name] for turn in turns[1:]) for name in variants}
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges // 2,
        "features": graph.num_features,
        "speedup": seconds["numpy"] / seconds["numba"],
        "speedup_with_places": seconds["numpy_with_places"] / seconds["numba"],
        "microseconds_per_subgraph": {name: 1e6 * value for name, value in seconds.items()},
        "microseconds_per_subgraph_cold": 1e6 * cold,
        "anonymous_megabytes": (memory.peak - before) / 1e6,
        **rates,
    }


def main() -> None:
    parser = make_parser("store_loader", __doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stores", type=Path, help="folder to keep the stores in")
    add_quick(parser)
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else arguments.repeats
    count, steps = (3, 3) if arguments.quick else (SUBGRAPHS, STEPS)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.stores or Path(temporary)
        for size in QUICK if arguments.quick else SIZES:
            path = folder / f"nodes-{size}"
            if not path.exists():
                generate_store(path, num_nodes=size, num_edges=EDGES_PER_NODE * size)
            result = measure(path, repeats, count, steps)
            results.append(result)
            micro = result["microseconds_per_subgraph"]
            print(
                f"{size} nodes: {micro['numba']:.0f} us a sub-graph, {micro['batch']:.0f} a batch "
                f"({result['microseconds_per_subgraph_cold']:.0f} cold), "
                f"{result['speedup']:.1f} times faster than NumPy ({micro['numpy']:.0f} us), "
                f"{result['speedup_with_places']:.1f} times where that may have a place for every "
                f"node ({micro['numpy_with_places']:.0f} us); "
                f"loader {result['loader_subgraphs_per_second']:.0f}/s, "
                f"model {result['model_steps_per_second']:.0f}/s, "
                f"{result['anonymous_megabytes']:.0f} MB",
                flush=True,
            )
    sizes = [float(result["nodes"]) for result in results]
    exponents = {
        name: fit(sizes, [result["microseconds_per_subgraph"][name] for result in results])
        for name in results[0]["microseconds_per_subgraph"]
    }
    print(f"cost grows with the {exponents['numba']['exponent']:.2f}th power of the nodes")
    write(
        arguments.out,
        "cpu",
        {
            "machine": machine(),
            "n_init": N_INIT,
            "max_nodes": MAX_NODES,
            "edges_per_node": EDGES_PER_NODE,
            "exponents": exponents,
            "results": results,
        },
    )


if __name__ == "__main__":
    main()
