"""Graphs from two tables: one row per edge, one row per node."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph
from lgcn.tables.columns import listed, quoted
from lgcn.tables.early_checks import check_unknown_nodes
from lgcn.tables.edge_features import edge_feature_columns, of_entries, read_edge_features
from lgcn.tables.edges import read_edges, to_adjacency
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.feature_join import WithFeatures, wants_features
from lgcn.tables.ids import NodeIndex
from lgcn.tables.matrix_files import MatrixTable
from lgcn.tables.nodes import (
    NodeArguments,
    NodeOptions,
    column_names,
    node_data,
    read_nodes,
)
from lgcn.tables.notes import grouped_notes
from lgcn.tables.open_table import open_table
from lgcn.tables.table_source import TableSource

END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
WEIGHT_NAMES = ("weight", "weights")


@dataclass
class Imported:
    """The graph of two tables, and what a user should know about it.

    Attributes:
        graph: The graph.
        notes: What a user should know about the import, one sentence each.
        counts: Rows of the tables (`node_rows`, `edge_rows`), and edges that were left out:
            `unknown_endpoints` name no node, `self_loops`, and `duplicates` of other edges
            (in an undirected graph, in either direction).
    """

    graph: Graph
    notes: list[str]
    counts: dict[str, int]


def from_tables(
    edges: Any,
    nodes: Any,
    *,
    label_column: str | Sequence[str] | None = None,
    task: str = "auto",
    id_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    edge_columns: str | Sequence[str] = (),
    directed: bool = False,
    sample_weight_column: str | None = None,
    split_column: str | None = None,
    labels_per_class: int | None = None,
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
    unknown_nodes: str = "error",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    node_header: bool | None = None,
    features: Any = None,
    name: str | None = None,
    encoder: FeatureEncoder | None = None,
    edge_encoder: FeatureEncoder | None = None,
    label_names: Sequence[str] | None = None,
) -> Graph:
    """Makes a graph from an edge table and a node table.

    A table is a file (CSV, TSV, other text, JSON lines, Parquet or NPZ), several files, a pandas
    DataFrame, an Arrow table or a dict of columns. In an `.npz` file of edges, an array `edges` of
    shape [E, 2] or [2, E] can replace the two columns. Ids are whole numbers or strings, as in the
    node table.

    Edges can also be a sparse matrix: an `.npz` file by `scipy.sparse.save_npz`, or a Matrix Market
    file (`.mtx`). Its rows and columns are the nodes in the order of the node table, and its values
    are weights unless all are one.

    Duplicate edges are merged, and the largest weight wins. Self-loops are left out. What looks
    odd about the tables becomes a warning.

    Args:
        edges: One row per edge. Columns other than the named ones are not read. Several files are
            a list or a pattern such as `"part-*.csv"`. `None` for a graph without edges.
        nodes: One row per node. Columns that are not named below are features. Without any, the
            graph has no `x`, and a model learns from features that the edges give.
        label_column: The class of each node; leave cells empty for nodes to predict. Several
            columns are one label each. (default: no labels)
        task: `"regression"` to predict the numbers in the label column, `"classification"` to use
            each as a class. (default: `"auto"`: classes, but numbers that look like a quantity are
            an error that asks for the task)
        id_column: The ids of the nodes. (default: `id`, `node` or `node_id`, else the first column)
        source_column, target_column: The ids of an edge's ends. (default: `source` and `target`,
            `src` and `dst`, or `from` and `to`, else the first two columns)
        weight_column: The weights of the edges, numbers of at least 0. (default: all one)
        edge_columns: Columns of the edge table that become features of the edges (`edge_attr`):
            numbers, dates and categories, each by its values. Missing cells count as the mean, or
            as no category. Duplicate edges have the mean of their features. `model=residual` learns
            from them. (default: none)
        directed: Whether only an edge's target aggregates from its source. (default: `False`,
            every edge counts both ways)
        sample_weight_column: The weight of each node in the training loss, a number of at least 0.
            (default: all one)
        split_column: Says train, val or test in each row. (default: a random split)
        labels_per_class: Training nodes per class. (default: a split by `val` and `test`)
        val, test: Shares of the labelled nodes for validation and test. (default: 0.2 each)
        split_seed: Seed of a random split. (default: 0)
        label_separator: Separates the labels in a cell, where a node can have several.
            (default: a cell is one label)
        numeric_columns, categorical_columns, text_columns, list_columns: Feature columns of these
            kinds. A list is several words or ids in a cell, such as `a;b;c`. (default: guessed from
            types and values)
        ignore_columns: Columns that are not read. (default: none)
        decimal: The decimal separator of numbers in strings, `"."` or `","`; the other one
            separates thousands. (default: `"auto"`, by the cells of each column; a point if they
            can be read either way)
        date_order: The order of day, month and year in dates such as 7/8/2022: `"dmy"`, `"mdy"` or
            `"ymd"`. (default: `"auto"`, by the cells of each column; if they can be read either
            way, the day comes first in 7.8.2022, and the month in 7/8/2022)
        na_values: Cells that are missing values, in any feature or label column, in addition to
            codes such as `NA`, `n/a`, `?` and `-`. (default: none)
        unknown_nodes: What to do with edges that name no node of the node table, `"error"` or
            `"drop"`. (default: `"error"`)
        delimiter, encoding: Of text files; the delimiter `"whitespace"` is any run of blanks and
            tabs. (default: by the file's ending and first lines, and UTF-8)
        header, node_header: Whether text files of edges, and of nodes, have a line of column names.
            Without one, columns are called `1`, `2`, ... (default: they have one, except edges
            whose first line is all numbers)
        features: More features of the nodes: a table with the columns node, feature and value (1 if
            there is no value), or a sparse matrix with one row per row of the node table.
            (default: none)
        name: Name of the graph. (default: that of the node file)
        encoder: Makes the features as a trained model knows them; kinds of columns come from it.
            (default: fitted to the rows that are not for validation or test)
        edge_encoder: The same for the features of edges, which then decides about `edge_columns`.
            (default: fitted to all edges)
        label_names: The labels that a trained model knows. (default: those of the table)
    """
    imported = import_tables(**locals())
    for note in imported.notes:
        warnings.warn(note, stacklevel=2)
    return imported.graph


def import_tables(
    edges: Any,
    nodes: Any,
    *,
    id_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    edge_columns: str | Sequence[str] = (),
    directed: bool = False,
    ignore_columns: str | Sequence[str] = (),
    unknown_nodes: str = "error",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    node_header: bool | None = None,
    features: Any = None,
    name: str | None = None,
    edge_encoder: FeatureEncoder | None = None,
    **node_options: Unpack[NodeArguments],
) -> Imported:
    """Like `from_tables`, with notes and counts instead of warnings.

    Args:
        edges, nodes and all others: See `from_tables`.
    """
    check_unknown_nodes(unknown_nodes)
    options = NodeOptions.named(**node_options)
    if features is None and options.encoder is not None and wants_features(options.encoder):
        raise UsageError(
            "features must be given: the model was trained with a table of features beside the "
            "node table"
        )
    format_: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding}
    source = open_table(nodes, "nodes", header=node_header, **format_)
    # Before the long work on the nodes: most mistakes are in the edges.
    edge_source, features_of_edges = None, column_names(edge_columns)
    if edges is None and (features_of_edges or edge_encoder is not None):
        raise UsageError("edge_columns need edges, got edges=None: give the edge table")
    if edges is not None:
        edge_source = open_table(edges, "edges", header=header, **format_)
        ends = end_columns(edge_source, source_column, target_column)
        if isinstance(edge_source, MatrixTable) and "weight" in edge_source.columns:
            weight_column = "weight"
        if weight_column is not None:
            edge_source.column("weight_column", weight_column)
        if weight_column in ends:
            raise UsageError(
                f"weight_column must not be one of an edge's ends, got {weight_column!r}. Name the "
                "column of the weights, or omit weight_column"
            )
        features_of_edges = edge_feature_columns(
            edge_source, features_of_edges, (*ends, weight_column), edge_encoder
        )

    notes: list[str] = []
    if features is not None:
        source = WithFeatures(
            source,
            id_column,
            open_table(features, "features", **format_),
            drop_unknown=unknown_nodes == "drop",
            notes=notes,
        )
    table, ids, index = read_nodes(source, id_column, options, column_names(ignore_columns), notes)
    graph = replace(
        node_data(table, options, notes, source.name, first_line=source.first_line(len(table))),
        node_ids=ids.to_numpy(zero_copy_only=False),
        name=name or (source.path.stem.removesuffix(".csv") if source.path else "tables"),
    )
    counts = {"node_rows": len(table), "edge_rows": 0}
    counts |= {"unknown_endpoints": 0, "self_loops": 0, "duplicates": 0}
    del table, ids
    pa.default_memory_pool().release_unused()  # of the features' columns, before edges need it
    if edge_source is None:
        return Imported(graph, grouped_notes(notes), counts)

    if isinstance(edge_source, MatrixTable):
        index = positions(edge_source, graph.num_nodes, source.name)
    elif edge_source.path is not None and source_column is None and header is None:
        refuse_edge_as_header(edge_source, ends, index)
    notes += edge_source.notes
    found = read_edges(
        edge_source,
        *ends,
        weight_column,
        index,
        nodes=source.name,
        drop_unknown=unknown_nodes == "drop",
    )
    del index
    attr = None
    if features_of_edges:
        kept = np.concatenate(found.kept) if found.kept else np.empty(0, bool)
        attr, edge_encoder = read_edge_features(
            edge_source, features_of_edges, kept, options, edge_encoder, notes
        )
        starts, stops = (np.concatenate(part) for part in (found.sources, found.targets))
    rows, duplicates = to_adjacency(
        found.sources, found.targets, found.weights, graph.num_nodes, directed=directed
    )
    counts["edge_rows"], counts["self_loops"] = found.num_rows, found.num_self_loops
    counts["unknown_endpoints"], counts["duplicates"] = found.num_unknown, duplicates
    if rows.col.numel() == 0:
        raise DataError(
            f"{edge_source.name} has no edges ({found.num_rows} rows, of which "
            f"{found.num_self_loops} are self-loops and {found.num_unknown} name unknown nodes). "
            "Check the table; for a graph without edges on purpose, give edges=None"
        )
    notes += edge_notes(edge_source, counts, weight_column, directed)
    if attr is not None:
        if duplicates:
            notes.append(
                f"{edge_source.name}: edges that occur several times have the mean of their "
                "features (edge_columns)"
            )
        attr = of_entries(attr, starts, stops, rows, directed=directed)
    graph = replace(
        graph,
        rowptr=rows.rowptr,
        col=rows.col,
        edge_weight=rows.weight,
        edge_attr=attr,
        edge_encoder=edge_encoder if attr is not None else None,
    )
    return Imported(graph, grouped_notes(notes), counts)


def positions(matrix: MatrixTable, num_nodes: int, nodes: str) -> NodeIndex:
    """The index of nodes by their position, for a matrix that has as many rows and columns."""
    if matrix.num_nodes() != num_nodes:
        raise DataError(
            f"{matrix.name}: the matrix must have one row and column per row of {nodes} "
            f"({num_nodes}), in the same order, got {matrix.num_nodes()}"
        )
    return NodeIndex(pa.array(range(num_nodes), pa.int64()))


def end_columns(
    source: TableSource, start: str | None, end: str | None, besides: str | None = None
) -> tuple[str, str]:
    """The columns of the sources and targets of edges, which are not `besides`."""
    if (start is None) != (end is None):
        raise UsageError("source_column and target_column must be given together or not at all")
    if start is not None and end is not None:
        ends = source.column("source_column", start), source.column("target_column", end)
        if start == end:
            raise UsageError(f"source_column and target_column must differ, got {start!r} twice")
        return ends
    named = [column for column in source.columns if column and column != besides]
    if len(named) < 2:
        raise DataError(
            f"{source.name} must have two columns, the ids of an edge's ends, got "
            f"{listed(source.columns) or 'none'}. If the file has more, give its "
            "delimiter"
        )
    lower = {column.lower(): column for column in reversed(named)}
    for first, second in END_NAMES:
        if first in lower and second in lower:
            return lower[first], lower[second]
    return named[0], named[1]


def refuse_edge_as_header(source: TableSource, ends: tuple[str, str], index: NodeIndex) -> None:
    """An edge list without column names would lose its first edge unseen."""
    if not source.has_names or not source.textual:
        return
    if not index.integer and (index.find(pa.array(list(ends), pa.string())) >= 0).all():
        raise DataError(
            f"{source.name}: the first line must be column names, got the edge "
            f"{quoted(ends[0])} to {quoted(ends[1])}. Give header=False if the file has no names, "
            "else header=True"
        )


def edge_notes(
    source: TableSource, counts: dict[str, int], weight_column: str | None, directed: bool
) -> list[str]:
    """What a user should know about an edge table, by the counts of `Imported`."""
    notes = []
    if counts["unknown_endpoints"]:
        number = counts["unknown_endpoints"]
        some = (
            "1 edge that names an unknown node is"
            if number == 1
            else (f"{number} edges that name unknown nodes are")
        )
        notes.append(f"{some} left out")
    if counts["self_loops"]:
        number = counts["self_loops"]
        notes.append(f"{number} self-loop{' is' if number == 1 else 's are'} left out")
    # Without weights, an undirected list that has both directions of each edge is nothing odd.
    if counts["duplicates"] and (directed or weight_column is not None):
        kept = ", the largest weight stays" if weight_column is not None else ""
        notes.append(f"{counts['duplicates']} duplicates of other edges become one{kept}")
    unused = [column for column in source.columns if column.lower() in WEIGHT_NAMES]
    if unused and weight_column is None:
        notes.append(
            f"the column {unused[0]!r} is not used; give weight_column={unused[0]!r} to weight the "
            "edges by it"
        )
    return [f"{source.name}: {note}" for note in notes]
