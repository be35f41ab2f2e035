"""Features of edges from columns of a user's edge table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.graph.csr import CSR
from lgcn.graph.pyg import merged_attr
from lgcn.ops.reference import row_of_entry
from lgcn.tables.columns import listed
from lgcn.tables.encoder import FeatureEncoder, NoFeatures, Surprises
from lgcn.tables.matrix_files import MatrixTable
from lgcn.tables.nodes import NodeOptions, read_columns
from lgcn.tables.table_source import TableSource

# Each layer has a weight per feature, and every edge a number: words of long texts are not meant.
MAX_EDGE_FEATURES = 256
_FOR_NODES = re.compile(
    r"(:|,? or)? name (it|the column) in \w+_columns( or \w+_columns)?( to use it)?"
)


def edge_feature_columns(
    source: TableSource,
    given: Sequence[str],
    others: Sequence[str | None],
    encoder: FeatureEncoder | None,
) -> list[str]:
    """The columns that become features of edges, checked; empty if none do.

    Args:
        source: The edge table.
        given: What the user named.
        others: The columns of the ends and the weights.
        encoder: How a trained model reads edges; it decides. (default: the user does)
    """
    names = list(given) if encoder is None else [column.name for column in encoder.columns]
    if names and isinstance(source, MatrixTable):
        raise UsageError(
            f"edge_columns need a table with a row per edge, and {source.name} is a matrix: give "
            "the edges as a table"
        )
    missing = [name for name in names if name not in source.columns]
    if encoder is not None and missing:
        raise DataError(
            f"{source.name} lacks the column{'s' if len(missing) > 1 else ''} {listed(missing)}, "
            "which the model reads of each edge (edge_columns): add them, with empty cells if "
            "nothing is known"
        )
    for name in names:
        source.column("edge_columns", name)
        if name in others:
            raise UsageError(
                f"edge_columns must not name {name!r}, which is an end of the edges or their "
                "weight. Omit it"
            )
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(f"edge_columns names {listed(twice)} twice. Name each column once")
    return names


def read_edge_features(
    source: TableSource,
    columns: Sequence[str],
    kept: Any,
    options: NodeOptions,
    encoder: FeatureEncoder | None,
    notes: list[str],
) -> tuple[Tensor, FeatureEncoder]:
    """The features of the edges that stay, [E, D] in float32, and how columns become them.

    Args:
        source: The edge table.
        columns: The columns, see `edge_feature_columns`.
        kept: Mask of the rows whose edges stay. The others are not learned from.
        options: Says how cells are written.
        encoder: How a trained model reads edges. (default: fitted to these)
        notes: What a user should know is added here.
    """
    as_nodes = NodeOptions(
        encoder=encoder,
        decimal=options.decimal,
        date_order=options.date_order,
        na_values=options.na_values,
    )
    ignored = [name for name in source.columns if name not in columns]
    table = read_columns(source, {}, as_nodes, ignored, notes, per="edge")
    first_line = source.first_line(len(table))
    encoder = as_nodes.encoder
    fitted = encoder is None
    try:
        if encoder is None:
            try:
                encoder = FeatureEncoder.fit(
                    table, kept, first_line=first_line, cells=as_nodes.cells
                )
            except NoFeatures as error:
                why = "; ".join(map(_of_edges, error.notes)) or "there is no edge"
                raise DataError(f"edge_columns say nothing about edges: {why}. Omit them") from None
            notes += [f"{source.name}: {_of_edges(note)}" for note in encoder.notes]
        if encoder.num_features > MAX_EDGE_FEATURES:
            raise DataError(
                f"edge_columns {listed(columns)} give {encoder.num_features} features per edge, "
                f"more than {MAX_EDGE_FEATURES}: omit columns with long texts or many categories"
            )
        surprises = Surprises()
        x = encoder.transform(table, first_line=first_line, surprises=surprises)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from error
    for message in surprises.messages(encoder, numbers=not fitted):
        warnings.warn(f"{source.name}: {message}", stacklevel=2)
    x = x.to_dense() if x.layout != torch.strided else x
    return x[torch.from_numpy(kept)], encoder


def _of_edges(note: str) -> str:
    """What an encoder notes about a column, without advice that is for columns of nodes."""
    return _FOR_NODES.sub("", note)


def of_entries(attr: Tensor, source: Any, target: Any, rows: CSR, *, directed: bool) -> Tensor:
    """The features of the entries of an adjacency; those of duplicate edges are averaged.

    Args:
        attr: Features of edges, [E, D].
        source, target: Their node numbers.
        rows: The adjacency that `lgcn.tables.edges.to_adjacency` made of them.
        directed: As there.
    """
    num_nodes = rows.rowptr.numel() - 1
    entries = row_of_entry(rows.rowptr).long() * num_nodes + rows.col.long()  # in rising order
    ends = [torch.from_numpy(np.asarray(end, np.int64)) for end in (source, target)]
    keys = ends[1] * num_nodes + ends[0]
    if not directed:
        keys = torch.cat([keys, ends[0] * num_nodes + ends[1]])
        attr = attr.repeat(2, 1)
    return merged_attr(attr, torch.searchsorted(entries, keys), entries.numel())
