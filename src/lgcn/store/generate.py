"""Random graphs of any size on which quality can be measured, written straight into a store.

The bytes of a store depend neither on the number of threads nor on the block size
(`lgcn.store.planted` has the formulas). What a model has to cope with:

- **Unequal classes.** The size of class c is proportional to (c + 1) to the power of `-imbalance`.
- **Partial homophily.** A share of `homophily` of the edges joins nodes of one class. Classes form
  pairs: 0 and 1, 2 and 3, and so on. Three quarters of the edges that leave a class lead to its
  partner, the others to any other class. Every second pair (2 and 3, 6 and 7, ...) is
  heterophilous: at the default `homophily`, its nodes have more neighbours of the partner than of
  their own class.
- **Noisy features.** A node has the centre of its class plus normal noise, by default 0.7 times the
  distance of two centres. Features alone then say little; averages over several hops say more.
- **Noisy labels.** A share of `label_noise` of the labels is drawn anew. No model can know them:
  `accuracy_ceiling` in the header is the expected accuracy of one that knows the classes.
- **Hubs and regions.** Degrees follow a power law (`skew`). A share of `locality` of the edges
  stays in a region of about 1000 nodes of all classes (more in dense graphs), so that sub-graphs
  and partitions can keep neighbours together.

Without all that (`homophily=0.8, imbalance=0, label_noise=0, noise=0.25, locality=0`) a few hundred
steps learn a graph nearly without a mistake. `lgcn.datasets.synthetic` makes graphs in memory by an
older and simpler model, with equal classes and correct labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcn.store.edge_buckets import sorted_rows
from lgcn.store.new_store_checks import (
    DEFAULT_KIND,
    FeatureKind,
    feature_kind,
    generated_kind,
    generated_sizes,
)
from lgcn.store.planted import (
    Permutation,
    Planted,
    Splits,
    accuracy_ceiling,
    draw_edges,
    draw_features,
    draw_labels,
    draw_permutation,
    planted_classes,
)
from lgcn.store.write_store import encode_features, uint8_scale
from lgcn.store.writer import StoreWriter
from lgcn.utils.numbers import whole_number
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import parse_memory

_VALUES = 1 << 22  # features that are made at a time
_SIGMAS = 5.0  # the range of features as uint8, in deviations of the noise
_PER_CLASS = 1000  # training nodes, at most, on average over the classes


def generate_store(
    path: str | Path,
    *,
    num_nodes: int,
    num_edges: int,
    num_features: int = 64,
    num_classes: int = 10,
    seed: int = 0,
    homophily: float = DEFAULT_KIND.homophily,
    imbalance: float = DEFAULT_KIND.imbalance,
    label_noise: float = DEFAULT_KIND.label_noise,
    noise: float = DEFAULT_KIND.noise,
    locality: float = DEFAULT_KIND.locality,
    skew: float = DEFAULT_KIND.skew,
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
            graph has slightly fewer: four in a thousand for ten million nodes and a hundred
            million edges, many in a small dense graph.
        num_features: (default: 64)
        num_classes: (default: 10)
        seed: (default: 0)
        homophily: Share of edges that join nodes of one class. (default: 0.5)
        imbalance: The size of class c is proportional to (c + 1) to the power of `-imbalance`: 0
            gives equal classes. (default: 1)
        label_noise: Share of nodes whose label is drawn anew, from all classes in proportion to
            their sizes. (default: 0.1)
        noise: Standard deviation of a feature within a class, as a multiple of the distance of two
            classes' centres, on average. (default: 0.7, at which features alone say little)
        locality: Share of edges that stay in a region of at least 1000 nodes. (default: 0.75)
        skew: The node of rank r is drawn with weight r to the power of `-skew`: 0 gives all nodes
            about the same degree, 1 a few large hubs. (default: 0.5)
        labels_per_class: Training nodes of each planted class, at most half of the class.
            (default: a tenth of each class, and at most 1000 times the number of classes in all)
        num_val: Validation nodes, of each class in proportion to its size, and at most half of what
            training leaves of it; all others are test nodes. (default: a tenth of the nodes, at
            most 100000)
        features: How to store features. (default: `"float32"`)
        memory: Memory for sorting the edges, on top of the program itself. (default: 1 GB)
        overwrite: Replace an existing store. (default: `False`)
        on_progress: Called with the name of a step, how much of it is done, and how much there is
            in all. (default: none)

    Returns:
        The header of the store; its `num_edges` counts each edge twice. `source` has these numbers
        and `accuracy_ceiling`, the expected accuracy of a model that knows the planted classes.
    """
    num_nodes, num_edges, num_features, num_classes, seed = generated_sizes(
        num_nodes, num_edges, num_features, num_classes, seed
    )
    kind = generated_kind(homophily, imbalance, label_noise, noise, locality, skew)
    if labels_per_class is not None:
        labels_per_class = whole_number("labels_per_class", labels_per_class, 1)
    if num_val is None:
        num_val = min(100_000, num_nodes // 10)
    num_val = whole_number("num_val", num_val, 0)
    feature_kind(features)
    memory = parse_memory(memory)

    rng = np.random.default_rng(seed)
    spread = draw_permutation(rng, num_nodes)
    keys = rng.integers(0, 2**64, 3, dtype=np.uint64)
    centre = rng.standard_normal((num_classes, num_features), dtype=np.float32)
    classes = planted_classes(
        num_nodes,
        num_edges,
        num_classes,
        homophily=kind.homophily,
        imbalance=kind.imbalance,
        locality=kind.locality,
        skew=kind.skew,
    )
    splits = _draw_splits(rng, classes.start, labels_per_class, num_val)
    progress = on_progress or (lambda what, done, total: None)

    with StoreWriter(path, overwrite=overwrite) as writer:
        _write_edges(writer, _Edges(num_edges, classes, spread, keys[0]), memory, progress)
        _write_labels(writer, spread, classes, splits, kind.label_noise, keys[2], progress)
        _write_features(writer, spread, classes, centre, kind.noise, keys[1], features, progress)
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
                **kind._asdict(),
                "accuracy_ceiling": accuracy_ceiling(classes.start, kind.label_noise),
            },
        )


def _draw_splits(
    rng: np.random.Generator, start: Any, labels_per_class: int | None, num_val: int
) -> Splits:
    size = np.diff(start)
    num_nodes = int(start[-1])
    if labels_per_class is None:
        share = min(0.1, _PER_CLASS * size.size / num_nodes)
        train = np.maximum(1, (size * share).astype(np.int64))
    else:
        train = np.minimum(labels_per_class, np.maximum(size // 2, 1))
    # Rounding the sums gives exactly `num_val` in all.
    val = np.diff(np.array([num_val * int(one) // num_nodes for one in start], np.int64))
    val = np.minimum(val, (size - train) // 2)
    each = [draw_permutation(rng, one) for one in size.tolist()]
    factor, shift = (np.array(one, np.int64) for one in zip(*(p[:2] for p in each), strict=True))
    return Splits(factor, shift, train, val)


class _Edges(NamedTuple):
    """The edges of a graph as `sorted_rows` reads them, drawn again on each reading."""

    num_edges: int
    classes: Planted
    spread: Permutation
    key: Any
    weighted: bool = False

    def chunks(self, size: int) -> Iterator[tuple[Any, Any, None]]:
        """(sources, targets, no weights) of at most `size` edges at a time, no self-loops."""
        for start, stop in row_blocks(self.num_edges, size):
            ends = np.empty((2, stop - start), np.int32)
            draw_edges(start, self.classes, self.spread, self.key, ends[0], ends[1])
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
        edges.spread.size,
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
    spread: Permutation,
    classes: Planted,
    splits: Splits,
    noise: float,
    key: Any,
    progress: OnProgress,
) -> None:
    labels = writer.append("y", "int64")
    masks = [writer.append(f"{split}_mask", "bool") for split in ("train", "val", "test")]
    for start, stop in row_blocks(spread.size, _VALUES):
        y, split = np.empty(stop - start, np.int64), np.empty(stop - start, np.int8)
        draw_labels(start, classes.start, spread, splits, noise, key, y, split)
        labels.write(y)
        for number, mask in enumerate(masks):
            mask.write(split == number)
        progress("labels", stop, spread.size)


def _write_features(
    writer: StoreWriter,
    spread: Permutation,
    classes: Planted,
    centre: Any,
    noise: float,
    key: Any,
    features: FeatureKind,
    progress: OnProgress,
) -> None:
    width = centre.shape[1]
    # Two centres are sqrt(2 * width) apart, on average.
    noise *= math.sqrt(2 * width)
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
    for start, stop in row_blocks(spread.size, _VALUES // width):
        block = np.empty((stop - start, width), np.float32)
        draw_features(start, classes.start, spread, centre, np.float32(noise), key, block)
        x.write(encode_features(block, features, scale))
        progress("features", stop, spread.size)
