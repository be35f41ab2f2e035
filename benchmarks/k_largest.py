"""Selecting the k largest neighbours, compared with ways to write it in torch.

python -m benchmarks.k_largest [--device cpu|cuda] [--out FILE] [--quick]

Times k_largest_values, which the layers call, and k_largest, which also returns node ids, each with
and without the backward pass. A baseline that would hold more memory than BASELINE_BYTES, or takes
longer than BASELINE_SECONDS, is left out. The floor is the time that a copy needs for the bytes
that any implementation has to move.
"""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks._common import compare, machine, parse_arguments, peak_megabytes, write
from benchmarks.baselines import BASELINES, Baseline, needed_bytes
from benchmarks.graphs import Structure, random_graph, star
from lgcn.ops import atomics, k_largest, k_largest_values, reference

BASELINE_BYTES = {"cpu": 6 * 2**30, "cuda": 32 * 2**30}
BASELINE_SECONDS = 30  # of CPU time, so that a busy machine does not change it
MOST_SORTED = 2 * 10**9  # numbers that a baseline may sort on a GPU, about five seconds of work
# Seconds per variant over all turns; slow baselines get fewer turns.
BUDGET = {"cpu": 30.0, "cuda": 0.5}
CUDA_COPY_BYTES = 2**32
CHECKED_ROWS = 500


class Shape(NamedTuple):
    """One graph and what is asked of it."""

    nodes: int
    mean_degree: float
    channels: int
    k: int
    degrees: str = "poisson"  # or skewed, or star
    repeats: int = 15
    distinct: bool = False

    def graph(self, device: str) -> Structure:
        # int64 is what PyG users have; on the GPU 116 million edges count.
        dtype = torch.int32 if device == "cuda" else torch.int64
        if self.degrees == "star":
            return star(self.nodes - 1, device, dtype)
        return random_graph(
            self.nodes,
            self.mean_degree,
            degrees=self.degrees,
            distinct=self.distinct,
            device=device,
            dtype=dtype,
        )


SMALL = Shape(1000, 6, 32, 8, distinct=True)  # the one where N x C x N products fit
SHAPES = {
    "cpu": [
        Shape(20_000, 6, 32, 8),
        Shape(20_000, 30, 128, 64, repeats=3),
        Shape(20_000, 6, 32, 8, degrees="skewed"),
        SMALL,
    ],
    "cuda": [
        *(
            Shape(nodes, edges / nodes, channels, k, degrees)
            for nodes, edges, channels, k in (
                (169_343, 2_200_000, 128, 8),
                (56_944, 1_600_000, 128, 64),
                (232_965, 99_000_000, 64, 64),
                (2_449_029, 116_000_000, 64, 8),
            )
            for degrees in ("poisson", "skewed")
        ),
        Shape(100_001, 2, 64, 8, degrees="star", distinct=True),
        SMALL,
    ],
}
QUICK = [
    Shape(60, 4, 8, 3, repeats=1, distinct=True),
    Shape(60, 4, 8, 3, degrees="skewed", repeats=1),
    Shape(60, 2, 8, 3, degrees="star", repeats=1, distinct=True),
]
INPUTS = {
    "normal": torch.float32,
    "70 % zeros": torch.float32,
    "normal, bfloat16": torch.bfloat16,
}


def backward_variants(device: str) -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    """The kinds of backward that lgcn has, each as what to enter before calling it."""
    variants: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "default": contextlib.nullcontext
    }
    return variants | ({"atomics": atomics} if device == "cuda" else {})


def make_input(kind: str, num_nodes: int, channels: int, device: str) -> Tensor:
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(num_nodes, channels, device=device, generator=generator)
    if kind == "70 % zeros":
        x[torch.rand(x.shape, device=device, generator=generator) < 0.7] = 0
    return x.to(INPUTS[kind])


def both_directions(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Forward and backward, with a gradient of ones."""
    leaf = x.detach().requires_grad_()
    values = function(leaf)
    return torch.autograd.grad(values, leaf, torch.ones_like(values))[0]


def only_backward(
    values: Tensor,
    leaf: Tensor,
    grad: Tensor,
    variant: Callable[[], AbstractContextManager[Any]],
) -> Tensor:
    with variant():
        return torch.autograd.grad(values, leaf, grad, retain_graph=True)[0]


def saved_bytes(function: Callable[[Tensor], Tensor], x: Tensor, graph: Structure) -> int:
    """What autograd keeps for the backward beyond the inputs."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    leaf = x.detach().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function(leaf)
    inputs = {tensor.data_ptr() for tensor in (leaf, *graph)}
    return sum(size for pointer, size in kept.items() if pointer not in inputs)


def backward_bytes(x: Tensor, values: Tensor, saved: int) -> int:
    """What any backward moves: it reads a gradient and a choice per value, and writes one of x."""
    return values.nbytes + saved + x.nbytes


def check_rows(x: Tensor, graph: Structure, k: int, values: Tensor) -> None:
    """Compares some rows, the longest among them, with the definition."""
    degrees = graph.rowptr.diff()
    some = torch.linspace(0, graph.num_nodes - 1, CHECKED_ROWS, device=x.device).long()
    rows = torch.unique(torch.cat([some, degrees.argmax().view(1)]))
    ends = degrees[rows].cumsum(0)
    rowptr = torch.cat([ends.new_zeros(1), ends]).to(graph.col.dtype)
    parts = [graph.col[graph.rowptr[row] : graph.rowptr[row + 1]] for row in rows.tolist()]
    expected, _ = reference.k_largest(x, rowptr, torch.cat(parts), k, None, False)
    if not torch.equal(values[rows], expected):
        raise RuntimeError("k_largest_values differs from its definition")


def ready_baselines(
    shape: Shape, graph: Structure, x: Tensor, values: Tensor
) -> tuple[dict[str, Baseline], dict[str, str], dict[str, float]]:
    """The baselines that fit, why the others are left out, and peak memory."""
    baselines, left_out, megabytes = {}, {}, {}
    limit = BASELINE_BYTES[x.device.type]
    for name, make in BASELINES.items():
        needed = needed_bytes(name, graph, shape.channels, shape.k)
        if needed > limit:
            left_out[name] = (
                f"does not fit: about {needed / 2**30:.0f} GiB, limit {limit / 2**30:.0f} GiB"
            )
            continue
        sorted_values = graph.num_edges * shape.channels
        if name == "segment_sort" and x.is_cuda and sorted_values > MOST_SORTED:
            left_out[name] = f"too slow: sorts more than {MOST_SORTED:.0e} numbers"
            continue
        if name == "dense" and not shape.distinct:
            left_out[name] = "cannot have parallel edges"
            continue
        baselines[name] = baseline = make(graph, shape.k)
        found: list[Tensor] = []
        start = time.process_time()
        megabytes[name] = peak_megabytes(
            lambda: found.append(baseline.select(x)[0]),  # noqa: B023  called at once
            x.device.type,
        )
        elapsed = time.process_time() - start
        if not torch.equal(found[0], values):
            raise RuntimeError(f"k_largest_values and {name} differ")
        if elapsed > BASELINE_SECONDS:
            left_out[name] = f"too slow: one forward took {elapsed:.0f} s of processor time"
            del baselines[name]
    return baselines, left_out, megabytes


def measure(shape: Shape, graph: Structure, kind: str, device: str) -> dict[str, Any]:
    """All numbers for one shape and input; baselines only for normal float32 input."""
    x = make_input(kind, graph.num_nodes, shape.channels, device)

    def values_of(x: Tensor) -> Tensor:
        return k_largest_values(x, *graph, shape.k)

    def with_ids(x: Tensor) -> tuple[Tensor, Tensor]:
        return k_largest(x, *graph, shape.k)

    values = values_of(x)
    check_rows(x, graph, shape.k, values)
    baselines, left_out, megabytes = (
        ready_baselines(shape, graph, x, values) if kind == "normal" else ({}, {}, {})
    )
    megabytes |= {
        "k_largest_values": peak_megabytes(lambda: values_of(x), device),
        "k_largest_values_with_backward": peak_megabytes(
            lambda: both_directions(values_of, x), device
        ),
    }
    saved = saved_bytes(values_of, x, graph)
    read = graph.num_edges * (shape.channels * x.element_size() + 4)
    moved = read + values.nbytes + saved
    moved_backward = backward_bytes(x, values, saved)
    copied = moved if device == "cpu" else CUDA_COPY_BYTES
    source = torch.ones(copied // 2, dtype=torch.uint8, device=device)

    leaf = x.detach().requires_grad_()
    values = values_of(leaf)
    grad = torch.ones_like(values)
    variants: dict[str, Callable[[], object]] = {
        "k_largest_values": lambda: values_of(x),
        "k_largest": lambda: with_ids(x),
        "copy": source.clone,
    }
    for name, baseline in baselines.items():
        variants[name] = partial(baseline.select, x)
    variants |= {
        "k_largest_values_with_backward": lambda: both_directions(values_of, x),
        "k_largest_with_backward": lambda: both_directions(lambda x: with_ids(x)[0], x),
    }
    for name, baseline in baselines.items():
        variants[f"{name}_with_backward"] = partial(both_directions, baseline.values, x)
    for name, variant in backward_variants(device).items():
        variants[f"backward_{name}"] = partial(only_backward, values, leaf, grad, variant)
    seconds = compare(variants, shape.repeats, device, BUDGET[device])

    bandwidth = 2 * source.nbytes / seconds["copy"]
    result: dict[str, Any] = {
        "degrees": shape.degrees,
        "input": kind,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "mean_degree": graph.num_edges / graph.num_nodes,
        "max_degree": graph.max_degree,
        "channels": shape.channels,
        "k": shape.k,
        "ratio_forward": {name: seconds[name] / seconds["k_largest_values"] for name in baselines},
        "ratio_forward_backward": {
            name: seconds[f"{name}_with_backward"] / seconds["k_largest_values_with_backward"]
            for name in baselines
        },
        "left_out": left_out,
        "times_floor": seconds["k_largest_values"] * bandwidth / moved,
        # The target's floor counts a position as four bytes, as a plain kernel keeps it.
        "times_floor_32_bit": seconds["k_largest_values"]
        * bandwidth
        / (read + values.nbytes + 4 * values.numel()),
        "times_floor_backward": {
            name: seconds[f"backward_{name}"] * bandwidth / moved_backward
            for name in backward_variants(device)
        },
        "floor_bytes": moved,
        "floor_bytes_backward": moved_backward,
        "saved_bytes_per_node": saved / graph.num_nodes,
        "gigabytes_per_second": moved / seconds["k_largest_values"] / 1e9,
        "gigabytes_per_second_of_copy": bandwidth / 1e9,
        "peak_megabytes": megabytes,
        "repeats": shape.repeats,
        "seconds": seconds,
    }
    if "padded_topk" in baselines:  # both give values and node ids
        result["speedup_forward"] = seconds["padded_topk"] / seconds["k_largest"]
        result["speedup_forward_backward"] = (
            seconds["padded_topk_with_backward"] / seconds["k_largest_with_backward"]
        )
    return result


def show(result: dict[str, Any]) -> None:
    seconds = result["seconds"]
    backward = (
        f"backward ({name}) {seconds[f'backward_{name}'] * 1e3:.3g} ms, {times:.2f} times"
        for name, times in result["times_floor_backward"].items()
    )
    lines = [
        f"{result['degrees']}, N = {result['nodes']}, E = {result['edges']}, "
        f"C = {result['channels']}, k = {result['k']}, {result['input']}: "
        f"{seconds['k_largest_values'] * 1e3:.3g} ms, {result['times_floor']:.2f} times the floor; "
        + "; ".join(backward)
    ]
    for name, ratio in result["ratio_forward"].items():
        both = result["ratio_forward_backward"][name]
        lines.append(f"    {ratio:.1f} times as fast as {name}, {both:.1f} with backward")
    lines += [f"    {name}: {reason}" for name, reason in result["left_out"].items()]
    print("\n".join(lines), flush=True)


def main() -> None:
    arguments = parse_arguments("k_largest", __doc__)
    device = arguments.device
    results: list[dict[str, Any]] = []
    shapes = QUICK if arguments.quick else SHAPES[device]
    # Skewed degrees are about the kernel's balance, other inputs about its comparisons.
    todo = [(shape, "normal") for shape in shapes]
    todo += [
        (s, kind) for s in shapes if s.degrees != "skewed" for kind in INPUTS if kind != "normal"
    ]
    for shape, kind in todo:
        results.append(measure(shape, shape.graph(device), kind, device))
        show(results[-1])
        limit = BASELINE_BYTES[device]
        record = {"results": results, "baseline_bytes": limit, "machine": machine(device)}
        write(arguments.out, device, record)  # after each, so that an interruption loses nothing


if __name__ == "__main__":
    main()
