"""Other ways to select the k largest values of every node's neighbours, written in torch.

What depends only on the graph, such as padded tables of neighbours, is made once and not timed,
which favours the baselines. All give the same values and node ids (-1 for missing neighbours); at
ties the ids may differ.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from benchmarks.graphs import Structure
from lgcn.ops import reference

Selection = tuple[Tensor, Tensor]
# Bytes per gather of the bucketed baseline: fits the caches of a CPU, and keeps a GPU busy.
CHUNK_BYTES = {"cpu": 2**24, "cuda": 2**32}


class Baseline(NamedTuple):
    """One way to select, prepared for one graph."""

    select: Callable[[Tensor], Selection]
    differentiable: bool = True

    def values(self, x: Tensor) -> Tensor:
        """The selected values, with gradients."""
        if self.differentiable:
            return self.select(x)[0]
        values: Tensor = _Select.apply(x, self.select)  # type: ignore[no-untyped-call]
        return values


class _Select(torch.autograd.Function):
    """The cheapest backward in torch: one scatter of the gradients to the selected nodes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, select: Callable[[Tensor], Selection]) -> Tensor:
        values, index = select(x)
        ctx.save_for_backward(index)
        ctx.num_nodes = x.size(0)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        channels = grad.size(2)
        grad_x = grad.new_zeros(
            ctx.num_nodes + 1, channels
        )  # the last row collects missing neighbours
        node = torch.where(index < 0, ctx.num_nodes, index).long()
        grad_x.scatter_add_(0, node.view(-1, channels), grad.reshape(-1, channels))
        return grad_x[:-1], None


def padded_topk(graph: Structure, k: int) -> Baseline:
    """Gather all neighbours of all nodes, padded to the largest degree, and torch.topk."""
    neighbors = _table(graph, torch.arange(graph.num_nodes, device=graph.col.device), k).long()

    def select(x: Tensor) -> Selection:
        gathered = _with_lowest(x)[neighbors]
        values, slot = gathered.topk(k, dim=1)
        return _mark_empty(values, _chosen(neighbors, slot), x.size(0))

    return Baseline(select)


def bucketed_topk(graph: Structure, k: int) -> Baseline:
    """Padding and torch.topk in buckets of nodes with degrees up to the same power of two."""
    degrees = graph.rowptr.diff()
    power = degrees.clamp(min=1).log2().floor().masked_fill(degrees == 0, -1)
    buckets = []
    for p in torch.unique(power).tolist():
        if p >= 0:
            rows = (power == p).nonzero().squeeze(1)
            buckets.append((rows, _table(graph, rows, 1)))

    def select(x: Tensor) -> Selection:
        padded = _with_lowest(x)
        values = x.new_zeros(graph.num_nodes, k, x.size(1))
        index = torch.full_like(values, -1, dtype=graph.col.dtype)
        for rows, table in buckets:
            row_bytes = table.size(1) * x.size(1) * x.element_size()
            step = max(1, CHUNK_BYTES[x.device.type] // row_bytes)
            for part, neighbors in zip(
                torch.split(rows, step), torch.split(table, step), strict=True
            ):
                gathered = padded.index_select(0, neighbors.view(-1))
                gathered = gathered.view(*neighbors.shape, x.size(1))
                best, slot = gathered.topk(min(k, neighbors.size(1)), dim=1)
                found = _mark_empty(best, _chosen(neighbors, slot), x.size(0))
                values[part, : best.size(1)], index[part, : best.size(1)] = found
        return values, index

    return Baseline(select, differentiable=False)


def dense_batch_sort(graph: Structure, k: int) -> Baseline:
    """PyG's to_dense_batch of the gathered neighbours, and torch.sort."""
    row, col, size = graph.row().long(), graph.col.long(), graph.num_nodes
    width = max(graph.max_degree, k)
    neighbors, _ = to_dense_batch(col, row, fill_value=size, max_num_nodes=width, batch_size=size)

    def select(x: Tensor) -> Selection:
        gathered, _ = to_dense_batch(x[col], row, -torch.inf, width, size)
        ranked, slot = gathered.sort(dim=1, descending=True)
        return _mark_empty(ranked[:, :k], _chosen(neighbors, slot[:, :k]), x.size(0))

    return Baseline(select)


def dense(graph: Structure, k: int) -> Baseline:
    """All N x C x N pairs, as in the released program; nodes that are not neighbours rank last."""
    adjacency = torch.zeros(graph.num_nodes, graph.num_nodes, device=graph.col.device)
    adjacency[graph.row(), graph.col] = 1
    if int(adjacency.sum()) != graph.num_edges:
        raise ValueError("graph must have distinct neighbours for the dense baseline, got parallel")
    apart = (adjacency == 0).unsqueeze(1)
    degrees = graph.rowptr.diff().view(-1, 1, 1)
    rank = torch.arange(k, device=graph.col.device)

    def select(x: Tensor) -> Selection:
        products = (adjacency.unsqueeze(1) * x.t().unsqueeze(0)).masked_fill(apart, -torch.inf)
        values, index = (found.transpose(1, 2) for found in products.topk(k, dim=2))
        empty = rank.view(1, -1, 1) >= degrees
        return values.masked_fill(empty, 0), index.masked_fill(empty, -1)

    return Baseline(select)


def segment_sort(graph: Structure, k: int) -> Baseline:
    """torch.sort over the edges, one segment per node: the definition in lgcn."""

    def select(x: Tensor) -> Selection:
        values, position = reference.k_largest(x, *graph, k, None, False)
        return values, reference.neighbor_at(position, *graph)

    return Baseline(select, differentiable=False)


BASELINES: dict[str, Callable[[Structure, int], Baseline]] = {
    "padded_topk": padded_topk,
    "bucketed_topk": bucketed_topk,
    "dense_batch_sort": dense_batch_sort,
    "segment_sort": segment_sort,
    "dense": dense,
}


def needed_bytes(name: str, graph: Structure, channels: int, k: int) -> int:
    """Approximate peak bytes of a baseline, float32, forward only."""
    padded = graph.num_nodes * max(graph.max_degree, k) * channels
    selected = graph.num_nodes * k * channels
    values, index = 4, 8
    return {
        "padded_topk": padded * values + 2 * selected * (values + index),
        "bucketed_topk": selected * (values + graph.col.element_size()),
        # The gathered values, as edges and padded, and what torch.sort returns.
        "dense_batch_sort": graph.num_edges * channels * values + padded * (2 * values + index),
        # As many edges x features at a time as there are selected values: products, two orders, the
        # rows in that order, and what the two sorts return.
        "segment_sort": selected * (3 * values + 5 * index),
        "dense": 2 * graph.num_nodes**2 * channels * values,
    }[name]


def _table(graph: Structure, rows: Tensor, least: int) -> Tensor:
    """Neighbours of the rows, padded with the id N to the longest row."""
    start, degree = graph.rowptr[rows].long(), graph.rowptr.diff()[rows]
    slots = torch.arange(max(int(degree.max()), least), device=rows.device)
    entry = (start.unsqueeze(1) + slots).clamp(max=max(graph.num_edges - 1, 0))
    return graph.col[entry].masked_fill(slots >= degree.unsqueeze(1), graph.num_nodes)


def _with_lowest(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_full((1, x.size(1)), -torch.inf)])


def _chosen(neighbors: Tensor, slot: Tensor) -> Tensor:
    return neighbors.unsqueeze(2).expand(-1, -1, slot.size(2)).gather(1, slot)


def _mark_empty(values: Tensor, index: Tensor, none: int) -> Selection:
    empty = index == none
    return values.masked_fill(empty, 0), index.masked_fill(empty, -1)
