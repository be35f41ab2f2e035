"""The part of a graph that the scores of some nodes depend on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import DataError, UsageError
from lgcn.explain.breadth_first import INVALID, TOO_MANY, entries_between, within_hops
from lgcn.graph import Graph
from lgcn.graph.csr import checked_nodes
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.neighbour_layers import NeighbourLayer
from lgcn.nn.pooling.kept import offsets_of_graphs
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
    roots = checked_nodes(roots, graph.num_nodes).cpu()
    rowptr, col = (tensor.cpu().contiguous().numpy() for tensor in (graph.rowptr, graph.col))
    found, reach, table, end, hop = within_hops(rowptr, col, roots.numpy(), hops, MAX_ENTRIES)
    if end == TOO_MANY:
        raise UsageError(
            f"the neighbourhood of node {int(roots[0])} has more than {MAX_ENTRIES} edges "
            f"within {hop + 1} hops, which is too large to explain"
        )
    if end == INVALID:
        raise DataError(f"{graph.name} has an edge that leads to no node")
    offsets, local, entry, counts = (
        torch.from_numpy(part) for part in entries_between(rowptr, col, found, reach, table)
    )
    nodes = torch.from_numpy(found)
    part = Graph._trusted(
        offsets,
        local,
        x=None if graph.x is None else graph.features(nodes),
        edge_weight=None if graph.edge_weight is None else graph.edge_weight[entry],
        degree=_degrees(graph, nodes, counts),
        name=graph.name,
    )
    return Neighbourhood(part, nodes, entry, tuple(reach.tolist()))


def whole_graph(graphs: Graph, number: int, hops: int) -> Neighbourhood:
    """One of several graphs, of which each layer computes all nodes.

    Args:
        graphs: The graphs side by side; without `ptr`, it is one graph.
        number: The number of the graph.
        hops: The number of hops that the network sees.
    """
    rowptr, ptr = graphs.rowptr, offsets_of_graphs(graphs)
    first, last = ptr[number : number + 2].tolist()
    start, stop = rowptr[[first, last]].tolist()
    nodes, entry = torch.arange(first, last), torch.arange(start, stop)
    part = Graph._trusted(
        rowptr[first : last + 1] - start,
        graphs.col[start:stop] - first,
        x=None if graphs.x is None else graphs.features(nodes),
        edge_weight=None if graphs.edge_weight is None else graphs.edge_weight[start:stop],
        degree=None if graphs.degree is None else graphs.degree[first:last],
        name=graphs.name,
    )
    return Neighbourhood(part, nodes, entry, (len(nodes),) * (hops + 1))


def _degrees(graph: Graph, nodes: Tensor, counts: Tensor) -> Tensor:
    """The degrees in the whole graph, as `Graph.row_degree` gives them, from these rows alone.

    Args:
        graph: The graph.
        nodes: The nodes.
        counts: The number of entries of their rows.
    """
    if graph.degree is not None:
        return graph.degree[nodes]
    if graph.edge_weight is None:
        return counts.to(torch.get_default_dtype())
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    row = row_of_entry(rowptr)
    entry = torch.arange(len(row)) + (graph.rowptr[nodes] - rowptr[:-1])[row]
    weight = graph.edge_weight[entry]
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.to(torch.float32)
    return weight.new_zeros(len(counts)).index_add(0, row, weight)
