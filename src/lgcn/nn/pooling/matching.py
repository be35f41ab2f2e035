"""Heavy-edge matching, and the coarser graph of the pairs that it finds."""

# mypy: disable-error-code="untyped-decorator"

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import CSR, one_index_dtype
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.ops.reference import row_of_entry
from lgcn.utils.jit import jit


class Coarse(NamedTuple):
    """Pairs of nodes as the nodes of a coarser graph.

    Shapes:
        - **graph:** the coarser graph, with `ptr`
        - **cluster:** $(N)$, the coarse node of each node
        - **members:** row i of this CSR structure lists the nodes of coarse node i
    """

    graph: Graph
    cluster: Tensor
    members: CSR


def coarsen(graph: Graph) -> Coarse:
    """Merges the pairs of `match`, once per adjacency.

    An edge of the coarser graph joins two pairs that have edges between them. Its weight, if the
    graph has weights, is the sum of theirs. Coarse nodes have the order of their first nodes, so
    that those of a graph lie side by side.
    """
    found: Coarse = graph.derived("coarse", lambda: _coarsen(graph))
    # The offsets are not in the cache, which belongs to the adjacency.
    rowptr, col, _ = found.members
    leads = torch.zeros(graph.num_nodes + 1, dtype=torch.long, device=col.device)
    leads[col[rowptr[:-1]] + 1] = 1
    ptr = leads.cumsum(0)[offsets_of_graphs(graph).long()]
    return found._replace(graph=replace(found.graph, ptr=ptr))


def match(graph: Graph) -> Tensor:
    r"""The partner of each node, itself if it has none.

    As in Graclus ([paper](https://www.cs.utexas.edu/~inderjit/public_papers/multilevel_pami.pdf)),
    one node after the other takes the free neighbour with the largest
    $w_{ij} (1 / d_i + 1 / d_j)$. Here nodes with few neighbours come first, since they have the
    least choice; ties go to the earlier node and the earlier entry. So the result depends on the
    edges and the numbers of the nodes, not on chance.
    """
    rowptr, col = (part.cpu().contiguous().numpy() for part in (graph.rowptr, graph.col))
    weight = np.empty(0)
    if graph.edge_weight is not None:
        weight = graph.edge_weight.detach().cpu().double().contiguous().numpy()
    order = np.argsort(np.diff(rowptr), kind="stable")
    return torch.from_numpy(_match(rowptr, col, weight, order))


@jit
def _match(rowptr: Any, col: Any, weight: Any, order: Any) -> Any:
    num_nodes = rowptr.shape[0] - 1
    inverse = np.zeros(num_nodes)
    for i in range(num_nodes):
        degree = float(rowptr[i + 1] - rowptr[i])
        if weight.shape[0] > 0:
            degree = 0.0
            for e in range(rowptr[i], rowptr[i + 1]):
                degree += weight[e]
        if degree > 0:
            inverse[i] = 1 / degree
    partner = np.full(num_nodes, -1, np.int64)
    for i in order:
        if partner[i] >= 0:
            continue
        best, best_score = i, -np.inf
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            if j == i or partner[j] >= 0:
                continue
            score = inverse[i] + inverse[j]
            if weight.shape[0] > 0:
                score *= weight[e]
            if score > best_score:
                best, best_score = j, score
        partner[i], partner[best] = best, i
    return partner


def _coarsen(graph: Graph) -> Coarse:
    device = graph.col.device
    partner = match(graph)
    leads = partner >= torch.arange(graph.num_nodes)  # the first node of each pair
    number = leads.cumsum(0) - 1
    cluster = torch.where(leads, number, number[partner]).to(device)
    num_coarse = int(leads.sum())
    members = CSR(
        _offsets(torch.bincount(cluster, minlength=num_coarse)), cluster.sort(stable=True).indices
    )

    row, col = cluster[row_of_entry(graph.rowptr)], cluster[graph.col.long()]
    between = row != col
    keys, inverse = torch.unique(
        row[between] * max(num_coarse, 1) + col[between], return_inverse=True
    )
    row, col = keys // max(num_coarse, 1), keys % max(num_coarse, 1)
    weight = None
    if graph.edge_weight is not None:
        own = graph.edge_weight.detach()
        weight = own.new_zeros(keys.numel()).index_add(0, inverse, own[between])
    rowptr = _offsets(torch.bincount(row, minlength=num_coarse))
    rowptr, col = one_index_dtype(rowptr, col)
    coarse = Graph._trusted(rowptr, col, edge_weight=weight, name=graph.name)
    return Coarse(coarse, cluster, members)


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
