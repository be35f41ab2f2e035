"""Writing a node table into a store; it need not fit into memory.

It is read twice. The first pass takes the ids, labels and splits of all rows, and the features of
every n-th row, where n is the smallest power of two for which they fit. The encoder is fitted to
these rows. The second pass encodes all features, batch by batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from lgcn.errors import DataError, UsageError
from lgcn.store.csv_blocks import column_types, common_type
from lgcn.store.new_store_checks import FeatureKind
from lgcn.store.write_store import encode_features, uint8_scale, write_ids
from lgcn.store.writer import StoreWriter
from lgcn.tables.csv_files import CsvTable
from lgcn.tables.encoder import FeatureEncoder, NoFeatures, Surprises
from lgcn.tables.ids import NodeIndex
from lgcn.tables.nodes import NodeOptions, find_id_column, read_nodes
from lgcn.tables.table_source import TableSource
from lgcn.tables.targets import read_sample_weight
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import format_memory

# Bytes of a node beside its cells: while its id is looked up, and while a random split is drawn.
_INDEX_BYTES, _SPLIT_BYTES = 56, 64


@dataclass
class Nodes:
    """The written nodes: the index of their ids, their number, and fields of the header."""

    index: NodeIndex
    num_nodes: int
    header: dict[str, Any]


class NodeStream(TableSource):
    """A node table of which `read` keeps a sample of the features.

    Args:
        source: The table.
        whole: Columns of which all rows are read.
        memory: Bytes that may be used, a third of them by the sample.
    """

    def __init__(self, source: TableSource, whole: Sequence[str], memory: int) -> None:
        self.name, self.columns, self.path = source.name, source.columns, source.path
        self.textual = source.textual
        memory = max(0, memory - source.batch_memory(len(source.columns)))
        self._source, self._whole, self._memory = source, set(whole), memory * 2 // 3
        self._sample_memory = memory // 3
        self._row_bytes = _INDEX_BYTES + (_SPLIT_BYTES if len(self._whole) > 1 else 0)
        self.features: list[str] = []
        self.types: dict[str, Any] = {}
        self.sample: Any = None
        self.stride = 1

    def where(self, rows: Sequence[int]) -> list[str]:
        return self._source.where(rows)

    def first_line(self, num_rows: int) -> int | None:
        return self._source.first_line(num_rows)

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        """All rows of the ids, labels and splits among the columns."""
        columns = self.columns if columns is None else list(columns)
        given = dict(types or {})
        files = self._source.text_files()
        if not files:
            return self._read(columns, given)
        guess = _types(files, columns, whole_file=False) | given
        try:
            return self._read(columns, guess)
        except DataError:
            found = _types(files, columns, whole_file=True) | given
            if found == guess:
                raise
            return self._read(columns, found)

    def _read(self, columns: Sequence[str], types: dict[str, Any]) -> Any:
        self.types = types
        self.features = [column for column in columns if column not in self._whole]
        whole = [column for column in columns if column in self._whole]
        self.stride, self.sample = 1, None
        kept: list[Any] = []
        sampled: list[Any] = []
        row = held = size = 0
        for batch in self._source.batches(columns, types):
            if len(batch) == 0 and kept:
                continue
            kept.append(_shrunk(batch.select(whole)))
            held += kept[-1].nbytes
            needed = held + self._row_bytes * (row + len(batch))
            if needed > self._memory:
                raise DataError(
                    f"{self.name}: ids, labels and splits of {row + len(batch)} rows need "
                    f"{format_memory(needed)}, and there may be more rows; "
                    f"{format_memory(self._memory)} are left for them. Raise memory"
                )
            if self.features:
                sampled.append(_every(batch.select(self.features), -row % self.stride, self.stride))
                size += sampled[-1].nbytes
            while size > self._sample_memory:
                if sum(map(len, sampled)) < 2:
                    raise DataError(
                        f"{self.name}: a row of features needs {format_memory(size)}, which is too "
                        "much. Raise memory"
                    )
                sampled = _thinned(sampled)
                size = sum(part.nbytes for part in sampled)
                self.stride *= 2
            row += len(batch)
        if self.features and sampled:
            self.sample = pa.Table.from_batches(sampled)
        return pa.Table.from_batches(kept) if kept else pa.table({name: [] for name in whole})

    def seen(self, table: Any) -> Any:
        return table if self.sample is None else self.sample

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        types = {name: kind for name, kind in self.types.items() if name in columns}
        return self._source.batches(columns, types)


def _types(
    files: Sequence[CsvTable], columns: Sequence[str], *, whole_file: bool
) -> dict[str, Any]:
    """The types of those columns that the text files have."""
    there = [column for column in columns if column in files[0].columns]
    found = [column_types(file, there, whole_file=whole_file) for file in files]
    return {name: reduce(common_type, (kinds[name] for kinds in found)) for name in there}


def _thinned(parts: list[Any]) -> list[Any]:
    """Every second row, counted over all parts. One after the other, which frees their memory."""
    row = 0
    for i, part in enumerate(parts):
        parts[i] = _every(part, row % 2, 2)
        row += len(part)
    return parts


def _every(batch: Any, start: int, step: int) -> Any:
    if step == 1:
        return batch
    return batch.take(pa.array(np.arange(start, len(batch), step)))


def _shrunk(batch: Any) -> Any:
    """Without what a slice of a larger array would keep in memory."""
    return (
        batch
        if batch.nbytes * 2 > batch.get_total_buffer_size()
        else batch.take(pa.array(np.arange(len(batch))))
    )


def write_nodes(
    writer: StoreWriter,
    source: TableSource,
    id_column: str | None,
    options: NodeOptions,
    ignore: list[str],
    notes: list[str],
    *,
    memory: int,
    features: FeatureKind,
    on_progress: OnProgress,
) -> Nodes:
    """Writes the ids, labels, splits and features of a node table.

    Args:
        writer: The store.
        source, id_column, options, ignore, notes: See `lgcn.tables.nodes.read_nodes`.
        memory: Bytes that may be taken.
        features: How to store them, see `lgcn.store.open_store.write_store`.
        on_progress: Is told how far the second reading is.
    """
    whole = [*options.label_columns]
    whole += options.other_columns
    stream = NodeStream(source, [*whole, find_id_column(source, id_column)], memory)
    table, ids, index = read_nodes(stream, id_column, options, ignore, notes)
    num_nodes = len(ids)
    first_line = source.first_line(num_nodes)
    write_ids(writer, ids)
    del ids
    header: dict[str, Any] = {}
    allowed = np.ones(num_nodes, dtype=bool)
    try:
        if options.label_columns:
            labels = options.labels(table, first_line)
            masks = options.split(table, labels, first_line)
            _write_labels(writer, labels.y, masks)
            if options.sample_weight_column is not None:
                weight = read_sample_weight(
                    table,
                    options.sample_weight_column,
                    labels.known,
                    first_line=first_line,
                    cells=options.cells,
                )
                writer.append("sample_weight", "float32").write(weight.numpy())
            header["label_names"] = labels.names or None
            notes += [f"{source.name}: {note}" for note in labels.notes]
            allowed = ~(masks[1] | masks[2]).numpy()
            del labels, masks
        del table
        fitted = None
        if stream.features:
            try:
                fitted = _fit(stream, options, allowed, first_line, notes, features)
            except NoFeatures as error:
                notes += [f"{source.name}: {note}" for note in error.notes]
        if fitted is not None:
            encoder, scale = fitted
            header |= {"encoder": encoder, "num_features": encoder.num_features}
            stream.sample = None
            pa.default_memory_pool().release_unused()
            all_fitted = options.encoder is None and stream.stride == 1
            rows = _feature_rows(
                stream, encoder, first_line, num_nodes, notes, on_progress, all_fitted=all_fitted
            )
            _write_features(writer, rows, encoder.num_features, features, scale)
        else:
            notes.append(
                f"{source.name}: it has no feature column; a model learns from features that the "
                "edges give"
            )
    except DataError as error:
        text = str(error)
        if text.startswith(source.name):
            raise
        raise DataError(f"{source.name}: {text}") from error
    return Nodes(index, num_nodes, header)


def _write_labels(writer: StoreWriter, y: Any, masks: Any) -> None:
    if y.dim() == 2:
        writer.append("y", "uint8", y.size(1)).write(y.to(torch.uint8).numpy())
    elif y.is_floating_point():
        writer.append("y", "float64").write(y.numpy())
    else:
        writer.append("y", "int64").write(y.numpy())
    for split, mask in zip(("train", "val", "test"), masks, strict=True):
        writer.append(f"{split}_mask", "bool").write(mask.numpy())


def _fit(
    stream: NodeStream,
    options: NodeOptions,
    allowed: Any,
    first_line: int | None,
    notes: list[str],
    features: FeatureKind,
) -> tuple[FeatureEncoder, Any]:
    """The encoder, and the scale of features that are stored in a byte, by the sample."""
    allowed = allowed[:: stream.stride]
    lines = first_line if stream.stride == 1 else None
    encoder = options.encoder
    if encoder is None:
        try:
            encoder = options.fit_encoder(stream.sample, allowed, lines)
        except DataError as error:
            if stream.stride == 1 or isinstance(error, NoFeatures):
                raise
            raise DataError(f"in a sample of one of {stream.stride} rows: {error}") from error
        notes += [f"{stream.name}: {note}" for note in encoder.notes]
        if stream.stride > 1:
            notes.append(
                f"{stream.name}: the features are fitted to one of every {stream.stride} rows, "
                "which is what fits into the allowed memory"
            )
    scale = None
    if features == "uint8":
        low, high = np.full(encoder.num_features, np.inf), np.full(encoder.num_features, -np.inf)
        rows = stream.sample.filter(pa.array(allowed))
        for start, stop in row_blocks(len(rows), (1 << 20) // encoder.num_features):
            x = encoder.transform(rows.slice(start, stop - start), surprises=Surprises())
            if x.layout != torch.strided:
                raise UsageError(
                    "features must not be uint8 here: the columns give many features of which few "
                    "differ from zero. Give features='float16'"
                )
            values = x.numpy()
            low, high = np.minimum(low, values.min(0)), np.maximum(high, values.max(0))
        scale = uint8_scale(low, high)
    return encoder, scale


def _feature_rows(
    stream: NodeStream,
    encoder: FeatureEncoder,
    first_line: int | None,
    num_nodes: int,
    notes: list[str],
    on_progress: OnProgress,
    *,
    all_fitted: bool,
) -> Iterator[Any]:
    """The features, a tensor of some rows after the other.

    If `all_fitted`, the encoder was fitted to the whole table, and has noted its odd cells.
    """
    surprises, row = Surprises(), 0
    for batch in stream.batches(stream.features, {}):
        for start, stop in row_blocks(len(batch), (1 << 22) // encoder.num_features):
            part = pa.Table.from_batches([batch.slice(start, stop - start)])
            try:
                yield encoder.transform(
                    part,
                    first_line=None if first_line is None else first_line + row,
                    surprises=surprises,
                )
            except DataError as error:
                if first_line is not None or row == 0:
                    raise
                raise DataError(
                    f"in the rows from row {row} on, counted from 0: {error}"
                ) from error
            row += len(part)
        on_progress("encode features", row, num_nodes)
    messages = surprises.messages(encoder, numbers=not all_fitted)
    notes += [f"{stream.name}: {message}" for message in messages]


def _write_features(
    writer: StoreWriter, rows: Iterator[Any], width: int, features: FeatureKind, scale: Any
) -> None:
    first = next(rows)
    if first.layout == torch.strided:
        if scale is not None:
            writer.append("x_scale", "float32").write(scale[0])
            writer.append("x_offset", "float32").write(scale[1])
        dense = writer.append("x", features, width)
        for x in itertools.chain([first], rows):
            dense.write(encode_features(x.numpy(), features, scale))
        return
    rowptr, col = writer.append("x_rowptr", "int64"), writer.append("x_col", "int32")
    values = writer.append("x_values", features)
    rowptr.write(np.zeros(1, np.int64))
    end = 0
    for x in itertools.chain([first], rows):
        rowptr.write(x.crow_indices()[1:].numpy().astype(np.int64) + end)
        col.write(x.col_indices().numpy().astype(np.int32))
        values.write(encode_features(x.values().numpy(), features))
        end += x.values().numel()
