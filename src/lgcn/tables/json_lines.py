"""JSON lines: one JSON object per line, read with Arrow."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from lgcn.errors import DataError, first_line_of
from lgcn.tables.columns import quoted
from lgcn.tables.first_lines import short
from lgcn.tables.table_source import TableSource
from lgcn.utils.limits import MAX_JSON_DEPTH

BLOCK = 1 << 21  # bytes that are read at a time
MAX_LINE = 1 << 24
_CHANGED = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+) in row (\d+)")


class JsonLines(TableSource):
    """A file of JSON objects, one per line; a key that is missing in a line is an empty cell.

    The first lines, about 2 MB of them, have all keys.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._schema: Any = None
        first = next(self._blocks(), None)
        if first is None:
            raise DataError(f"{self.name} is empty. It must have one JSON object per line")
        self.columns = self._parse(*first, None).column_names
        if not self.columns:
            raise DataError(f"{self.name}, line 1: the JSON object has no keys. Each is a column")
        self._check_names()

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """(line of the first row, whole lines)."""
        assert self.path is not None
        line, rest = 1, b""
        try:
            with (
                gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")
            ) as file:
                while piece := file.read(BLOCK):
                    rest += piece
                    end = rest.rfind(b"\n") + 1
                    if end:
                        block, rest = rest[:end], rest[end:]
                        if block.strip():
                            yield line, block
                        line += block.count(b"\n")
                    elif len(rest) > MAX_LINE:
                        raise DataError(
                            f"{self.name}, line {line}: a line must have at most {MAX_LINE} bytes. "
                            "Write one JSON object per line"
                        )
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(
                f"{self.name} is not readable: {first_line_of(error)}. Fetch or write it again"
            ) from error
        if rest.strip():
            yield line, rest

    def _parse(self, line: int, block: bytes, schema: Any) -> Any:
        from lgcn.tables.json_depth import deepest  # imports Numba

        depth, place = deepest(np.frombuffer(block, np.uint8))
        if depth > MAX_JSON_DEPTH:  # Arrow's parser would run out of stack
            at = line + block.count(b"\n", 0, int(place))
            raise DataError(f"{self.name}, line {at}: nested more than {MAX_JSON_DEPTH} deep")
        try:
            block.decode()
        except UnicodeDecodeError as error:
            at = line + block.count(b"\n", 0, error.start)
            raise DataError(
                f"{self.name}, line {at}: JSON must be in UTF-8, got the byte "
                f"{block[error.start]:#04x}. Save the file as UTF-8"
            ) from None
        arrow = pyarrow.json
        try:
            return arrow.read_json(
                pa.BufferReader(block),
                read_options=arrow.ReadOptions(block_size=len(block) + 1, use_threads=False),
                parse_options=arrow.ParseOptions(
                    explicit_schema=schema,
                    unexpected_field_behavior="infer" if schema is None else "ignore",
                ),
            )
        except (pa.ArrowException, ValueError) as error:
            raise self._explain(line, block, error) from error

    def _explain(self, line: int, block: bytes, error: Exception) -> DataError:
        """The error with its place, for which the lines are read one by one."""
        lines = [(line + i, text) for i, text in enumerate(block.split(b"\n")) if text.strip()]
        for at, text in lines:
            try:
                found = json.loads(text)
            except ValueError as problem:
                return DataError(
                    f"{self.name}, line {at}: not JSON: {first_line_of(problem)}. Write one object "
                    "per line"
                )
            if not isinstance(found, dict):
                got = short(text.decode())
                return DataError(
                    f"{self.name}, line {at}: must be a JSON object such as "
                    f'{{"id": 1}}, got {got}. Write one object per line'
                )
        changed = _CHANGED.search(str(error))
        if changed:
            column, before, after, row = changed.groups()
            at = lines[min(int(row), len(lines) - 1)][0]
            return self._mixed(f"line {at}", column, before, after)
        return DataError(f"{self.name}, from line {line} on: {first_line_of(error)}")

    def _mixed(self, place: str, column: str, before: Any, after: Any) -> DataError:
        return DataError(
            f"{self.name}, {place}, column {column!r}: must hold values of one type, got "
            f"{after} after {before}. Write all of them as one, such as strings"
        )

    def _types(self) -> Any:
        """The types of all columns; the file is read once for them."""
        if self._schema is not None:
            return self._schema
        found = dict.fromkeys(self.columns, pa.null())
        for line, block in self._blocks():
            for field in self._parse(line, block, None).schema:
                if field.name not in found:
                    raise DataError(
                        f"{self.name}, from line {line} on: there is a key {quoted(field.name)} "
                        "that the first lines do not have. Give all keys in the first line, with "
                        "null if nothing is known"
                    )
                kind = _common(found[field.name], field.type)
                if kind is None:
                    raise self._mixed(
                        f"from line {line} on", field.name, found[field.name], field.type
                    )
                found[field.name] = kind
        self._schema = pa.schema(found.items())
        return self._schema

    def _tables(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        schema = self._types()
        fields = []
        for name in columns:
            kind = schema.field(name).type
            if pa.types.is_timestamp(kind) and pa.types.is_string(types.get(name, kind)):
                kind = pa.string()  # an id that looks like a date
            fields.append((name, kind))
        wanted = pa.schema(fields)
        for line, block in self._blocks():
            yield self._parse(line, block, wanted).select(list(columns))

    def read(
        self, columns: Sequence[str] | None = None, types: Mapping[str, Any] | None = None
    ) -> Any:
        names = self.columns if columns is None else list(columns)
        return pa.concat_tables(list(self._tables(names, types or {})))

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any], why: str = ""
    ) -> Iterator[Any]:
        for table in self._tables(columns, types):
            yield from table.combine_chunks().to_batches()

    def batch_memory(self, num_columns: int) -> int:
        return 16 * BLOCK

    def where(self, rows: Sequence[int]) -> list[str]:
        lines, wanted, row = [], set(rows), 0
        for line, block in self._blocks():
            for i, text in enumerate(block.split(b"\n")):
                if text.strip():
                    if row in wanted:
                        lines.append(f"line {line + i}")
                    row += 1
            if len(lines) == len(wanted):
                return lines
        return super().where(rows)

    def first_line(self, num_rows: int) -> int | None:
        rows = lines = 0
        for line, block in self._blocks():
            lines = line + block.rstrip().count(b"\n")
            rows += sum(1 for text in block.split(b"\n") if text.strip())
        return 1 if rows == lines == num_rows else None


def _common(a: Any, b: Any) -> Any:
    """The type that holds both, `None` if there is none."""
    types = pa.types
    if types.is_null(a) or a == b:
        return b
    if types.is_null(b):
        return a
    if {a, b} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if all(types.is_timestamp(kind) or types.is_string(kind) for kind in (a, b)):
        return pa.string()
    if types.is_list(a) and types.is_list(b):
        inner = _common(a.value_type, b.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(a) and types.is_struct(b):
        fields = {field.name: field.type for field in a}
        for field in b:
            fields[field.name] = _common(fields.get(field.name, pa.null()), field.type)
        return None if None in fields.values() else pa.struct(list(fields.items()))
    return None
