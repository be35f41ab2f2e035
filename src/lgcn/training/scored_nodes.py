"""The nodes of the splits of a graph in parts, and their scores, brought to the first rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import SPLITS, Graph
from lgcn.partition import Shard
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.scratch import Scratch
from lgcn.workers import Workers

MESSAGE_BYTES = 2**24  # that arrive at a time, at most


def scored_nodes(
    shards: Sequence[Shard], scores: Sequence[Tensor], workers: Workers, *, memory: int, name: str
) -> tuple[Graph, Tensor] | None:
    """The nodes of all splits as a graph without edges, and their scores; `None` on other ranks.

    Args:
        shards: The shards of this process.
        scores: The scores of the nodes that each of them owns.
        workers: The processes.
        memory: Bytes above which the scores are kept in a file.
        name: The name of the graph.
    """
    nodes = [_in_splits(shard) for shard in shards]
    first = [0, *accumulate(map(len, nodes))]
    counts = workers.collect(first[-1], "the number of nodes in the splits")
    if sum(counts) == 0:
        raise UsageError(f"{name} has no labelled nodes to score")

    def own_scores(start: int, stop: int) -> Tensor:
        """Those of this process's nodes, numbered over its shards."""
        found = [
            matrix[numbers[max(0, start - before) : max(0, stop - before)]]
            for matrix, numbers, before in zip(scores, nodes, first, strict=False)
        ]
        return _stacked(found)

    width = max(workers.collect(scores[0].size(1) if scores else 0, "the number of classes"))
    blocks = list(row_blocks(max(counts), MESSAGE_BYTES // (8 * width * workers.size)))

    def arriving() -> Iterator[Tensor]:
        for start, stop in blocks:
            yield from _on_first(own_scores(start, stop), workers, "the scores")

    pairs = list(zip(shards, nodes, strict=True))
    y = _on_first(_stacked([_labels(*pair) for pair in pairs]), workers, "the labels")
    marks = _on_first(_stacked([_splits(*pair) for pair in pairs]), workers, "the splits")
    if not workers.is_first:
        for _ in arriving():
            pass
        return None
    dtype = scores[0].dtype
    shape = (sum(counts), width)
    keeper = Scratch(shape[0] * width * dtype.itemsize, dtype, memory)
    every = keeper.keep(shape, arriving())
    # Scores arrive by blocks of all ranks, labels rank by rank.
    order = torch.cat(
        [
            torch.arange(min(start, count), min(stop, count)) + before
            for start, stop in blocks
            for count, before in zip(counts, [0, *accumulate(counts)], strict=False)
        ]
    )
    train, val, test = torch.cat(marks)[order].unbind(1)
    graph = Graph(
        torch.zeros(shape[0] + 1, dtype=torch.long),
        torch.empty(0, dtype=torch.long),
        y=torch.cat(y)[order],
        train_mask=train,
        val_mask=val,
        test_mask=test,
        label_names=shards[0].graph.label_names,
        name=name,
    )
    return graph, every


def _in_splits(shard: Shard) -> Tensor:
    """The numbers of the owned nodes that are in a split; none without labels."""
    masks = [mask for split in SPLITS if (mask := shard.graph.mask(split)) is not None]
    if shard.graph.y is None or not masks:
        return torch.empty(0, dtype=torch.long)
    return torch.stack([mask[: shard.num_owned] for mask in masks]).any(0).nonzero().squeeze(1)


def _labels(shard: Shard, nodes: Tensor) -> Tensor:
    return torch.empty(0) if shard.graph.y is None else shard.graph.y[nodes]


def _splits(shard: Shard, nodes: Tensor) -> Tensor:
    """One row per node, one column per split."""
    masks = [shard.graph.mask(split) for split in SPLITS]
    none = torch.zeros(len(nodes), dtype=torch.bool)
    return torch.stack([none if mask is None else mask[nodes] for mask in masks], dim=1)


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if parts else torch.empty(0)


def _on_first(rows: Tensor, workers: Workers, what: str) -> list[Tensor]:
    """The rows of each rank, on the first rank, which has a shard; nothing on the others.

    They are sent as bytes, because a rank without shards does not know their type and width.
    """
    data = rows.contiguous().view(-1).view(torch.uint8)
    others = [data[:0]] * (workers.size - 1)
    found = workers.exchange([data, *others], what)
    if not workers.is_first:
        return []
    return [one.view(rows.dtype).view(-1, *rows.shape[1:]) for one in found]
