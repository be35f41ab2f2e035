"""Learned pooling of whole graphs in several worlds, see `lgcn.explain.worlds`.

Which nodes are kept is decided in world 0 and holds in all of them; which nodes are merged depends
on the edges alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lgcn.explain.messages import taken_from
from lgcn.explain.secant import Differences
from lgcn.graph import Graph
from lgcn.nn.pooling import ClusterPooling, SAGPooling, TopKPooling
from lgcn.nn.pooling.kept import highest, subgraph
from lgcn.nn.pooling.matching import coarsen
from lgcn.ops.reference import row_of_entry


class Pooled(NamedTuple):
    """A smaller graph.

    Args:
        h: The features of its nodes, [worlds, nodes, width].
        graph: The graph.
        nodes: The node before that each node stands for; of a pair the first.
        mask: What messages are multiplied by, [worlds, edges].
    """

    h: Tensor
    graph: Graph
    nodes: Tensor
    mask: Tensor | None


def kept(
    pool: TopKPooling | SAGPooling,
    graph: Graph,
    h: Tensor,
    score: Tensor,
    mask: Tensor | None,
    differences: Differences,
) -> Pooled:
    """Keeps the nodes that score highest in world 0, times their gates.

    Args:
        pool: The pooling.
        graph: The graph.
        h: The features of the nodes, [worlds, nodes, width].
        score: The scores of the nodes, [worlds, nodes].
        mask: What messages are multiplied by, [worlds, edges].
        differences: Which worlds are compared.
    """
    nodes, ptr = highest(score[0].detach(), torch.tensor([0, graph.num_nodes]), pool.ratio)
    gates = differences.secant(getattr(torch, pool.gate), score[:, nodes])
    smaller = subgraph(graph, nodes, ptr)
    if mask is not None:
        row = row_of_entry(graph.rowptr).long()
        mask = mask[:, torch.isin(row, nodes) & torch.isin(graph.col.long(), nodes)]
    return Pooled(differences.product(h[:, nodes], gates[:, :, None]), smaller, nodes, mask)


def merged(
    pool: ClusterPooling,
    graph: Graph,
    h: Tensor,
    mask: Tensor | None,
    largest: Callable[..., tuple[Tensor, Tensor]],
) -> Pooled:
    """Merges pairs of nodes.

    Args:
        pool: The pooling.
        graph: The graph.
        h: The features of the nodes, [worlds, nodes, width].
        mask: What messages are multiplied by, [worlds, edges].
        largest: Selects messages, see `lgcn.explain.messages.largest_messages`.
    """
    coarse, cluster, (rowptr, col, _) = coarsen(graph)
    members = h.index_select(1, col)
    if pool.reduce == "max":
        _, place = largest(1, "pad", rowptr, members)
        made = taken_from(members, place)[:, :, 0]
    else:
        total = h.new_zeros(len(h), coarse.num_nodes, h.size(2)).index_add(1, cluster, h)
        made = total / rowptr.diff()[:, None]
    if mask is not None:
        mask = _coarse_mask(graph, coarse, cluster, mask)
    return Pooled(made, coarse, col[rowptr[:-1].long()], mask)


def _coarse_mask(graph: Graph, coarse: Graph, cluster: Tensor, mask: Tensor) -> Tensor:
    """The mask of an edge of the coarser graph: the mean of those that it stands for."""
    count = max(coarse.num_nodes, 1)
    row, col = cluster[row_of_entry(graph.rowptr).long()], cluster[graph.col.long()]
    between = row != col
    known = row_of_entry(coarse.rowptr).long() * count + coarse.col
    place = torch.searchsorted(known, (row * count + col)[between])  # they ascend
    weight = mask.new_ones(len(place))
    if graph.edge_weight is not None:
        weight = graph.edge_weight[between].to(mask)
    total = mask.new_zeros(len(known)).index_add(0, place, weight)
    share = weight / torch.where(total == 0, 1, total)[place]
    return mask.new_zeros(len(mask), len(known)).index_add(1, place, mask[:, between] * share)
