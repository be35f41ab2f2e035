"""Sets of graphs from tables: one row per graph, one row per edge, and perhaps one row per node."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.graph.csr import take_rows
from lgcn.tables.columns import listed, quoted
from lgcn.tables.early_checks import OF_FEATURES
from lgcn.tables.edges import to_adjacency
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_tables import edge_notes, end_columns
from lgcn.tables.graph_nodes import GraphNodes, NamedGraphs, nodes_of_edges, read_graph_edges
from lgcn.tables.ids import NodeIndex
from lgcn.tables.matrix_files import MatrixTable
from lgcn.tables.nodes import (
    NodeOptions,
    column_names,
    find_id_column,
    node_data,
    node_ids,
    read_columns,
)
from lgcn.tables.notes import grouped_notes, notes_on_graphs
from lgcn.tables.open_table import open_table
from lgcn.tables.table_source import TableSource
from lgcn.tables.targets import read_sample_weight

SHARE = 0.1  # of the graphs, for validation and for test


@dataclass
class ImportedGraphs:
    """The graphs of tables, and what a user should know about them.

    Attributes:
        graphs: The graphs.
        notes: One sentence each.
        counts: Rows of the tables (`graph_rows`, `node_rows`, `edge_rows`), and edges that were
            left out: `self_loops`, and `duplicates` of others.
    """

    graphs: GraphSet
    notes: list[str]
    counts: dict[str, int]


def graphs_from_tables(
    edges: Any,
    nodes: Any,
    graphs: Any,
    *,
    graph_column: str = "graph",
    label_column: str | Sequence[str] | None = None,
    task: str = "auto",
    id_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    directed: bool = False,
    sample_weight_column: str | None = None,
    split_column: str | None = None,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    label_separator: str | None = None,
    numeric_columns: str | Sequence[str] = (),
    categorical_columns: str | Sequence[str] = (),
    text_columns: str | Sequence[str] = (),
    list_columns: str | Sequence[str] = (),
    ignore_columns: str | Sequence[str] = (),
    decimal: str = "auto",
    date_order: str = "auto",
    na_values: str | Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str = "utf-8",
    name: str | None = None,
    encoder: FeatureEncoder | None = None,
    label_names: Sequence[str] | None = None,
) -> GraphSet:
    """Makes many graphs from tables: one row per graph, per node and per edge.

    Tables are what [`lgcn.from_tables`][lgcn.from_tables] takes, with column names. Ids are whole
    numbers or strings. Those of nodes must differ within a graph. Duplicate edges are merged, and
    the largest weight wins; self-loops are left out. Graphs without nodes or edges are kept. What
    looks odd about the tables becomes a warning.

    ```python
    lgcn.graphs_from_tables("bonds.csv", "atoms.csv", "molecules.csv", graph_column="molecule",
                            label_column="toxic")
    ```

    Args:
        edges: One row per edge: its graph and its two ends. Without a column of graphs, the ids of
            nodes must differ over all graphs. `None` for graphs without edges.
        nodes: One row per node: its graph, its id and features. `None` if there are no features:
            nodes are then the ends of edges.
        graphs: One row per graph: its id and label, and perhaps its split and weight. Other
            columns are not read.
        graph_column: The ids of graphs, in all tables. (default: `"graph"`)
        label_column: The label of each graph; leave cells empty for graphs to predict. Several
            columns are one label each. (default: no labels)
        task: See [`lgcn.from_tables`][lgcn.from_tables].
        id_column: The ids of the nodes in `nodes`. (default: `id`, `node` or `node_id`, else the
            first column that is not `graph_column`)
        source_column, target_column, weight_column, directed: See
            [`lgcn.from_tables`][lgcn.from_tables].
        sample_weight_column: The weight of each graph in the training loss. (default: all one)
        split_column: Says train, val or test for each graph. (default: a random split)
        val, test: Shares of the labelled graphs for validation and test. (default: 0.1 each)
        split_seed: Seed of a random split. (default: 0)
        label_separator: Separates the labels in a cell, where a graph can have several.
            (default: a cell is one label)
        numeric_columns, categorical_columns, text_columns, list_columns: Feature columns of nodes
            of these kinds. (default: guessed from types and values)
        ignore_columns: Columns of `nodes` that are not read. (default: none)
        decimal, date_order, na_values, delimiter, encoding: See
            [`lgcn.from_tables`][lgcn.from_tables].
        name: Name of the set. (default: that of the file of graphs)
        encoder: Makes the features as a trained model knows them.
            (default: fitted to the nodes of graphs that are not for validation or test)
        label_names: The labels that a trained model knows. (default: those of the table)
    """
    imported = import_graphs(**locals())
    for note in imported.notes:
        warnings.warn(note, stacklevel=2)
    return imported.graphs


def import_graphs(
    edges: Any,
    nodes: Any,
    graphs: Any,
    *,
    graph_column: str = "graph",
    id_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    directed: bool = False,
    ignore_columns: str | Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str = "utf-8",
    name: str | None = None,
    **options: Any,
) -> ImportedGraphs:
    """Like `graphs_from_tables`, with notes and counts instead of warnings.

    Args:
        edges, nodes, graphs and all others: See `graphs_from_tables`.
    """
    if edges is None and nodes is None:
        raise UsageError("edges and nodes must not both be None: graphs need nodes")
    of_graphs, of_nodes = _both_options(options)
    format_: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    graph_source = open_table(graphs, "graphs", **format_)
    graph_source.column("graph_column", graph_column)
    node_source = edge_source = None
    if nodes is not None:
        node_source = open_table(nodes, "nodes", **format_)
        node_source.column("graph_column", graph_column)
        id_column = find_id_column(node_source, id_column, besides=graph_column)
    elif of_nodes.encoder is not None and of_nodes.encoder.columns:
        raise UsageError("nodes must be given: the model was trained with features of nodes")
    if edges is not None:
        edge_source = open_table(edges, "edges", **format_)
        if isinstance(edge_source, MatrixTable):
            raise UsageError(f"{edge_source.name}: edges must have columns, got a matrix")
        ends = end_columns(edge_source, source_column, target_column, besides=graph_column)
        if weight_column is not None:
            edge_source.column("weight_column", weight_column)
        _check_differ(
            graph_column=graph_column,
            source_column=ends[0],
            target_column=ends[1],
            weight_column=weight_column,
        )
        if nodes is None:
            edge_source.column("graph_column", graph_column)

    notes: list[str] = []
    index, targets = _read_graphs(graph_source, graph_column, of_graphs, notes)
    names = NamedGraphs(index, targets["ids"], graph_column, graph_source.name)
    counts = {"graph_rows": len(targets["ids"]), "node_rows": 0, "edge_rows": 0}
    counts |= {"unknown_endpoints": 0, "self_loops": 0, "duplicates": 0}
    if node_source is not None:
        assert id_column is not None
        held_out = None
        if "val_mask" in targets:
            held_out = (targets["val_mask"] | targets["test_mask"]).numpy()
        made, found = _read_nodes(
            node_source, id_column, names, of_nodes, column_names(ignore_columns), held_out, notes
        )
        counts["node_rows"] = made.num_nodes
    else:
        assert edge_source is not None
        found = nodes_of_edges(edge_source, ends, names)
        made = Graph(torch.zeros(len(found) + 1, dtype=torch.int32), torch.empty(0).int())
        made = replace(made, encoder=FeatureEncoder((), (), sparse=False))
    if edge_source is not None:
        edge_list = read_graph_edges(edge_source, ends, weight_column, names, found)
        rows, duplicates = to_adjacency(
            edge_list.sources, edge_list.targets, edge_list.weights, len(found), directed=directed
        )
        made = replace(made, rowptr=rows.rowptr, col=rows.col, edge_weight=rows.weight)
        counts["edge_rows"], counts["self_loops"] = edge_list.num_rows, edge_list.num_self_loops
        counts["duplicates"] = duplicates
        notes += [*edge_source.notes, *edge_notes(edge_source, counts, weight_column, directed)]
    path = graph_source.path
    graph = replace(
        made,
        ptr=torch.from_numpy(found.ptr),
        node_ids=found.ids.to_numpy(zero_copy_only=False),
        name=name or (path.stem.removesuffix(".csv") if path else "graphs"),
    )
    joined = GraphSet.create(graph, **targets)
    return ImportedGraphs(joined, grouped_notes(notes + notes_on_graphs(joined)), counts)


def _check_differ(**columns: str | None) -> None:
    """Raises UsageError if one column of the edges is named for two purposes."""
    place: dict[str, str] = {}
    for argument, column in columns.items():
        if column is not None and place.setdefault(column, argument) != argument:
            raise UsageError(
                f"column {column!r} is named in {place[column]} and in {argument}. "
                "Name it in one of them"
            )


def _both_options(options: dict[str, Any]) -> tuple[NodeOptions, NodeOptions]:
    """The options of the table of graphs, and of the table of nodes."""
    given = dict(options)
    if given.get("split_column") is None and given.get("label_column"):
        for share in ("val", "test"):
            given[share] = SHARE if given.get(share) is None else given[share]
    cells = ("decimal", "date_order", "na_values", "encoder")
    per_node = {key: given[key] for key in (*OF_FEATURES, *cells) if key in given}
    per_graph = {key: value for key, value in given.items() if key not in OF_FEATURES}
    return NodeOptions.named(**per_graph), NodeOptions.named(**per_node)


def _read_graphs(
    source: TableSource, graph_column: str, options: NodeOptions, notes: list[str]
) -> tuple[NodeIndex, dict[str, Any]]:
    """The index of the graphs, and the arguments of `GraphSet.create` about them."""
    named = {graph_column, *options.label_columns, *options.other_columns}
    others = [column for column in source.columns if column not in named]
    if others and options.encoder is None:  # a trained model need not read the labels
        notes.append(
            f"{source.name}: {listed(others, 5)} {'is' if len(others) == 1 else 'are'} not read; "
            "features belong to nodes"
        )
    ids_of = {"graph_column": graph_column}
    table = read_columns(source, ids_of, options, others, notes, per="graph")
    which = f"column {graph_column!r}"
    column = table.column(graph_column)
    ids = node_ids(source, column, which, per="graph", argument="graph_column")
    index = NodeIndex(ids)
    if index.repeated is not None:
        first, second = source.where(index.repeated)
        twice = quoted(ids[index.repeated[0]].as_py())
        raise DataError(
            f"{source.name}: a graph must have one row, got {twice} in {first} and in {second}, "
            f"{which}"
        )
    targets: dict[str, Any] = {"ids": ids.to_numpy(zero_copy_only=False)}
    targets["label_names"] = options.label_names
    if not options.label_columns:
        return index, targets
    line = source.first_line(len(table))
    try:
        labels = options.labels(table, line)
        masks = options.split(table, labels, line)
        if options.sample_weight_column is not None:
            targets["sample_weight"] = read_sample_weight(
                table,
                options.sample_weight_column,
                labels.known,
                first_line=line,
                cells=options.cells,
            )
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from error
    notes += [f"{source.name}: {note}" for note in labels.notes]
    targets |= {"y": labels.y, "label_names": labels.names or None}
    targets |= dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True))
    return index, targets


def _read_nodes(
    source: TableSource,
    id_column: str,
    names: NamedGraphs,
    options: NodeOptions,
    ignore: list[str],
    held_out: Any,
    notes: list[str],
) -> tuple[Graph, GraphNodes]:
    """Features in the order of the nodes, and the nodes. `held_out` are graphs not to be seen."""
    ids_of = {"graph_column": names.column, "id_column": id_column}
    table = read_columns(source, ids_of, options, ignore, notes)
    graph_of = names.find(source, table, 0)
    which = f"column {id_column!r}"
    ids = node_ids(source, table.column(id_column), which)
    nodes = GraphNodes(graph_of, ids, len(names.ids))
    if nodes.repeated is not None:
        first, second = source.where(sorted(nodes.repeated))
        row = nodes.repeated[0]
        raise DataError(
            f"{source.name}: ids of nodes must differ within a graph, got "
            f"{quoted(ids[row].as_py())} of graph {quoted(names.name(graph_of[row]))} in {first} "
            f"and in {second}, {which}"
        )
    made = node_data(
        table.drop_columns([names.column, id_column]),
        options,
        notes,
        source.name,
        first_line=source.first_line(len(table)),
        fit_rows=None if held_out is None else ~held_out[graph_of],
    )
    if made.x is not None:
        made = replace(made, x=take_rows(made.x, torch.from_numpy(nodes.order)))
    return made, nodes
