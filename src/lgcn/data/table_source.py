"""What all tables of users have in common, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lgcn.data.columns import did_you_mean
from lgcn.errors import DataError


class TableSource:
    """A table that says its name and where a row is.

    Attributes:
        name: For messages: the path, or what the caller calls the table.
        columns: Names of the columns.
        path: The file, if it is one.
        textual: Whether its columns have no types but those that are guessed.
    """

    name: str
    columns: list[str]
    path: Path | None = None
    textual = False

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        """The table; ``types`` are those of columns in text files. (default: guessed)"""
        raise NotImplementedError

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        """The rows in record batches; ``why`` explains the types where a cell has another."""
        raise NotImplementedError

    def batch_memory(self, num_columns: int) -> int:
        """Bytes that :meth:`batches` takes at a time, about."""
        return 0

    def where(self, rows: Sequence[int]) -> list[str]:
        """What to call the rows (from 0, ascending): lines of a text file, else positions."""
        return [f"row {row}" for row in rows]

    def first_line(self, num_rows: int) -> int | None:
        """The line of row 0 if every later row is one line on, else ``None``."""
        return None

    def column(self, argument: str, name: str) -> str:
        """``name`` if there is such a column."""
        if name not in self.columns:
            raise DataError(
                f"{self.name}: {argument} must name a column, got {name!r}; "
                f"{did_you_mean(str(name), self.columns)}"
            )
        return name

    def _check_names(self) -> None:
        names = self.columns
        for name in names:
            if names.count(name) > 1:
                raise DataError(
                    f"{self.name}: column names must differ, got {name!r} {names.count(name)} "
                    "times. Rename all but one"
                )


def first_line_of(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
