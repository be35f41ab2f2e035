"""The neighbours of sampled nodes, and how much of each LGCL's grid they fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcn.graph import Graph

Array = np.ndarray[Any, Any]
MAX_NEIGHBOURS = 20  # per node; those that the LGCLs select most come first


@dataclass(frozen=True)
class LayerShares:
    """What an LGCL selected for some nodes.

    Args:
        name: The layer, as the page calls it.
        node, neighbour: Node numbers of each pair.
        share: Share of the positions in the node's grid that the neighbour fills, from 0 to 1.
    """

    name: str
    node: Array
    neighbour: Array
    share: Array


@dataclass(frozen=True)
class Neighbourhoods:
    """The neighbours of some nodes.

    Args:
        ptr: Where the neighbours of each node start, [nodes + 1].
        neighbour: Node numbers.
        shares: Per layer, the share of each neighbour.
        layers: The names of the layers.
        degree: The number of neighbours of each node, those included that are not listed.
        empty: Per layer and node, the share of its grid that no neighbour fills, but zeros.
    """

    ptr: Array
    neighbour: Array
    shares: list[Array]
    layers: list[str]
    degree: Array
    empty: list[Array]


def neighbourhoods(graph: Graph, nodes: Array, selected: list[LayerShares]) -> Neighbourhoods:
    """Lists the neighbours of nodes, at most `MAX_NEIGHBOURS` each.

    Args:
        graph: The graph.
        nodes: Node numbers.
        selected: What the layers selected for them, a node itself included.
    """
    ptr, every, per_layer = [0], [], [[] for _ in selected]  # type: ignore[var-annotated]
    lookup = [_by_node(layer) for layer in selected]
    degrees = []
    for node in nodes.tolist():
        start, stop = int(graph.rowptr[node]), int(graph.rowptr[node + 1])
        near = np.unique(graph.col[start:stop].numpy().astype(np.int64))
        near = near[near != node]
        degrees.append(len(near))
        shares = [_shares(found.get(node), near) for found in lookup]
        total = np.sum(shares, axis=0) if shares else np.zeros(len(near))
        first = np.lexsort((near, -total))[:MAX_NEIGHBOURS]
        # The node itself is in a grid as well: its share completes the picture.
        own = np.array([node])
        every += [own, near[first]]
        for place, found in enumerate(lookup):
            per_layer[place] += [_shares(found.get(node), own), shares[place][first]]
        ptr.append(ptr[-1] + 1 + len(first))
    return Neighbourhoods(
        np.array(ptr),
        np.concatenate(every) if every else np.zeros(0, dtype=np.int64),
        [np.concatenate(parts) if parts else np.zeros(0) for parts in per_layer],
        [layer.name for layer in selected],
        np.array(degrees, dtype=np.int64),
        [_empty(found, nodes) for found in lookup],
    )


def _empty(found: dict[int, tuple[Array, Array]], nodes: Array) -> Array:
    filled = [found[node][1].sum() if node in found else 0.0 for node in nodes.tolist()]
    return np.maximum(0.0, 1.0 - np.array(filled))


def _by_node(layer: LayerShares) -> dict[int, tuple[Array, Array]]:
    """Per node, its neighbours in rising order and their shares."""
    order = np.lexsort((layer.neighbour, layer.node))
    node, neighbour, share = (part[order] for part in (layer.node, layer.neighbour, layer.share))
    found, starts = np.unique(node, return_index=True)
    stops = np.append(starts[1:], len(node))[: len(starts)].tolist()  # none if nothing is selected
    return {
        number: (neighbour[a:b], share[a:b])
        for number, a, b in zip(found.tolist(), starts.tolist(), stops, strict=True)
    }


def _shares(found: tuple[Array, Array] | None, wanted: Array) -> Array:
    """The shares of the wanted neighbours, zero where one was not selected."""
    if found is None or not len(wanted):
        return np.zeros(len(wanted))
    near, share = found
    place = np.minimum(np.searchsorted(near, wanted), len(near) - 1)
    return np.where(near[place] == wanted, share[place], 0.0)
