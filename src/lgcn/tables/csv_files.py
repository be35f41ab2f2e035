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
from lgcn.tables.blanks import SingleBlanks
from lgcn.tables.first_lines import NUMBER, layout, short
from lgcn.tables.table_source import TableSource

BLOCK = 1 << 21  # bytes of a text file at a time; a row must fit

_HEAD = 1 << 16  # bytes of a file by which its delimiter and names are known
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)
_INTEGER = re.compile(r"\s*-?\d{1,19}\s*")


class CsvTable(TableSource):
    """A CSV, TSV or other text file.

    Args:
        path: The file.
        kind: The ending of its name, without `.gz`.
        delimiter: Between cells, or "whitespace" for any run of blanks and tabs. `None`: guessed.
        encoding: As Python names it.
        role: What the table is: "edges", "nodes", ...
        header: Whether there is a line of column names, after empty lines and comments.
            (default: by the first lines)

    Attributes:
        delimiter: Between cells; a blank if any run of blanks and tabs is one.
        encoding: As Python names it.
        skip: Lines before the first row.
    """

    textual = True

    def __init__(
        self,
        path: Path,
        kind: str,
        delimiter: str | None,
        encoding: str,
        role: str = "nodes",
        header: bool | None = None,
    ) -> None:
        self.path, self.name = path, str(path)
        try:
            codec = _codec(encoding)
        except (LookupError, ValueError, TypeError):
            raise UsageError(
                f"encoding must be one that Python knows, such as utf-8, latin-1 or utf-16, "
                f"got {encoding!r}"
            ) from None
        self.encoding = "utf-8" if codec == "utf-8-sig" else codec
        self._blanks = False
        head, whole = self._head()
        found = layout(
            head, whole, name=self.name, role=role, kind=kind, delimiter=delimiter, header=header
        )
        if any("\ufffd" in name for name in found.columns) and (error := self.undecodable()):
            raise error
        self.delimiter, self.columns, self.skip = found.delimiter, found.columns, found.skip
        self.has_names, self._blanks = found.has_names, found.blanks
        self.notes = [found.note] if found.note else []
        if self._blanks and " ".encode(self.encoding) != b" ":
            raise UsageError(
                f"{self.name}: a file whose cells are separated by runs of blanks must not be in "
                f"{encoding}. Save it as UTF-8"
            )
        self._check_names()

    def head(self) -> str:
        """The beginning of the file; U+FFFD for what cannot be decoded."""
        return self._head()[0]

    def _head(self) -> tuple[str, bool]:
        """The beginning of the file, and whether that is all of it."""
        with self._damage(), self.open() as file:
            head = file.read(_HEAD)
            whole = not file.read(1)
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
            return codec.decode(head).removeprefix("\ufeff"), whole
        except UnicodeError:  # UTF-16 without a byte order mark
            raise self.undecodable() or DataError(
                f"{self.name} is not in {self.encoding}"
            ) from None

    def open(self) -> Any:
        """The bytes of the file, unpacked; a blank for each run of blanks that separates cells."""
        assert self.path is not None
        file: Any = gzip.open if self.path.suffix == ".gz" else open
        file = file(self.path, "rb")
        return SingleBlanks(file, self.name) if self._blanks else file

    def _input(self) -> Any:
        """What Arrow reads."""
        return self.open() if self._blanks else str(self.path)

    def _options(self, columns: Sequence[str] | None, types: Mapping[str, Any] | None) -> Any:
        arrow = pyarrow.csv
        # "utf8" is the spelling for which Arrow skips the conversion.
        encoding = "utf8" if self.encoding == "utf-8" else self.encoding
        return {
            "read_options": arrow.ReadOptions(
                block_size=BLOCK,
                encoding=encoding,
                skip_rows=self.skip,
                column_names=self.columns,
            ),
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
            guess = pyarrow.csv.open_csv(self._input(), **self._options(columns, types)).schema
            guess = {column.name: column.type for column in guess if _is_safe(column.type)}
            try:
                table = pyarrow.csv.read_csv(self._input(), **self._options(columns, guess))
            except pa.ArrowInvalid:
                table = pyarrow.csv.read_csv(self._input(), **self._options(columns, types))
        for column in table.schema:
            if pa.types.is_binary(column.type):  # what Arrow makes of text it cannot decode
                raise self.undecodable() or DataError(f"{self.name} is not in {self.encoding}")
        self._check_end(table)
        return table

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        with self._damage(types, why):
            reader = pyarrow.csv.open_csv(self._input(), **self._options(columns, types))
        while True:
            with self._damage(types, why):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def text_files(self) -> list[Any]:
        return [self]

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
        lines += not last.endswith(b"\n")
        return self.skip + 1 if lines == num_rows + self.skip else None

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
                else (NUMBER, "number")
                for name, kind in types.items()
                if not pa.types.is_string(kind)
            }
            missing = pyarrow.csv.ConvertOptions().null_values
            num_rows = 0
            for line, cells in self._rows():
                num_rows += 1
                if len(cells) != len(self.columns):
                    return DataError(
                        f"{self.name}, line {line}: must have {len(self.columns)} cells as "
                        f"{'line 1 has names' if self.has_names else 'the first row has'}, got "
                        f"{len(cells)}: {short(self.delimiter.join(cells))}. "
                        "Correct the line; put a cell that holds the delimiter in double quotes"
                    )
                for place, (pattern, wanted) in numbers.items():
                    if cells[place] not in missing and not pattern.fullmatch(cells[place]):
                        return DataError(
                            f"{self.name}, line {line}, column {self.columns[place]!r}: must be a "
                            f"{wanted}, got {short(cells[place])}. {why or 'Correct the cell'}"
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
        """(line, cells) of all rows, as Python reads them; `strict` on quotes."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with self.open() as file:
            text = io.TextIOWrapper(file, encoding, errors="replace", newline="")
            for _ in range(self.skip):
                text.readline()
            rows = csv.reader(text, delimiter=self.delimiter, strict=strict)
            before = self.skip
            for cells in rows:
                if cells:
                    yield before + 1, cells
                before = self.skip + rows.line_num

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
