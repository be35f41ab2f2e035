"""Tables in NumPy files (`.npz`, `.npy`), read in parts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lgcn.errors import DataError, first_line_of
from lgcn.tables.open_table import to_column
from lgcn.tables.table_source import TableSource
from lgcn.utils.row_blocks import row_blocks

ROWS, VALUES = 1 << 17, 1 << 21  # in a batch, at most


class _Column(NamedTuple):
    """Values of an array in a file: of each row all, or the one in place `pick`."""

    member: str
    dtype: Any
    width: int  # values of a row that lie side by side in the file
    pick: int | None
    skip: int  # values before the first row
    shape: tuple[int, ...]  # of a row

    def rows(self, file: Any, count: int, name: str) -> Any:
        size = count * self.width * self.dtype.itemsize
        data = file.read(size)
        if len(data) < size:
            raise DataError(f"{name} is cut short. Write or fetch it again")
        values = np.frombuffer(data, self.dtype).reshape(count, self.width)
        if self.pick is not None:
            return np.ascontiguousarray(values[:, self.pick])
        return values.reshape(count, *self.shape)


class ArrayTable(TableSource):
    """An `.npz` file, in which each array is a column, or pairs of nodes in a `.npy` file.

    Args:
        path: The file.
        role: Of "edges", an array `edges` in an `.npz` file may hold the pairs, in shape [E, 2]
            or [2, E].
    """

    def __init__(self, path: Path, role: str) -> None:
        self.path, self.name = path, str(path)
        self._columns: dict[str, _Column] = {}
        lengths = {}
        with self._damage():
            for member in self._members():
                with self._open(member) as file:
                    name, shape = self._add(file, member, role)
                lengths[name] = shape
        if not self._columns:
            raise DataError(f"{path} holds no arrays. Each array must be a column")
        if len(set(lengths.values())) > 1:
            raise DataError(
                f"{path}: columns must have one length, got "
                + ", ".join(f"{key!r} with {length}" for key, length in list(lengths.items())[:8])
            )
        self.num_rows = next(iter(lengths.values()))
        self.columns = list(self._columns)
        self._check_names()

    def _members(self) -> list[str]:
        assert self.path is not None
        if self.path.suffix.lower() == ".npy":
            return [""]
        with zipfile.ZipFile(self.path) as archive:
            return [file for file in archive.namelist() if file.endswith(".npy")]

    @contextmanager
    def _open(self, member: str) -> Iterator[Any]:
        assert self.path is not None
        if not member:
            with self.path.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(member) as packed:
                yield packed

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, ValueError, zipfile.BadZipFile, KeyError) as error:
            if isinstance(error, DataError):
                raise
            kind = self.path.suffix.lower() if self.path else ""
            raise DataError(
                f"{self.name} is not a readable {kind} file: {first_line_of(error)}. "
                "Write or fetch it again"
            ) from error

    def _add(self, file: Any, member: str, role: str) -> tuple[str, int]:
        """Notes the columns of an array; gives its name and the number of rows."""
        shape, by_column, dtype = _header(file)
        name = member.removesuffix(".npy")
        if dtype.hasobject or dtype.fields is not None:
            raise DataError(
                f"{self.name}: {name or 'the array'} must hold numbers or strings, got {dtype}"
            )
        if not member or (role == "edges" and name == "edges"):
            if len(shape) != 2 or 2 not in shape:
                raise DataError(
                    f"{self.name}: edges must have shape [E, 2] or [2, E], got {list(shape)}"
                )
            rows = shape[0] if shape[1] == 2 else shape[1]
            # Whether all sources come first: [2, E] by rows, or [E, 2] by columns.
            apart = (shape[1] != 2) != by_column
            for place, end in enumerate(("source", "target")):
                self._columns[end] = (
                    _Column(member, dtype, 1, None, place * rows, ())
                    if apart
                    else _Column(member, dtype, 2, place, 0, ())
                )
            return "edges", rows
        if not 1 <= len(shape) <= 2 or (len(shape) == 2 and by_column and 1 not in shape):
            raise DataError(
                f"{self.name}: {name} must have one dimension, or two in C order, got shape "
                f"{list(shape)}{' in Fortran order' if by_column else ''}"
            )
        width = int(np.prod(shape[1:]))
        self._columns[name] = _Column(member, dtype, width, None, 0, tuple(shape[1:]))
        return name, shape[0]

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        names = self.columns if columns is None else list(columns)
        return pa.Table.from_batches(list(self.batches(names, {})))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        wanted = [self._columns[name] for name in columns]
        with ExitStack() as stack, self._damage():
            files = []
            for column in wanted:
                files.append(stack.enter_context(self._open(column.member)))
                _header(files[-1])
                _skip(files[-1], column.skip * column.dtype.itemsize)
            rows = min(ROWS, VALUES // max(1, sum(column.width for column in wanted)))
            for start, stop in row_blocks(self.num_rows, rows, at_least_one=True):
                arrays = [
                    to_column(column.rows(file, stop - start, self.name), name, self.name)
                    for name, column, file in zip(columns, wanted, files, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, list(columns))


def _header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether it is in Fortran order, and dtype of the array that begins here."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the format is not supported")


def _skip(file: Any, size: int) -> None:
    while size > 0:
        size -= len(file.read(min(size, 1 << 20))) or size
