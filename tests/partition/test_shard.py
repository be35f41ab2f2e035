"""A shard holds its own rows in full, and of the others what it needs."""

import torch

from lgcn import Graph
from lgcn.partition import cut_shard


def _path() -> tuple[Graph, torch.Tensor]:
    """0 - 1 - 2 - 3, nodes 0 and 2 in part 0."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    graph = Graph.from_edge_index(
        edges,
        4,
        x=torch.arange(4.0).unsqueeze(1),
        y=torch.tensor([0, 1, 0, 1]),
        train_mask=torch.ones(4, dtype=torch.bool),
    )
    return graph, torch.tensor([0, 1, 0, 1])


def test_a_shard_has_its_nodes_first_and_then_their_neighbours() -> None:
    graph, part = _path()

    shard = cut_shard(graph, part, 0)

    assert shard.num_owned == 2
    assert shard.num_halo == 2
    assert shard.num_parts == 2
    assert shard.graph.n_id is not None
    assert shard.graph.n_id.tolist() == [0, 2, 1, 3]
    assert shard.owner.tolist() == [0, 0, 1, 1]
    assert shard.graph.x is not None
    assert shard.graph.x.squeeze(1).tolist() == [0, 2, 1, 3]


def test_rows_of_own_nodes_are_complete_and_those_of_the_halo_lead_back() -> None:
    graph, part = _path()

    shard = cut_shard(graph, part, 0)

    rows = [
        shard.graph.col[a:b].tolist()
        for a, b in zip(shard.graph.rowptr[:-1], shard.graph.rowptr[1:], strict=True)
    ]
    assert rows == [[2], [2, 3], [0, 1], [1]]
    assert shard.graph.row_degree().tolist() == [1, 2, 2, 1]  # those of the whole graph


def test_only_own_nodes_are_in_a_split() -> None:
    graph, part = _path()

    shard = cut_shard(graph, part, 1)

    assert shard.graph.train_mask is not None
    assert shard.graph.train_mask.tolist() == [True, True, False, False]
