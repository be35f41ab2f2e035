"""Which neighbours the LGCLs of a network selected, in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.explain.neighbourhood import neighbourhood, num_hops
from lgcn.explain.parts import network_parts, on_cpu
from lgcn.explain.secant import ONE_WORLD
from lgcn.explain.worlds import Worlds, embed
from lgcn.graph import Graph
from lgcn.nn.lg_conv import LGConv

BLOCK = 512  # nodes whose neighbourhoods are computed together


@dataclass(frozen=True)
class LayerSelection:
    """What one LGCL selected for some nodes, one entry per pair of node and neighbour.

    Args:
        layer: The number of the LGCL, from 1.
        k: Values that it selects per feature.
        features: Features that it reads.
        node: The node, [entries].
        neighbour: A neighbour that was selected at least once, [entries]; with self-loops, the node
            itself can be one.
        count: The places that it fills, of k times features, [entries].
    """

    layer: int
    k: int
    features: int
    node: Tensor
    neighbour: Tensor
    count: Tensor


def selected_neighbours(model: Module, graph: Graph, nodes: Any) -> list[LayerSelection]:
    """Counts what each LGCL selected: for each node, which neighbours, and for how many places.

    A place is a rank, from 1 to k, of a feature. Only the neighbourhood of the nodes is read.

    Args:
        model: An `lgcn.LGCN`, a `lgcn.nn.residual.ResidualLGCN`, or an ensemble, of which the
            model with LGCLs that counts most is shown. Without LGCLs, the result is empty.
        graph: The graph, with features as the model takes them; for an ensemble, as the user
            gives it.
        nodes: Node numbers.
    """
    chosen = as_numbers(nodes)
    part = next(
        (
            part
            for part in network_parts(on_cpu(model), graph.to("cpu"))
            if any(isinstance(module, LGConv) for module in part.model.modules())
        ),
        None,
    )
    if part is None:
        return []
    found: list[list[tuple[Tensor, Tensor, Tensor]]] = []
    convs: list[LGConv] = []
    for roots in _blocks(chosen, part.graph.ptr):
        unique, back = torch.unique(roots, return_inverse=True)
        field = neighbourhood(part.graph, unique, num_hops(part.model))
        with torch.no_grad():
            worlds = Worlds(field, ONE_WORLD, statistics=part.statistics(int(roots[0])))
            worlds.scores(part.model, embed(part.model, field.graph.features())[0][None])
        convs = [one.layer for one in worlds.chosen]
        found = found or [[] for _ in convs]
        for place, one in enumerate(worlds.chosen):
            found[place].append(_count(one.node[: len(unique)][back], roots, field.nodes))
    return [
        LayerSelection(
            place + 1,
            convs[place].k,
            convs[place].in_channels,
            *(torch.cat(column) for column in zip(*blocks, strict=True)),
        )
        for place, blocks in enumerate(found)
    ]


def _blocks(nodes: Tensor, ptr: Tensor | None) -> Iterator[Tensor]:
    """Nodes that are computed together; those of separate graphs are not."""
    if ptr is None:
        yield from torch.split(nodes, BLOCK)
        return
    graph = torch.searchsorted(ptr, nodes, right=True)
    for number in torch.unique(graph).tolist():
        yield from torch.split(nodes[graph == number], BLOCK)


def as_numbers(nodes: Any) -> Tensor:
    """Node numbers as a tensor of int64."""
    if isinstance(nodes, Tensor):
        return nodes.reshape(-1).long()
    if isinstance(nodes, Iterable):
        return torch.as_tensor(list(nodes), dtype=torch.long)
    return torch.tensor([int(nodes)])


def _count(chosen: Tensor, roots: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Node, neighbour and count of each pair, from local numbers [roots, k, features]."""
    size = len(nodes) + 1  # -1, a zero that was filled in, becomes 0
    pair = torch.arange(len(chosen)).view(-1, 1, 1) * size + chosen + 1
    pairs, count = torch.unique(pair, return_counts=True)
    row, local = pairs // size, pairs % size - 1
    kept = local >= 0
    return roots[row[kept]], nodes[local[kept]], count[kept]
