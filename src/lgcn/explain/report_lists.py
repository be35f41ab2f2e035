"""Contributions as lists of plain values, largest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lgcn.explain.columns import Columns
from lgcn.explain.contributions import Contributions, Share
from lgcn.explain.worlds import GRAPH_NETWORKS, Chosen
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.readout import KLargestReadout, SimpleReadout, SortPooling
from lgcn.nn.residual import ResidualLGCN

DETAILED = 20  # nodes, largest first, whose columns are listed
PLACES = 5  # strongest places of a selected neighbour
DRIVERS = 3  # columns that are listed per node and per hidden unit

NodeId = Callable[[int], Any]
_READOUTS: dict[type, str] = {
    SimpleReadout: "max",
    KLargestReadout: "k_largest",
    SortPooling: "sort",
}


def by_node(found: Contributions, scale: float, node_id: NodeId) -> list[dict[str, Any]]:
    """What the features of each node add."""
    total: dict[int, float] = {}
    hops: dict[int, int] = {}
    for share in found.shares:
        distance = _distances(share)
        for local, (node, value) in enumerate(
            zip(share.field.nodes.tolist(), share.by_node.tolist(), strict=True)
        ):
            total[node] = total.get(node, 0.0) + value * scale
            hops[node] = min(distance[local], hops.get(node, distance[local]))
    ranked = sorted(total, key=lambda node: (-abs(total[node]), node))
    entries = [
        {"node": node_id(node), "contribution": total[node], "hops": hops[node]}
        for node in ranked
        if total[node] != 0 or hops[node] == 0
    ]
    for entry, node in list(zip(entries, ranked, strict=False))[:DETAILED]:
        columns: dict[str, float] = {}
        for share in found.shares:
            place = (share.field.nodes == node).nonzero().flatten()
            for name, value in _columns(share, share.by_feature(place)).items():
                columns[name] = columns.get(name, 0.0) + value * scale
        entry["columns"] = [
            {"column": name, "contribution": columns[name]}
            for name in _ranked(columns)[:DRIVERS]
            if columns[name] != 0
        ]
    return entries


def by_edge(found: Contributions, scale: float, node_id: NodeId) -> list[dict[str, Any]]:
    """What each edge adds. Both directions of an edge are one entry, which points to the root."""
    total: dict[tuple[int, int], float] = {}
    hops: dict[tuple[int, int], int] = {}
    for share in found.shares:
        graph, nodes, distance = share.field.graph, share.field.nodes.tolist(), _distances(share)
        row = torch.arange(graph.num_nodes).repeat_interleave(graph.rowptr.diff().long())
        for source, target, value in zip(
            graph.col.tolist(), row.tolist(), share.by_edge.tolist(), strict=True
        ):
            if source == target:
                continue
            near, far = sorted((source, target))  # nodes are numbered by distance
            pair = (nodes[far], nodes[near])
            if pair not in total and (pair[1], pair[0]) in total:  # another network's numbering
                pair = (pair[1], pair[0])
            total[pair] = total.get(pair, 0.0) + value * scale
            hops[pair] = distance[near]
    ranked = sorted(total, key=lambda pair: (-abs(total[pair]), pair))
    return [
        {
            "source": node_id(pair[0]),
            "target": node_id(pair[1]),
            "contribution": total[pair],
            "hops": hops[pair],
        }
        for pair in ranked
        if total[pair] != 0 or hops[pair] == 0
    ]


def by_column(found: Contributions, scale: float) -> list[dict[str, Any]]:
    """What each column of the table adds, and its features."""
    total: dict[str, float] = {}
    features: dict[str, dict[str, float]] = {}
    for share in found.shares:
        names, added = share.part.columns, share.by_feature()
        columns = names.column.tolist()
        for place, amount in enumerate(added.tolist()):
            if amount == 0:
                continue
            column, feature = names.names[columns[place]], names.features[place]
            value = amount * scale
            total[column] = total.get(column, 0.0) + value
            inside = features.setdefault(column, {})
            inside[feature] = inside.get(feature, 0.0) + value
    return [
        {
            "column": name,
            "contribution": total[name],
            "features": [
                {"feature": feature, "contribution": features[name][feature]}
                for feature in _ranked(features[name])
            ]
            if list(features[name]) != [name]
            else [],
        }
        for name in _ranked(total)
    ]


def selections(
    found: Contributions, scale: float, node_id: NodeId
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, list[str]]]:
    """What LGCLs and read-outs selected, and the columns that drive the hidden units named.

    LGCLs select for the explained node, or for all nodes of a graph.
    """
    share = next((share for share in found.shares if share.chosen or share.read), None)
    if share is None:
        return [], [], {}
    layers: list[dict[str, Any]] = []
    named: dict[str, int | None] = {}
    for number, (chosen, places) in enumerate(zip(share.chosen, share.places, strict=True), 1):

        def name_unit(unit: int, number: int = number) -> str:
            name, column = _unit_name(share, number, unit)
            named[name] = column
            return name

        conv = chosen.layer
        added = places[:, 1 : conv.k + 1] * scale
        layers.append({"layer": number, **_selected(chosen, added, name_unit, node_id)})
    read = []
    for chosen, places in zip(share.read, share.read_places, strict=True):

        def name_read(unit: int, level: int = chosen.level) -> str:
            name = f"LGCL {level}, unit {unit}" if level else f"unit {unit}"
            named[name] = None if level else unit
            return name

        entry = _selected(chosen, places * scale, name_read, node_id)
        read.append({"readout": _READOUTS[type(chosen.layer)], "level": chosen.level, **entry})
    units = {name: _drivers(share, unit) for name, unit in named.items() if unit is not None}
    return layers, read, units


def _selected(
    chosen: Chosen, added: Tensor, name_unit: Callable[[int], str], node_id: NodeId
) -> dict[str, Any]:
    """Who fills the places of a selection, those that fill most first.

    Args:
        chosen: What was selected.
        added: What each place adds, [rows, k, features]; the other rows are not listed.
        name_unit: Names a feature.
        node_id: Names a node.
    """
    rows = min(len(added), len(chosen.node))
    node, value = chosen.node[:rows].flatten(), chosen.value[:rows].flatten()
    _, k, features = chosen.node.shape
    added = added.flatten()
    order = node.argsort(stable=True)
    locals_, counts = torch.unique_consecutive(node[order], return_counts=True)
    neighbours = []
    for local, here in zip(locals_.tolist(), torch.split(order, counts.tolist()), strict=True):
        if local < 0:  # zeros that were filled in
            continue
        strongest = here[added[here].abs().argsort(descending=True, stable=True)[:PLACES]]
        listed = []
        for place in strongest.tolist():
            rank, unit = divmod(place % (k * features), features)
            listed.append(
                {
                    "feature": name_unit(unit),
                    "rank": rank + 1,
                    "value": float(value[place]),
                    "contribution": float(added[place]),
                }
            )
        neighbours.append(
            {
                "node": node_id(int(chosen.nodes[local])),
                "count": len(here),
                "first": int((here % (k * features) < features).sum()),
                "contribution": float(added[here].sum()),
                "places": listed,
            }
        )
    neighbours.sort(key=lambda entry: (-entry["count"], -entry["first"]))
    return {
        "k": k,
        "features": features,
        "filled": int((node >= 0).sum()),
        "neighbours": neighbours,
    }


def _unit_name(share: Share, layer: int, unit: int) -> tuple[str, int | None]:
    """The name of a feature that an LGCL reads, and its number among the embedding's units."""
    model = share.part.model
    width = model.first_layer.out_channels
    if isinstance(model, ResidualLGCN):
        layers: Any = model.layers
        if isinstance(layers[layer - 1].conv, MappedLGConv):
            return f"map of layer {layer}, unit {unit}", None
        return (f"unit {unit}", unit) if layer == 1 else (f"layer {layer - 1}, unit {unit}", None)
    if unit < width:
        return f"unit {unit}", unit
    unit -= width
    convs = model.layers if isinstance(model, GRAPH_NETWORKS) else [one for one, _ in model.lgcls()]
    for number, before in enumerate(convs, 1):
        if unit < before.out_channels:
            return f"LGCL {number}, unit {unit}", None
        unit -= before.out_channels
    raise AssertionError(unit)


def _drivers(share: Share, unit: int) -> list[str]:
    """The features with the largest weights in a unit of the embedding."""
    weight = share.part.model.first_layer.linear_map()[0][:, unit].detach()
    order = weight.abs().argsort(descending=True, stable=True)[:DRIVERS]
    return [share.part.columns.features[place] for place in order.tolist()]


def _columns(share: Share, added: Tensor) -> dict[str, float]:
    """Contributions of features, added up by column."""
    names: Columns = share.part.columns
    total = added.new_zeros(len(names.names)).index_add_(0, torch.from_numpy(names.column), added)
    return {names.names[place]: float(total[place]) for place in total.nonzero().flatten().tolist()}


def _distances(share: Share) -> list[int]:
    """The distance of each node from the root."""
    found: list[int] = []
    for hops, reach in enumerate(share.field.reach):
        found += [hops] * (reach - len(found))
    return found


def _ranked(values: dict[str, float]) -> list[str]:
    return sorted(values, key=lambda name: (-abs(values[name]), name))
