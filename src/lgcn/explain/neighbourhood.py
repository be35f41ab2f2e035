"""The part of a graph that the scores of some nodes depend on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import checked_nodes, one_index_dtype
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.neighbour_layers import NeighbourLayer
from lgcn.ops.reference import row_of_entry

# Entries of the adjacency up to which a neighbourhood is cut out. The networks hold a few hundred
# values per entry.
MAX_ENTRIES = 5_000_000


@dataclass(frozen=True)
class Neighbourhood:
    """The nodes within some hops of the roots, nearest first, and the edges that lead to them.

    Args:
        graph: The nodes and edges, with local numbers. Degrees, and the order of the entries of a
            row, are those of the whole graph. The outermost nodes have no edges but self-loops.
        nodes: Numbers of the nodes in the whole graph; the roots come first.
        entry: Where each entry of the local adjacency is in that of the whole graph.
        reach: The number of nodes within 0, 1, 2, ... hops.
    """

    graph: Graph
    nodes: Tensor
    entry: Tensor
    reach: tuple[int, ...]

    @property
    def hops(self) -> int:
        """The distance of the outermost nodes, at most."""
        return len(self.reach) - 1


def num_hops(model: Module) -> int:
    """The number of hops that a network sees."""
    hops = 0
    for module in model.modules():
        if isinstance(module, Diffusion):
            hops += module.hops
        elif isinstance(module, GCNLayer):
            hops += module.aggregate != "none"
        elif isinstance(module, LGConv | NeighbourLayer):
            hops += 1
    return hops


def neighbourhood(graph: Graph, roots: Tensor, hops: int) -> Neighbourhood:
    """Cuts out the nodes within some hops of the roots. Only their rows are read.

    Args:
        graph: The graph, which may be a store.
        roots: Distinct node numbers.
        hops: The number of hops.
    """
    roots = checked_nodes(roots, graph.num_nodes).to(graph.rowptr.device)
    nodes, reach = roots, [len(roots)]
    seen = roots.sort().values
    frontier, found = roots, []
    for _ in range(hops):
        entry, counts = _entries(graph, frontier)
        if entry.numel() > MAX_ENTRIES:
            raise UsageError(
                f"the neighbourhood of node {int(roots[0])} has more than {MAX_ENTRIES} edges "
                f"within {len(reach)} hops, which is too large to explain"
            )
        found.append((entry, counts))
        new = torch.unique(graph.col[entry].long())
        frontier = new[~_contains(seen, new)]
        seen = torch.cat([seen, frontier]).sort().values
        nodes = torch.cat([nodes, frontier])
        reach.append(len(nodes))
    outermost = nodes[reach[-2] if hops else 0 :]
    outer_entry, outer_counts = _entries(graph, outermost)
    looped = graph.col[outer_entry].long() == outermost.repeat_interleave(outer_counts)
    loops = torch.zeros_like(outer_counts).index_add_(
        0,
        torch.arange(len(outermost)).repeat_interleave(outer_counts)[looped],
        looped[looped].long(),
    )
    entry = torch.cat([*(part for part, _ in found), outer_entry[looped]])
    counts = torch.cat([*(part for _, part in found), loops])
    local = _local_numbers(nodes, graph.col[entry].long())
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    rowptr, col = one_index_dtype(rowptr, local)
    weight = None if graph.edge_weight is None else graph.edge_weight[entry]
    part = Graph(
        rowptr,
        col,
        x=None if graph.x is None else graph.features(nodes),
        edge_weight=weight,
        degree=_degrees(graph, nodes, found, outer_entry, outer_counts),
        name=graph.name,
    )
    return Neighbourhood(part, nodes, entry, tuple(reach))


def _entries(graph: Graph, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of the nodes' rows, one row after the other, and how many each row has."""
    start = graph.rowptr[nodes].long()
    counts = graph.rowptr[nodes + 1].long() - start
    first = counts.cumsum(0) - counts
    within = torch.arange(int(counts.sum())) - first.repeat_interleave(counts)
    return start.repeat_interleave(counts) + within, counts


def _degrees(
    graph: Graph,
    nodes: Tensor,
    found: list[tuple[Tensor, Tensor]],
    outer_entry: Tensor,
    outer_counts: Tensor,
) -> Tensor:
    """The degrees in the whole graph, as `Graph.row_degree` gives them, from these rows alone."""
    if graph.degree is not None:
        return graph.degree[nodes]
    counts = torch.cat([*(part for _, part in found), outer_counts])
    if graph.edge_weight is None:
        return counts.to(torch.get_default_dtype())
    entry = torch.cat([*(part for part, _ in found), outer_entry])
    weight = graph.edge_weight[entry]
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.to(torch.float32)
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return weight.new_zeros(len(counts)).index_add(0, row_of_entry(rowptr), weight)


def _contains(ordered: Tensor, values: Tensor) -> Tensor:
    """Which values are in an ordered list that has at least one element."""
    place = torch.searchsorted(ordered, values).clamp(max=len(ordered) - 1)
    return ordered[place] == values


def _local_numbers(nodes: Tensor, values: Tensor) -> Tensor:
    """The place of each value among the nodes."""
    ordered, order = nodes.sort()
    return order[torch.searchsorted(ordered, values)]
