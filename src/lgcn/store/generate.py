"""Random graphs of any size with hubs and planted classes, written straight into a store.

The graphs are of the same kind as those of `lgcn.datasets.synthetic`. Every random number is a
function of the seed and of the edge or feature it is for, so that the bytes of a store depend
neither on the number of threads nor on the block size. Nodes are drawn by closed formulas, not by
tables: nodes have ranks; rank modulo the number of classes is the class, and the quotient is the
rank within the class, by which the weight falls. A permutation, also a formula, spreads ranks over
the nodes, since nodes of similar degree and class should not lie side by side.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from lgcn.store.edge_buckets import sorted_rows
from lgcn.store.new_store_checks import FeatureKind, feature_kind, generated_sizes
from lgcn.store.write_store import encode_features, uint8_scale
from lgcn.store.writer import StoreWriter
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.numbers import real_number, whole_number
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import parse_memory
from lgcn.utils.splitmix import STEP, mix

_VALUES = 1 << 22  # features that are made at a time
_SIGMAS = 5.0  # the range of features as uint8, in deviations of the noise


class _Permutation(NamedTuple):
    """Number i goes to (factor * i + shift) modulo size, and back."""

    factor: int
    shift: int
    inverse: int
    size: int


def generate_store(
    path: str | Path,
    *,
    num_nodes: int,
    num_edges: int,
    num_features: int = 64,
    num_classes: int = 10,
    seed: int = 0,
    homophily: float = 0.8,
    skew: float = 0.5,
    noise: float = 3.0,
    labels_per_class: int | None = None,
    num_val: int | None = None,
    features: FeatureKind = "float32",
    memory: str | int = "1GB",
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Writes an undirected graph with planted classes. Its bytes depend on these numbers only.

    Args:
        path: Folder of the store.
        num_nodes: At most 2**31 - 1.
        num_edges: Undirected edges to draw. Self-loops and duplicates are left out, so that the
            graph has slightly fewer: one in ten thousand for ten million nodes and a hundred
            million edges, many in a small dense graph.
        num_features: (default: 64)
        num_classes: Classes of equal size. (default: 10)
        seed: (default: 0)
        homophily: Share of edges that join nodes of one class. (default: 0.8)
        skew: The node of rank r is drawn with weight r to the power of `-skew`: 0 gives all nodes
            about the same degree, 1 a few large hubs. (default: 0.5)
        noise: Standard deviation of a feature within a class; between classes it is one.
            (default: 3, at which features alone do not separate the classes)
        labels_per_class: Training nodes of each class, at most half of the class.
            (default: a tenth of the class, at most 1000)
        num_val: Validation nodes, at most half of what training leaves in each class; all others
            are test nodes. (default: a tenth of the nodes, at most 100000)
        features: How to store features. (default: `"float32"`)
        memory: Memory for sorting the edges, on top of the program itself. (default: 1 GB)
        overwrite: Replace an existing store. (default: `False`)
        on_progress: Called with the name of a step, how much of it is done, and how much there is
            in all. (default: none)

    Returns:
        The header of the store; its `num_edges` counts each edge twice.
    """
    num_nodes, num_edges, num_features, num_classes, seed = generated_sizes(
        num_nodes, num_edges, num_features, num_classes, seed
    )
    homophily = real_number("homophily", homophily, 0, 1)
    skew = real_number("skew", skew, 0, 1)
    noise = real_number("noise", noise, 0)
    smallest = num_nodes // num_classes
    if labels_per_class is None:
        labels_per_class = min(1000, max(1, smallest // 10))
    labels_per_class = whole_number("labels_per_class", labels_per_class, 1)
    if num_val is None:
        num_val = min(100_000, num_nodes // 10)
    num_val = whole_number("num_val", num_val, 0)
    feature_kind(features)
    memory = parse_memory(memory)

    rng = np.random.default_rng(seed)
    spread = _permutation(rng, num_nodes)
    key = rng.integers(0, 2**64, 2, dtype=np.uint64)
    centre = rng.standard_normal((num_classes, num_features), dtype=np.float32)
    # Classes have one of two sizes.
    splits = [_permutation(rng, max(size, 1)) for size in (smallest, smallest + 1)]
    progress = on_progress or (lambda what, done, total: None)

    with StoreWriter(path, overwrite=overwrite) as writer:
        edges = _Edges(num_edges, num_nodes, num_classes, homophily, skew, spread, key[0])
        _write_edges(writer, edges, memory, progress)
        _write_labels(writer, spread, splits, num_classes, labels_per_class, num_val, progress)
        _write_features(writer, spread, centre, noise, key[1], features, progress)
        progress("checksums", 0, 1)
        return writer.finish(
            name="generated",
            label_names=[str(label) for label in range(num_classes)],
            source={
                "generator": "lgcn.store.generate",
                "num_nodes": num_nodes,
                "num_edges": num_edges,
                "num_features": num_features,
                "num_classes": num_classes,
                "seed": seed,
                "homophily": homophily,
                "skew": skew,
                "noise": noise,
            },
        )


def _permutation(rng: Any, size: int) -> _Permutation:
    # By the golden ratio, at which any run of numbers is spread most evenly.
    factor = round(size * (math.sqrt(5) - 1) / 2)
    while math.gcd(factor, size) != 1:
        factor += 1
    factor %= size
    return _Permutation(factor, int(rng.integers(0, size)), pow(factor, -1, size), size)


class _Edges(NamedTuple):
    """The edges of a graph as `sorted_rows` reads them, drawn again on each reading."""

    num_edges: int
    num_nodes: int
    num_classes: int
    homophily: float
    skew: float
    spread: _Permutation
    key: Any
    weighted: bool = False

    def chunks(self, size: int) -> Iterator[tuple[Any, Any, None]]:
        """(sources, targets, no weights) of at most `size` edges at a time, no self-loops."""
        for start, stop in row_blocks(self.num_edges, size):
            ends = np.empty((2, stop - start), np.int32)
            _draw_edges(
                start,
                self.num_nodes,
                self.num_classes,
                self.homophily,
                self.skew,
                self.spread.factor,
                self.spread.shift,
                self.key,
                ends[0],
                ends[1],
            )
            different = ends[0] != ends[1]
            if not different.all():
                ends = ends[:, different]
            yield ends[0], ends[1], None


def _write_edges(writer: StoreWriter, edges: _Edges, memory: int, progress: OnProgress) -> None:
    rowptr, col = writer.append("rowptr", "int64"), writer.append("col", "int32")
    rowptr.write(np.zeros(1, np.int64))
    written = 0
    for rows in sorted_rows(
        edges,
        edges.num_nodes,
        folder=writer.scratch,
        memory=memory,
        directed=False,
        on_progress=progress,
    ):
        col.write(rows.col.numpy().astype(np.int32, copy=False))
        rowptr.write(rows.rowptr[1:].numpy().astype(np.int64) + written)
        written += rows.col.numel()


def _write_labels(
    writer: StoreWriter,
    spread: _Permutation,
    splits: list[_Permutation],
    num_classes: int,
    labels_per_class: int,
    num_val: int,
    progress: OnProgress,
) -> None:
    labels = writer.append("y", "int64")
    masks = [writer.append(f"{split}_mask", "bool") for split in ("train", "val", "test")]
    num_nodes = spread.size
    for start, stop in row_blocks(num_nodes, _VALUES):
        nodes = np.arange(start, stop)
        rank = _rank(nodes, spread.inverse, spread.shift, num_nodes)
        y, within = rank % num_classes, rank // num_classes
        larger = y < num_nodes % num_classes  # classes that have one node more
        drawn, size = np.empty_like(within), np.empty_like(within)
        for split, those in zip(splits, (~larger, larger), strict=True):
            drawn[those] = (within[those] * split.factor + split.shift) % split.size
            size[those] = split.size
        train = np.minimum(labels_per_class, np.maximum(size // 2, 1))
        val = np.minimum(num_val // num_classes + (y < num_val % num_classes), (size - train) // 2)
        in_train, in_val = drawn < train, drawn < train + val
        labels.write(y)
        for mask, values in zip(masks, (in_train, in_val & ~in_train, ~in_val), strict=True):
            mask.write(values)
        progress("labels", stop, num_nodes)


def _write_features(
    writer: StoreWriter,
    spread: _Permutation,
    centre: Any,
    noise: float,
    key: Any,
    features: FeatureKind,
    progress: OnProgress,
) -> None:
    num_nodes, width = spread.size, centre.shape[1]
    # Features of about unit size whatever the noise.
    size = 1 / math.sqrt(1 + noise**2)
    centre = centre * np.float32(size)
    noise *= size
    scale = None
    if features == "uint8":
        reach = _SIGMAS * noise
        scale = uint8_scale(centre.min(0) - reach, centre.max(0) + reach)
        writer.append("x_scale", "float32").write(scale[0])
        writer.append("x_offset", "float32").write(scale[1])
    x = writer.append("x", features, width)
    for start, stop in row_blocks(num_nodes, _VALUES // width):
        block = np.empty((stop - start, width), np.float32)
        _draw_features(
            start, num_nodes, spread.inverse, spread.shift, centre, np.float32(noise), key, block
        )
        x.write(encode_features(block, features, scale))
        progress("features", stop, num_nodes)


@jit
def _rank(node: Any, inverse: int, shift: int, num_nodes: int) -> Any:
    """The rank that a permutation puts at a node. Products stay below 2**62."""
    return (node - shift + num_nodes) % num_nodes * inverse % num_nodes


@jit
def _uniform(bits: Any) -> Any:
    """A number from 0 to below 1."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@jit
def _below(bits: Any, bound: int) -> Any:
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@jit
def _draw_rank(bits: Any, size: int, skew: float) -> Any:
    """A rank r < size, with density (r + 1) to the power of -skew, by the inverse of its integral.

    Multiplication is exact on every machine; powers may differ in the last bit.
    """
    u = _uniform(bits)
    if skew == 0:
        place = u * size
    elif skew == 0.5:
        root = 1 + u * (math.sqrt(size + 1.0) - 1)
        place = root * root - 1
    elif skew == 1:
        place = math.exp(u * math.log(size + 1.0)) - 1
    else:
        power = 1 - skew
        place = (1 + u * ((size + 1.0) ** power - 1)) ** (1 / power) - 1
    return min(np.int64(place), size - 1)


@jit_parallel
def _draw_edges(
    start: int,
    num_nodes: int,
    num_classes: int,
    homophily: float,
    skew: float,
    factor: int,
    shift: int,
    key: Any,
    source: Any,
    target: Any,
) -> None:
    """Draws edges number `start` and on: two classes, and a node of each."""
    size, larger = num_nodes // num_classes, num_nodes % num_classes
    for i in numba.prange(source.shape[0]):
        state = key + np.uint64(start + i) * np.uint64(5) * STEP
        first = _below(mix(state), num_classes)
        second = first
        if num_classes > 1 and _uniform(mix(state + STEP)) >= homophily:
            second = (first + 1 + _below(mix(state + np.uint64(2) * STEP), num_classes - 1)) % (
                num_classes
            )
        bits = mix(state + np.uint64(3) * STEP)
        rank = _draw_rank(bits, size + (first < larger), skew) * num_classes + first
        source[i] = (rank * factor + shift) % num_nodes
        bits = mix(state + np.uint64(4) * STEP)
        rank = _draw_rank(bits, size + (second < larger), skew) * num_classes + second
        target[i] = (rank * factor + shift) % num_nodes


@jit_parallel
def _draw_features(
    start: int,
    num_nodes: int,
    inverse: int,
    shift: int,
    centre: Any,
    noise: float,
    key: Any,
    x: Any,
) -> None:
    """The centre of a node's class and normal noise, by Box and Muller: two numbers at a time."""
    num_classes, width = centre.shape
    for i in numba.prange(x.shape[0]):
        node = start + i
        label = _rank(node, inverse, shift, num_nodes) % num_classes
        state = key + np.uint64(node) * np.uint64(2 * ((width + 1) // 2)) * STEP
        for j in range(0, width, 2):
            # Above 0, so that it has a logarithm, and at most 1.
            radius = math.sqrt(-2 * math.log(1 - _uniform(mix(state + np.uint64(j) * STEP))))
            angle = 2 * math.pi * _uniform(mix(state + np.uint64(j + 1) * STEP))
            x[i, j] = centre[label, j] + noise * np.float32(radius * math.cos(angle))
            if j + 1 < width:
                x[i, j + 1] = centre[label, j + 1] + noise * np.float32(radius * math.sin(angle))
