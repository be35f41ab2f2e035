"""Sets of graphs from lists of graphs in memory: PyG's `Data`, NetworkX graphs, `lgcn.Graph`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.graph.csr import check_edge_index, stack_rows
from lgcn.graph.pyg import arguments_from_pyg
from lgcn.graph.splits import fraction_split
from lgcn.tables.columns import LARGEST
from lgcn.tables.edges import to_adjacency
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_graphs import checked_weights
from lgcn.tables.labels import ColumnLabels
from lgcn.tables.nodes import NodeOptions, node_data
from lgcn.tables.notes import grouped_notes, notes_on_graphs
from lgcn.tables.open_table import read_table
from lgcn.utils.limits import MAX_CLASSES

SHARE = 0.1  # of the graphs, for validation and for test
OWN_LABEL = "y"  # the attribute of a graph that has its label, if it has one
MINUS_ONE = (
    "y has only -1 and 1: graphs of -1 count as unlabelled. If -1 is a class, number the classes "
    "from 0 on, or give names"
)


def graphs_from_list(
    graphs: Sequence[Any],
    *,
    y: Any = None,
    own_labels: bool = True,
    label: str = OWN_LABEL,
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
    graphs = _as_list(graphs)
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
    if kind != "networkx" and any(graph.edge_attr is not None for graph in graphs):
        notes.append("the graphs have edge_attr, which networks of whole graphs do not read")
    found = GraphSet.create(replace(parts, name=name), ids=ids, **targets)
    for note in grouped_notes(notes + notes_on_graphs(found)):
        warnings.warn(note, stacklevel=3)
    return found


def _as_list(graphs: Any) -> list[Any]:
    """The graphs as a list; one graph alone is a list of one."""
    if isinstance(graphs, Iterable) and not isinstance(graphs, Data | Graph):
        return [graphs] if hasattr(graphs, "adj") else list(graphs)
    return [graphs]


def _kind(graphs: Sequence[Any]) -> str:
    """What the graphs are: "pyg", "networkx" or "lgcn"."""
    if not graphs:
        raise UsageError("graphs must have at least one graph, got none")
    kinds = []
    for number, graph in enumerate(graphs):
        if isinstance(graph, Batch):  # which is Data, too
            raise UsageError(
                f"graphs must be single graphs, got a Batch of {graph.num_graphs} in "
                f"graphs[{number}]. Use batch.to_data_list()"
            )
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
        if label != OWN_LABEL and not any(label in graph.graph for graph in graphs):
            known = dict.fromkeys(chain.from_iterable(graph.graph for graph in graphs))
            raise UsageError(
                f"label must be an attribute of the graphs, got {label!r}; they have "
                f"{', '.join(map(repr, known)) or 'none'}"
            )
        return None if all(one is None for one in found) else found
    rows = [data.get("y") for data in graphs]
    if all(row is None for row in rows):
        return None
    for number, given in enumerate(rows):
        if given is None:
            raise DataError(
                f"graphs[{number}]: y is missing, but others have it. Give -1 if the class is "
                "unknown, or NaN if the number is"
            )
        if not isinstance(given, Tensor | int | float | np.number | np.bool_):
            raise DataError(
                f"graphs[{number}]: y must be a tensor or a number, got {type(given).__name__}. "
                "Give other labels as y, one per graph"
            )
        row = _tensor(given, number)
        row = row.reshape(1, -1) if row.dim() < 2 and row.numel() == 1 else row
        first = rows[0].size(1) if number else -1
        if row.dim() != 2 or row.size(0) != 1 or first not in (-1, row.size(1)):
            wanted = "[1], or [1, L] for L labels" if number == 0 else f"[1, {first}] as graphs[0]"
            raise DataError(
                f"graphs[{number}]: y must be the label of the graph, in shape {wanted}, got shape "
                f"{list(row.shape)}"
            )
        rows[number] = row
    joined = torch.cat(rows)
    return joined.squeeze(1) if joined.size(1) == 1 else joined


def _tensor(value: Any, number: int) -> Tensor:
    """The label of a graph as a tensor; those of several graphs can be joined."""
    try:
        found = torch.as_tensor(value).detach().cpu()
    except (OverflowError, RuntimeError, ValueError) as error:
        raise DataError(f"graphs[{number}]: y must fit in 64 bits, got {value}") from error
    if found.is_complex():
        raise DataError(f"graphs[{number}]: y must be a real number, got {found.dtype}")
    return found if found.is_floating_point() or found.dtype == torch.bool else found.long()


def _labels(given: Any, count: int, options: NodeOptions, *, own: bool) -> ColumnLabels:
    """Labels as `lgcn.from_scipy` takes them; the floating-point ones of PyG are targets."""
    try:
        array = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    except ValueError as error:  # lists of several lengths
        raise UsageError(
            "y must be one label per graph, or a matrix of zeros and ones for several, got lists "
            "of different lengths"
        ) from error
    if array.shape[:1] != (count,) or array.ndim > 2:
        raise UsageError(f"y must have one row per graph ({count}), got shape {list(array.shape)}")
    names = options.label_names
    if array.ndim == 2:
        if options.task == "regression" or not np.isin(array, (0, 1)).all():
            raise UsageError(
                "y must be one label per graph, or a matrix of zeros and ones for several, got "
                f"shape {list(array.shape)}"
            )
        if names is not None and len(names) != array.shape[1]:
            raise UsageError(
                f"y must have one column per label ({len(names)}), got {array.shape[1]}"
            )
        return ColumnLabels(torch.tensor(array, dtype=torch.float32), (), np.ones(count, bool))
    if array.dtype.kind in "iu" and options.task != "regression":
        low, high = array.min(), array.max()
        most = MAX_CLASSES if names is None else len(names)
        if low < -1 or high >= most:
            raise UsageError(
                f"y must number the classes from 0 to at most {most - 1}, with -1 if unknown, got "
                f"{low} to {high}"
            )
        notes = (MINUS_ONE,) if names is None and set(array.tolist()) == {-1, 1} else ()
        return ColumnLabels(torch.tensor(array, dtype=torch.int64), (), array >= 0, notes)
    if own and array.dtype.kind == "f" and options.task == "auto":
        array = array.astype(np.float64)
        wrong = np.abs(array) > LARGEST  # as numbers in tables
        if wrong.any():
            number = int(wrong.argmax())
            raise DataError(
                f"graphs[{number}]: y must be a finite number of at most {LARGEST:g}, got "
                f"{array[number]}"
            )
        return ColumnLabels(torch.from_numpy(array), (), ~np.isnan(array))
    return options.labels(
        read_table({"y": array if array.dtype.kind != "O" else list(given)}), None
    )


def _of_graphs(graphs: Sequence[Graph]) -> Graph:
    for number, graph in enumerate(graphs):
        if graph.num_graphs != 1:
            raise UsageError(f"graphs[{number}] must be one graph, got {graph.num_graphs} in it")
        _check_alike(graph.x, graphs[0].x, number)
    plain: dict[str, Any] = dict.fromkeys(
        ("y", "train_mask", "val_mask", "test_mask", "node_weight", "sample_weight", "label_names")
    )
    # Networks of whole graphs read no edge features; a note says so.
    plain |= {"node_ids": None, "edge_attr": None}
    return Graph.concat([replace(graph, **plain) for graph in graphs])


class _Part(NamedTuple):
    """One graph of PyG."""

    size: int
    edge_index: Tensor
    x: Tensor | None
    edge_weight: Tensor | None


def _of_pyg(graphs: Sequence[Data], directed: bool) -> Graph:
    parts: list[_Part] = []
    for number, data in enumerate(graphs):
        try:
            part = _part(data, directed)
        except ValueError as error:
            raise DataError(f"graphs[{number}]: {error}") from error
        first = parts[0] if parts else part
        for key in ("x", "edge_weight"):
            if (getattr(part, key) is None) != (getattr(first, key) is None):
                raise DataError(f"graphs[{number}]: {key} must be given for all graphs or for none")
        if part.x is not None and first.x is not None:
            _check_alike(part.x, first.x, number)
        parts.append(part)
    ptr = torch.tensor([0, *(part.size for part in parts)]).cumsum(0)
    edges = [part.edge_index + first for part, first in zip(parts, ptr.tolist(), strict=False)]
    x = [part.x for part in parts if part.x is not None]
    weights = [part.edge_weight for part in parts if part.edge_weight is not None]
    return Graph.from_edge_index(
        torch.cat(edges, dim=1),
        int(ptr[-1]),
        edge_weight=torch.cat(weights) if weights else None,
        directed=directed,
        x=stack_rows(x) if x else None,
        ptr=ptr,
    )


def _part(data: Data, directed: bool) -> _Part:
    """A graph, checked: side by side with others, its rows could be taken for theirs."""
    found = arguments_from_pyg(data, ("x",))
    size, edges, weights = int(found["num_nodes"] or 0), found["edge_index"], found["edge_weight"]
    if edges.layout != torch.strided:  # a sparse adjacency
        one = Graph.from_edge_index(edges, size, directed=directed)
        edges, weights = one.edge_index, one.edge_weight
    weights = None if weights is None else weights.reshape(-1).cpu()
    check_edge_index(edges, size, size, weights)
    x = found.get("x")
    if x is not None:
        x = (x.unsqueeze(1) if x.dim() == 1 else x).cpu()
        if x.dim() != 2 or len(x) != size:
            raise ValueError(f"x must have one row per node ({size}), got shape {list(x.shape)}")
        x = x.to_sparse_csr() if x.layout in (torch.sparse_coo, torch.sparse_csc) else x
    return _Part(size, edges.cpu(), x, weights)


def _check_alike(x: Tensor | None, first: Tensor | None, number: int) -> None:
    """Raises DataError if features cannot be stacked on those of the first graph."""
    width, wanted = (0 if one is None else one.size(1) for one in (x, first))
    if width != wanted:
        raise DataError(
            f"graphs[{number}]: nodes must have {wanted} features, as in graphs[0], got {width}"
        )
    if x is not None and first is not None and x.layout != first.layout:
        raise DataError(f"graphs[{number}]: x must be sparse for all graphs or for none")


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
