"""One table in several files that have the same columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lgcn.errors import DataError
from lgcn.tables.columns import listed
from lgcn.tables.table_source import TableSource


class SeveralFiles(TableSource):
    """The rows of several files, one file after the other.

    Args:
        parts: The files, at least one. Columns are matched by name, in any order.

    Attributes:
        parts: The files.
    """

    def __init__(self, parts: Sequence[TableSource]) -> None:
        first = parts[0]
        for part in parts[1:]:
            if set(part.columns) != set(first.columns):
                other = [name for name in part.columns if name not in first.columns]
                lacks = [name for name in first.columns if name not in part.columns]
                raise DataError(
                    f"{part.name} must have the columns of {first.name}; it lacks "
                    f"{listed(lacks, 5) or 'none'} and has {listed(other, 5) or 'no others'}. Give "
                    "all files the same columns"
                )
            if part.has_names != first.has_names:
                raise DataError(
                    f"{part.name} must have a line of column names if {first.name} has one. Give "
                    "header=True or header=False"
                )
        self.parts = list(parts)
        more = len(parts) - 1
        self.name = f"{first.name} and {more} more file{'s' if more > 1 else ''}"
        self.columns, self.path = list(first.columns), first.path
        self.textual, self.has_names = first.textual, first.has_names
        self.notes = first.notes
        self._rows = [0] * len(parts)  # of each file, as far as they were read

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        names = self.columns if columns is None else list(columns)
        tables = [part.read(names, types) for part in self.parts]
        self._rows = [len(table) for table in tables]
        given = dict(types or {})
        # A column that is whole numbers in one file may be anything in another.
        common = {}
        for name in names:
            kinds = {table.schema.field(name).type for table in tables}
            if len(kinds) > 1:
                common[name] = _common(kinds)
        for i, part in enumerate(self.parts):
            if any(tables[i].schema.field(name).type != kind for name, kind in common.items()):
                if part.textual:  # 007 is read as it is written, not as 7
                    tables[i] = part.read(names, given | common)
                tables[i] = self._cast(part, tables[i], common)
        return pa.concat_tables(tables)

    def _cast(self, part: TableSource, table: Any, common: Mapping[str, Any]) -> Any:
        for name, kind in common.items():
            place = table.column_names.index(name)
            try:
                column = table.column(name).cast(kind)
            except pa.ArrowException:
                raise DataError(
                    f"{part.name}: column {name!r} holds {table.column(name).type}, unlike other "
                    "files. Write it with the same type in all files"
                ) from None
            table = table.set_column(place, name, column)
        return table

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        kinds: dict[str, Any] = {}
        for i, part in enumerate(self.parts):
            self._rows[i] = 0
            for batch in part.batches(columns, types, why):
                self._rows[i] += len(batch)  # before it is handed over, so that `where` knows it
                for field in batch.schema:
                    kinds.setdefault(field.name, field.type)
                if all(field.type == kinds[field.name] for field in batch.schema):
                    yield batch
                else:
                    table = self._cast(part, pa.Table.from_batches([batch]), kinds)
                    yield from table.to_batches()

    def text_files(self) -> list[Any]:
        files = [file for part in self.parts for file in part.text_files()]
        return files if len(files) == len(self.parts) else []

    def batch_memory(self, num_columns: int) -> int:
        return max(part.batch_memory(num_columns) for part in self.parts)

    def where(self, rows: Sequence[int]) -> list[str]:
        places, first = [], 0
        for part, count in zip(self.parts, self._rows, strict=True):
            here = [row - first for row in rows if first <= row < first + count]
            if here:
                places += [f"{place} of {part.name}" for place in part.where(here)]
            first += count
        return places if len(places) == len(rows) else super().where(rows)


def _common(kinds: set[Any]) -> Any:
    kinds = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(kinds) == 1:
        return kinds.pop()
    number = (pa.types.is_integer, pa.types.is_floating)
    if all(any(check(kind) for check in number) for kind in kinds):
        return pa.float64() if any(map(pa.types.is_floating, kinds)) else pa.int64()
    return pa.string()
