"""k_largest on the CPU against padding to the largest degree and torch.topk.

python -m benchmarks.k_largest [--out FILE]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks._common import compare, machine, write
from lgcn.ops import k_largest

NUM_NODES = 20_000
SHAPES = (
    {"mean_degree": 6, "channels": 32, "k": 8, "repeats": 15},
    {"mean_degree": 30, "channels": 128, "k": 64, "repeats": 3},
)


def random_graph(num_nodes: int, mean_degree: float) -> tuple[Tensor, Tensor]:
    """The CSR structure of a random graph with Poisson degrees."""
    rng = np.random.default_rng(0)
    degrees = rng.poisson(mean_degree, num_nodes)
    rowptr = torch.from_numpy(np.concatenate([[0], np.cumsum(degrees)]))
    return rowptr, torch.from_numpy(rng.integers(0, num_nodes, degrees.sum()))


def padded_neighbors(rowptr: Tensor, col: Tensor, k: int) -> Tensor:
    """Node ids, [nodes, largest degree or k]; where there is none, one past the last node."""
    num_nodes = rowptr.numel() - 1
    degrees = rowptr.diff()
    row = torch.arange(num_nodes).repeat_interleave(degrees)
    rank = torch.arange(col.numel()) - rowptr[row]
    neighbors = torch.full((num_nodes, max(int(degrees.max()), k)), num_nodes)
    neighbors[row, rank] = col
    return neighbors


def padded_topk(x: Tensor, neighbors: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The usual way: gather all neighbours of all nodes, rank them with torch.topk.

    The padded table of neighbours, made once per graph, is not timed.
    """
    lowest = x.new_full((1, x.size(1)), -torch.inf)
    gathered = torch.cat([x, lowest])[neighbors]
    values, slot = gathered.topk(k, dim=1)
    index = neighbors.unsqueeze(2).expand_as(gathered).gather(1, slot)
    empty = index == x.size(0)
    return values.masked_fill(empty, 0), index.masked_fill(empty, -1)


def with_backward(
    function: Callable[[Tensor], tuple[Tensor, Tensor]], x: Tensor
) -> Callable[[], Tensor]:
    """Forward and backward of the function, with a gradient of ones."""

    def run() -> Tensor:
        leaf = x.detach().requires_grad_()
        values, _ = function(leaf)
        return torch.autograd.grad(values, leaf, torch.ones_like(values))[0]

    return run


def measure(mean_degree: int, channels: int, k: int, repeats: int) -> dict[str, Any]:
    """All numbers of one shape."""
    rowptr, col = random_graph(NUM_NODES, mean_degree)
    x = torch.randn(NUM_NODES, channels, generator=torch.Generator().manual_seed(0))
    neighbors = padded_neighbors(rowptr, col, k)

    def sparse(x: Tensor) -> tuple[Tensor, Tensor]:
        return k_largest(x, rowptr, col, k)

    def padded(x: Tensor) -> tuple[Tensor, Tensor]:
        return padded_topk(x, neighbors, k)

    values, index = sparse(x)
    if not torch.equal(values, padded(x)[0]):
        raise RuntimeError("k_largest and padding with torch.topk differ")

    # What any implementation must read once (neighbours' features, the graph) and write once.
    read = col.numel() * channels * x.element_size() + rowptr.nbytes + col.nbytes
    moved = read + values.nbytes + index.nbytes
    source = torch.ones(moved // 2, dtype=torch.uint8)
    seconds = compare(
        {
            "k_largest": lambda: sparse(x),
            "padded_topk": lambda: padded(x),
            "k_largest_with_backward": with_backward(sparse, x),
            "padded_topk_with_backward": with_backward(padded, x),
            "copy": source.clone,
        },
        repeats,
    )
    return {
        "speedup_forward": seconds["padded_topk"] / seconds["k_largest"],
        "speedup_forward_backward": (
            seconds["padded_topk_with_backward"] / seconds["k_largest_with_backward"]
        ),
        "share_of_copy_bandwidth": seconds["copy"] / seconds["k_largest"],
        "gigabytes_per_second": moved / seconds["k_largest"] / 1e9,
        "gigabytes_per_second_of_copy": moved / seconds["copy"] / 1e9,
        "nodes": NUM_NODES,
        "mean_degree": mean_degree,
        "channels": channels,
        "k": k,
        "repeats": repeats,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/k_largest.json"))
    arguments = parser.parse_args()
    results = []
    for shape in SHAPES:
        result = measure(**shape)
        print(
            f"degree {result['mean_degree']}, C = {result['channels']}, k = {result['k']}: "
            f"{result['speedup_forward']:.1f} times as fast as padding + topk, "
            f"{result['speedup_forward_backward']:.1f} times with backward, "
            f"{result['share_of_copy_bandwidth']:.0%} of the bandwidth of a copy"
        )
        results.append(result)
    write(arguments.out, {"results": results, "machine": machine()})


if __name__ == "__main__":
    main()
