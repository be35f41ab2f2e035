"""Large CSV files in blocks of whole rows, so that a broken row does not affect others.

Arrow reads a block. If Arrow refuses it, it is halved until the wrong part is small; Python reads
that part row by row.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from lgcn.errors import DataError
from lgcn.tables.columns import quoted
from lgcn.tables.csv_files import CsvTable
from lgcn.utils.jit import jit

MAX_ROW = 1 << 24  # bytes
BLOCK = 1 << 21  # bytes by which the types of columns are guessed
_SMALL = 1 << 15  # bytes of a block that Python reads
_MISSING = frozenset(pyarrow.csv.ConvertOptions().null_values)
_QUOTE = ord('"')


class CsvBlock(NamedTuple):
    """Some rows: one Arrow array per column, and where each row is."""

    columns: list[Any]
    where: Callable[[int], str]


class CsvBlocks:
    """The rows of a text file, without those that cannot be read.

    Args:
        table: The file.
        columns: Which to read.
        types: Of these columns: int64, float64 or string.
        size: Bytes of a block.
        refuse: Called with the place of a row that cannot be read, and what is wrong with it.
    """

    def __init__(
        self,
        table: CsvTable,
        columns: Sequence[str],
        types: Mapping[str, Any],
        size: int,
        refuse: Callable[[str, str], None],
    ) -> None:
        self._table, self._columns, self._size = table, list(columns), size
        self._types = [types[name] for name in columns]
        self._places = [table.columns.index(name) for name in columns]
        self._refuse = refuse
        self._newline = b"\n"

    def __iter__(self) -> Iterator[CsvBlock]:
        for line, block in self._blocks():
            yield from self._parse(block, line)

    def kinds(self) -> Iterator[list[Any]]:
        """The types that Arrow takes the columns for, block by block, if it can read them."""
        for _, block in self._blocks():
            try:
                found = self._read(block, {})
            except pa.ArrowInvalid:
                continue
            yield [found.schema.field(name).type for name in self._columns]

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """(line of the first row, whole rows in UTF-8), without comments and names."""
        head = self._table.head()
        if "\n" not in head and "\r" in head:
            self._newline = b"\r"
        before = self._before_rows(head)
        skipped, line, rest = len(before), 1 + before.count(self._newline), b""
        for piece in self._pieces():
            rest += piece[skipped:]
            skipped = max(0, skipped - len(piece))
            end, _, _ = self._rows_end(rest)
            if end:
                yield line, rest[:end]
                line, rest = line + rest[:end].count(self._newline), rest[end:]
            elif len(rest) > max(MAX_ROW, 2 * self._size):
                raise DataError(
                    f"{self._table.name}, line {line}: a row must have at most {MAX_ROW} bytes. "
                    "Perhaps a cell opens with a double quote that is never closed"
                )
        if rest:
            if self._rows_end(rest)[1]:
                raise DataError(
                    f"{self._table.name}: a cell in or after line {line} opens with a double quote "
                    "that is never closed. Close it, or write quotes inside a cell twice"
                )
            yield line, rest

    def _pieces(self) -> Iterator[bytes]:
        """The file in UTF-8; what cannot be decoded becomes bytes that are not UTF-8 either."""
        table = self._table
        with table.open() as file:
            if table.encoding == "utf-8":
                piece = file.read(self._size).removeprefix(codecs.BOM_UTF8)
                while piece:
                    yield piece
                    piece = file.read(self._size)
                return
            decoder = codecs.getincrementaldecoder(table.encoding)("surrogateescape")
            try:
                while piece := file.read(self._size):
                    yield decoder.decode(piece).encode("utf-8", "surrogatepass")
                yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise table.undecodable() or DataError(
                    f"{table.name} is not in {table.encoding}"
                ) from None

    def _before_rows(self, head: str) -> bytes:
        """What the file begins with: comments, and the line of names."""
        newline, end = self._newline.decode(), 0
        for _ in range(self._table.skip):
            end = head.find(newline, end) + 1 or len(head)
        return head[:end].encode()

    def _rows_end(self, data: bytes, limit: int | None = None) -> tuple[int, bool, bool]:
        """Where the last whole row within `limit` bytes ends; whether a quote is open there, and
        whether any cell has a line's end in it.
        """
        limit = len(data) if limit is None else limit
        if data.find(b'"', 0, limit) < 0:
            return data.rfind(self._newline, 0, limit) + 1, False, False
        view = np.frombuffer(data, np.uint8)[:limit]
        end, *found = _rows_end(view, ord(self._table.delimiter), self._newline[0])
        return int(end), bool(found[0]), bool(found[1])

    def _read(self, block: bytes, types: Mapping[str, Any]) -> Any:
        arrow = pyarrow.csv
        return arrow.read_csv(
            pa.BufferReader(block),
            read_options=arrow.ReadOptions(
                column_names=self._table.columns, block_size=max(1 << 20, self._size // 8)
            ),
            parse_options=arrow.ParseOptions(
                # Rows are found several times faster if every end of a line is the end of a row.
                delimiter=self._table.delimiter,
                newlines_in_values=self._rows_end(block)[2],
            ),
            convert_options=arrow.ConvertOptions(
                include_columns=self._columns, column_types=dict(types)
            ),
        )

    def _parse(self, block: bytes, line: int) -> Iterator[CsvBlock]:
        try:
            table = self._read(block, dict(zip(self._columns, self._types, strict=True)))
        except (pa.ArrowInvalid, pa.ArrowKeyError):
            middle = 0
            if len(block) > _SMALL:
                middle, _, _ = self._rows_end(block, len(block) // 2)
            if middle == 0:
                yield self._parse_slowly(block, line)
            else:
                yield from self._parse(block[:middle], line)
                yield from self._parse(block[middle:], line + block.count(self._newline, 0, middle))
            return
        columns = [column.combine_chunks() for column in table.columns]
        yield CsvBlock(columns, lambda row: self._where(block, line, row))

    def _where(self, block: bytes, line: int, row: int) -> str:
        for number, (at, _) in enumerate(self._rows(block, line)):
            if number == row:
                return f"{self._table.name}, line {at}"
        return f"{self._table.name}, row {row} from line {line} on"

    def _rows(self, block: bytes, line: int) -> Iterator[tuple[int, list[str]]]:
        rows = csv.reader(_text(block), delimiter=self._table.delimiter)
        before = 0
        try:
            for cells in rows:
                if cells:
                    yield line + before, cells
                before = rows.line_num
        except csv.Error as error:
            raise DataError(
                f"{self._table.name}, line {line + before}: not a readable row: {error}"
            ) from None

    def _parse_slowly(self, block: bytes, line: int) -> CsvBlock:
        lines: list[int] = []
        found: list[list[Any]] = [[] for _ in self._columns]
        for at, cells in self._rows(block, line):
            values, wrong = self._values(cells)
            if wrong:
                self._refuse(f"{self._table.name}, line {at}", wrong)
            else:
                lines.append(at)
                for column, value in zip(found, values, strict=True):
                    column.append(value)
        columns = [pa.array(c, kind) for c, kind in zip(found, self._types, strict=True)]
        return CsvBlock(columns, lambda row: f"{self._table.name}, line {lines[row]}")

    def _values(self, cells: list[str]) -> tuple[list[Any], str]:
        """The values of a row in the columns, and what is wrong with them if anything is."""
        names = self._table.columns
        if len(cells) != len(names):
            row = quoted(self._table.delimiter.join(cells))
            model = "the first line has names" if self._table.has_names else "the first row has"
            return [], f"must have {len(names)} cells as {model}, got {row}"
        values: list[Any] = []
        for place, kind in zip(self._places, self._types, strict=True):
            cell = cells[place]
            try:
                cell.encode()
            except UnicodeEncodeError:
                what = f"column {names[place]!r} is not in {self._table.encoding}"
                return [], f"{what}: {quoted(cell)}. Give the encoding the file is in"
            if pa.types.is_string(kind):
                values.append(cell)
                continue
            if cell in _MISSING:
                values.append(None)
                continue
            try:
                values.append(pa.scalar(cell.strip(" \t")).cast(kind).as_py())
            except pa.ArrowInvalid:
                wanted = "a whole number below 2**63" if pa.types.is_integer(kind) else "a number"
                return [], f"column {names[place]!r} must be {wanted}, got {quoted(cell)}"
        return values, ""


def column_types(table: CsvTable, columns: Sequence[str], *, whole_file: bool) -> dict[str, Any]:
    """The types of the columns, by the first block or by all; what fits nothing else is text."""
    found: list[Any] = [pa.null() for _ in columns]
    text = dict.fromkeys(columns, pa.string())
    blocks = CsvBlocks(table, columns, text, BLOCK, lambda *_: None)
    for kinds in blocks.kinds():
        found = [common_type(a, b) for a, b in zip(found, kinds, strict=True)]
        if not whole_file and not any(map(pa.types.is_null, found)):
            break
    found = [pa.string() if pa.types.is_null(kind) else kind for kind in found]
    return dict(zip(columns, found, strict=True))


def common_type(a: Any, b: Any) -> Any:
    """The type of a column that has one type in some rows and another in others."""
    if pa.types.is_null(a) or a == b:
        return b
    if pa.types.is_null(b):
        return a
    if {a, b} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if {a, b} <= {pa.date32(), pa.timestamp("s")}:
        return pa.timestamp("s")
    if {a, b} <= {pa.date32(), pa.timestamp("s"), pa.timestamp("ns")}:
        return pa.timestamp("ns")
    return pa.string()


def _text(block: bytes) -> Any:
    return io.TextIOWrapper(io.BytesIO(block), "utf-8", errors="surrogateescape", newline="")


@jit
def _rows_end(data: Any, delimiter: int, newline: int) -> Any:
    """Quotes count where they open a cell; inside one, two stand for one."""
    end, is_open, at_start, several = 0, False, True, False
    i = 0
    while i < data.shape[0]:
        byte = data[i]
        if is_open:
            if byte == _QUOTE:
                if i + 1 < data.shape[0] and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    is_open = False
            several |= byte == newline
        elif byte == newline:
            end, at_start = i + 1, True
        elif byte == delimiter:
            at_start = True
        else:
            is_open = at_start and byte == _QUOTE
            at_start = False
        i += 1
    return end, is_open, several
