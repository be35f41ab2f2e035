"""The rows of `benchmarks.speed` for a GPU. With `quick` they can be tried on a CPU too."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

import lgcn.paper  # noqa: F401 (registers GCN)
from benchmarks import k_largest, recompute
from benchmarks._common import QUICK_GRAPH, compare, peak_megabytes
from benchmarks.graphs import Structure, csr_matrix, random_graph
from benchmarks.speed_table import Row, ms
from lgcn import Graph, LGConv, load_dataset
from lgcn.errors import DataError
from lgcn.ops import k_largest_values
from lgcn.training import Settings
from lgcn.training.loop import train_epochs

# The options of the layer; the paper's CNN is the first.
LAYERS: dict[str, dict[str, Any]] = {
    "two convolutions": {},
    "two convolutions, mean": {"mean": True},
    "one convolution": {"cnn": "single"},
    "one convolution, mean": {"cnn": "single", "mean": True},
}
# The targets: at most so many times the floor, and so many times as long as SAGEConv.
BACKWARD, TRAINING = 3.0, 1.5
FORWARD_MS, MEMORY_GB = 25.0, 4.0


def rows(device: str, quick: bool) -> Iterator[Row]:
    yield from layer(device, quick)
    yield from changing_subgraphs(device, quick)
    yield from backward(device, quick)


def layer(device: str, quick: bool) -> Iterator[Row]:
    """A first layer on a graph of the size of ogbn-products, beside PyG's SAGEConv on CSR."""
    warnings.filterwarnings("ignore", "Sparse invariant checks")  # of PyG's own CSR matrices
    nodes, degree, channels, out, k = recompute.QUICK if quick else recompute.SIZES["cuda"]
    graph = Graph(*random_graph(nodes, degree, degrees="skewed", device=device))
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(nodes, channels, device=device, generator=generator)
    torch.manual_seed(0)
    sage, csr = SAGEConv(channels, out).to(device), csr_matrix(graph)
    training: dict[str, Callable[[], object]] = {
        "SAGEConv": partial(recompute.first_layer, sage, x, csr)
    }
    forward: dict[str, Callable[[], object]] = {}
    for name, options in LAYERS.items():
        kept = LGConv(channels, out, k, **options).to(device)
        again = LGConv(channels, out, k, **options, recompute=True).to(device)
        forward[name] = partial(recompute.forward, kept, x, graph)
        training[name] = partial(recompute.first_layer, kept, x, graph)
        training[f"{name}, recompute"] = partial(recompute.first_layer, again, x, graph)
    repeats, budget = 1 if quick else 5, recompute.BUDGET[device]
    seconds = compare(training, repeats, device, budget)
    seconds_forward = compare(forward, repeats, device, budget)
    about = (
        f"`LGConv`, first layer of {channels} to {out} features, k = {k}: {nodes:,} nodes, "
        f"{graph.num_edges:,} entries"
    )
    for name, taken in seconds.items():
        if name == "SAGEConv":
            continue
        sage_seconds = seconds["SAGEConv"]
        yield Row(
            about,
            f"{name}: forward and backward",
            taken / sage_seconds,
            f"times as long as PyG's SAGEConv on CSR ({ms(taken)} against {ms(sage_seconds)})",
            TRAINING,
            details={"seconds": taken, "seconds_sage": sage_seconds},
        )
    for name, variant in forward.items():
        taken, peak = seconds_forward[name], peak_megabytes(variant, device)
        yield Row(
            about,
            f"{name}: without gradients",
            1e3 * taken,
            f"ms (peak {peak / 1e3:.1f} GB)",
            FORWARD_MS,
            details={"seconds": taken, "peak_megabytes": peak},
        )
    for name in LAYERS:
        peak, most = (peak_megabytes(training[key], device) for key in (f"{name}, recompute", name))
        yield Row(
            about,
            f"{name}, recompute: peak memory of training",
            peak / 1e3,
            f"GB ({most / 1e3:.1f} without recompute)",
            MEMORY_GB,
            details={"peak_megabytes": peak, "peak_megabytes_kept": most},
        )


def changing_subgraphs(device: str, quick: bool) -> Iterator[Row]:
    """Training on sub-graphs that are new in each epoch, beside GCN on the whole graph."""
    options = QUICK_GRAPH if quick else {}
    name, epochs, repeats = ("synthetic", 2, 1) if quick else ("cora", 100, 3)
    try:
        graph = load_dataset(name, **options)
    except DataError as error:
        print(f"new sub-graphs in each epoch are left out: {error}", flush=True)
        return
    settings = {"LGCN": {"training": "subgraph"}, "GCN": {"preset": "gcn"}}
    variants: dict[str, Callable[[], object]] = {
        system: partial(
            train_epochs,
            graph,
            Settings.create(dataset=name, device=device, **given),
            epochs,
        )
        for system, given in settings.items()
    }
    seconds = compare(variants, repeats, device)
    yield Row(
        "Training, captured as CUDA graphs where that is possible",
        f"{epochs} epochs on {name}, new sub-graphs in each",
        seconds["LGCN"] / seconds["GCN"],
        f"times as long as GCN ({ms(seconds['LGCN'])} against {ms(seconds['GCN'])})",
        None,
        details={"seconds": seconds},
    )


def backward(device: str, quick: bool) -> Iterator[Row]:
    """The default backward of the selection, in multiples of its floor."""
    shapes = k_largest.QUICK
    if not quick:
        shapes = [shape for shape in k_largest.SHAPES["cuda"] if shape.nodes > 50_000]
    for shape in shapes:
        if shape.degrees != "star":
            yield _backward(shape, device)


def _backward(shape: k_largest.Shape, device: str) -> Row:
    graph = shape.graph(device)
    x = k_largest.make_input("normal", graph.num_nodes, shape.channels, device)

    def values_of(x: Tensor) -> Tensor:
        return k_largest_values(x, *graph, shape.k)

    moved = k_largest.backward_bytes(x, values_of(x), k_largest.saved_bytes(values_of, x, graph))
    leaf = x.detach().requires_grad_()
    values = values_of(leaf)
    grad = torch.ones_like(values)
    _check(graph, shape, k_largest.only_backward(values, leaf, grad, contextlib.nullcontext))
    copied = moved if device == "cpu" else k_largest.CUDA_COPY_BYTES
    source = torch.ones(copied // 2, dtype=torch.uint8, device=device)
    variants: dict[str, Callable[[], object]] = {"copy": source.clone}
    for name, variant in k_largest.backward_variants(device).items():
        variants[name] = partial(k_largest.only_backward, values, leaf, grad, variant)
    seconds = compare(variants, shape.repeats, device, k_largest.BUDGET[device])
    floor = moved * seconds["copy"] / (2 * source.nbytes)
    taken = seconds["default"]
    return Row(
        "Backward of the selection, deterministic",
        f"{shape.degrees}, N = {graph.num_nodes:,}, E = {graph.num_edges:,}, "
        f"C = {shape.channels}, k = {shape.k}",
        taken / floor,
        f"times its floor ({ms(taken)})",
        BACKWARD,
        details={"seconds": seconds, "floor_bytes": moved, "floor_seconds": floor},
    )


def _check(graph: Structure, shape: k_largest.Shape, gradient: Tensor) -> None:
    """With a gradient of ones, each value that was selected adds one to its node."""
    selected = int(graph.rowptr.diff().clamp(max=shape.k).sum()) * shape.channels
    if gradient.sum(dtype=torch.float64).item() != selected:
        raise RuntimeError(f"the gradient does not add up for {shape}")
