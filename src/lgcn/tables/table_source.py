"""The base class of all tables that users pass: files and tables in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lgcn.errors import DataError, UsageError
from lgcn.tables.columns import column_hint, decoded, holds_texts, quoted

LONGEST_NAME = 1000  # characters of a column's name, which messages repeat


class TableSource:
    """A table that knows its name and where each row is.

    Attributes:
        name: For messages: the path, or what the caller calls the table.
        columns: Names of the columns.
        path: The file, if it is one.
        textual: Whether the types of its columns are guessed from text.
        has_names: Whether the user named the columns in the table, else they have numbers.
        notes: What the user should know about how it is read.
    """

    name: str
    columns: list[str]
    path: Path | None = None
    textual = False
    has_names = True
    notes: Sequence[str] = ()

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        """The table; `types` are those of columns in text files. (default: guessed)"""
        raise NotImplementedError

    def seen(self, table: Any) -> Any:
        """The rows of all columns that `read` saw: the table it returned, or a sample."""
        return table

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        """The rows in record batches; `why` explains the types if a cell has another."""
        raise NotImplementedError

    def batch_memory(self, num_columns: int) -> int:
        """Approximate memory in bytes that `batches` needs at a time."""
        return 0

    def text_files(self) -> list[Any]:
        """The text files it is made of, if it is: `lgcn.tables.csv_files.CsvTable`."""
        return []

    def where(self, rows: Sequence[int]) -> list[str]:
        """What to call the rows (from 0, ascending): lines of a text file, else positions."""
        return [f"row {row}" for row in rows]

    def first_line(self, num_rows: int) -> int | None:
        """The line of row 0 if every later row is one line on, else `None`."""
        return None

    def column(self, argument: str, name: str) -> str:
        """`name` if there is such a column."""
        if name not in self.columns:
            raise UsageError(
                f"{self.name}: {argument} must be one of its columns, got {quoted(name)}; "
                f"{column_hint(name, self.columns)}"
            )
        return name

    def _check_names(self) -> None:
        for name, count in Counter(self.columns).items():
            if count > 1:
                raise DataError(
                    f"{self.name}: column names must differ, got {quoted(name)} {count} times. "
                    "Rename all but one"
                )
            if len(name) > LONGEST_NAME:
                raise DataError(
                    f"{self.name}: a column name must have at most {LONGEST_NAME} characters, got "
                    f"{quoted(name)} with {len(name)}. Check that the names come first, and the "
                    "delimiter"
                )

    def _sound(self, table: Any, first_row: int = 0) -> Any:
        """Rows of this table, after a check that their strings are UTF-8.

        Arrow takes that for granted if a program says so. Dictionaries of string views, for
        which it has few functions, become plain texts.
        """
        for place, column in enumerate(table.columns):
            if not holds_texts(column.type):
                continue
            name = table.column_names[place]
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                row = next((i for i, cell in enumerate(column) if not _is_readable(cell)), 0)
                raise DataError(
                    f"{self.name}, {self.where([first_row + row])[0]}, column {name!r}: the text "
                    "is not UTF-8. Write the column again with the encoding it has, for example "
                    "by .str.decode('latin-1') in pandas"
                ) from None
            plain = decoded(column)
            if plain is not column:
                table = table.set_column(place, name, plain)
        return table

    def _sound_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        first_row = 0
        for batch in batches:
            yield from self._sound(pa.Table.from_batches([batch]), first_row).to_batches()
            first_row += len(batch)


def _is_readable(cell: Any) -> bool:
    try:
        cell.as_py()
    except UnicodeDecodeError:
        return False
    return True
