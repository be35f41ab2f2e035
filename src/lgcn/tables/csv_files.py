"""Reading CSV, TSV and other text files, with Arrow.

Python reads a file only if Arrow refused it, to find the line that is wrong.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from lgcn.errors import DataError, UsageError, first_line_of
from lgcn.tables.columns import listed
from lgcn.tables.table_source import TableSource

DELIMITERS = (",", ";", "\t", "|")
BLOCK = 1 << 21  # bytes of a text file at a time; a row must fit

_HEAD = 1 << 16  # bytes of a file that its delimiter is guessed from
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_INTEGER = re.compile(r"\s*-?\d{1,19}\s*")


class CsvTable(TableSource):
    """A CSV, TSV or other text file; the first line that is not empty has the column names.

    Attributes:
        delimiter: Between cells.
        encoding: As Python names it.
    """

    textual = True

    def __init__(self, path: Path, kind: str, delimiter: str | None, encoding: str) -> None:
        self.path, self.name = path, str(path)
        if delimiter is not None and not delimiter.isascii():  # Arrow wants one byte
            raise UsageError(
                f"delimiter must be one character of ASCII, such as ';', got {delimiter!r}. Write "
                "the file with another one"
            )
        try:
            codec = _codec(encoding)
        except (LookupError, ValueError, TypeError):
            raise UsageError(
                f"encoding must be one that Python knows, such as utf-8, latin-1 or utf-16, "
                f"got {encoding!r}"
            ) from None
        self.encoding = "utf-8" if codec == "utf-8-sig" else codec
        head, guessed = self.head(), delimiter is None
        if delimiter is None and kind != ".txt":
            delimiter = "\t" if kind == ".tsv" else _guess_delimiter(head, most_usual=",")
        elif delimiter is None:
            delimiter = _guess_delimiter(head)
        self.delimiter = "\t" if delimiter == "\\t" else delimiter
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise UsageError(f"delimiter must be one character, got {delimiter!r}")
        self.columns = self._header(head, guessed)
        self._check_names()

    def head(self) -> str:
        """The beginning of the file; U+FFFD for what cannot be decoded."""
        with self._damage(), self.open() as file:
            head = file.read(_HEAD)
        if self.encoding == "utf-8" and b"\0" in head:
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(f"{self.name} is in UTF-16, not UTF-8. Give encoding='utf-16'")
            raise DataError(
                f"{self.name} is not a text file, it holds zero bytes. Save the table as CSV or "
                "Parquet, or give its encoding"
            )
        # A row that cannot be decoded is found when it is read.
        codec = codecs.getincrementaldecoder(self.encoding)("replace")
        try:
            return codec.decode(head).removeprefix("\ufeff")
        except UnicodeError:  # UTF-16 without a byte order mark
            raise self.undecodable() or DataError(
                f"{self.name} is not in {self.encoding}"
            ) from None

    def _header(self, head: str, guessed: bool) -> list[str]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=self.delimiter)
        try:
            names = next((row for row in rows if row), [])
        except csv.Error as error:
            raise DataError(f"{self.name}, line 1: cannot read column names: {error}") from error
        if any("\ufffd" in name for name in names) and (error_there := self.undecodable()):
            raise error_there
        if not names:
            raise DataError(
                f"{self.name} is empty. It must have a line of column names, then one line per row"
            )
        if len(names) == 1:
            others = [d for d in DELIMITERS if d != self.delimiter and d in names[0]]
            if others:
                raise DataError(
                    f"{self.name}, line {rows.line_num}: {self.delimiter!r} separates no columns, "
                    f"but the line has {others[0]!r}. "
                    + (
                        f"Give delimiter={others[0]!r}"
                        if guessed
                        else "The delimiter is for both tables: write them with the same one"
                    )
                )
        if all(_NUMBER.fullmatch(name) for name in names):
            raise DataError(
                f"{self.name}, line {rows.line_num}: column names must come first, got numbers "
                f"({listed(names, 4)}). Put a line of names above the rows"
            )
        return names

    def open(self) -> Any:
        """The bytes of the file, unpacked."""
        assert self.path is not None
        return gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")

    def _options(self, columns: Sequence[str] | None, types: Mapping[str, Any] | None) -> Any:
        arrow = pyarrow.csv
        # "utf8" is the spelling for which Arrow skips the conversion.
        encoding = "utf8" if self.encoding == "utf-8" else self.encoding
        return {
            "read_options": arrow.ReadOptions(block_size=BLOCK, encoding=encoding),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                include_columns=None if columns is None else list(columns),
                column_types=dict(types or {}),
            ),
        }

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        with self._damage(types):
            # Where Arrow guesses the types of columns, it keeps all text until the end, in case a
            # guess was wrong. So it guesses from the first block, and from all only if it must.
            guess = pyarrow.csv.open_csv(str(self.path), **self._options(columns, types)).schema
            guess = {column.name: column.type for column in guess if _is_safe(column.type)}
            try:
                table = pyarrow.csv.read_csv(str(self.path), **self._options(columns, guess))
            except pa.ArrowInvalid:
                table = pyarrow.csv.read_csv(str(self.path), **self._options(columns, types))
        for column in table.schema:
            if pa.types.is_binary(column.type):  # what Arrow makes of text it cannot decode
                raise self.undecodable() or DataError(f"{self.name} is not in {self.encoding}")
        self._check_end(table)
        return table

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        with self._damage(types, why):
            reader = pyarrow.csv.open_csv(str(self.path), **self._options(columns, types))
        while True:
            with self._damage(types, why):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def batch_memory(self, num_columns: int) -> int:
        return 16 * BLOCK  # text that is read ahead, and the columns made from it

    def where(self, rows: Sequence[int]) -> list[str]:
        lines, wanted = [], set(rows)
        with suppress(*_UNREADABLE):  # a cell may be longer than Python accepts
            for number, (line, _) in enumerate(self._rows()):
                if number in wanted:
                    lines.append(f"line {line}")
                    if len(lines) == len(wanted):
                        return lines
        return super().where(rows)

    def first_line(self, num_rows: int) -> int | None:
        lines, last = 0, b"\n"
        with self.open() as file:
            while block := file.read(1 << 20):
                lines, last = lines + block.count(b"\n"), block
        return 2 if lines + (not last.endswith(b"\n")) == num_rows + 1 else None

    @contextmanager
    def _damage(self, types: Mapping[str, Any] | None = None, why: str = "") -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, UnicodeError, *_UNREADABLE) as error:
            raise self._explain(error, types or {}, why) from error

    def _explain(self, error: Exception, types: Mapping[str, Any], why: str) -> DataError:
        """The error with its place, for which the file is read again, row by row."""
        try:
            if found := self.undecodable():
                return found
            numbers = {
                self.columns.index(name): (_INTEGER, "whole number")
                if pa.types.is_integer(kind)
                else (_NUMBER, "number")
                for name, kind in types.items()
                if not pa.types.is_string(kind)
            }
            missing = pyarrow.csv.ConvertOptions().null_values
            num_rows = 0
            for line, cells in self._rows():
                num_rows += 1
                if len(cells) != len(self.columns):
                    return DataError(
                        f"{self.name}, line {line}: must have {len(self.columns)} cells as line 1 "
                        f"has names, got {len(cells)}: {_short(self.delimiter.join(cells))}. "
                        "Correct the line; put a cell that holds the delimiter in double quotes"
                    )
                for place, (pattern, wanted) in numbers.items():
                    if cells[place] not in missing and not pattern.fullmatch(cells[place]):
                        return DataError(
                            f"{self.name}, line {line}, column {self.columns[place]!r}: must be a "
                            f"{wanted}, got {_short(cells[place])}. {why or 'Correct the cell'}"
                        )
            if num_rows == 0:
                return DataError(f"{self.name} has column names but no rows. Add one line per row")
        except _UNREADABLE as other:
            error = other
        return DataError(
            f"{self.name} is not a readable table: {first_line_of(error)}. "
            "Check the file, delimiter and encoding"
        )

    def _rows(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of all rows but the names, as Python reads them; `strict` on quotes."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with self.open() as file:
            text = io.TextIOWrapper(file, encoding, errors="replace", newline="")
            rows = csv.reader(text, delimiter=self.delimiter, strict=strict)
            seen_names, before = False, 0
            for cells in rows:
                if cells and seen_names:
                    yield before + 1, cells
                seen_names = seen_names or bool(cells)
                before = rows.line_num

    def undecodable(self) -> DataError | None:
        """The error for the first line that cannot be decoded, `None` if there is none."""
        decoder = codecs.getincrementaldecoder(self.encoding)()
        line = 1
        with self.open() as file:
            while True:
                block = file.read(1 << 20)
                try:
                    line += decoder.decode(block, final=not block).count("\n")
                except UnicodeDecodeError as error:
                    before = error.object[: error.start]
                    line += before.decode(self.encoding, errors="replace").count("\n")
                    byte = error.object[error.start]
                    return DataError(
                        f"{self.name}, line {line}: not in {self.encoding} (byte {byte:#04x}). "
                        "Give the encoding the file is in, for example encoding='latin-1' or "
                        "'cp1252', or save it as UTF-8"
                    )
                except UnicodeError as error:  # of UTF-16 and UTF-32: no byte order mark
                    return DataError(
                        f"{self.name}: {first_line_of(error)}. Give the encoding the file is in, "
                        "for example encoding='utf-8' or 'utf-16-le'"
                    )
                if not block:
                    break
        return None

    def _check_end(self, table: Any) -> None:
        """A quote that is never closed makes the rest of the file one cell."""
        last = table.slice(max(0, len(table) - 1)).to_pylist()
        if any(isinstance(cell, str) and "\n" in cell for row in last for cell in row.values()):
            line = 0
            try:
                for line, _ in self._rows(strict=True):  # noqa: B007
                    pass
            except csv.Error as error:
                if "unexpected end" in str(error):
                    raise DataError(
                        f"{self.name}: a cell after line {line} opens with a double quote that is "
                        "never closed. Close it, or write quotes inside a cell twice"
                    ) from None


def _is_safe(kind: Any) -> bool:
    """Whether a guess from the first block is what Arrow would guess from all blocks."""
    return not (pa.types.is_null(kind) or pa.types.is_binary(kind))


def _codec(encoding: str) -> str:
    """The name of a text encoding. Some of Python's codecs are for other things, or incomplete."""
    "a,1\n".encode(encoding).decode(encoding, errors="replace")
    return codecs.lookup(encoding).name


def _guess_delimiter(head: str, most_usual: str | None = None) -> str:
    """The delimiter that splits the first lines into the same number of cells, the more the better.

    Or `most_usual`, if one of these lines has it.
    """
    lines = head.splitlines()[:20]
    lines = [line for line in (lines[:-1] if len(head) >= _HEAD else lines) if line.strip()]
    if most_usual is not None and any(most_usual in line for line in lines):
        return most_usual

    def cells(delimiter: str) -> int:
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter)}
        return counts.pop() if len(counts) == 1 else 1

    return max(DELIMITERS, key=cells)  # the first of the best


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else cell[:57] + "...")
