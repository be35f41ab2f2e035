"""Sets of graphs from lists of graphs in memory: PyG's `Data`, NetworkX graphs, `lgcn.Graph`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.graph.csr import stack_rows
from lgcn.graph.pyg import arguments_from_pyg
from lgcn.graph.splits import fraction_split
from lgcn.tables.edges import to_adjacency
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_graphs import checked_weights
from lgcn.tables.labels import ColumnLabels
from lgcn.tables.nodes import NodeOptions, node_data
from lgcn.tables.notes import grouped_notes, notes_on_graphs
from lgcn.tables.open_table import read_table

SHARE = 0.1  # of the graphs, for validation and for test


def graphs_from_list(
    graphs: Sequence[Any],
    *,
    y: Any = None,
    own_labels: bool = True,
    label: str = "y",
    task: str = "auto",
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    directed: bool = False,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    ids: Any = None,
    name: str = "graphs",
    encoder: FeatureEncoder | None = None,
    label_names: Sequence[str] | None = None,
) -> GraphSet:
    """Joins graphs of one kind to a set; see `lgcn.load_graphs`.

    Args:
        graphs: PyG's `Data`, NetworkX graphs, or `lgcn.Graph`. Labels and splits of nodes are left
            out.
        y: The label of each graph: whole numbers from 0 on, -1 if unknown; or names, `None` if
            unknown; or a matrix of zeros and ones; or, for a regression, numbers, NaN if unknown.
            (default: `data.y`, the graph attribute `label`, or none of `lgcn.Graph`)
        own_labels: Whether labels that the graphs hold are read. (default: `True`)
        label: Graph attribute of NetworkX graphs with the label. (default: `"y"`)
        task: See `lgcn.from_tables`. Floating-point `data.y` are a regression.
        features: Node attributes of NetworkX graphs that become features.
            (default: all; no `x` if there are none)
        weight: Edge attribute of NetworkX graphs with a weight of at least 0. (default: all one)
        directed: Whether only an edge's target aggregates from its source. `lgcn.Graph` keep their
            edges as they are. (default: `False`, every edge counts both ways)
        val, test: Shares of the labelled graphs for validation and test. (default: 0.1 each)
        split_seed: Seed of the split. (default: 0)
        ids: Your id of each graph. (default: their numbers)
        name: Name of the set. (default: `"graphs"`)
        encoder: Makes the features of NetworkX graphs as a trained model knows them. (default:
            fitted to the graphs that are not for validation or test)
        label_names: The labels that a trained model knows. (default: those given)
    """
    graphs = list(graphs) if _is_several(graphs) else [graphs]
    kind = _kind(graphs)
    if ids is not None and len(ids) != len(graphs):
        raise UsageError(f"ids must have one id per graph ({len(graphs)}), got {len(ids)}")
    given = y
    if y is None and own_labels:
        given = _own_labels(graphs, kind, label)
    options = NodeOptions(
        label_columns=[] if given is None else ["y"],
        task=task,
        encoder=encoder,
        label_names=label_names,
    )
    targets: dict[str, Any] = {"label_names": label_names}
    notes: list[str] = []
    masks: Any = (None, None, None)
    if given is not None:
        labels = _labels(given, len(graphs), options, own=y is None and kind == "pyg")
        shares = [SHARE if share is None else share for share in (val, test)]
        masks = fraction_split(labels.y, labels.known, shares[0], shares[1], split_seed)
        targets = {"y": labels.y, "label_names": labels.names or label_names}
        targets |= dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True))
        notes += labels.notes
    if kind == "networkx":
        held_out = None if given is None else (masks[1] | masks[2]).numpy()
        parts = _of_networkx(graphs, features, weight, directed, encoder, held_out, notes)
    else:
        parts = _of_pyg(graphs, directed) if kind == "pyg" else _of_graphs(graphs)
    found = GraphSet.create(replace(parts, name=name), ids=ids, **targets)
    for note in grouped_notes(notes + notes_on_graphs(found)):
        warnings.warn(note, stacklevel=3)
    return found


def _is_several(graphs: Any) -> bool:
    return not isinstance(graphs, Data | Graph) and not hasattr(graphs, "adj")


def _kind(graphs: Sequence[Any]) -> str:
    """What the graphs are: "pyg", "networkx" or "lgcn"."""
    if not graphs:
        raise UsageError("graphs must have at least one graph, got none")
    kinds = []
    for number, graph in enumerate(graphs):
        if isinstance(graph, Data):
            kinds.append("pyg")
        elif isinstance(graph, Graph):
            kinds.append("lgcn")
        elif hasattr(graph, "adj") and hasattr(graph, "nodes"):
            kinds.append("networkx")
        else:
            raise UsageError(
                "graphs must be PyG's Data, NetworkX graphs or lgcn.Graph, got "
                f"{type(graph).__name__} in graphs[{number}]"
            )
        if kinds[-1] != kinds[0]:
            raise UsageError(
                f"graphs must be of one kind, got {type(graphs[0]).__name__} in graphs[0] and "
                f"{type(graph).__name__} in graphs[{number}]"
            )
    return kinds[0]


def _own_labels(graphs: Sequence[Any], kind: str, label: str) -> Any:
    """The labels that the graphs hold, `None` if none of them has one."""
    if kind == "lgcn":
        return None
    if kind == "networkx":
        found = [graph.graph.get(label) for graph in graphs]
        return None if all(one is None for one in found) else found
    rows = [data.get("y") for data in graphs]
    if all(row is None for row in rows):
        return None
    for number, row in enumerate(rows):
        if not isinstance(row, Tensor | int | float):
            raise DataError(
                f"graphs[{number}]: y must be a tensor or a number, as in graphs[0], got "
                f"{type(row).__name__}"
            )
        row = torch.as_tensor(row)
        row = row.reshape(1, -1) if row.dim() < 2 and row.numel() == 1 else row
        first = rows[0].size(1) if number else -1
        if row.dim() != 2 or row.size(0) != 1 or first not in (-1, row.size(1)):
            wanted = "[1], or [1, L] for L labels" if number == 0 else f"[1, {first}] as graphs[0]"
            raise DataError(
                f"graphs[{number}]: y must be the label of the graph, in shape {wanted}, got shape "
                f"{list(torch.as_tensor(rows[number]).shape)}"
            )
        rows[number] = row
    joined = torch.cat(rows)
    return joined.squeeze(1) if joined.size(1) == 1 else joined


def _labels(given: Any, count: int, options: NodeOptions, *, own: bool) -> ColumnLabels:
    """Labels as `lgcn.from_scipy` takes them; the floating-point ones of PyG are targets."""
    array = np.asarray(given)
    if array.shape[:1] != (count,) or array.ndim > 2:
        raise UsageError(f"y must have one row per graph ({count}), got shape {list(array.shape)}")
    if array.ndim == 2:
        if options.task == "regression" or not np.isin(array, (0, 1)).all():
            raise UsageError(
                "y must be one label per graph, or a matrix of zeros and ones for several, got "
                f"shape {list(array.shape)}"
            )
        return ColumnLabels(torch.tensor(array, dtype=torch.float32), (), np.ones(count, bool))
    names = options.label_names
    if array.dtype.kind in "iu" and options.task != "regression":
        low, high = array.min(), array.max()
        if low < -1 or (names is not None and high >= len(names)):
            most = "" if names is None else f" to {len(names) - 1}"
            raise UsageError(
                f"y must number the classes from 0{most}, with -1 if unknown, got {low} to {high}"
            )
        return ColumnLabels(torch.tensor(array, dtype=torch.int64), (), array >= 0)
    if own and array.dtype.kind == "f" and options.task == "auto":
        targets = torch.tensor(array, dtype=torch.float64)
        return ColumnLabels(targets, (), ~np.isnan(array))
    return options.labels(
        read_table({"y": array if array.dtype.kind != "O" else list(given)}), None
    )


def _of_graphs(graphs: Sequence[Graph]) -> Graph:
    for number, graph in enumerate(graphs):
        if graph.num_graphs != 1:
            raise UsageError(f"graphs[{number}] must be one graph, got {graph.num_graphs} in it")
        _check_alike(graph.num_features, graphs[0].num_features, number)
    plain: dict[str, Any] = dict.fromkeys(
        ("y", "train_mask", "val_mask", "test_mask", "node_weight", "sample_weight", "label_names")
    )
    return Graph.concat([replace(graph, **plain, node_ids=None) for graph in graphs])


class _Parts(NamedTuple):
    """Graphs side by side."""

    sizes: list[int]
    edges: list[Tensor]
    weights: list[Tensor]
    x: list[Tensor]


def _of_pyg(graphs: Sequence[Data], directed: bool) -> Graph:
    parts = _Parts([], [], [], [])
    first = 0
    for number, data in enumerate(graphs):
        try:
            found = arguments_from_pyg(data)
            if found["edge_index"].layout != torch.strided:  # of a sparse adjacency
                one = Graph.from_edge_index(
                    found["edge_index"], found["num_nodes"], directed=directed
                )
                found |= {"edge_index": one.edge_index, "edge_weight": one.edge_weight}
            size = int(found["num_nodes"] or 0)
            edges = found["edge_index"]
            if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < size:
                raise ValueError(
                    f"edge_index must name nodes from 0 to {size - 1}, got {int(edges.min())} to "
                    f"{int(edges.max())}"
                )
        except ValueError as error:
            raise DataError(f"graphs[{number}]: {error}") from error
        parts.sizes.append(size)
        parts.edges.append(edges.long() + first)
        first += size
        x, weights = found.get("x"), found.get("edge_weight")
        for key, value, before in (("x", x, parts.x), ("edge_weight", weights, parts.weights)):
            if len(before) != (0 if value is None else number):
                raise DataError(f"graphs[{number}]: {key} must be given for all graphs or for none")
        if x is not None:
            x = x.unsqueeze(1) if x.dim() == 1 else x
            _check_alike(x.size(1), parts.x[0].size(1) if parts.x else x.size(1), number)
            parts.x.append(x)
        if weights is not None:
            parts.weights.append(weights.reshape(-1))
    return Graph.from_edge_index(
        torch.cat(parts.edges, dim=1),
        first,
        edge_weight=torch.cat(parts.weights) if parts.weights else None,
        directed=directed,
        x=stack_rows(parts.x) if parts.x else None,
        ptr=torch.tensor([0, *parts.sizes]).cumsum(0),
    )


def _check_alike(width: int, first: int, number: int) -> None:
    if width != first:
        raise DataError(
            f"graphs[{number}]: nodes must have {first} features, as in graphs[0], got {width}"
        )


def _of_networkx(
    graphs: Sequence[Any],
    features: str | Sequence[str] | None,
    weight: str | None,
    directed: bool,
    encoder: FeatureEncoder | None,
    held_out: Any,
    notes: list[str],
) -> Graph:
    """All graphs as one, with features from the attributes of the nodes."""
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    sizes = [graph.number_of_nodes() for graph in graphs]
    made = Graph(torch.zeros(len(nodes) + 1, dtype=torch.int32), torch.empty(0).int())
    known = dict.fromkeys(chain.from_iterable(nodes))
    wanted = [features] if isinstance(features, str) else features
    if encoder is not None:
        wanted = [column.name for column in encoder.columns]
    for attribute in wanted or ():
        if attribute not in known:
            raise UsageError(
                f"no node has the attribute {attribute!r}; the nodes have "
                f"{', '.join(map(repr, known)) or 'none'}"
            )
    columns = {
        name: [data.get(name) for data in nodes] for name in (known if wanted is None else wanted)
    }
    if columns:
        made = node_data(
            read_table(columns),
            NodeOptions(encoder=encoder),
            notes,
            "the node attributes",
            fit_rows=None if held_out is None else ~np.repeat(held_out, sizes),
        )
    ends: list[tuple[int, int]] = []
    values: list[Any] = []
    first = 0
    for graph, size in zip(graphs, sizes, strict=True):
        number = {node: first + i for i, node in enumerate(graph)}
        here = [(number[s], number[t]) for s, t in graph.edges()]
        both = directed and not graph.is_directed()
        ends += [*here, *((t, s) for s, t in here)] if both else here
        if weight is not None:
            found = [data.get(weight) for _, _, data in graph.edges(data=True)]
            values += found * 2 if both else found
        first += size
    pairs = np.array(ends, np.int32).reshape(-1, 2)
    kept = pairs[:, 0] != pairs[:, 1]
    weights = None
    if weight is not None:
        weights = [checked_weights(values, f"the edge attribute {weight!r}")[kept]]
    source, target = pairs[kept].T.copy()
    rows, _ = to_adjacency([source], [target], weights, first, directed=directed)
    return replace(
        made,
        rowptr=rows.rowptr,
        col=rows.col,
        edge_weight=rows.weight,
        ptr=torch.tensor([0, *sizes]).cumsum(0),
    )
