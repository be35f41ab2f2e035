"""Exact outputs for all nodes of a graph in parts, on one process or on several.

The layers are computed one after the other, as in `lgcn.nn.layerwise`. Each process computes the
rows of the nodes that its shards own. Before a layer reads the rows of neighbours, the processes
exchange those at the border of the parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR, one_index_dtype
from lgcn.nn.layerwise import ENTRY_BYTES, MAX_BLOCK_BYTES, GraphWorkspace, computed
from lgcn.nn.rows import AdjacencyOptions
from lgcn.partition.border import Border
from lgcn.partition.shard import Shard
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks_within
from lgcn.utils.sizes import parse_memory
from lgcn.workers import Workers


def layerwise_shards(
    model: Module,
    shards: Sequence[Shard],
    workers: Workers,
    *,
    layer: int | None = None,
    memory: str | int = "1GB",
    scratch: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> list[Tensor]:
    """Computes the class scores of every node, or its embeddings, of a graph in parts.

    They are those of `lgcn.nn.layerwise.layerwise` on the whole graph, up to rounding. All ranks
    call this together, with the same model.

    Args:
        model: See `lgcn.nn.layerwise.layerwise`. It is left in evaluation mode.
        shards: The shards of this process; there may be none. Each part must be on one rank.
        workers: The processes.
        layer, memory, scratch, on_progress: See `lgcn.nn.layerwise.layerwise`. The memory is for
            all shards of this process together. In addition, 4 bytes are held per node.

    Returns:
        For each shard, one row per node that it owns. It may be a memory map of a file.
    """
    border = Border(shards, workers)
    for shard in shards:
        if shard.graph.x is None:
            raise UsageError(f"{shard.graph.name} has no features (x), which the model needs")
    graphs = [shard.graph for shard in shards] or [_nothing(border.num_features)]
    smallest = min(workers.collect(parse_memory(memory), "the memory of each rank"))
    message_bytes = min(smallest // 8, MAX_BLOCK_BYTES)
    work = partial(ShardsWorkspace, graphs, border, message_bytes)
    rows = computed(model, work, layer, memory=memory, scratch=scratch, on_progress=on_progress)
    return [rows[a:b] for a, b in zip(border.first, border.first[1:], strict=False)]


class ShardsWorkspace(GraphWorkspace):
    """Computes the rows of the nodes that the shards of a process own, as those of one matrix.

    Args:
        graphs: The graphs of the shards, at least one.
        border: The rows of the process.
        message_bytes: Memory that the messages under way may take.
        *given: The arguments of `GraphWorkspace` after the graph.
    """

    def __init__(
        self, graphs: Sequence[Graph], border: Border, message_bytes: int, *given: Any
    ) -> None:
        super().__init__(graphs[0], *given)
        self.graphs = graphs
        self.border = border
        self.message_bytes = message_bytes
        self.num_rows, self.num_kept = border.first[-1], border.num_rows
        self.total_rows = border.num_nodes

    def reversed(self) -> AbstractContextManager[None]:
        raise UsageError(
            "directions=both needs the graph in one piece, got parts, which hold only the edges "
            "into their nodes: use the graph itself, or train with directions=in"
        )

    def offsets(self, of_graph: Callable[[Graph], Tensor]) -> Any:
        return [of_graph(graph) for graph in self.graphs]

    def blocks(self, row_bytes: int, offsets: Any = None) -> Iterator[tuple[int, int]]:
        """Blocks of rows, each of one shard."""
        for place, shard in enumerate(self.border.shards):
            of_shard = None if offsets is None else offsets[place]
            first = self.border.first[place]
            for start, stop in row_blocks_within(
                self.block_bytes, shard.num_owned, row_bytes, of_shard, ENTRY_BYTES
            ):
                yield first + start, first + stop

    def read_features(self, start: int, stop: int) -> Tensor:
        place, first = self._shard(start)
        return self.graphs[place].features(slice(start - first, stop - first))

    def read_adjacency(self, start: int, stop: int, adjacency: AdjacencyOptions) -> CSR:
        place, first = self._shard(start)
        rows = self.graphs[place].adjacency_rows(start - first, stop - first, **adjacency)
        col = self.border.places[place][rows.col]
        return CSR(*one_index_dtype(rows.rowptr, col), rows.weight)

    def complete(self, name: str, matrix: Tensor) -> None:
        if not matrix.is_meta:
            what = f"the border's activations after {name}"
            self.border.complete(matrix, self.message_bytes, what)

    def column_sums(self, matrix: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        own = super().column_sums(matrix, function)
        return own if matrix.is_meta else self.border.workers.sum(own, f"the sums of {self.step}")

    def _shard(self, row: int) -> tuple[int, int]:
        """The place of the shard that has an own row, and the first of its rows."""
        place = bisect_right(self.border.first, row, hi=len(self.graphs)) - 1
        return place, self.border.first[place]


def _nothing(num_features: int) -> Graph:
    """A graph without nodes, for a process that has no shard."""
    none = torch.zeros(1, dtype=torch.long)
    return Graph(none, none[:0], x=torch.empty(0, num_features))
