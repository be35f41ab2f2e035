"""The rows of `benchmarks.speed` for a CPU: those of other benchmarks, with fewer repeats."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import first_command, k_largest_sweep, own_epoch, subgraph
from benchmarks.fewer_steps import DATASETS, SPLITS, find_places
from benchmarks.k_largest_sweep import NAMED, Shape
from benchmarks.report_tables import number
from benchmarks.speed_table import Row, ms
from lgcn.errors import DataError

# How many times as fast as degree buckets the selection should be: the named shapes, and any other.
SELECTIONS, ANY_SELECTION = dict(zip(NAMED, (12.0, 10.0), strict=True)), 8.0
SUBGRAPHS, EPOCH, FIRST_COMMAND = 10.0, 1.5, 8.0
QUICK_PLACE = ("synthetic", "20 per class", "few")


def rows(quick: bool) -> Iterator[Row]:
    yield from first(quick)
    yield from selections(quick)
    yield from subgraphs(quick)
    yield from own_tables(quick)


def selections(quick: bool) -> Iterator[Row]:
    """k_largest with node ids beside padding by degree with torch.topk."""
    shapes = k_largest_sweep.QUICK if quick else (*NAMED, *k_largest_sweep.GRID)
    repeats, budget = (1, 1.0) if quick else (3, 0.7)
    found: list[dict[str, Any]] = []
    for degrees in k_largest_sweep.DEGREES:
        for shape in shapes:
            graph = k_largest_sweep.graph_for(shape, degrees, quick)
            thorough = {} if quick or shape not in NAMED else {"repeats": 9, "budget": 10.0}
            options: dict[str, Any] = {"repeats": repeats, "budget": budget, **thorough}
            found.append(k_largest_sweep.measure(graph, degrees, shape, **options))
    of_named = [result for result in found if result["named"] and result["degrees"] == "skewed"]
    for result in of_named:
        target = SELECTIONS[Shape(result["channels"], result["k"])]
        yield _selection(_shape(result), result, target)
    few = [result for result in found if result["channels"] < 3]
    for what, some in ("fewer than 3 features", few), ("3 features or more", found):
        some = [result for result in some if result["channels"] >= 3 or some is few]
        if some:
            worst = min(some, key=lambda result: float(result["ratio"]))
            title = f"the worst of {len(some)} shapes with {what}: {_shape(worst)}"
            yield _selection(title, worst, ANY_SELECTION)


def _selection(what: str, result: dict[str, Any], target: float) -> Row:
    ours, theirs = result["seconds"].values()
    unit = f"times as fast as padding by degree, `topk` ({ms(ours)} against {ms(theirs)})"
    about = "`k_largest` with node ids"
    return Row(about, what, result["ratio"], unit, target, at_least=True, details=result)


def _shape(result: dict[str, Any]) -> str:
    return (
        f"{result['degrees']}, N = {result['nodes']:,}, E = {result['edges']:,}, "
        f"C = {result['channels']}, k = {result['k']}"
    )


def subgraphs(quick: bool) -> Iterator[Row]:
    """Algorithm 1 beside a version with NumPy arrays over all nodes."""
    for graph in subgraph.graphs(quick):
        for n_init in subgraph.NUMPY_N_INIT:
            found = subgraph.against_numpy(graph, n_init, 1 if quick else 5)
            times, cold = found["warm"]["microseconds"], found["cold"]["speedup"]
            yield Row(
                "`select_subgraph`, 2,000 nodes",
                f"{graph.name}, {graph.num_nodes:,} nodes, {n_init} start nodes",
                found["warm"]["speedup"],
                f"times as fast as NumPy with arrays over all nodes ({number(times['numba'])} µs "
                f"against {number(times['numpy'])} µs; {number(cold)} times with cold caches)",
                SUBGRAPHS,
                at_least=True,
                details=found,
            )


def own_tables(quick: bool) -> Iterator[Row]:
    """An epoch with the defaults for own tables beside PyG's GCN in its fastest form."""
    for place in [QUICK_PLACE] if quick else _places():
        found = own_epoch.measure(place, *((1, 2) if quick else (3, 4)))
        ours, theirs = found["seconds"]["lgcn"], found["seconds"][found["fastest"]]
        yield Row(
            "Own tables with defaults, an epoch with evaluation",
            f"{found['dataset']}, {found['split']}, {found['labels']} labels",
            found["ratio"],
            f"times as long as the fastest GCN of two layers ({ms(ours)} against {ms(theirs)}; "
            f"{number(found['ratio_plainest'])} times with edge_index and dense features)",
            EPOCH,
            details=found,
        )


def _places() -> Iterator[tuple[str, str, str]]:
    for dataset in DATASETS:
        try:
            yield from find_places([dataset], SPLITS, own_epoch.SEED)
        except DataError as error:
            print(f"{dataset} is left out: {error}", flush=True)


def first(quick: bool) -> Iterator[Row]:
    """The first command on a machine, which compiles kernels."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            first_command.measure(Path(folder), 2 if quick else first_command.EPOCHS)
            for _ in range(2)
        ]
    fresh, after = (command["seconds"] for command in commands)
    yield Row(
        "`lgcn train` on digits, 20 epochs",
        "the first time, kernels are compiled",
        fresh,
        f"s ({number(after)} s the next time)",
        FIRST_COMMAND,
        details={"commands": commands},
    )
