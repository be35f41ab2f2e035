"""Tables from files and from memory, and what is said about damaged ones."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, LGCNError, UsageError
from lgcn.tables import csv_files
from lgcn.tables.open_table import open_table, read_table

COLUMNS = {"id": [3, 1, 2], "name": ["a", "b", "ü"], "size": [0.5, 1.5, -2.0]}
CSV = "id,name,size\n3,a,0.5\n1,b,1.5\n2,ü,-2.0\n"


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_delimiter_of_a_txt_file_is_found(delimiter: str, newline: str, tmp_path: Path) -> None:
    text = CSV.replace(",", delimiter).replace("\n", newline)
    assert read_table(write(tmp_path / "a.txt", text)).to_pydict() == COLUMNS


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.tsv", "a.csv.gz"])
def test_the_delimiter_by_the_ending(name: str, tmp_path: Path) -> None:
    content = CSV.replace(",", "\t" if "tsv" in name else ",").encode()
    path = write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    assert read_table(str(path)).to_pydict() == COLUMNS


@pytest.mark.parametrize("delimiter", ["|", "\\t"])
def test_a_given_delimiter(delimiter: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV.replace(",", "\t" if delimiter == "\\t" else delimiter))
    assert read_table(path, delimiter=delimiter).to_pydict() == COLUMNS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV, encoding)
    assert read_table(path, encoding=encoding).to_pydict() == COLUMNS


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert read_table(write(tmp_path / "a.csv", CSV, "utf-8-sig")).to_pydict() == COLUMNS


def test_columns_are_chosen(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "a.csv", CSV), columns=["size", "id"])
    assert table.column_names == ["size", "id"]


def test_a_type_that_changes_after_the_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    rows = ["1,2,"] * 100 + ["x,2.5,3"]
    table = read_table(write(tmp_path / "a.csv", "\n".join(["a,b,c", *rows]) + "\n"))
    assert table.schema.types == [pa.string(), pa.float64(), pa.int64()]
    assert table.to_pylist()[-1] == {"a": "x", "b": 2.5, "c": 3}


def test_cells_with_delimiters_and_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'a,b\n1,"x, y\nz"\n\n2,"say ""hi"""\n')
    source = open_table(path, "nodes")
    assert source.read().to_pydict() == {"a": [1, 2], "b": ["x, y\nz", 'say "hi"']}
    assert source.where([0, 1]) == ["line 2", "line 5"]
    assert source.first_line(2) is None
    assert open_table(write(tmp_path / "b.csv", CSV), "nodes").first_line(3) == 2


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table(COLUMNS), path)
    assert read_table(path).to_pydict() == COLUMNS
    source = open_table(path, "edges")
    batches = list(source.batches(["size", "id"], {}))
    assert pa.Table.from_batches(batches).to_pydict() == {k: COLUMNS[k] for k in ("size", "id")}
    assert source.where([2]) == ["row 2"]


def test_npz(tmp_path: Path) -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    names = np.array(["a", "b", "ü"])
    np.savez(tmp_path / "a.npz", id=np.array([3, 1, 2], ">i8"), name=names, vector=vectors)
    table = read_table(tmp_path / "a.npz")
    assert table.select(["id", "name"]).to_pydict() == {k: COLUMNS[k] for k in ("id", "name")}
    assert table.column("vector").type == pa.list_(pa.float32(), 2)
    assert table.column("vector").to_pylist() == vectors.tolist()


@pytest.mark.parametrize("shape", ["[E, 2]", "[2, E]"])
def test_npz_of_edges(shape: str, tmp_path: Path) -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    np.savez(tmp_path / "a.npz", edges=pairs if shape == "[E, 2]" else pairs.T, weight=np.ones(3))
    table = open_table(tmp_path / "a.npz", "edges").read()
    assert table.to_pydict() == {"source": [0, 1, 2], "target": [1, 2, 0], "weight": [1, 1, 1]}


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).set_index("id"),
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        COLUMNS,
        COLUMNS | {"size": torch.tensor([0.5, 1.5, -2.0])},
    ],
    ids=["pandas", "named-index", "arrow", "batch", "dict", "tensor"],
)
def test_tables_in_memory(source: Any) -> None:
    table = read_table(source)
    assert table.select(list(COLUMNS)).to_pydict() == COLUMNS


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_csv_file_without_commas(delimiter: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV.replace(",", delimiter))
    assert read_table(path).to_pydict() == read_table(write(tmp_path / "b.csv", CSV)).to_pydict()
    with pytest.raises(DataError, match=r"',' separates no columns"):
        read_table(path, delimiter=",")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_no_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV, f"{encoding}-be")
    with pytest.raises(DataError, match=rf"(?i)a\.csv.*{encoding}.*Give the encoding"):
        read_table(path, encoding=encoding)
    assert read_table(path, encoding=f"{encoding}-be").num_columns > 1


@pytest.mark.parametrize("form", ["string", "large", "view", "dictionary", "list"])
@pytest.mark.parametrize("name", ["a.parquet", None])
def test_texts_that_are_not_utf8(form: str, name: str | None, tmp_path: Path) -> None:
    kinds = {"large": pa.large_string(), "view": pa.string_view()}
    column = pa.array([b"fine", None, b"caf\xe9"]).cast(kinds.get(form, pa.string()), safe=False)
    if form == "dictionary":
        column = column.dictionary_encode()
    if form == "list":
        column = pa.ListArray.from_arrays([0, 1, 1, 3], column)
    table = pa.table({"n": [1, 2, 3], "t": column})
    if name is not None:
        pyarrow.parquet.write_table(table, tmp_path / name)
    source = open_table(table if name is None else tmp_path / name, "nodes")
    message = f"{name or 'nodes'}, row 2, column 't': the text is not UTF-8"
    with pytest.raises(DataError, match=message):
        source.read()
    with pytest.raises(DataError, match=message):
        list(source.batches(["n", "t"], {}))
    assert source.read(["n"]).num_rows == 3


def test_a_dictionary_of_views_becomes_texts() -> None:
    column = pa.array(["b", None, "a", "b"], pa.string_view()).dictionary_encode()
    table = read_table({"t": pa.chunked_array([column, column.slice(1, 2)])})
    assert table.to_pydict() == {"t": ["b", None, "a", "b", None, "a"]}
    assert table.schema.types == [pa.large_string()]


def test_arrow_tables_are_not_copied() -> None:
    table = pa.table(COLUMNS)
    assert read_table(table) is table


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b", "no rows"),
        ("\na\tb\n1\t2\t3\n", r"line 3: must have 2 cells .* got 3"),
        (f"a,{'b' * 2000}\n1,2\n", r"at most 1000 characters, got 'b+\.\.\. with 2000"),
        (f"{'1' * 2000},2\n1,2\n", r"got numbers \('1+\.\.\., '2'\)"),
        ("1,2\n3,4\n", "line 1: column names must come first, got numbers"),
        ("a,b,a\n1,2,3\n", "column names must differ, got 'a' 2 times"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4: must have 2 cells as line 1 has names, got 3: '3,4,5'"),
        ("a,b\n1,2\n3\n", "line 3: must have 2 cells.*got 1"),
        ("a,b\n1,é\n".encode("latin-1"), "line 2: not in utf-8 .byte 0xe9.*encoding='latin-1'"),
        ("a,é\n1,e\n".encode("latin-1"), "line 1: not in utf-8"),
        (CSV.encode("utf-16"), "UTF-16.*encoding='utf-16'"),
        (b"\0\1\2a,b\n", "not a text file"),
        ('a,b\n1,x\n2,"y\n3,z\n4,z\n', "after line 2 opens with a double quote"),
    ],
)
def test_damaged_text(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.csv.*{message}"):
        read_table(write(tmp_path / "a.csv", content))


def test_bad_bytes_far_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 256)
    lines = ["id,name", *(f"{i},fine" for i in range(9000)), "9000,\xff"]
    path = write(tmp_path / "a.csv", "\n".join(lines), "latin-1")
    with pytest.raises(DataError, match="line 9002: not in utf-8"):
        read_table(path)


def test_a_cell_of_the_wrong_type_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n1,NA\n\n2,3\nfour,x\n")
    source = open_table(path, "edges")
    with pytest.raises(DataError, match=r"line 5, column 'b': must .* got 'x'\. Why"):
        list(source.batches(["b"], {"b": pa.float64()}, "Why"))
    with pytest.raises(DataError, match=r"line 5, column 'a': must .* got 'four'"):
        source.read(["a"], {"a": pa.int64()})


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "a.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1garbage", None])
def test_damaged_binary_files(name: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pyarrow.parquet.write_table(pa.table({"a": np.arange(1000)}), path)
    elif name == "a.npz":
        np.savez(path, a=np.arange(1000))
    else:
        path.write_bytes(gzip.compress(CSV.encode() * 100))
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    with pytest.raises(DataError, match=name):
        read_table(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.ones(3), "b": np.ones(2)}, "one length, got 'a' with 3, 'b' with 2"),
        ({"a": np.ones((2, 2, 2))}, "'a' must have one dimension"),
        ({"a": np.array(1)}, "'a' must have one dimension"),
        ({"a": np.array([1, None])}, "array a"),
        ({"a": np.array([b"\xff"])}, "column 'a'"),
        ({"a": np.array([1j])}, "column 'a'"),
        ({}, "no arrays"),
    ],
)
def test_npz_that_is_no_table(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=rf"a\.npz.*{message}"):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("nowhere.csv", {}, DataError, "does not exist"),
        (".", {}, UsageError, "must end in one of"),
        ("a.xlsx", {}, UsageError, r"got \.xlsx"),
        ("a.parquet.gz", {}, UsageError, "must end in"),
        (3, {}, UsageError, "must be a path, a pandas DataFrame.*got int"),
        (None, {}, UsageError, "got NoneType"),
        ({"a": [1, 2], "b": [1]}, {}, DataError, "one length"),
        ({"a": [1, "x"]}, {}, DataError, "column 'a' must hold .* one type, got int and str"),
        (
            pd.DataFrame({"b": [1, 2.5, None], "a": [1, "x", None]}),
            {},
            DataError,
            r"the table: column 'a' must hold values .* got int and str",
        ),
        ({"a": [1]}, {"columns": ["b"]}, UsageError, r"columns must .*columns, got 'b'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, DataError, "a"),
        (pa.table([[1], [2]], names=["a", "a"]), {}, DataError, "'a' 2 times"),
    ],
)
def test_what_is_no_table(source: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        read_table(source, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, r"encoding must .*Python knows"),
        *(({"encoding": name}, "encoding must") for name in ("hex", "idna", "undefined", "\0")),
        ({"delimiter": "ü"}, "delimiter must be one character of ASCII, .*got 'ü'"),
        ({"delimiter": "::"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
    ],
)
def test_impossible_options(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read_table(write(tmp_path / "a.csv", CSV), **options)  # type: ignore[arg-type]


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    source = open_table(write(tmp_path / "a.csv", CSV), "nodes")
    with pytest.raises(UsageError, match=r"a\.csv: label_column.*got 'Nmae'; did you mean 'name'"):
        source.column("label_column", "Nmae")


@settings(max_examples=150)
@given(
    st.sampled_from(["a.csv", "a.txt", "a.csv.gz", "a.parquet", "a.npz"]),
    st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), max_size=4),
    st.integers(0, 400),
)
def test_damage_of_any_kind_is_an_error_of_ours_or_a_table(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    changes: list[tuple[int, bytes]],
    cut: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    if name == "a.parquet":
        pyarrow.parquet.write_table(pa.table(COLUMNS), path)
    elif name == "a.npz":
        np.savez(path, **{key: np.array(value) for key, value in COLUMNS.items()})
    else:
        path.write_bytes(gzip.compress(CSV.encode()) if name.endswith("gz") else CSV.encode())
    data = bytearray(path.read_bytes())
    for at, new in changes:
        data[at : at + len(new)] = new
    path.write_bytes(data[: len(data) - cut] if cut < len(data) // 2 else data)
    try:
        table = read_table(path)
    except LGCNError as error:
        assert name in str(error)  # noqa: PT017
    else:
        assert table.num_columns >= 1
