"""Features in a file of their own: (node, feature, value) in rows, or a matrix node by feature.

They become one column of the node table, which has some features with values in each cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError, UsageError
from lgcn.tables.columns import LARGEST, quoted
from lgcn.tables.ids import NodeIndex, to_ids
from lgcn.tables.list_encoder import long_column
from lgcn.tables.matrix_files import MatrixTable
from lgcn.tables.nodes import ID_NAMES, find_id_column, node_ids
from lgcn.tables.table_source import TableSource
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.sizes import format_memory

if TYPE_CHECKING:
    from lgcn.tables.encoder import FeatureEncoder

COLUMN = "features"  # of the node table
FEATURE_NAMES = ("feature", "word", "attribute", "name")
VALUE_NAMES = ("value", "count", "weight")
_ENTRY_BYTES = 32  # while they are sorted by node
_NAME_BYTES = 200  # of a feature's name


def wants_features(encoder: FeatureEncoder) -> bool:
    """Whether an encoder was fitted to a table of features beside the node table."""
    return any(column.kind == "long" and column.name == COLUMN for column in encoder.columns)


class WithFeatures(TableSource):
    """A node table with one more column, of features that come from another table.

    Args:
        source: The node table.
        id_column: Its ids. (default: as in `lgcn.tables.nodes.find_id_column`)
        features: Rows of node, feature and value, or a matrix whose rows are in the order of the
            node table.
        drop_unknown: Leave out rows that name no node, instead of refusing the table.
        notes: What a user should know is added here.
        memory: Bytes that the features may take. (default: no limit)
    """

    def __init__(
        self,
        source: TableSource,
        id_column: str | None,
        features: TableSource,
        *,
        drop_unknown: bool,
        notes: list[str],
        memory: int | None = None,
    ) -> None:
        if COLUMN in source.columns:
            raise UsageError(
                f"{source.name} must have no column {COLUMN!r} beside a table of features: rename "
                "it"
            )
        self._source = source
        self.name, self.path, self.textual = source.name, source.path, source.textual
        self.columns = [*source.columns, COLUMN]
        self.has_names, self.notes = source.has_names, source.notes
        notes += [*features.notes]
        id_column = find_id_column(source, id_column)
        ids = node_ids(
            source,
            source.read([id_column], {id_column: pa.string()}).column(id_column),
            f"column {id_column!r}",
        )
        num_nodes = len(ids)
        if isinstance(features, MatrixTable):
            entries = _from_matrix(features, num_nodes, source.name)
        else:
            entries = _from_rows(
                features, NodeIndex(ids), id_column, source.name, drop_unknown, notes, memory
            )
        del ids
        rows, codes, values, self._names = entries
        if len(values) > MAX_INT32:
            raise DataError(
                f"{features.name} must have at most {MAX_INT32} entries, got {len(values)}"
            )
        from scipy.sparse import coo_matrix

        # Several values of one feature of a node are summed, as counts of words are.
        shape = (num_nodes, len(self._names))
        matrix = coo_matrix((values, (rows, codes)), shape=shape).tocsr()
        self._rowptr, self._codes, self._values = matrix.indptr, matrix.indices, matrix.data

    def _cells(self, start: int, stop: int) -> Any:
        rowptr = self._rowptr[start : stop + 1]
        low, high = int(rowptr[0]), int(rowptr[-1])
        return long_column(rowptr - low, self._codes[low:high], self._values[low:high], self._names)

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        names = self.columns if columns is None else list(columns)
        own = [name for name in names if name != COLUMN]
        table = self._source.read(own, types)
        if COLUMN in names:
            table = table.append_column(COLUMN, self._cells(0, len(table)))
        return table.select(names)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        # Of the node table at least one column is read, to know how many rows a batch has.
        own = [name for name in columns if name != COLUMN] or self._source.columns[:1]
        types = {name: kind for name, kind in types.items() if name != COLUMN}
        row = 0
        for batch in self._source.batches(own, types, why):
            stop = row + len(batch)
            if COLUMN in columns:
                batch = batch.append_column(COLUMN, self._cells(row, stop))
            yield batch.select(list(columns))
            row = stop

    def text_files(self) -> list[Any]:
        return self._source.text_files()

    def batch_memory(self, num_columns: int) -> int:
        return self._source.batch_memory(num_columns)

    def where(self, rows: Sequence[int]) -> list[str]:
        return self._source.where(rows)

    def first_line(self, num_rows: int) -> int | None:
        return self._source.first_line(num_rows)


def _from_matrix(features: MatrixTable, num_nodes: int, nodes: str) -> tuple[Any, Any, Any, Any]:
    matrix = features.matrix
    if matrix.shape[0] != num_nodes:
        raise DataError(
            f"{features.name}: a matrix of features must have one row per row of {nodes} "
            f"({num_nodes}), in the same order, got {matrix.shape[0]}"
        )
    used, codes = np.unique(matrix.col, return_inverse=True)
    return matrix.row, codes, matrix.values, pa.array(used).cast(pa.string())


def _from_rows(
    table: TableSource,
    index: NodeIndex,
    id_column: str,
    nodes: str,
    drop_unknown: bool,
    notes: list[str],
    memory: int | None,
) -> tuple[Any, Any, Any, Any]:
    """Node, feature and value of each entry, and the names of the features."""
    columns = _columns(table, id_column)
    types = dict(
        zip(columns, (pa.int64() if index.integer else pa.string(), pa.string()), strict=False)
    )
    if len(columns) > 2:
        types[columns[2]] = pa.float64()
    number: dict[str, int] = {}
    rows, codes, values = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0)]
    count = seen = dropped = 0
    why = f"The ids of {nodes} are whole numbers" if index.integer else ""
    for batch in table.batches(columns, types, why):

        def where(row: int, seen: int = seen) -> str:
            return f"{table.name}, {table.where([seen + row])[0]}, column {columns[0]!r}"

        ids = to_ids(batch.column(columns[0]), where, integer=index.integer)
        node = index.find(ids)
        if ids.null_count:
            node[ids.is_null().to_numpy(zero_copy_only=False)] = -1
        unknown = np.flatnonzero(node < 0)
        if len(unknown) and not drop_unknown:
            row = int(unknown[0])
            raise DataError(
                f"{where(row)}: {quoted(ids[row].as_py())} is no node of {nodes}. Add the node, "
                "correct the id, or leave such rows out by unknown_nodes='drop'"
            )
        feature = _texts(batch.column(columns[1])).dictionary_encode()
        here = [number.setdefault(w, len(number)) for w in feature.dictionary.to_pylist()]
        code = np.array([*here, -1], np.int32)[feature.indices.fill_null(-1).to_numpy()]
        value = np.ones(len(node))
        if len(columns) > 2:
            value = _values(table, batch.column(columns[2]), columns[2], seen)
        kept = (node >= 0) & (code >= 0) & ~np.isnan(value)
        dropped += len(unknown)
        seen += len(node)
        count += int(kept.sum())
        needed = _ENTRY_BYTES * count + _NAME_BYTES * len(number)
        if memory is not None and needed > memory:
            raise DataError(
                f"{table.name}: {count} entries need {format_memory(needed)}, and "
                f"there may be more; {format_memory(memory)} are left. Raise memory"
            )
        rows.append(node[kept])
        codes.append(code[kept])
        values.append(value[kept])
    if dropped:
        notes.append(f"{table.name}: {dropped} rows that name unknown nodes are left out")
    if count == 0:
        raise DataError(f"{table.name} has no feature of any node ({seen} rows). Check its columns")
    names = pa.array(list(number), pa.string())
    return np.concatenate(rows), np.concatenate(codes), np.concatenate(values), names


def _columns(table: TableSource, id_column: str) -> list[str]:
    """The columns of nodes, features and, if there are three or more, of values."""
    named = [column for column in table.columns if column]
    if len(named) < 2:
        raise DataError(
            f"{table.name} must have the columns node, feature and perhaps value, got "
            f"{', '.join(map(quoted, named)) or 'none'}. If the file has more, give its delimiter"
        )
    lower = {column.lower(): column for column in reversed(named)}
    found: list[str] = []
    wanted = [(id_column.lower(), *ID_NAMES), FEATURE_NAMES, VALUE_NAMES]
    for choices in wanted[: len(named)]:
        there = (lower[name] for name in choices if name in lower and lower[name] not in found)
        free = (column for column in named if column not in found)
        found.append(next(there, None) or next(free))
    return found


def _texts(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string())


def _values(table: TableSource, column: Any, name: str, seen: int) -> Any:
    try:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, ValueError):
        raise DataError(
            f"{table.name}: column {name!r} must hold the values of features, numbers, got "
            f"{column.type}"
        ) from None
    wrong = np.abs(values) > LARGEST
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{table.name}, {table.where([seen + row])[0]}, column {name!r}: a value must be a "
            f"finite number of at most {LARGEST:g}, got {values[row]}"
        )
    return values
