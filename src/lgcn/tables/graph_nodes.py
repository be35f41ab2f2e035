"""Nodes and edges of many graphs by the ids that users give them, which are unique in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError
from lgcn.tables.columns import quoted
from lgcn.tables.edges import EdgeList, find_ids, read_weights
from lgcn.tables.ids import NodeIndex
from lgcn.tables.nodes import node_ids
from lgcn.tables.table_source import TableSource


@dataclass(frozen=True)
class NamedGraphs:
    """The graphs of a table by their ids.

    Args:
        index: Their numbers.
        ids: Their ids.
        column: The column of graphs in every table.
        table: The name of the table that has one row per graph.
    """

    index: NodeIndex
    ids: Any
    column: str
    table: str

    def name(self, number: int) -> Any:
        """The id of a graph, for messages."""
        found = self.ids[number]
        return found.item() if isinstance(found, np.generic) else found

    def find(self, source: TableSource, rows: Any, first: int) -> Any:
        """The number of each row's graph; `first` is the number of the first row in its table."""
        found = find_ids(source, rows, self.column, self.index, first)
        if (found < 0).any():
            row = int((found < 0).argmax())
            got = rows.column(self.column)[row].as_py()
            where = f"{source.name}, {source.where([first + row])[0]}, column {self.column!r}"
            if got in (None, ""):
                raise DataError(f"{where}: the graph is missing. Fill in the cell")
            raise DataError(
                f"{where}: {self.table} has no row for graph {quoted(got)}. Add one, or correct "
                "the cell"
            )
        return found


class GraphNodes:
    """The nodes of many graphs, numbered graph after graph in the order that they are given.

    An id and its graph become one whole number: the graph's times the number of distinct ids, plus
    the position of the id among these.

    Args:
        graph_of: The number of each node's graph.
        ids: An Arrow array of the nodes' ids, as `lgcn.tables.ids.to_ids` makes them.
        num_graphs: Number of graphs.

    Attributes:
        order: Positions of the nodes in what was given.
        graph_of: The number of each node's graph, in this order.
        ids: The ids in this order.
        ptr: Node offsets of the graphs.
        repeated: The positions of two nodes of one graph with the same id, `None` if all differ.
        codes: The index of the distinct ids.
    """

    def __init__(self, graph_of: Any, ids: Any, num_graphs: int) -> None:
        encoded = ids.dictionary_encode()
        self.codes = NodeIndex(encoded.dictionary)
        self._distinct = len(encoded.dictionary)
        self.order = np.argsort(graph_of, kind="stable")
        self.graph_of, self.ids = graph_of[self.order], ids.take(pa.array(self.order))
        self.ptr = np.concatenate([[0], np.bincount(graph_of, minlength=num_graphs).cumsum()])
        code_of = encoded.indices.to_numpy()[self.order]
        self._keys = NodeIndex(pa.array(self._key(self.graph_of, code_of)))
        self.repeated: tuple[int, int] | None = None
        if self._keys.repeated is not None:
            first, second = (int(self.order[place]) for place in self._keys.repeated)
            self.repeated = first, second
        # Where an id is that occurs once, the last place of others.
        self._place = np.full(self._distinct, -1, np.int32)
        self._place[code_of] = np.arange(len(code_of))

    def __len__(self) -> int:
        return len(self.graph_of)

    @property
    def differ(self) -> bool:
        """Whether ids differ over all graphs."""
        return self._distinct == len(self)

    def find(self, graph: Any, codes: Any) -> Any:
        """Node numbers by graphs and positions among the distinct ids, -1 where there is none."""
        keys = np.where(codes < 0, -1, self._key(graph, codes))
        return self._keys.find(pa.array(keys))

    def anywhere(self, codes: Any) -> Any:
        """Node numbers by positions among the distinct ids alone, -1 where there is none."""
        return np.where(codes < 0, -1, self._place[codes]) if self._distinct else codes

    def _key(self, graph: Any, codes: Any) -> Any:
        return graph.astype(np.int64) * self._distinct + codes


def nodes_of_edges(source: TableSource, ends: tuple[str, str], names: NamedGraphs) -> GraphNodes:
    """The nodes that edges name, in the order in which they first occur.

    Args:
        source: The edge table.
        ends: Its columns of sources and targets.
        names: The graphs.
    """
    types = dict.fromkeys(ends, pa.string())
    types[names.column] = pa.int64() if names.index.integer else pa.string()
    table = source.read([*ends, names.column], types)
    graph = names.find(source, table, 0)
    sides = [
        node_ids(source, table.column(end), f"column {end!r}", argument=argument)
        for end, argument in zip(ends, ("source_column", "target_column"), strict=True)
    ]
    # As text if one of them is: 007 was not made a number before.
    kind = sides[0].type if sides[0].type == sides[1].type else pa.large_string()
    both = pa.concat_arrays([side.cast(kind) for side in sides])
    in_turn = np.arange(2 * len(table)).reshape(2, -1).T.ravel()
    ids, graph_of = both.take(pa.array(in_turn)), np.repeat(graph, 2)
    encoded = ids.dictionary_encode()
    keys = graph_of.astype(np.int64) * len(encoded.dictionary) + encoded.indices.to_numpy()
    first = np.sort(np.unique(keys, return_index=True)[1])
    return GraphNodes(graph_of[first], ids.take(pa.array(first)), len(names.ids))


def read_graph_edges(
    source: TableSource,
    ends: tuple[str, str],
    weight_column: str | None,
    names: NamedGraphs,
    nodes: GraphNodes,
) -> EdgeList:
    """Reads an edge table batch by batch, and looks up the graph and the nodes of each edge.

    Args:
        source: The edge table.
        ends, weight_column: Its columns; no weights if that is `None`.
        names: The graphs. If the table has no column of them, ids of nodes must say enough.
        nodes: The nodes.
    """
    has_graphs = names.column in source.columns
    if not has_graphs and not nodes.differ:
        raise DataError(
            f"{source.name} must have the column {names.column!r} of graphs (graph_column): ids of "
            "nodes occur in several graphs"
        )
    types = dict.fromkeys(ends, pa.int64() if nodes.codes.integer else pa.string())
    columns = list(ends)
    if has_graphs:
        columns.append(names.column)
        types[names.column] = pa.int64() if names.index.integer else pa.string()
    edges = EdgeList()
    if weight_column is not None:
        columns.append(weight_column)
        types[weight_column] = pa.float64()
        edges.weights = []
    why = "The ids of the nodes or graphs are whole numbers"
    for batch in source.batches(columns, types, why):
        first = edges.num_rows
        codes = [find_ids(source, batch, name, nodes.codes, first) for name in ends]
        if has_graphs:
            graph = names.find(source, batch, first)
            found = [nodes.find(graph, code) for code in codes]
        else:
            found = [nodes.anywhere(code) for code in codes]
        _check_ends(source, batch, first, found, codes, names, nodes, has_graphs=has_graphs)
        kept = found[0] != found[1]
        edges.num_rows += len(kept)
        edges.num_self_loops += int((~kept).sum())
        edges.sources.append(found[0][kept])
        edges.targets.append(found[1][kept])
        if edges.weights is not None:
            assert weight_column is not None
            edges.weights.append(read_weights(source, batch, weight_column, first)[kept])
    return edges


def _check_ends(
    source: TableSource,
    batch: Any,
    first: int,
    found: list[Any],
    codes: list[Any],
    names: NamedGraphs,
    nodes: GraphNodes,
    *,
    has_graphs: bool,
) -> None:
    """Raises DataError for the first edge that does not join two nodes of one graph."""
    wrong = (found[0] < 0) | (found[1] < 0)
    if not has_graphs:
        wrong |= nodes.graph_of[found[0]] != nodes.graph_of[found[1]] if len(nodes) else wrong
    if not wrong.any():
        return
    row = int(wrong.argmax())
    ends = [quoted(batch.column(side)[row].as_py()) for side in (0, 1)]
    place = f"{source.name}, {source.where([first + row])[0]}"

    def graph_of(node: int) -> str:
        return quoted(names.name(nodes.graph_of[node]))

    for side in (0, 1):
        if found[side][row] >= 0:
            continue
        if batch.column(side)[row].as_py() in (None, ""):
            raise DataError(f"{place}: an end of the edge is missing. Fill in the cell")
        whose = (
            f"graph {quoted(batch.column(names.column)[row].as_py())}"
            if has_graphs
            else "the node table"
        )
        other = nodes.anywhere(codes[side])[row] if nodes.differ else -1
        if other >= 0:
            raise DataError(
                f"{place}: an edge must join nodes of one graph, got one of {whose} with node "
                f"{ends[side]}, which is of graph {graph_of(other)}"
            )
        raise DataError(f"{place}: {whose} has no node {ends[side]}. Add it, or correct the id")
    raise DataError(
        f"{place}: an edge must join nodes of one graph, got node {ends[0]} of graph "
        f"{graph_of(found[0][row])} and node {ends[1]} of graph {graph_of(found[1][row])}"
    )
