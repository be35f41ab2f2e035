"""Opening the tables that users have: text files, Parquet, NPZ, pandas, Arrow, dicts of columns.

Every error names the table, the line or row, and the remedy.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from lgcn.errors import DataError, UsageError, first_line_of
from lgcn.tables.csv_files import CsvTable
from lgcn.tables.early_checks import JSON, is_path, suffixes_of, table_files, table_kind
from lgcn.tables.json_lines import JsonLines
from lgcn.tables.matrix_files import MatrixTable, is_scipy_npz
from lgcn.tables.several import SeveralFiles
from lgcn.tables.table_source import TableSource
from lgcn.utils.arrays import read_npz

_NO_COLUMN = (pa.ArrowException, ValueError, TypeError, OverflowError)  # what Arrow raises


def read_table(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Any:
    """Reads a table, as a `pyarrow.Table`.

    Args:
        source: A path (`.csv`, `.tsv`, `.txt`, `.jsonl`, `.ndjson`, each also with `.gz`;
            `.parquet`; `.npz`), a pattern such as `part-*.csv`, several of these, a pandas
            DataFrame, an Arrow table or anything that exports one, or a mapping from names to
            columns. Text files start with a line of column names; comments above it, which start
            with `#` or `%`, are skipped.
        columns: Which to read. (default: all)
        delimiter: Between the cells of a text file, or `"whitespace"` for any run of blanks and
            tabs. (default: a tab in `.tsv`; else the one of comma, semicolon, tab and bar that
            splits the first line and fits the others; runs of blanks where none does)
        encoding: Of a text file; a UTF-8 byte order mark is ignored. (default: UTF-8)
        header: Whether a text file has a line of column names. Without one, columns are called
            `1`, `2`, ... (default: it has one, except edges whose first line is all numbers)
    """
    table = open_table(source, "the table", delimiter=delimiter, encoding=encoding, header=header)
    for column in columns or ():
        table.column("columns", column)
    return table.read(columns)


def open_table(
    source: Any,
    role: str,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
) -> TableSource:
    """Reads the columns of a table, and leaves the rows for later.

    Args:
        source, delimiter, encoding, header: See `read_table`.
        role: What the table is called if it has no file name; of "edges", an `.npz` file may
            hold pairs of nodes as one array `edges`.
    """
    if not is_path(source):
        return _Held(role, _to_arrow(source, role))
    files = table_files(source, role)
    parts = [_open_file(path, role, delimiter, encoding, header) for path in files]
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, MatrixTable) for part in parts):
        raise UsageError(f"{role}: a matrix must be the only file, got {len(parts)} files")
    return SeveralFiles(parts)


def _open_file(
    path: Path, role: str, delimiter: str | None, encoding: str, header: bool | None
) -> TableSource:
    kind = table_kind(path, role, suffixes_of(role))
    if kind == ".parquet":
        return _Parquet(path)
    if kind == ".mtx" or (kind == ".npz" and role != "nodes" and is_scipy_npz(path)):
        return MatrixTable(path)
    if kind == ".npz":
        return _Held(str(path), _from_npz(path, role), path)
    if kind in JSON:
        return JsonLines(path)
    return CsvTable(path, kind, delimiter, encoding, role, header)


class _Held(TableSource):
    """A table in memory."""

    def __init__(self, name: str, table: Any, path: Path | None = None) -> None:
        self.name, self.columns, self.path, self._table = name, table.column_names, path, table
        self._check_names()

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        table = self._table if columns is None else self._table.select(list(columns))
        return self._sound(table)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        table = self._table.select(list(columns))
        yield from self._sound_batches(table.to_batches(max_chunksize=1 << 20))


class _Parquet(TableSource):
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        with self._damage():
            self.columns = list(pyarrow.parquet.ParquetFile(path).schema_arrow.names)
        self._check_names()

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(
                f"{self.name} is not a readable Parquet file: {first_line_of(error)}. "
                "Write or fetch it again"
            ) from error

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        with self._damage():
            names = self.columns if columns is None else list(columns)
            return self._sound(pyarrow.parquet.ParquetFile(self.path).read(names))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        yield from self._sound_batches(self._stored_batches(columns))

    def _stored_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with self._damage():
            # By default all of a row group is read ahead, which may be the whole file.
            file = pyarrow.parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 16)
            rows = max(1, min(1 << 17, (1 << 21) // max(1, len(columns))))
            yield from file.iter_batches(batch_size=rows, columns=list(columns))

    def batch_memory(self, num_columns: int) -> int:
        return (3 << 20) * num_columns  # a page and a dictionary of each column, unpacked


def _to_arrow(source: Any, role: str) -> Any:
    """An Arrow table of what is in memory."""
    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, Mapping):
            return _from_columns(source, role)
        if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
            return _from_pandas(source, role)
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    except _NO_COLUMN as error:
        raise DataError(
            f"{role}: cannot make an Arrow table of the {type(source).__name__}: "
            f"{first_line_of(error)}. Give each column one type and its own name"
        ) from error
    raise UsageError(
        f"{role} must be a path, a pandas DataFrame, an Arrow table or a dict of columns, "
        f"got {type(source).__name__}"
    )


def _from_pandas(frame: Any, role: str) -> Any:
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.rename(columns=str)
    named = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=named)
    except _NO_COLUMN:
        for place, name in enumerate(
            frame.columns
        ):  # its message about mixed columns is not helpful
            column = frame.iloc[:, place]
            try:
                pa.array(column, from_pandas=True)
            except _NO_COLUMN as error:
                raise _no_column(column, name, role, error) from error
        raise


def _no_column(values: Any, column: str, name: str, error: Exception) -> DataError:
    """The error for values that Arrow cannot make a column of."""
    objects = getattr(values, "ndim", 0) == 1 and values.dtype.kind == "O"
    cells = values if objects or isinstance(values, list | tuple) else ()
    kinds = {type(cell).__name__ for cell in cells if not (cell is None or _is_nan(cell))}
    if len(kinds) > 1:
        some = sorted(kinds)[:5]
        got = f", got {', '.join(some[:-1])} and {some[-1]}. Use one type, such as strings"
    else:
        got = f": {first_line_of(error)}"
    return DataError(f"{name}: column {column!r} must hold values of one type{got}")


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and cell != cell


def _from_columns(columns: Mapping[Any, Any], name: str) -> Any:
    arrays = {str(key): to_column(value, str(key), name) for key, value in columns.items()}
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"{name}: columns must have one length, got "
            + ", ".join(f"{key!r} with {length}" for key, length in list(lengths.items())[:8])
        )
    return pa.table(arrays)


def to_column(values: Any, column: str, name: str) -> Any:
    """An Arrow array of what may be a column; in messages, of table `name`."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        array = values if isinstance(values, list | tuple) else np.asarray(values)
        if isinstance(array, np.ndarray):
            if array.dtype.kind == "S":
                array = np.char.decode(array, "utf-8")
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            if array.ndim == 2 and array.dtype.kind in "iufb" and array.shape[1]:
                flat = pa.array(np.ascontiguousarray(array).reshape(-1))
                return pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
            if array.ndim != 1:
                raise DataError(
                    f"{name}: column {column!r} must have one dimension, or two with numbers, "
                    f"got {array.dtype} in shape {list(array.shape)}"
                )
        return pa.array(array)
    except _NO_COLUMN as error:
        raise _no_column(values, column, name, error) from error


def _from_npz(path: Path, role: str) -> Any:
    """Every array of an `.npz` file as a column."""
    read_npz(path, ())  # names what is damaged
    with zipfile.ZipFile(path) as archive:
        names = [file.removesuffix(".npy") for file in archive.namelist()]
    arrays = read_npz(path, names)
    if role == "edges" and "edges" in arrays:
        pairs = arrays.pop("edges")
        if pairs.ndim != 2 or 2 not in pairs.shape:
            raise DataError(
                f"{path}: edges must have shape [E, 2] or [2, E], got {list(pairs.shape)}"
            )
        pairs = pairs.T if pairs.shape[1] == 2 else pairs
        arrays = {"source": pairs[0], "target": pairs[1], **arrays}
    if not arrays:
        raise DataError(f"{path} holds no arrays. Each array must be a column")
    return _from_columns(arrays, str(path))
