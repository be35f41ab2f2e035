"""Writing a graph into a store: as a whole, or its features and ids part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR
from lgcn.ops.structure import transpose
from lgcn.store.format import DTYPES
from lgcn.store.new_store_checks import FeatureKind, feature_kind
from lgcn.store.writer import StoreWriter
from lgcn.utils.row_blocks import row_blocks

_BLOCK = 1 << 22  # values converted at a time


def write_store(
    path: str | Path,
    graph: Graph,
    *,
    features: FeatureKind = "float32",
    node_ids: Any = None,
    overwrite: bool = False,
) -> None:
    """Writes a graph to a store. It may be in memory or in another store.

    Args:
        path: Folder of the store.
        graph: The graph. `n_id` and `node_weight` are not stored.
        features: How to store features: `"float32"`, `"float16"`, `"bfloat16"`, or `"uint8"`, which
            divides the range of each feature into 255 steps. Sparse features stay sparse, and
            cannot be `"uint8"`. (default: `"float32"`)
        node_ids: An array of integers or strings. (default: `graph.node_ids`)
        overwrite: Replace an existing store. (default: `False`)
    """
    feature_kind(features)
    if graph.edge_attr is not None:
        raise UsageError(
            f"a graph store cannot hold edge features, and {graph.name} has edge_attr: train on "
            "the graph in memory, or leave them out with dataclasses.replace(graph, edge_attr=None)"
        )
    matrix = CSR(*graph.adjacency()[:2], graph.edge_weight)
    directed = not _is_symmetric(matrix)
    with StoreWriter(path, overwrite=overwrite) as writer:
        _write_adjacency(writer, matrix)
        if graph.degree is not None:
            writer.append("degree", "float32").write(graph.degree.float().numpy())
        if graph.x is not None:
            write_features(writer, graph, features)
        if graph.y is not None:
            _write_labels(writer, graph.y)
        if graph.sample_weight is not None:
            writer.append("sample_weight", "float32").write(graph.sample_weight.float().numpy())
        for name in ("train_mask", "val_mask", "test_mask", "ptr"):
            value = getattr(graph, name)
            if value is not None:
                dtype = "int64" if name == "ptr" else "bool"
                writer.append(name, dtype).write(value.numpy().astype(DTYPES[dtype]))
        ids = graph.node_ids if node_ids is None else node_ids
        if ids is not None:
            write_ids(writer, ids)
        writer.finish(
            name=graph.name,
            directed=directed,
            label_names=graph.label_names,
            encoder=None if graph.x is None else graph.encoder,
            num_features=graph.num_features,
        )


def _is_symmetric(matrix: CSR) -> bool:
    """Whether every edge has a reverse of the same weight, whatever the order within rows."""
    nodes = matrix.rowptr.numel() - 1
    by_col = transpose(matrix.rowptr, matrix.col, nodes)
    again = transpose(by_col.colptr, by_col.row, nodes)  # the matrix, its rows sorted
    if not torch.equal(by_col.colptr, again.colptr) or not torch.equal(by_col.row, again.row):
        return False
    if matrix.weight is None:
        return True
    weight = matrix.weight[by_col.entry.long()]
    return torch.equal(weight, weight[again.entry.long()])


def _write_adjacency(writer: StoreWriter, matrix: CSR) -> None:
    nodes = matrix.rowptr.numel() - 1
    col = col_dtype(nodes)
    writer.append("rowptr", "int64").write(matrix.rowptr.long().numpy())
    writer.append("col", col).write(matrix.col.numpy().astype(DTYPES[col]))
    if matrix.weight is not None:
        writer.append("edge_weight", "float32").write(matrix.weight.float().numpy())


def col_dtype(num_cols: int) -> str:
    """The type of column numbers below `num_cols`."""
    return "int32" if num_cols <= 2**31 else "int64"


def write_features(writer: StoreWriter, graph: Graph, features: FeatureKind) -> None:
    """Writes the features of a graph, a block of rows at a time."""
    assert graph.x is not None
    if graph.x.layout == torch.sparse_csr:
        _write_sparse(writer, graph.features(), features)
        return
    width = graph.num_features
    blocks = [slice(*rows) for rows in row_blocks(graph.num_nodes, _BLOCK // max(width, 1))]
    scale = None
    if features == "uint8":
        low, high = np.full(width, np.inf), np.full(width, -np.inf)
        for block in blocks:
            values = graph.features(block).numpy()
            low, high = np.minimum(low, values.min(0)), np.maximum(high, values.max(0))
        scale = uint8_scale(low, high)
        writer.append("x_scale", "float32").write(scale[0])
        writer.append("x_offset", "float32").write(scale[1])
    x = writer.append("x", features, width)
    for block in blocks:
        x.write(encode_features(graph.features(block).numpy(), features, scale))


def _write_sparse(writer: StoreWriter, x: Tensor, features: FeatureKind) -> None:
    if features == "uint8":
        raise UsageError("features must not be uint8 for sparse features, whose zeros it moves")
    col = col_dtype(x.size(1))
    writer.append("x_rowptr", "int64").write(x.crow_indices().long().numpy())
    writer.append("x_col", col).write(x.col_indices().numpy().astype(DTYPES[col]))
    writer.append("x_values", features).write(encode_features(x.values().numpy(), features))


def uint8_scale(low: Any, high: Any) -> Any:
    """[2, F] float32, the scale and offset by which the numbers from 0 to 255 cover each range."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if low.size and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise DataError("features must be finite numbers to be stored as uint8")
    return np.stack([(high - low) / 255, low]).astype(np.float32)


def encode_features(values: Any, features: FeatureKind, scale: Any = None) -> Any:
    """Floating point numbers as a store has them.

    Args:
        values: An array of numbers, [n, F] for `"uint8"`.
        features: The kind; `"bfloat16"` gives the bits as uint16.
        scale: See `uint8_scale`; for `"uint8"` only.
    """
    values = np.asarray(values, np.float32)
    if features == "float32":
        return values
    if features == "bfloat16":
        tensor = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
        return tensor.view(torch.int16).numpy().view(np.uint16)
    if features == "float16":
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if (np.isinf(half) & np.isfinite(values)).any():
            raise DataError("features beyond 65504 do not fit into float16; use bfloat16")
        return half
    step = np.where(scale[0] > 0, scale[0], 1)  # a constant feature has step 0
    return np.clip(np.rint((values - scale[1]) / step), 0, 255).astype(np.uint8)


def _write_labels(writer: StoreWriter, y: Tensor) -> None:
    if y.dim() == 1 and y.is_floating_point():
        writer.append("y", "float64").write(y.double().numpy())
        return
    if y.dim() == 1:
        writer.append("y", "int64").write(y.long().numpy())
        return
    if not bool(((y == 0) | (y == 1)).all()):
        raise DataError("a matrix of labels must have zeros and ones only")
    writer.append("y", "uint8", y.size(1)).write(y.to(torch.uint8).numpy())


def write_ids(writer: StoreWriter, ids: Any) -> None:
    """Writes the user's ids, an array of integers or strings without missing entries."""
    import pyarrow as pa

    from lgcn.tables.ids import to_ids

    if isinstance(ids, np.ndarray) and ids.dtype.kind == "U":  # which Arrow takes as objects only
        ids = ids.astype(object)
    ids = to_ids(
        ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids),
        lambda row: f"node_ids, node {row}",
    )
    if ids.null_count:
        raise DataError("node_ids must not have missing entries")
    if pa.types.is_integer(ids.type):
        writer.append("ids", "int64").write(ids.to_numpy())
        return
    ids = ids.cast(pa.large_string())
    _, first, data = ids.buffers()
    offsets = np.zeros(1, np.int64)
    if len(ids):
        offsets = np.frombuffer(first, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    writer.append("ids_offsets", "int64").write(offsets - offsets[0])
    writer.append("ids_bytes", "uint8").write(text)
