"""The rows of `benchmarks.speed` for a CPU.

Each row is one function. Where another benchmark measures the same, the row calls it.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from benchmarks import k_largest
from benchmarks._common import compare
from benchmarks.baselines import BASELINES
from benchmarks.speed_table import Row, ms
from lgcn import ops

# The selection with node ids, and how many times as fast as degree buckets it should be.
SELECTIONS = (
    (k_largest.Shape(20_000, 6, 48, 8, "skewed", repeats=9), 12.0),
    (k_largest.Shape(20_000, 30, 96, 48, "skewed", repeats=5), 10.0),
)
QUICK = ((k_largest.Shape(60, 4, 8, 3, "skewed", repeats=1), 12.0),)
BUDGET = 20.0  # seconds per variant over all turns


def rows(quick: bool) -> Iterator[Row]:
    yield from selections(quick)


def selections(quick: bool) -> Iterator[Row]:
    """k_largest with node ids beside padding by degree with torch.topk."""
    for shape, target in QUICK if quick else SELECTIONS:
        graph = shape.graph("cpu")
        x = k_largest.make_input("normal", graph.num_nodes, shape.channels, "cpu")
        select = partial(ops.k_largest, x, *graph, shape.k)
        buckets = partial(BASELINES["bucketed_topk"](graph, shape.k).select, x)
        if not torch.equal(select()[0], buckets()[0]):
            raise RuntimeError(f"k_largest and bucketed_topk differ for {shape}")
        variants: dict[str, Callable[[], object]] = {
            "k_largest": select,
            "bucketed_topk": buckets,
        }
        seconds = compare(variants, shape.repeats, budget=BUDGET)
        ours, theirs = seconds.values()
        yield Row(
            "`k_largest` with node ids",
            f"{shape.degrees} degrees of {shape.mean_degree:g}, N = {shape.nodes:,}, "
            f"C = {shape.channels}, k = {shape.k}",
            theirs / ours,
            f"times as fast as padding by degree, `topk` ({ms(ours)} against {ms(theirs)})",
            target,
            at_least=True,
            details={"seconds": seconds},
        )
