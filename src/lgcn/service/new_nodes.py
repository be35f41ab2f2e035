"""New nodes: the graph extended by them and their edges, as far as their scores depend on it.

The answer for new nodes is that of `lgcn predict` on tables to which they were appended. What other
nodes of the graph would be predicted then is not computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from lgcn.errors import DataError, did_you_mean
from lgcn.graph import Graph
from lgcn.graph.csr import sparse_features, stack_rows
from lgcn.service.known_nodes import KnownNodes
from lgcn.service.problems import RequestError, shown
from lgcn.tables.edges import edge_weights
from lgcn.tables.encoder import Surprises

if TYPE_CHECKING:
    from lgcn.service.schemas import Edge, NewNode
    from lgcn.tables.encoder import FeatureEncoder


@dataclass(frozen=True)
class NewNodes:
    """New nodes with their features and edges, checked.

    Args:
        ids: Their ids.
        x: Their features, [nodes, features]; `None` if the graph has none.
        row, col: Entries that they add to the adjacency, sorted and distinct. Node numbers of the
            graph come first; the new nodes follow.
        weight: The weights of these entries; `None` if the graph has none.
        notes: What the user should know about the cells.
    """

    ids: tuple[Any, ...]
    x: Tensor | None
    row: Any
    col: Any
    weight: Any | None
    notes: tuple[str, ...]


def read_edges(
    edges: Sequence[Edge],
    ids: Sequence[Any],
    known: KnownNodes,
    *,
    directed: bool,
    weighted: bool,
) -> tuple[Any, Any, Any]:
    """The entries (row, col, weight) that edges add to the adjacency.

    As in tables, self-loops are left out, and of duplicate edges the largest weight wins.

    Args:
        edges: The edges of a request.
        ids: The ids of its new nodes.
        known: The nodes of the graph.
        directed: Whether only an edge's target aggregates from its source.
        weighted: Whether the graph has weights.
    """
    place = {known.key(one): known.num_nodes + i for i, one in enumerate(ids)}
    if len(place) < len(ids):
        seen = [known.key(one) for one in ids]
        twice = next(i for i, key in enumerate(seen) if key in seen[:i])
        raise RequestError(
            f"ids of new nodes must differ, got {shown(ids[twice])} twice", f"new_nodes[{twice}].id"
        )
    taken = known.search(ids)
    if len(taken) and taken.max() >= 0:
        at = int(taken.argmax())
        raise RequestError(
            f"a node of the graph has the id {shown(ids[at])} already; give the new node another "
            "one, or ask for the known node in nodes",
            f"new_nodes[{at}].id",
        )
    ends = [_ends([getattr(edge, end) for edge in edges], end, place, known) for end in _ENDS]
    source, target = ends
    old = (source < known.num_nodes) & (target < known.num_nodes)
    if old.any():
        raise RequestError(
            "an edge must have a new node at one end at least; edges between nodes of the graph "
            "cannot be added",
            f"edges[{int(old.argmax())}]",
        )
    weight = _weights(edges, weighted)
    kept = source != target
    row, col, weight = target[kept], source[kept], weight[kept]
    if not directed:
        row, col = np.concatenate([row, col]), np.concatenate([col, row])
        weight = np.concatenate([weight, weight])
    order = np.lexsort((-weight, col, row))
    row, col, weight = row[order], col[order], weight[order]
    first = np.ones(len(row), bool)
    first[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    return row[first], col[first], weight[first] if weighted else None


_ENDS = ("source", "target")


def _ends(given: list[Any], end: str, place: Mapping[str, int], known: KnownNodes) -> Any:
    """The node numbers of one end of the edges."""
    new = np.array([place.get(known.key(one), -1) for one in given], np.int64)
    found = np.where(new >= 0, new, known.search(given))
    if len(found) and found.min() < 0:
        at = int(found.argmin())
        error = known.unknown(given[at], f"edges[{at}].{end}")
        raise RequestError(f"{error.message}, and no new node has it", error.field)
    return found


def _weights(edges: Sequence[Edge], weighted: bool) -> Any:
    for at, edge in enumerate(edges):
        if (edge.weight is not None) != weighted:
            wanted = "needed: the edges of the graph have weights"
            unwanted = "not wanted: the edges of the graph have no weights. Omit it"
            raise RequestError(
                f"a weight is {wanted if weighted else unwanted}", f"edges[{at}].weight"
            )
    given = np.array([1.0 if edge.weight is None else edge.weight for edge in edges], np.float64)
    weights, wrong = edge_weights(given)
    if wrong.any():
        at = int(wrong.argmax())
        raise RequestError(
            f"a weight must be a finite number of at least 0 in float32, got {edges[at].weight!r}",
            f"edges[{at}].weight",
        )
    return weights


def read_columns(
    nodes: Sequence[NewNode], encoder: FeatureEncoder
) -> tuple[Tensor, tuple[str, ...]]:
    """The features of new nodes, and notes about cells that the encoder did not expect.

    Args:
        nodes: The new nodes of a request.
        encoder: How columns become features.
    """
    names = {column.name: column.kind for column in encoder.columns}
    for at, node in enumerate(nodes):
        if node.features is not None:
            raise RequestError(
                "features is for models that were trained on numbers; give columns",
                f"new_nodes[{at}].features",
            )
        for name in node.columns:
            if name not in names:
                hint = did_you_mean(name, names) if names else "the model takes no columns"
                raise RequestError(
                    f"the model has no column {shown(name)}; {hint}", f"new_nodes[{at}].columns"
                )
    columns = {}
    for name, kind in names.items():
        cells = [node.columns.get(name) for node in nodes]
        columns[name] = _column(name, kind, cells)
    surprises = Surprises()
    try:
        x = encoder.transform(pa.table(columns), surprises=surprises)
    except DataError as error:
        raise RequestError(str(error), "new_nodes") from None
    return x, tuple(surprises.messages(encoder))


def _column(name: str, kind: str, cells: list[Any]) -> Any:
    """Cells as an Arrow column; of numbers and strings together, all become strings."""
    if kind == "vector":
        cells = [_vector(name, cell, at) for at, cell in enumerate(cells)]
    present = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, list) for cell in present):
        at = next((i for i, c in enumerate(cells) if c is not None and not isinstance(c, list)), -1)
        if at >= 0:
            raise RequestError(
                f"column {name!r} has lists in some nodes and other cells in others",
                f"new_nodes[{at}].columns.{name}",
            )
    elif kind in ("number", "date") and all(type(cell) in (int, float) for cell in present):
        cells = [None if cell is None else float(cell) for cell in cells]  # may exceed 64 bits
    elif len({type(cell) for cell in present}) > 1 or any(type(c) is int for c in present):
        cells = [None if cell is None else _text(cell) for cell in cells]
    try:
        return pa.array(cells)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise RequestError(
            f"column {name!r} holds cells of different kinds, or numbers beyond 64 bits",
            f"new_nodes[0].columns.{name}",
        ) from None


def _vector(name: str, cell: Any, at: int) -> Any:
    """A list of numbers; one that is written as text, such as `1 2.5`, is read."""
    if not isinstance(cell, str):
        return cell
    try:
        found = [float(part) for part in re.split(r"[\s,;]+", cell.strip(" []")) if part]
    except ValueError:
        raise RequestError(
            f"want numbers, with commas or blanks between them, got {shown(cell)}",
            f"new_nodes[{at}].columns.{name}",
        ) from None
    return found or None


def _text(cell: Any) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def read_features(nodes: Sequence[NewNode], width: int, like: Tensor | None) -> Tensor | None:
    """The features of new nodes that come as numbers.

    Args:
        nodes: The new nodes of a request.
        width: Number of features.
        like: The features of the graph, whose layout the new ones get.
    """
    for at, node in enumerate(nodes):
        if node.columns:
            raise RequestError(
                f"the model was not trained on columns; give features, a list of {width} numbers",
                f"new_nodes[{at}].columns",
            )
        if len(node.features or ()) != width:
            got = "none" if node.features is None else str(len(node.features))
            raise RequestError(
                f"features must have {width} numbers, got {got}", f"new_nodes[{at}].features"
            )
    if like is None:
        return None
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    x = torch.tensor([node.features for node in nodes], dtype=torch.float64).to(dtype)
    if not bool(x.isfinite().all()):
        at = int((~x.isfinite()).any(1).nonzero()[0])
        raise RequestError("features must fit in float32", f"new_nodes[{at}].features")
    return x


def extend(graph: Graph, new: NewNodes, nodes: Any | None = None) -> Graph:
    """The graph with new nodes at the end, or the part of it on some nodes.

    All nodes have the degrees of the whole extended graph.

    Args:
        graph: The graph.
        new: The new nodes.
        nodes: Sorted numbers of the nodes to keep, beside the new ones. (default: all)
    """
    num_all, count = graph.num_nodes, len(new.ids)
    if nodes is None:
        part, numbers = graph, np.arange(num_all)
        x, degree = (None if graph.x is None else graph.features()), graph.row_degree()
    else:
        numbers = nodes
        part = graph.subgraph(torch.from_numpy(nodes))
        x, degree = part.x, part.row_degree()
    size = len(numbers)
    # Node numbers within the part; those of nodes that are left out are -1.
    row, col = (_within(ends, numbers, num_all) for ends in (new.row, new.col))
    kept = (row >= 0) & (col >= 0)
    weight = np.ones(len(row), np.float32) if new.weight is None else new.weight
    row, col, weight = row[kept], col[kept], weight[kept]
    old_row = np.repeat(np.arange(size), part.rowptr.diff().numpy())
    rows = np.concatenate([old_row, row])
    order = np.argsort(rows, kind="stable")  # a row's new entries have the largest numbers
    rowptr = np.concatenate([[0], np.bincount(rows, minlength=size + count).cumsum()])
    cols = np.concatenate([part.col.numpy().astype(np.int64), col])[order]
    edge_weight = None
    if part.edge_weight is not None:
        edge_weight = torch.cat([part.edge_weight, torch.from_numpy(weight)])[order]
    added = torch.zeros(size + count, dtype=degree.dtype)
    added.index_add_(0, torch.from_numpy(row), torch.from_numpy(weight).to(degree.dtype))
    added[:size] += degree
    return Graph(
        torch.from_numpy(rowptr),
        torch.from_numpy(cols),
        x=None if x is None else _stacked(x, new.x),
        edge_weight=edge_weight,
        degree=added,
        name=graph.name,
    )


def _within(ends: Any, numbers: Any, num_all: int) -> Any:
    place = np.searchsorted(numbers, ends)
    there = np.zeros(len(ends), bool)
    inside = place < len(numbers)
    there[inside] = numbers[place[inside]] == ends[inside]
    return np.where(ends >= num_all, ends - num_all + len(numbers), np.where(there, place, -1))


def _stacked(x: Tensor, new: Tensor | None) -> Tensor:
    assert new is not None
    new = new.to(x.dtype)
    if x.layout == torch.sparse_csr and new.layout != torch.sparse_csr:
        sparse = new.to_sparse_csr()
        index = x.crow_indices().dtype
        parts = sparse.crow_indices().to(index), sparse.col_indices().to(index)
        new = sparse_features(*parts, sparse.values(), new.size(1))
    elif x.layout != torch.sparse_csr and new.layout == torch.sparse_csr:
        new = new.to_dense()
    return stack_rows([x, new])
