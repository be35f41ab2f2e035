"""Sparse matrices in files: SciPy's `.npz`, and Matrix Market's `.mtx`, also packed with gzip."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError, first_line_of
from lgcn.tables.table_source import TableSource
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.memory import check_memory
from lgcn.utils.row_blocks import row_blocks

_BYTES_PER_ENTRY = 40  # while a matrix is read
_FORMATS = {"coo": ("row", "col"), "csr": ("indptr", "indices"), "csc": ("indptr", "indices")}


class Matrix(NamedTuple):
    """The entries of a sparse matrix; duplicates are summed, and zeros left out."""

    row: Any
    col: Any
    values: Any
    shape: tuple[int, int]


class MatrixTable(TableSource):
    """A sparse matrix as a table of edges, which name nodes by their position from 0.

    Entry (i, j) is an edge from node i to node j. Its value is the weight, unless all are one.

    Attributes:
        matrix: The entries.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self.matrix = read_matrix(path)
        ones = bool((self.matrix.values == 1).all())
        self.columns = ["source", "target", *([] if ones else ["weight"])]

    def num_nodes(self) -> int:
        """The size of the matrix, which must be square."""
        rows, columns = self.matrix.shape
        if rows != columns:
            raise DataError(
                f"{self.name}: the matrix of a graph must have as many rows as columns, one per "
                f"node, got {rows} rows and {columns} columns"
            )
        return rows

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        return self._rows(self.columns if columns is None else columns, 0, len(self.matrix.row))

    def _rows(self, columns: Sequence[str], start: int, stop: int) -> Any:
        entries = dict(zip(("source", "target", "weight"), self.matrix[:3], strict=True))
        return pa.table({name: pa.array(entries[name][start:stop]) for name in columns})

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        for start, stop in row_blocks(len(self.matrix.row), 1 << 17):
            yield from self._rows(columns, start, stop).to_batches()

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"entry ({self.matrix.row[row]}, {self.matrix.col[row]})" for row in rows]


def is_scipy_npz(path: Path) -> bool:
    """Whether an `.npz` file was written by `scipy.sparse.save_npz`."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False  # the reader says what is wrong
    return {"format.npy", "shape.npy", "data.npy"} <= names


def matrix_bytes(path: Path) -> int:
    """About how much memory it takes to read a matrix."""
    if path.suffix.lower() == ".npz":
        try:
            with zipfile.ZipFile(path) as archive:
                return 3 * sum(member.file_size for member in archive.infolist())
        except (OSError, zipfile.BadZipFile):
            return 0  # the reader says what is wrong
    return _BYTES_PER_ENTRY * _mtx_entries(path)


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file, of which no part is trusted."""
    matrix = _from_npz(path) if path.suffix.lower() == ".npz" else _from_mtx(path)
    row, col, values, shape = matrix
    with np.errstate(over="ignore"):
        check_array(values.astype(np.float32), "the matrix's values", path, row.shape)
    from scipy.sparse import coo_matrix

    summed = coo_matrix((values, (row, col)), shape=shape)
    summed.sum_duplicates()
    kept = summed.data != 0
    row, col = (end[kept].astype(np.int64) for end in (summed.row, summed.col))
    return Matrix(row, col, summed.data[kept].astype(np.float64), shape)


def _from_npz(path: Path) -> Matrix:
    ends = ("row", "col", "indptr", "indices")
    arrays = read_npz(path, ("format", "shape", "data"), ends)
    format_ = arrays["format"]
    name = format_.item() if format_.size == 1 and format_.dtype.kind in "SU" else ""
    name = name.decode("ascii", "replace") if isinstance(name, bytes) else name
    if name not in _FORMATS or any(key not in arrays for key in _FORMATS[name]):
        raise DataError(
            f"{path}: the matrix must be in one of the formats {', '.join(_FORMATS)} with its "
            f"arrays, got {name!r:.20}. Save it again by scipy.sparse.save_npz(path, m.tocsr())"
        )
    shape = check_array(
        arrays["shape"], "shape", path, (2,), integer=True, low=0, high=MAX_INT32
    ).tolist()
    values = check_array(arrays["data"], "data", path, (None,))
    first, second = (arrays[key] for key in _FORMATS[name])
    size = values.shape
    if name == "coo":
        check_array(first, "row", path, size, integer=True, low=0, high=shape[0] - 1)
        check_array(second, "col", path, size, integer=True, low=0, high=shape[1] - 1)
        return Matrix(first, second, values, (shape[0], shape[1]))
    lines, width = shape if name == "csr" else shape[::-1]
    check_array(first, "indptr", path, (lines + 1,), integer=True)
    if first[0] != 0 or first[-1] != len(values) or (first[1:] < first[:-1]).any():
        raise DataError(
            f"{path}: indptr must rise from 0 to the number of entries ({len(values)}), got "
            f"{first[0]} to {first[-1]}"
        )
    check_array(second, "indices", path, size, integer=True, low=0, high=width - 1)
    line = np.repeat(np.arange(lines), np.diff(first.astype(np.int64)))
    row, col = (line, second) if name == "csr" else (second, line)
    return Matrix(row, col, values, (shape[0], shape[1]))


def _mtx_info(path: Path) -> tuple[int, int, int, str, str]:
    """Rows, columns, entries, format and symmetry that a Matrix Market file claims."""
    from scipy.io import mminfo

    try:
        rows, columns, entries, format_, field, symmetry = mminfo(path)
    except Exception as error:  # SciPy raises many kinds on damaged files
        raise DataError(
            f"{path} is not a readable Matrix Market file: {first_line_of(error)}. Write or fetch "
            "it again"
        ) from error
    if field == "complex" or not max(0, rows, columns) <= MAX_INT32:
        raise DataError(
            f"{path}: the matrix must hold real numbers and have at most {MAX_INT32} rows and "
            f"columns, got {field} in shape [{rows}, {columns}]"
        )
    return rows, columns, entries, format_, symmetry


def _mtx_entries(path: Path) -> int:
    """How many entries there can be, by the header and the size of the file."""
    rows, columns, entries, format_, symmetry = _mtx_info(path)
    size = path.stat().st_size
    if path.suffix.lower() == ".gz":
        size = 0
        try:
            with gzip.open(path) as file:
                while piece := file.read(1 << 20):
                    size += len(piece)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is not readable: {first_line_of(error)}") from error
    if format_ == "array":
        entries = rows * columns // (1 if symmetry == "general" else 2)
    if entries * (2 if format_ == "array" else 4) > size:  # "1\n", and "1 1\n"
        raise DataError(
            f"{path} claims {entries} entries, but has {size} bytes. Write or fetch it again"
        )
    return entries * (1 if symmetry == "general" else 2)


def _from_mtx(path: Path) -> Matrix:
    from scipy.io import mmread

    check_memory(_BYTES_PER_ENTRY * _mtx_entries(path), f"{path}: reading the matrix", DataError)
    try:
        found = mmread(path)
    except Exception as error:  # as above
        raise DataError(
            f"{path} is not a readable Matrix Market file: {first_line_of(error)}. Write or fetch "
            "it again"
        ) from error
    shape = (int(found.shape[0]), int(found.shape[1]))
    if isinstance(found, np.ndarray):
        row, col = np.nonzero(found)
        return Matrix(row, col, found[row, col], shape)
    matrix = found.tocoo()
    return Matrix(matrix.row, matrix.col, matrix.data, shape)
