"""Keeping the nodes of each graph that score highest: what top-k pooling and SAGPool share."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import one_index_dtype
from lgcn.ops.reference import row_of_entry

Gate = Literal["tanh", "sigmoid"]


class Kept(NamedTuple):
    """A graph of the nodes that were kept.

    Shapes:
        - **x:** $(N', C)$, features times gates
        - **graph:** the edges among the nodes that were kept, with `ptr`
        - **nodes:** $(N')$, their numbers before, ascending
    """

    x: Tensor
    graph: Graph
    nodes: Tensor


def check_ratio(ratio: float) -> None:
    """Raises ValueError if `ratio` is no share of the nodes."""
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must be above 0 and at most 1, got {ratio}")


def keep_highest(x: Tensor, graph: Graph, score: Tensor, ratio: float, gate: Gate) -> Kept:
    """Keeps the nodes of each graph with the highest scores, and multiplies them by their gates.

    Args:
        x: Node features.
        graph: The graphs.
        score: One score per node.
        ratio: Share of the nodes of each graph that is kept, rounded up.
        gate: The function of the score that the features are multiplied by.
    """
    ptr = offsets_of_graphs(graph)
    nodes, new_ptr = highest(score.detach(), ptr, ratio)
    gates = getattr(torch, gate)(score[nodes])
    return Kept(x[nodes] * gates.unsqueeze(1), subgraph(graph, nodes, new_ptr), nodes)


def highest(score: Tensor, ptr: Tensor, ratio: float) -> tuple[Tensor, Tensor]:
    """The nodes with the highest scores of each graph, ascending, and the new node offsets.

    Ties go to the earlier node.
    """
    sizes = ptr.diff().long()
    graph_of = torch.repeat_interleave(sizes)
    counts = (ratio * sizes.double()).ceil().long()
    # Two stable sorts order the nodes by graph and, within a graph, by score.
    order = score.sort(descending=True, stable=True).indices
    order = order[graph_of[order].sort(stable=True).indices]
    rank = torch.arange(order.numel(), device=order.device) - ptr.long()[:-1][graph_of]
    nodes = order[rank < counts[graph_of]].sort().values
    return nodes, torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def subgraph(graph: Graph, nodes: Tensor, ptr: Tensor) -> Graph:
    """The edges among ascending nodes, without features.

    All rows are read, as most of them are kept; so it needs no kernel and runs on any device.

    Args:
        graph: The graph.
        nodes: Distinct node numbers, ascending.
        ptr: The node offsets of the new graph.
    """
    place = torch.full((graph.num_nodes,), -1, dtype=graph.col.dtype, device=graph.col.device)
    place[nodes] = torch.arange(nodes.numel(), dtype=place.dtype, device=place.device)
    row, col = place[row_of_entry(graph.rowptr)], place[graph.col.long()]
    entry = ((row >= 0) & (col >= 0)).nonzero().squeeze(1)
    counts = torch.bincount(row[entry], minlength=nodes.numel())
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    rowptr, col = one_index_dtype(rowptr, col[entry])
    weight = None if graph.edge_weight is None else graph.edge_weight[entry]
    return Graph._trusted(rowptr, col, edge_weight=weight, ptr=ptr, name=graph.name)


def offsets_of_graphs(graph: Graph) -> Tensor:
    """The node offsets of the graphs; without `ptr`, all nodes are one graph."""
    if graph.ptr is not None:
        return graph.ptr

    def make() -> Tensor:
        return torch.tensor([0, graph.num_nodes], device=graph.rowptr.device)

    found: Tensor = graph.derived("one_graph", make)
    return found
