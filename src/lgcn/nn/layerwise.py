"""Exact outputs for all nodes of a graph, layer by layer over blocks of rows, in bounded memory.

A layer is computed for all nodes, block by block, and kept in memory or in a file before the next
one begins. What a layer computes, and what memory a block takes, is the layer's own business: see
`lgcn.nn.rows`.
"""

from __future__ import annotations

import copy
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR, add_self_loops
from lgcn.nn.rows import AdjacencyOptions, RowModel, Rows
from lgcn.utils.out_of_memory import needs_memory
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks, row_blocks_within
from lgcn.utils.scratch import Scratch
from lgcn.utils.sizes import parse_memory

_Model = TypeVar("_Model", bound=Module)

# Bytes that a block needs at most per entry of the adjacency, or of sparse features.
ENTRY_BYTES = 64
# Larger blocks are not faster.
MAX_BLOCK_BYTES = 2**26
# Limits for a block that is read in sequence. What is made of its rows may take many times their
# memory.
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
    """Computes the class scores of every node, or its embeddings, exactly as the model's forward.

    Only a block of the graph's rows is read at a time, so the graph may be a store on disk. The
    result is on the CPU. It may be a memory map of a file, so read it by rows. The model is left in
    evaluation mode.

    Args:
        model: An `lgcn.LGCN`, or any other model with the methods of `lgcn.nn.rows.RowModel`.
        graph: The graph.
        layer: Returns the embeddings after this LGCL instead of scores: 0 is the embedding layer,
            -1 the last LGCL, which is what the classifier sees. (default: the scores)
        memory: Bytes, or a string such as `"2GB"`, that this may take in addition to what the
            process already holds. Layers get half of it, and are kept in files if that is too
            little; a block gets a quarter of it, or what a single row needs. (default: `"1GB"`)
        device: Where blocks are computed. (default: the model's device)
        scratch: Folder for these files, see `lgcn.utils.scratch.Scratch`. (default: the system's
            folder for temporary files)
        on_progress: Called after every block with the name of the step, the rows done so far, and
            the rows in total. (default: none)
    """
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    work = partial(GraphWorkspace, graph)
    return computed(model, work, layer, memory, device, scratch, on_progress)


def computed(
    model: Module,
    workspace: Callable[..., GraphWorkspace],
    layer: int | None,
    memory: str | int,
    device: torch.device | str | None = None,
    scratch: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Tensor:
    """Computes what a model describes.

    Args:
        model, layer, memory, device, scratch, on_progress: See `layerwise`.
        workspace: Makes the workspace, from the arguments of `GraphWorkspace` after the graph.
    """
    if not isinstance(model, RowModel):
        raise UsageError(
            f"{type(model).__name__} cannot be computed layer by layer: it lacks the methods of "
            "lgcn.nn.rows.RowModel. Compute all rows at once, without memory"
        )
    limit = parse_memory(memory)
    model = _moved(model.eval(), device)
    weight = next(model.parameters())
    # A first pass only counts what is kept at a time; the second computes.
    counter = Counter(weight.dtype)
    _rows(model, workspace(model, weight.device, counter), layer)
    work = workspace(
        model,
        weight.device,
        Scratch(counter.largest, weight.dtype, limit // 2, scratch),
        min(limit // 4, MAX_BLOCK_BYTES),
        on_progress,
    )
    autocast = torch.autocast(weight.device.type, enabled=False)  # it would copy whole layers
    with torch.no_grad(), autocast, needs_memory(f"a block of rows of {work.graph.name}"):
        return _rows(model, work, layer)


def read_blocks(matrix: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    """Yields blocks (start, stop, rows) of a matrix of any size, to be read in sequence.

    A matrix without rows has one empty block, so that its file is written like any other.
    """
    num_rows, width = matrix.shape
    size = min(MAX_READ_ROWS, READ_VALUES // max(1, width))
    for start, stop in row_blocks(num_rows, size, at_least_one=True):
        yield start, stop, matrix[start:stop]


def _rows(model: RowModel, work: GraphWorkspace, layer: int | None) -> Tensor:
    return model.rows(work.features(), layer=layer).matrix()


def _moved(model: _Model, device: torch.device | str | None) -> _Model:
    if device is None or torch.device(device) == next(model.parameters()).device:
        return model
    return copy.deepcopy(model).to(device)


class GraphWorkspace:
    """Computes matrices of a graph block by block and keeps them, see `lgcn.nn.rows.Workspace`.

    A class that derives from it may compute other rows than all of one graph.

    Args:
        graph: The graph.
        model: The model, whose layers are named by their attributes.
        device: Where blocks are computed.
        keeper: Keeps matrices.
        block_bytes: Memory that a block may take.
        on_progress: See `layerwise`.

    Attributes:
        num_rows: The rows that are computed.
        num_kept: The rows of a kept matrix.
        total_rows: The rows of the whole matrix.
    """

    def __init__(
        self,
        graph: Graph,
        model: Module,
        device: torch.device,
        keeper: Scratch | Counter,
        block_bytes: int = 0,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.graph = graph
        self.device = device
        self.keeper = keeper
        self.block_bytes = block_bytes
        self.on_progress = on_progress
        self.step = ""
        self.reverse = False
        self._reversed: Graph | None = None
        # Edge features are read, and brought to the device.
        self.entry_bytes = ENTRY_BYTES + 16 * graph.num_edge_features
        self.num_rows = self.num_kept = self.total_rows = graph.num_nodes
        self._names = {layer: _readable(name) for name, layer in model.named_modules()}

    def features(self) -> Rows:
        """The features of the nodes."""
        x, width = self.graph.x, self.graph.num_features
        assert x is not None

        def compute(start: int, stop: int) -> Tensor:
            return self.read_features(start, stop).to(self.device, self.keeper.dtype)

        if x.layout == torch.sparse_csr:
            offsets = self.offsets(_feature_offsets)
            return Rows(self, compute, width, 0, offsets, at_hand=True, name="features")
        values = 2 * width  # decoding makes two copies
        return Rows(self, compute, width, values, at_hand=True, name="features")

    @property
    def rowptr(self) -> Any:
        if self.reverse:
            return self._graph(True).rowptr
        return self.offsets(lambda graph: graph.rowptr)

    def reversed(self) -> AbstractContextManager[None]:
        return self._in_reverse()

    @contextmanager
    def _in_reverse(self) -> Iterator[None]:
        self.reverse = True
        try:
            yield
        finally:
            self.reverse = False

    def _graph(self, reverse: bool) -> Graph:
        if not reverse:
            return self.graph
        if self._reversed is None:
            self._reversed = self.graph.reversed()
        return self._reversed

    def offsets(self, of_graph: Callable[[Graph], Tensor]) -> Any:
        """Row offsets, in the form that `blocks` takes.

        Args:
            of_graph: Gives those of a graph.
        """
        return of_graph(self.graph)

    def read_features(self, start: int, stop: int) -> Tensor:
        """The features of a block of rows."""
        return self.graph.features(slice(start, stop))

    def read_adjacency(self, start: int, stop: int, adjacency: AdjacencyOptions) -> CSR:
        """The rows of the adjacency of a block, whose columns number the rows of kept matrices."""
        return self.graph.adjacency_rows(start, stop, **adjacency)

    @contextmanager
    def inside(self, layer: Module) -> Iterator[None]:
        before, self.step = self.step, self._names.get(layer, type(layer).__name__)
        try:
            yield
        finally:
            self.step = before

    def store(self, name: str, rows: Rows) -> Tensor:
        row_bytes = (rows.values + rows.width) * self.keeper.dtype.itemsize

        def computed() -> Iterator[Tensor]:
            for start, stop in self.blocks(row_bytes, rows.rowptr):
                yield rows.compute(start, stop)
                if self.on_progress is not None:
                    self.on_progress(name, stop, self.num_rows)

        return self.keeper.keep((self.num_kept, rows.width), computed())

    def complete(self, name: str, matrix: Tensor) -> None:
        pass  # all rows are computed here

    def column_sums(self, matrix: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        total = torch.zeros(matrix.size(1), dtype=torch.double)
        if matrix.is_meta:
            return total
        for start, stop in self.blocks(24 * matrix.size(1)):
            total += function(matrix[start:stop].double()).sum(0)
        return total

    def blocks(self, row_bytes: int, offsets: Any = None) -> Iterator[tuple[int, int]]:
        """Cuts the rows into blocks, for work that needs `row_bytes` per row.

        Args:
            row_bytes: Bytes that a row takes.
            offsets: Row offsets of a sparse matrix that a block reads. (default: none)
        """
        entry_bytes = self.entry_bytes
        return row_blocks_within(self.block_bytes, self.num_rows, row_bytes, offsets, entry_bytes)

    def source(self, matrix: Tensor) -> Tensor:
        """The matrix; on a GPU if it takes at most half of what is free there."""
        device = self.device
        if device.type == "cuda" and matrix.nbytes <= torch.cuda.mem_get_info(device)[0] // 2:
            return matrix.to(device)
        return matrix

    def neighbours(
        self, source: Tensor, start: int, stop: int, adjacency: AdjacencyOptions, reverse: bool
    ) -> tuple[Tensor, CSR]:
        if reverse:
            read = self._graph(True).adjacency_rows(start, stop, **adjacency)
        else:
            read = self.read_adjacency(start, stop, adjacency)
        rowptr, col, weight = read
        weight = None if weight is None else weight.to(self.device)
        rows = CSR(rowptr.to(self.device), col.to(self.device), weight)
        return (source, rows) if source.device == self.device else _gather(source, rows)

    def factors(
        self,
        of_features: Callable[[Tensor | None], Tensor],
        start: int,
        stop: int,
        adjacency: AdjacencyOptions,
        reverse: bool,
    ) -> Tensor:
        graph = self._graph(reverse)
        first, last = int(graph.rowptr[start]), int(graph.rowptr[stop])
        attr = None if graph.edge_attr is None else graph.edge_attr[first:last].to(self.device)
        found = of_features(attr)
        if not adjacency["self_loops"]:
            return found
        # An added entry has the weight one; the others are numbered from two.
        number = torch.arange(2, 2 + last - first, device=graph.col.device)
        rows = CSR(graph.rowptr, graph.col).rows(start, stop)
        looped = add_self_loops(rows._replace(weight=number), start).weight
        assert looped is not None
        place = (looped - 2).to(self.device)  # -1, the last, is that of added entries
        return torch.cat([found, found.new_ones(1)])[place]


class Counter:
    """Stands in for a `Scratch` to find out its size: computes nothing, counts what is kept."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.size = 0
        self.largest = 0  # bytes of all matrices that exist at a time, at most

    def keep(self, shape: tuple[int, int], blocks: Iterator[Tensor]) -> Tensor:
        matrix = torch.empty(shape, dtype=self.dtype, device="meta")
        self._add(matrix.nbytes)
        weakref.finalize(matrix, self._add, -matrix.nbytes)
        return matrix

    def _add(self, size: int) -> None:
        self.size += size
        self.largest = max(self.largest, self.size)


def _feature_offsets(graph: Graph) -> Tensor:
    assert graph.x is not None
    return graph.x.crow_indices()


def _readable(name: str) -> str:
    """A module's name as people count: `layers.0` is `layer 1`."""
    return re.sub(r"s?\.(\d+)", lambda found: f" {int(found[1]) + 1}", name)


def _gather(source: Tensor, adjacency: CSR) -> tuple[Tensor, CSR]:
    """The rows that an adjacency reads of a matrix on another device, brought to its own."""
    nodes, col = torch.unique(adjacency.col, return_inverse=True)
    near = source.index_select(0, nodes.to(source.device)).to(nodes.device)
    return near, adjacency._replace(col=col.to(adjacency.col.dtype))
