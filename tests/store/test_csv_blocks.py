"""Text files in blocks of whole rows, against Arrow's reader of whole files."""

import csv
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.store import csv_blocks
from lgcn.store.csv_blocks import CsvBlocks
from lgcn.tables.csv_files import CsvTable

CELL = st.text(st.sampled_from("ab1 \",\n'é"), max_size=4)


def table_of(path: Path, encoding: str = "utf-8") -> CsvTable:
    return CsvTable(path, ".csv", None, encoding)


def rows_of(table: CsvTable, types: dict[str, Any], size: int) -> tuple[list[Any], list[Any]]:
    """Rows as (line, cells), and what was refused."""
    refused: list[Any] = []
    blocks = CsvBlocks(table, list(types), types, size, lambda *what: refused.append(what))
    rows = []
    for block in blocks:
        for i, cells in enumerate(zip(*(c.to_pylist() for c in block.columns), strict=True)):
            rows.append((int(block.where(i).rpartition("line ")[2]), cells))
    return rows, refused


@settings(max_examples=150)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.integers(1, 200),
)
def test_rows_are_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[tuple[str, str]],
    ending: str,
    quoting: Any,
    size: int,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=ending, quoting=quoting)
        writer.writerows([("first", "second"), *cells])
    table = table_of(path)
    rows, refused = rows_of(table, {"first": pa.string(), "second": pa.string()}, size)
    assert [row for _, row in rows] == cells
    assert refused == []
    assert [f"line {line}" for line, _ in rows] == table.where(range(len(cells)))


def test_a_quote_inside_a_cell_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n5" disk,x\n"y",z\n')
    rows, _ = rows_of(table_of(path), {"a": pa.string(), "b": pa.string()}, 5)
    assert rows == [(2, ('5" disk', "x")), (3, ("y", "z"))]


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_rows_that_are_wrong_are_left_out(tmp_path: Path, size: int) -> None:
    lines = ["a,b,w", *(f"{i},{i + 1},0.5" for i in range(5000))]
    lines[100] = "1,2"
    lines[200] = "1,x,1"
    lines[300] = "1,9223372036854775808,1"
    lines[400] = "1,2,heavy"
    lines[500] = ""  # not a row
    lines[600] = "é,2,1"
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    types = {"a": pa.int64(), "b": pa.int64(), "w": pa.float64()}
    rows, refused = rows_of(table_of(path), types, max(size, 1))
    assert [place.rpartition(" ")[2] for place, _ in refused] == ["101", "201", "301", "401", "601"]
    reasons = " | ".join(reason for _, reason in refused)
    for part in (
        "must have 3 cells",
        "'b' must be a whole number",
        "2**63",
        "'w' must be a number",
    ):
        assert part in reasons
    assert "'a' is not in utf-8" in reasons
    assert len(rows) == 4994
    assert all(cells == (line - 2, line - 1, 0.5) for line, cells in rows)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv.gz"
    text = "".join(f"é{i},ü{i}\n" for i in range(300))
    with gzip.open(path, "wt", encoding=encoding, newline="") as file:
        file.write(("\ufeff" if encoding == "utf-8" else "") + "à,b\n" + text)
    rows, refused = rows_of(table_of(path, encoding), {"à": pa.string(), "b": pa.string()}, 100)
    assert rows == [(i + 2, (f"é{i}", f"ü{i}")) for i in range(300)]
    assert refused == []


def test_bytes_that_no_character_has(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n\x81,3\n4,5\n")  # 0x81 means nothing in cp1252
    rows, refused = rows_of(table_of(path, "cp1252"), {"a": pa.string(), "b": pa.string()}, 100)
    assert [line for line, _ in rows] == [2, 4]
    assert refused[0][0].endswith("line 3")
    path.write_bytes("a,b\n1,2\n".encode("utf-16") + b"\x00")
    with pytest.raises(DataError, match="not in utf-16"):
        rows_of(table_of(path, "utf-16"), {"a": pa.string()}, 5)


def test_lines_that_end_as_on_old_machines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\r1,2\r3,4\r")
    rows, _ = rows_of(table_of(path), {"b": pa.int64()}, 4)
    assert rows == [(2, (2,)), (3, (4,))]


def test_quotes_that_are_never_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n"3,4\n5,6\n' + "7,8\n" * 100)
    with pytest.raises(DataError, match=r"after line 3 opens with a double quote"):
        rows_of(table_of(path), {"a": pa.string()}, 8)
    monkeypatch.setattr(csv_blocks, "MAX_ROW", 100)
    with pytest.raises(DataError, match=r"line 3: a row must .*100 bytes"):
        rows_of(table_of(path), {"a": pa.string()}, 8)


def test_kinds_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,3\n4.5,\n")
    blocks = CsvBlocks(table_of(path), ["a", "b"], {"a": None, "b": None}, 4, lambda *_: None)
    kinds = [[str(kind) for kind in row] for row in blocks.kinds()]
    assert kinds == [["int64", "string"], ["int64", "int64"], ["double", "null"]]
