"""Edges from files, tables and arrays, in batches of ids; bad rows are left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.errors import DataError, UsageError
from lgcn.store.csv_blocks import CsvBlocks
from lgcn.store.numpy_files import ROWS, ArrayTable
from lgcn.tables.columns import quoted
from lgcn.tables.csv_files import CsvTable
from lgcn.tables.early_checks import EDGE_SUFFIXES, is_path, table_files, table_kind
from lgcn.tables.edges import edge_weights, holds_weights
from lgcn.tables.ids import is_text, to_ids
from lgcn.tables.matrix_files import MatrixTable, is_scipy_npz, matrix_bytes
from lgcn.tables.open_table import open_table, to_column
from lgcn.tables.table_source import TableSource
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import format_memory

EXAMPLES = 3  # of rows that are wrong, in a message


class EdgeBatch(NamedTuple):
    """Some edges: ids (Arrow arrays), weights (float32 or `None`), and where a row is."""

    source: Any
    target: Any
    weight: Any
    where: Callable[[int], str]


class BadRows:
    """Counts bad rows, and remembers the first ones.

    Args:
        allowed: How many may be skipped.
    """

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.count = 0
        self.examples: list[str] = []

    @property
    def too_many(self) -> bool:
        """Whether the import must fail, once all bad rows are counted."""
        return self.count > self.allowed

    def add(self, where: str, reason: str) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{where}: {reason}")

    def add_rows(self, rows: Any, where: Callable[[int], str], why: Callable[[int], str]) -> None:
        for row in rows[: EXAMPLES - len(self.examples)].tolist():
            self.examples.append(f"{where(row)}: {why(row)}")
        self.count += len(rows)

    def check(self, hint: str = "") -> None:
        """Raises the error that names the first row and says how many more there are."""
        if not self.too_many:
            return
        more = self.count - 1
        others = ""
        if more:
            others = f" ({more} more row{'s are' if more > 1 else ' is'} wrong"
            if len(self.examples) > 1:
                others += f"; {'; '.join(self.examples[1:])}"
                others += "; ..." if more >= EXAMPLES else ""
            others += ")"
        allowed = f" (it was {self.allowed})" if self.allowed else ""
        raise DataError(
            f"{self.examples[0]}{others}. {hint}Correct the rows, or skip up to that many by "
            f"skip_bad_rows={self.count}{allowed}"
        )


def open_edges(
    edges: Any,
    *,
    delimiter: str | None,
    encoding: str,
    header: bool | None = None,
    memory: int | None = None,
) -> list[TableSource]:
    """The tables of edges: files, a table in memory, or a stream of arrays.

    Args:
        edges: A path, a pattern, or several (`.csv`, `.tsv`, `.txt`, `.jsonl`, `.parquet`, `.npz`,
            `.npy`, `.mtx`); what `lgcn.tables.open_table.read_table` takes; or an iterable of
            `(source, target)` or `(source, target, weight)` arrays or of arrays [n, 2].
        delimiter, encoding, header: Of text files, see `lgcn.tables.open_table.read_table`.
        memory: Bytes that a matrix may take, which is not read in parts. (default: no limit)
    """

    def open_one(source: Any) -> TableSource:
        if isinstance(source, Path):
            kind = table_kind(source, "edges", EDGE_SUFFIXES)
            if kind == ".mtx" or (kind == ".npz" and is_scipy_npz(source)):
                check_matrix_fits(source, memory)
            elif kind in (".npy", ".npz"):
                return ArrayTable(source, "edges")
        return open_table(source, "edges", delimiter=delimiter, encoding=encoding, header=header)

    if is_path(edges):
        sources = [open_one(path) for path in table_files(edges, "edges")]
        if len(sources) > 1 and any(isinstance(source, MatrixTable) for source in sources):
            raise UsageError(f"edges: a matrix must be the only file, got {len(sources)} files")
        return sources
    if isinstance(edges, Mapping) or hasattr(edges, "__arrow_c_stream__"):
        return [open_one(edges)]
    if isinstance(edges, pa.Table | pa.RecordBatch) or hasattr(edges, "columns"):
        return [open_one(edges)]
    if isinstance(edges, np.ndarray) or hasattr(edges, "numpy"):
        return [EdgeArrays([edges])]
    if isinstance(edges, Iterable):
        return [EdgeArrays(edges)]
    raise UsageError(
        "edges must be a path, several paths, a table, or an iterable of (source, target) arrays, "
        f"got {type(edges).__name__}"
    )


def check_matrix_fits(path: Path, memory: int | None) -> None:
    """Raises an error if a matrix, which is read as a whole, needs more memory than there may be.

    Args:
        path: An `.npz` or `.mtx` file.
        memory: Bytes. `None` for any.
    """
    needed = matrix_bytes(path)
    if memory is not None and needed > memory:
        raise DataError(
            f"{path}: a matrix is read as a whole, which needs about {format_memory(needed)}, and "
            f"{format_memory(memory)} are left. Raise memory, or write the entries as a table"
        )


class EdgeArrays(TableSource):
    """A stream of arrays; it can be read once."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        self.name = "edges"
        iterator = iter(arrays)
        first = next(iterator, None)
        if first is None:
            raise DataError("edges: the stream gave no arrays. It must give at least one")
        self._width = len(self._parts(first, 0))
        self.columns = ["source", "target", "weight"][: self._width]
        self._items = itertools.chain([first], iterator)

    def _parts(self, item: Any, number: int) -> list[Any]:
        if not isinstance(item, tuple | list):
            array = np.asarray(item)
            if array.ndim != 2 or 2 not in array.shape:
                raise DataError(
                    f"edges: array {number} of the stream must have shape [n, 2] or [2, n], or be "
                    f"a tuple of sources, targets and perhaps weights, got {list(array.shape)}"
                )
            array = array.T if array.shape[1] == 2 else array
            return [np.ascontiguousarray(array[0]), np.ascontiguousarray(array[1])]
        if len(item) not in (2, 3):
            raise DataError(
                f"edges: item {number} of the stream must have sources, targets and perhaps "
                f"weights, got {len(item)} arrays"
            )
        return list(item)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        for number, item in enumerate(self._items):
            parts = self._parts(item, number)
            name = f"edges: item {number} of the stream"
            if len(parts) != self._width or len({len(part) for part in parts}) > 1:
                raise DataError(
                    f"{name} must have {self._width} arrays of one length as the first has, got "
                    f"{len(parts)} of {', '.join(str(len(part)) for part in parts)}"
                )
            for start, stop in row_blocks(len(parts[0]), ROWS):
                cut = [part[start:stop] for part in parts]
                arrays = [to_column(p, c, name) for p, c in zip(cut, self.columns, strict=True)]
                batch = pa.RecordBatch.from_arrays(arrays, self.columns)
                yield batch.select(list(columns))


def guess_integer(source: TableSource, ends: tuple[str, str], size: int) -> bool | None:
    """Whether the ids of a text file are whole numbers, by its first block; `None` for others."""
    if not isinstance(source, CsvTable):
        return None
    text = dict.fromkeys(ends, pa.string())
    blocks = CsvBlocks(source, ends, text, size, lambda *_: None)
    return all(map(pa.types.is_integer, next(blocks.kinds(), [pa.string()])))


def edge_batches(
    source: TableSource,
    ends: tuple[str, str],
    weight_column: str | None,
    integer: bool | None,
    bad: BadRows,
    size: int,
) -> Iterator[EdgeBatch]:
    """The edges of a table.

    Args:
        source: The table.
        ends, weight_column: Its columns; no weights if that is `None`.
        integer: Whether ids are whole numbers, else strings. `None`: as in the first batch, which
            must not be from a text file.
        bad: Records bad rows.
        size: Bytes of a text file that are read at a time.
    """
    columns = [*ends, *([] if weight_column is None else [weight_column])]
    for batch, where in _raw_batches(source, columns, integer, bad, size):
        if integer is None:
            integer = not any(is_text(_plain(column).type) for column in batch[:2])
        found: list[Any] = []
        wrong = np.zeros(len(batch[0]), bool)
        for name, column in zip(columns, batch, strict=True):
            is_end = len(found) < 2
            place = f"{source.name}, column {name!r}"
            values, refused = _ids(column, integer, place) if is_end else _weights(column, place)
            found.append(values)
            if refused is not None:
                _report(bad, refused & ~wrong, where, name, column, is_end, integer)
                wrong |= refused
        if wrong.any():
            kept = np.flatnonzero(~wrong)
            take = pa.array(kept)
            found = [v[kept] if isinstance(v, np.ndarray) else v.take(take) for v in found]
            where = _moved(where, kept)
        yield EdgeBatch(found[0], found[1], found[2] if weight_column else None, where)


def _moved(where: Callable[[int], str], kept: Any) -> Callable[[int], str]:
    return lambda row: where(int(kept[row]))


def _raw_batches(
    source: TableSource, columns: list[str], integer: bool | None, bad: BadRows, size: int
) -> Iterator[tuple[list[Any], Callable[[int], str]]]:
    if isinstance(source, CsvTable):
        types = dict.fromkeys(columns[:2], pa.int64() if integer else pa.string())
        types |= dict.fromkeys(columns[2:], pa.float64())
        yield from CsvBlocks(source, columns, types, size, bad.add)
        return
    first = 0
    for batch in source.batches(columns, dict.fromkeys(columns[:2], pa.string())):

        def where(row: int, first: int = first) -> str:
            return f"{source.name}, {source.where([first + row])[0]}"

        yield list(batch.columns), where
        first += len(batch)


def _plain(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _ids(column: Any, integer: bool, place: str) -> tuple[Any, Any]:
    """Ids of one type, and a mask of those that are wrong, `None` if none is."""
    column = _plain(column)
    kind = column.type
    unclear: Any = None
    if pa.types.is_floating(kind):
        unclear = pc.or_(
            pc.not_equal(column, pc.floor(column)), pc.greater(pc.abs(column), 2.0**53)
        )
    elif integer and is_text(kind):
        unclear = pc.invert(pc.match_substring_regex(column, r"^-?\d{1,18}$"))
    elif integer and kind == pa.uint64():
        unclear = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64()))
    if unclear is not None and pc.any(unclear).as_py():
        column = pc.if_else(unclear, pa.scalar(None, kind), column)
    if pa.types.is_floating(kind) and not integer:
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column).cast(pa.int64())
    ids = to_ids(column, lambda _: place, integer=integer)
    wrong = None
    if ids.null_count:
        wrong = ids.is_null().to_numpy(zero_copy_only=False)
    if not integer:
        empty = pc.equal(ids, "")
        if pc.any(empty).as_py():
            blank = pc.fill_null(empty, True).to_numpy(zero_copy_only=False)
            wrong = blank if wrong is None else wrong | blank
    return ids, wrong


def _weights(column: Any, place: str) -> tuple[Any, Any]:
    if not holds_weights(column):
        raise DataError(f"{place}: weights must be numbers, got {column.type}")
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    weights, wrong = edge_weights(values)
    return weights, wrong if wrong.any() else None


def _report(
    bad: BadRows,
    wrong: Any,
    where: Callable[[int], str],
    name: str,
    column: Any,
    is_end: bool,
    integer: bool,
) -> None:
    def why(row: int) -> str:
        got = column[row].as_py()
        if is_end and (got is None or got == "" or got != got):
            return f"column {name!r}: the id is missing"
        if is_end:
            wanted = "a whole number below 2**63 as other ids are" if integer else "an id"
            return f"column {name!r} must be {wanted}, got {quoted(got)}"
        wanted = "a finite number of at least 0 in float32"
        return f"column {name!r}: a weight must be {wanted}, got {'none' if got is None else got}"

    bad.add_rows(np.flatnonzero(wrong), where, why)
