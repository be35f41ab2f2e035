"""Exact outputs of a whole graph, layer by layer over blocks of its rows, in bounded memory.

A block of rows of one layer needs the whole layer before it and nothing else. So a layer is made
for all nodes, block after block, and kept, in memory or in a file, before the next one begins.
"""

from __future__ import annotations

import bisect
import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d, Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.lgcn import LGCN
from lgcn.utils.memory import needs_memory
from lgcn.utils.progress import OnProgress
from lgcn.utils.scratch import Scratch
from lgcn.utils.sizes import parse_memory

# What making a block takes for each entry of the adjacency or of sparse features, at most.
ENTRY_BYTES = 64
# Larger blocks are not faster.
MAX_BLOCK_BYTES = 2**26
# Of a matrix that is read in sequence: what is made of its rows may take many times their memory.
READ_VALUES, MAX_READ_ROWS = 2**21, 2**16


def layerwise(
    model: Module,
    graph: Graph,
    *,
    layer: int | None = None,
    memory: str | int = "1GB",
    device: torch.device | str | None = None,
    scratch: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Tensor:
    """The class scores of every node, or its embeddings: those of the model's forward.

    Only blocks of the graph's rows are read at a time, so it may be a store's. The result is on the
    CPU. It may be a map of a file, so read it by rows. The model is left in evaluation mode.

    Args:
        model: The network, an :class:`lgcn.LGCN`.
        graph: The graph.
        layer: Gives the embeddings after this LGCL in place of scores: 0 is the embedding layer,
            -1 the last, which is what the classifier sees. (default: the scores)
        memory: Bytes, or a text as ``"2GB"``, that this may take beyond what the process holds
            already. The layers get half of it, and are kept in files where that is too little; a
            block gets a quarter of it, or what its one row needs. (default: ``"1GB"``)
        device: Where blocks are computed. (default: the model's)
        scratch: Folder of these files, see :class:`lgcn.utils.scratch.Scratch`. (default: the
        folder
            for temporary files)
        on_progress: Called after every block with the name of the step, the rows that it has done,
            and the rows that it has. (default: none)
    """
    if not isinstance(model, LGCN):
        raise UsageError(
            f"only an LGCN goes layer by layer, got {type(model).__name__}: predict the whole "
            "graph, without memory"
        )
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    if graph.num_features != model.embedding.in_channels:
        raise UsageError(
            f"{graph.name} has {graph.num_features} features, "
            f"the model was made for {model.embedding.in_channels}"
        )
    limit = parse_memory(memory)
    model = _moved(model.eval(), device)
    weight = model.embedding.weight
    size = graph.num_nodes * _values_kept(model) * weight.dtype.itemsize
    blocks = _Blocks(
        graph,
        weight.device,
        Scratch(size, weight.dtype, limit // 2, scratch),
        min(limit // 4, MAX_BLOCK_BYTES),
        on_progress,
    )
    autocast = torch.autocast(weight.device.type, enabled=False)  # it would copy whole layers
    with torch.no_grad(), autocast, needs_memory(f"a block of rows of {graph.name}"):
        return blocks.classify(model) if layer is None else blocks.embed(model, layer)


def _moved(model: LGCN, device: torch.device | str | None) -> LGCN:
    if device is None or torch.device(device) == model.embedding.weight.device:
        return model
    return copy.deepcopy(model).to(device)


def _values_kept(model: LGCN) -> int:
    """Values a node that are kept at a time, at most."""
    widths = [model.embedding.out_channels, model.classifier.out_channels]
    widths += [layer.in_channels + layer.out_channels for layer, _ in model.lgcls()]
    # Two steps that follow each other; beside an LGCL and its input, what batch norm begins with.
    classifier = model.classifier
    # A diffusion keeps where it began beside its last two steps.
    diffusion = 3 * classifier.in_channels if isinstance(classifier, Diffusion) else 0
    return max(2 * max(widths), classifier.in_channels + widths[1], diffusion)


def read_blocks(matrix: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    """Blocks (start, stop, rows) of a matrix of any size, to be read in sequence.

    A matrix without rows has one block, so that its file is written like that of any other.
    """
    num_rows, width = matrix.shape
    size = min(MAX_READ_ROWS, max(1, READ_VALUES // max(1, width)))
    for start in range(0, max(1, num_rows), size):
        stop = min(start + size, num_rows)
        yield start, stop, matrix[start:stop]


@dataclass(frozen=True)
class _Rows:
    """How rows of a matrix are computed, and what that takes.

    Args:
        compute: Gives the rows from ``start`` up to ``stop``.
        width: Columns of the matrix.
        values: That computing a row takes.
        rowptr: Of the sparse matrix that is read, if any, whose entries take memory too.
    """

    compute: Callable[[int, int], Tensor]
    width: int
    values: int
    rowptr: Tensor | None = None

    def then(self, function: Callable[[Tensor], Tensor]) -> _Rows:
        compute = self.compute
        return replace(self, compute=lambda start, stop: function(compute(start, stop)))

    def beside(self, before: _Rows) -> _Rows:
        """The rows of another matrix, followed by these."""

        def compute(start: int, stop: int) -> Tensor:
            return torch.cat([before.compute(start, stop), self.compute(start, stop)], dim=1)

        width = before.width + self.width
        return _Rows(compute, width, self.values + before.values + width, self.rowptr)


class _Blocks:
    """The layers of a model over all rows of a graph, block after block."""

    def __init__(
        self,
        graph: Graph,
        device: torch.device,
        scratch: Scratch,
        block_bytes: int,
        on_progress: OnProgress | None,
    ) -> None:
        self.graph = graph
        self.device = device
        self.scratch = scratch
        self.block_bytes = block_bytes
        self.on_progress = on_progress

    def classify(self, model: LGCN) -> Tensor:
        """The scores."""
        rows = self._layer("classifier", model.classifier, self.embed(model))
        return self._keep("classifier", rows)

    def embed(self, model: LGCN, layer: int = -1) -> Tensor:
        """The embedding, and what each LGCL up to that number appends."""
        lgcls = model.lgcls(layer)
        embedding = self._layer("embedding", model.embedding, None)
        h = self._keep("embedding", embedding.then(model.activate))
        for number, (lgcl, norm) in enumerate(lgcls, start=1):
            name = f"layer {number}"
            new = self._norm(name, norm, self._layer(name, lgcl, h))
            h = self._keep(name, new.then(model.activate).beside(self._rows_of(h)))
        return h

    def _layer(self, name: str, layer: Any, x: Tensor | None) -> _Rows:
        """A layer's output from its whole input, which is the graph's features if none is given."""
        if isinstance(layer, LGConv):
            assert x is not None
            return self._lgcl(layer, x)
        if isinstance(layer, Diffusion):
            assert x is not None
            return self._diffusion(name, layer, x)
        linear = self._linear(layer, x)
        if layer.aggregate == "none":
            return linear
        return self._sum(layer, self._keep(f"{name}, linear", linear))

    def _linear(self, layer: GCNLayer, x: Tensor | None) -> _Rows:
        rows = self._features() if x is None else self._rows_of(x)
        values = rows.values + 2 * layer.out_channels
        return replace(rows.then(layer.transform), width=layer.out_channels, values=values)

    def _sum(self, layer: GCNLayer, x: Tensor) -> _Rows:
        source = self._source(x)

        def compute(start: int, stop: int) -> Tensor:
            return layer.propagate(*self._neighbours(source, start, stop, layer))

        return _Rows(compute, x.size(1), 2 * x.size(1), self.graph.rowptr)

    def _diffusion(self, name: str, layer: Diffusion, x: Tensor) -> _Rows:
        total = x
        for hop in range(1, layer.hops + 1):
            total = self._keep(f"{name}, step {hop}", self._step(layer, x, total))
        rows = self._rows_of(total)
        values = 2 * rows.values + layer.out_channels
        return replace(rows.then(layer.finish), width=layer.out_channels, values=values)

    def _step(self, layer: Diffusion, x: Tensor, total: Tensor) -> _Rows:
        source, own = self._source(total), self._rows_of(x)

        def compute(start: int, stop: int) -> Tensor:
            near, adjacency = self._neighbours(source, start, stop, layer)
            return layer.step(own.compute(start, stop), near, adjacency)

        return _Rows(compute, x.size(1), 3 * x.size(1), self.graph.rowptr)

    def _lgcl(self, layer: LGConv, x: Tensor) -> _Rows:
        source, own = self._source(x), self._rows_of(x)

        def compute(start: int, stop: int) -> Tensor:
            near, adjacency = self._neighbours(source, start, stop, layer)
            return layer.convolve(layer.select(near, own.compute(start, stop), adjacency))

        # The grid, and about as much of what was chosen and of what the convolutions make.
        values = 3 * layer.positions * layer.in_channels
        return _Rows(compute, layer.out_channels, values, self.graph.rowptr)

    def _norm(self, name: str, norm: Module, rows: _Rows) -> _Rows:
        if not isinstance(norm, BatchNorm1d) or norm.track_running_stats:
            return rows.then(norm)
        # Statistics of the batch are those of all rows, which no block has alone.
        x = self._keep(f"{name}, before norm", rows)
        blocks = [slice(*b) for b in _row_blocks(len(x), 24 * x.size(1), self.block_bytes)]
        zero = torch.zeros(x.size(1), dtype=torch.double)
        mean = sum((x[block].double().sum(0) for block in blocks), zero) / len(x)
        squares = sum(((x[block] - mean).square().sum(0) for block in blocks), zero)
        of_all_rows = functools.partial(
            F.batch_norm,
            running_mean=mean.to(self.device, x.dtype),
            running_var=(squares / len(x)).to(self.device, x.dtype),
            weight=norm.weight,
            bias=norm.bias,
            eps=norm.eps,
        )
        return self._rows_of(x).then(of_all_rows)

    def _features(self) -> _Rows:
        x, width = self.graph.x, self.graph.num_features
        assert x is not None

        def compute(start: int, stop: int) -> Tensor:
            return self.graph.features(slice(start, stop)).to(self.device, self.scratch.dtype)

        if x.layout == torch.sparse_csr:
            return _Rows(compute, width, 0, x.crow_indices())
        return _Rows(compute, width, 2 * width)  # decoding makes two copies

    def _rows_of(self, x: Tensor) -> _Rows:
        return _Rows(lambda start, stop: x[start:stop].to(self.device), x.size(1), x.size(1))

    def _keep(self, name: str, rows: _Rows) -> Tensor:
        num_rows = self.graph.num_nodes
        row_bytes = (rows.values + rows.width) * self.scratch.dtype.itemsize

        def blocks() -> Iterator[Tensor]:
            for start, stop in _row_blocks(num_rows, row_bytes, self.block_bytes, rows.rowptr):
                yield rows.compute(start, stop)
                if self.on_progress is not None:
                    self.on_progress(name, stop, num_rows)

        return self.scratch.keep((num_rows, rows.width), blocks())

    def _source(self, x: Tensor) -> Tensor:
        """A layer that the next one reads; on a GPU if it takes half of what is free there."""
        if self.device.type == "cuda" and x.nbytes <= torch.cuda.mem_get_info(self.device)[0] // 2:
            return x.to(self.device)
        return x

    def _neighbours(
        self, source: Tensor, start: int, stop: int, layer: GCNLayer | LGConv
    ) -> tuple[Tensor, CSR]:
        """What these rows read: the features of their neighbours, and the adjacency to those."""
        rowptr, col, weight = self.graph.adjacency_rows(start, stop, **layer.adjacency_options)
        weight = None if weight is None else weight.to(self.device)
        adjacency = CSR(rowptr.to(self.device), col.to(self.device), weight)
        return (source, adjacency) if source.device == self.device else _gather(source, adjacency)


def _gather(source: Tensor, adjacency: CSR) -> tuple[Tensor, CSR]:
    """The rows that an adjacency reads of a matrix on another device, brought to its own."""
    nodes, col = torch.unique(adjacency.col, return_inverse=True)
    near = source.index_select(0, nodes.to(source.device)).to(nodes.device)
    return near, adjacency._replace(col=col.to(adjacency.col.dtype))


def _row_blocks(
    num_rows: int, row_bytes: int, limit: int, rowptr: Tensor | None = None
) -> Iterator[tuple[int, int]]:
    """Cuts rows into blocks [start, stop) that take at most so many bytes, or into single rows."""
    start = 0
    while start < num_rows:
        stop = min(num_rows, start + max(1, limit // row_bytes))
        if rowptr is not None:

            def cost(end: int, first: int = start, entries: Tensor = rowptr) -> int:
                return (end - first) * row_bytes + ENTRY_BYTES * int(entries[end] - entries[first])

            fitting = bisect.bisect_right(range(start + 1, stop + 1), limit, key=cost)
            stop = start + max(1, fitting)
        yield start, stop
        start = stop
