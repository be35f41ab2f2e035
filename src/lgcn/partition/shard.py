"""One part of a graph, with all that a worker needs of the other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.csr import one_index_dtype


@dataclass(frozen=True)
class Shard:
    """A part of a graph: the nodes it owns, and its halo, the neighbours that others own.

    The rows of owned nodes are complete, and in the order of the whole graph. A row of the halo has
    its entries to owned nodes and to itself only.

    Attributes:
        number: The number of the part, from 0.
        num_parts: The number of parts.
        graph: The nodes, owned ones first, and each of the two groups in the order of the whole
            graph. `n_id` has their numbers there, `degree` their degrees there. Only owned nodes
            are in a split.
        num_owned: The number of owned nodes.
        owner: The part that owns each node, int32.
        num_nodes: The number of nodes of the whole graph.
        node_ids: Gives the user's ids of the nodes from `start` up to `stop`, numbers within the
            shard; `None` if nodes have none.
    """

    number: int
    num_parts: int
    graph: Graph
    num_owned: int
    owner: Tensor
    num_nodes: int
    node_ids: Callable[[int, int], Any] | None = None

    @property
    def num_halo(self) -> int:
        """The number of nodes that other parts own."""
        return self.graph.num_nodes - self.num_owned

    def __repr__(self) -> str:
        return (
            f"Shard({self.number} of {self.num_parts}, {self.num_owned} nodes and a halo of "
            f"{self.num_halo})"
        )


def cut_shard(graph: Graph, part: Tensor, number: int) -> Shard:
    """A shard of a graph in memory. What `lgcn partition` writes to disk is compared with this.

    Args:
        graph: The graph.
        part: The part of each node, from 0.
        number: The part to cut out.
    """
    owned = (part == number).nonzero().squeeze(1)
    is_owned = part == number
    source = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.rowptr.diff().long())
    col = graph.col.long()
    halo = torch.unique(col[is_owned[source] & ~is_owned[col]])
    nodes = torch.cat([owned, halo])
    place = torch.full((graph.num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes))

    # Entry by entry: those of owned rows, and of halo rows those to owned nodes and to themselves.
    kept = is_owned[source] | ((place[source] >= 0) & (is_owned[col] | (col == source)))
    order = place[source[kept]].argsort(stable=True)
    rows, cols = place[source[kept]][order], place[col[kept]][order]
    rowptr = torch.zeros(len(nodes) + 1, dtype=torch.long)
    rowptr[1:] = torch.bincount(rows, minlength=len(nodes)).cumsum(0)
    weight = graph.edge_weight
    found = graph.subgraph(nodes)
    inside = torch.arange(len(nodes)) < len(owned)
    masks = {
        name: mask & inside
        for name in ("train_mask", "val_mask", "test_mask")
        if (mask := getattr(found, name)) is not None
    }
    offsets, cols = one_index_dtype(rowptr, cols)
    fields: dict[str, Any] = {
        "rowptr": offsets,
        "col": cols,
        "edge_weight": None if weight is None else weight[kept][order],
        "degree": graph.row_degree()[nodes],
        "n_id": nodes,
        **masks,
    }
    shard = replace(found, **fields)
    ids = found.node_ids
    return Shard(
        number,
        int(part.max()) + 1,
        shard,
        len(owned),
        part[nodes].int(),
        graph.num_nodes,
        None if ids is None else lambda start, stop: ids[start:stop],
    )
