"""Damaged and odd tables: they become a graph, or an error that a user can read.

LGCN_FUZZ_EXAMPLES sets how many examples each test tries; the default is for every day.
"""

import csv
import datetime
import decimal
import gzip
import io
import json
import os
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgcn import LGCNClassifier
from lgcn.data.check import check_graph
from lgcn.data.encoder import FeatureEncoder
from lgcn.data.tables import import_tables
from lgcn.errors import LGCNError

LONGEST_MESSAGE = 2000  # of an error; a cell of a megabyte must not fill the screen

NUM_NODES = 24
NODES: dict[str, list[Any]] = {
    "id": [f"n{i}" for i in range(NUM_NODES)],
    "size": [None if i == 5 else (i * 7 % 11) / 4 for i in range(NUM_NODES)],
    "color": ["red", "green", "blüe"] * (NUM_NODES // 3),
    "title": [f"word{i % 5} and word{i % 3}, more" for i in range(NUM_NODES)],
    "day": [f"2024-01-{i + 1:02}" for i in range(NUM_NODES)],
    "topic": [("x", "y", None, "x;y")[i % 4] for i in range(NUM_NODES)],
    "part": [("train", "val", None, "test", "train")[i % 5] for i in range(NUM_NODES)],
}
EDGES: dict[str, list[Any]] = {
    "source": [f"n{i}" for i in range(NUM_NODES)] * 2,
    "target": [f"n{i * i % NUM_NODES}" for i in range(2 * NUM_NODES)],
    "w": [i / 4 for i in range(2 * NUM_NODES)],
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"label_column": "topic"},
    {"label_column": "topic", "split_column": "part", "weight_column": "w"},
    {"label_column": "topic", "label_separator": ";", "unknown_nodes": "drop"},
    {"label_column": "topic", "labels_per_class": 1, "directed": True},
    {"label_column": "topic", "text_columns": "title", "categorical_columns": ["size"]},
    {"label_column": "topic", "numeric_columns": ["day"], "ignore_columns": ["part"]},
]


def examples(usual: int) -> Any:
    return settings(
        max_examples=int(os.environ.get("LGCN_FUZZ_EXAMPLES", usual)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def try_tables(edges: Any, nodes: Any, options: dict[str, Any], *, fit: bool = False) -> None:
    """Imports tables, and uses the graph where there is one. Any error must be one of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the library has to say
        warnings.simplefilter("error", RuntimeWarning)  # what NumPy has, which no user understands
        try:
            imported = import_tables(edges, nodes, **options)
            check_use(edges, nodes, options, imported)
            if fit:
                check_fit(imported.graph)
        except LGCNError as error:
            check_message(str(error))


def check_message(message: str) -> None:
    assert message
    assert "\n" not in message
    assert len(message) < LONGEST_MESSAGE


def check_use(edges: Any, nodes: Any, options: dict[str, Any], imported: Any) -> None:
    """The graph is whole, can be reported on, and comes out the same by a stored encoder."""
    graph = imported.graph
    assert graph.num_nodes == len(graph.node_ids) == imported.counts["node_rows"]
    assert len(set(graph.node_ids.tolist())) == graph.num_nodes
    x = dense(graph.x)
    assert x.isfinite().all()
    assert all(isinstance(note, str) and "\n" not in note for note in imported.notes)
    json.dumps(check_graph(graph, imported).to_dict(), allow_nan=False)
    stored = json.loads(json.dumps(graph.encoder.to_dict(), allow_nan=False))
    encoder = FeatureEncoder.from_dict(stored)
    again = import_tables(
        edges, nodes, **{**options, "encoder": encoder, "label_names": graph.label_names}
    ).graph
    assert torch.equal(dense(again.x), x)
    if graph.y is not None:
        assert torch.equal(again.y, graph.y)
        assert len(set(graph.label_names)) == len(graph.label_names)


def check_fit(graph: Any) -> None:
    """One epoch, and predictions that are probabilities."""
    model = LGCNClassifier(
        hidden_channels=3,
        lgcl_channels=2,
        max_epochs=1,
        random_state=0,
        device="cpu",
        verbose=False,
    ).fit(graph)
    table = model.predictions(abstain_below=0.5)
    assert table.num_rows == graph.num_nodes
    chances = np.stack([column.to_numpy() for column in table.columns[3:]])
    assert ((chances >= 0) & (chances <= 1)).all()
    assert model.predict(graph).shape[0] == graph.num_nodes


def dense(x: torch.Tensor) -> torch.Tensor:
    return x.to_dense() if x.layout == torch.sparse_csr else x


# Bytes that are damaged


def text_bytes(columns: dict[str, list[Any]], delimiter: str = ",", newline: str = "\n") -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


def parquet_bytes(columns: dict[str, list[Any]], **options: Any) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def npy_files(columns: dict[str, list[Any]]) -> dict[str, bytes]:
    files = {}
    for name, values in columns.items():
        file = io.BytesIO()
        np.save(file, np.array(["" if v is None else v for v in values]))
        files[name] = file.getvalue()
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def intact(columns: dict[str, list[Any]]) -> list[tuple[str, bytes]]:
    """(Ending, content) of the same table in many formats."""
    typed = dict(columns)
    if "day" in typed:
        typed["day"] = [datetime.date.fromisoformat(day) for day in typed["day"]]
        typed["vector"] = [[float(i), i / 3] for i in range(NUM_NODES)]
        typed["price"] = [decimal.Decimal(i) / 8 for i in range(NUM_NODES)]
    return [
        (".csv", text_bytes(columns)),
        (".csv", text_bytes(columns, newline="\r\n")),
        (".tsv", text_bytes(columns, "\t")),
        (".txt", text_bytes(columns, ";")),
        (".csv.gz", gzip.compress(text_bytes(columns), mtime=0)),
        (".parquet", parquet_bytes(typed)),
        (".parquet", parquet_bytes(typed, compression="none", use_dictionary=False)),
        (".npz", zipped(npy_files(columns))),
    ]


NODE_FILES, EDGE_FILES = intact(NODES), intact(EDGES)
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([b",", b";", b"\t", b"\n", b"\r", b'"', b'""', b"'", b"\\", b"\0", b"\xff"]),
    st.sampled_from([b"nan", b"inf", b"-1", b"1e999", b"9" * 30, b"\xef\xbb\xbf", b"\xff\xfe"]),
)
EDITS = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 4), PIECES), max_size=4)


def damaged(content: bytes, edits: list[tuple[int, int, bytes]], cut: int) -> bytes:
    changed = bytearray(content)
    for place, deleted, new in edits:
        at = place % (len(changed) + 1)
        changed[at : at + deleted] = new
    return bytes(changed[: len(changed) - cut] if cut <= len(changed) else changed)


CUTS = st.one_of(st.just(0), st.just(0), st.integers(0, 3000))


@examples(150)
@given(
    st.sampled_from(NODE_FILES),
    st.sampled_from(EDGE_FILES),
    st.tuples(EDITS, CUTS),
    st.tuples(EDITS, CUTS),
    st.sampled_from(OPTIONS),
    st.integers(0, 9),
)
def test_damaged_files(
    tmp_path_factory: pytest.TempPathFactory,
    node_file: tuple[str, bytes],
    edge_file: tuple[str, bytes],
    node_damage: tuple[Any, int],
    edge_damage: tuple[Any, int],
    options: dict[str, Any],
    fit: int,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    nodes, edges = folder / f"nodes{node_file[0]}", folder / f"edges{edge_file[0]}"
    nodes.write_bytes(damaged(node_file[1], *node_damage))
    edges.write_bytes(damaged(edge_file[1], *edge_damage))
    try_tables(edges, nodes, options, fit=fit == 0)


@examples(60)
@given(
    st.sampled_from(list(NODES)),
    st.sampled_from(list(EDGES)),
    EDITS,
    EDITS,
    st.sampled_from(OPTIONS),
)
def test_damaged_arrays_in_an_intact_archive(
    tmp_path_factory: pytest.TempPathFactory,
    node_column: str,
    edge_column: str,
    node_edits: Any,
    edge_edits: Any,
    options: dict[str, Any],
) -> None:
    """The checksums of a zip file would hide what happens to bytes inside."""
    paths = []
    for name, column, edits, table in (
        ("edges", edge_column, edge_edits, EDGES),
        ("nodes", node_column, node_edits, NODES),
    ):
        files = npy_files(table)
        files[column] = damaged(files[column], edits, 0)
        paths.append(tmp_path_factory.getbasetemp() / f"{name}.npz")
        paths[-1].write_bytes(zipped(files))
    try_tables(*paths, options)


# Text files that somebody wrote

CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "NaN", "nan", "NA", "null", "None", "true", "False", "train", "test"]
    ),
    st.sampled_from(["0", "1", "-1", "1.0", "1,5", "1e999", "inf", "-inf", "-0", "007", "1_000"]),
    st.sampled_from(["9" * 18, "9" * 40, "0x1f", "2024-12-31", "2024-12-31T10:00:00Z", "12:30"]),
    st.sampled_from(["a", "b", "a b c", "a;b", "a|b", "a,b", "x" * 5000, '"', '""', "'", "\\"]),
    st.sampled_from(["ü", "\u202e", "\ufeff", "\u200b", "\xa0", "e\u0301", "😀", "\x85", "\u2028"]),
    st.sampled_from(["\n", "\r\n", "\r", "\t", "\v", "\x1c", "\0"]),
    st.integers(-5, 30).map(str),
    st.text(max_size=6),
)
ENCODINGS = st.sampled_from(["utf-8", "latin-1", "cp1252", "utf-16", "utf-32", "utf-7", "ascii"])
ENCODINGS |= st.sampled_from(["shift_jis", "idna", "rot13", "hex", "undefined", "unicode_escape"])
ENCODINGS |= st.sampled_from(["nonsense", "", "\0"])
COLUMN_NAMES = st.one_of(
    st.sampled_from(["id", "ID", "node", "source", "target", "src", "dst", "weight", "topic", "y"]),
    st.sampled_from(["", " ", "a", "A", "a ", "ü", '"', "\n", ",", "nan", "1", "x" * 300, "\0"]),
    st.text(max_size=4),
)


@st.composite
def text_files(
    draw: st.DrawFn, cells: list[list[str]], names: list[str], delimiter: str
) -> tuple[bytes, list]:
    """A text file of mostly usual cells, a list for each column, and its column names."""
    header = [draw(COLUMN_NAMES) if rarely(draw) else name for name in names]
    pools = draw(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=2))
    header += [draw(COLUMN_NAMES) if rarely(draw) else f"c{i}" for i in range(len(pools))]
    columns = cells + pools
    length = draw(st.sampled_from([12, 12, 12, 12, 12, 3, 1, 0]))
    rows = [
        [pool[(i * 7 + j) % len(pool)] for j, pool in enumerate(columns)] for i in range(length)
    ]
    for _ in range(draw(st.integers(0, 2)) if rows else 0):
        row = draw(st.sampled_from(rows))
        if draw(st.booleans()):
            row[draw(st.integers(0, len(row) - 1))] = draw(CELLS)
        elif rarely(draw):
            row.append(draw(CELLS))
    if rarely(draw):
        delimiter = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    newline = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n"]))
    lines = rows if rarely(draw) else [header, *rows]
    if rarely(draw):  # no quotes at all
        text = newline.join(delimiter.join(line) for line in lines)
    else:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, lineterminator=newline).writerows(lines)
        text = file.getvalue()
    encoding = "utf-8"
    if rarely(draw):
        encoding = draw(st.sampled_from(["utf-8-sig", "utf-16", "cp1252", "utf-32"]))
    return text.encode(encoding, errors="ignore"), header


def rarely(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 15)) == 7  # ends of a range are drawn more often


@st.composite
def some_options(draw: st.DrawFn, node_names: list[str], edge_names: list[str]) -> dict[str, Any]:
    """Options of an import, a few of them odd."""
    column = st.sampled_from([*node_names, *node_names, "missing", ""])
    end = st.sampled_from([*edge_names, *edge_names, "missing"])
    several = st.lists(column, max_size=2)
    odd: dict[str, st.SearchStrategy[Any]] = {
        "label_column": st.one_of(column, several),
        "id_column": column,
        "weight_column": end,
        "source_column": end,
        "target_column": end,
        "split_column": column,
        "labels_per_class": st.integers(-1, 3),
        "val": st.sampled_from([0, 0.0, 0.5, 1, -1, float("nan"), float("inf"), "0.2"]),
        "test": st.sampled_from([0, 0.1, 0.5, 1, 2]),
        "split_seed": st.sampled_from([1, -1, 2**70, 0.5]),
        "label_separator": st.sampled_from([";", ",", "", " ", "\0"]),
        "numeric_columns": several,
        "categorical_columns": column,
        "text_columns": several,
        "ignore_columns": several,
        "unknown_nodes": st.sampled_from(["error", "nonsense"]),
        "delimiter": st.sampled_from([",", ";", "\t", "\\t", "|", " ", "", "ab", "ü", "\0", "\n"]),
        "encoding": ENCODINGS,
        "directed": st.just(True),
    }
    label = [name for name in ("topic", "topic", "topic", "c1", "c2") if name in node_names]
    options: dict[str, Any] = {"unknown_nodes": "drop"}
    if label and not rarely(draw):
        options["label_column"] = draw(st.sampled_from(label))
    number = draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
    chosen = draw(st.lists(st.sampled_from(list(odd)), min_size=number, max_size=number))
    return options | {name: draw(odd[name]) for name in chosen}


@examples(150)
@given(st.data())
def test_odd_text_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    ids = [f"n{i}" for i in range(12)]
    usual = [ids, ["1", "2.5", "-3e2", ""], ["x", "y", "", "x", "y"]]
    ending = data.draw(st.sampled_from([".csv", ".csv", ".tsv", ".txt", ".TXT"]))
    delimiter = "\t" if ending == ".tsv" else ","
    nodes, node_names = data.draw(text_files(usual, ["id", "size", "topic"], delimiter))
    edges, edge_names = data.draw(text_files([ids, ids[1:8]], ["source", "target"], delimiter))
    options = data.draw(some_options(node_names, edge_names))
    folder = tmp_path_factory.getbasetemp()
    paths = [folder / f"edges{ending}", folder / f"nodes{ending}"]
    for path, content in zip(paths, (edges, nodes), strict=True):
        path.write_bytes(content)
    try_tables(*paths, options, fit=data.draw(st.integers(0, 9)) == 0)


# Tables in memory

INTEGERS = st.integers(-(2**63), 2**63 - 1)
STRINGS = st.one_of(st.sampled_from(["a", "b", "1", "", "NaN", "a b c"]), st.text(max_size=8))
FLOATS = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 1e-320, 1e308, 1e100, float("nan"), 1.0, 2.0])
)
DATES = st.dates()
# Types that Arrow can make of Python values, and these.
ARROW: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), INTEGERS),
    (pa.int64(), st.integers(0, 3)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float16(), st.floats(width=16).map(np.float16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), FLOATS),
    (pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4)),
    (pa.decimal256(60, 2), st.decimals(-(10**50), 10**50, places=2)),
    (pa.date32(), DATES),
    (pa.date64(), DATES),
    (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    (pa.timestamp("s", tz="Europe/Berlin"), st.integers(0, 2**32)),
    (pa.timestamp("s"), INTEGERS),
    (pa.time32("s"), st.integers(0, 86399)),
    (pa.time64("ns"), st.integers(0, 86_399 * 10**9)),
    (pa.duration("ms"), INTEGERS),
    (pa.month_day_nano_interval(), st.just((1, 2, 3))),
    (pa.string(), STRINGS),
    (pa.large_string(), STRINGS),
    (pa.string_view(), STRINGS),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.list_(pa.float32()), st.lists(st.floats(width=32), max_size=3)),
    (pa.list_(pa.float64(), 2), st.lists(FLOATS, min_size=2, max_size=2)),
    (pa.list_(pa.float64(), 0), st.just([])),
    (pa.large_list(pa.int32()), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
    (pa.list_(pa.string()), st.lists(STRINGS, max_size=3)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2)),
    (pa.list_(pa.null()), st.just([])),
    (pa.list_view(pa.float64()), st.lists(FLOATS, max_size=2)),
    (pa.struct({"a": pa.int64()}), st.just({"a": 1})),
    (pa.map_(pa.string(), pa.int64()), st.just([("a", 1)])),
    (pa.dictionary(pa.int8(), pa.string()), STRINGS),
    (pa.dictionary(pa.int32(), pa.int64()), st.integers(0, 5)),
    (pa.dictionary(pa.int32(), pa.float64()), FLOATS),
]


def not_unicode(cells: list[Any]) -> pa.Array:
    """Texts as programs write them that do not care: Arrow takes them for UTF-8 unseen."""
    coded = [None if cell is None else cell.encode("utf-8") + b"\xff" for cell in cells]
    return pa.array(coded, pa.binary()).cast(pa.string(), safe=False)


@st.composite
def arrow_columns(draw: st.DrawFn, length: int) -> pa.ChunkedArray:
    kind, values = draw(st.sampled_from(ARROW))
    if draw(st.booleans()):  # few values, which may be classes
        values = st.sampled_from(draw(st.lists(values, min_size=1, max_size=3)))
    nullable = draw(st.sampled_from([0, 0, 1, 4]))
    cells = [
        None if nullable and not draw(st.integers(0, nullable)) else draw(values)
        for _ in range(length)
    ]
    array = pa.array(cells, kind)
    if kind == pa.string() and rarely(draw):
        array = not_unicode(cells)
    form = draw(st.sampled_from(["one", "two", "offset", "encoded"]))
    if form == "offset":
        array = pa.concat_arrays([array.slice(0, min(1, length)), array]).slice(min(1, length))
    if form == "encoded" and not pa.types.is_nested(kind) and not pa.types.is_dictionary(kind):
        with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
            array = array.dictionary_encode()
    if form == "two":
        cut = draw(st.integers(0, length))
        return pa.chunked_array([array.slice(0, cut), array.slice(cut)])
    return pa.chunked_array([array])


@st.composite
def id_columns(draw: st.DrawFn, length: int) -> pa.ChunkedArray:
    """Ids that mostly are as they should be."""
    sound = [
        [f"n{i}" for i in range(length)],
        list(range(length)),
        [i * 10**14 - 5 for i in range(length)],
        [float(i) for i in range(length)],
        ["é" * (i + 1) for i in range(length)],
    ]
    choice = draw(st.integers(0, len(sound) - 1))
    if rarely(draw):
        return draw(arrow_columns(length))
    array = pa.array(sound[choice])
    return pa.chunked_array([array.dictionary_encode() if draw(st.booleans()) else array])


@st.composite
def arrow_tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """An edge table and a node table with columns of all types."""
    length = draw(st.sampled_from([16, 16, 16, 16, 16, 8, 2, 1, 0]))
    ids = draw(id_columns(length))
    columns = [ids, *(draw(arrow_columns(length)) for _ in range(draw(st.integers(0, 4))))]
    names = ["id", *(draw(COLUMN_NAMES) if rarely(draw) else f"c{i}" for i in range(1, 5))]
    nodes = pa.Table.from_arrays(columns, names=names[: len(columns)])
    if not rarely(draw):
        nodes = nodes.append_column("size", pa.array(np.arange(length) % 5))
    if not rarely(draw):
        nodes = nodes.append_column("topic", pa.array(["x", "y", None, "y"] * length)[:length])
    num_edges = draw(st.sampled_from([10, 10, 10, 10, 1, 0]))
    ends = []
    for _ in range(2):
        if length and draw(st.integers(0, 9)):
            places = st.integers(0, length - 1)
            picked = draw(st.lists(places, min_size=num_edges, max_size=num_edges))
            chunks = [chunk for i in picked for chunk in ids.slice(i, 1).chunks]
            ends.append(pa.chunked_array(chunks, ids.type))
        else:
            ends.append(draw(arrow_columns(num_edges)))
    ends.append(draw(arrow_columns(num_edges)))
    return pa.Table.from_arrays(ends, names=["source", "target", "w"]), nodes


@examples(200)
@given(arrow_tables(), st.sampled_from(["arrow", "pandas", ".parquet", "dict"]), st.data())
def test_arrow_tables_of_all_types(
    tmp_path_factory: pytest.TempPathFactory,
    tables: tuple[pa.Table, pa.Table],
    form: str,
    data: st.DataObject,
) -> None:
    edges, nodes = tables
    options = data.draw(some_options(nodes.column_names, edges.column_names))
    given: list[Any] = []
    for name, table in (("edges", edges), ("nodes", nodes)):
        try:
            if form == "pandas":
                given.append(table.to_pandas())
            elif form == ".parquet":
                given.append(tmp_path_factory.getbasetemp() / f"{name}.parquet")
                pyarrow.parquet.write_table(table, given[-1])
            else:
                given.append(dict(zip(table.column_names, table.columns, strict=True)))
        except (pa.ArrowException, ValueError, OverflowError, NotImplementedError):
            return  # not every type can be had in every form
    if form == "arrow":
        given = [edges, nodes]
    try_tables(*given, options, fit=data.draw(st.integers(0, 4)) == 0)


class Thing:
    """No table can hold it."""


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    FLOATS,
    STRINGS,
    st.binary(max_size=3),
    st.complex_numbers(max_magnitude=10),
    st.decimals(),
    st.fractions(max_denominator=5),
    st.datetimes(),
    st.timedeltas(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(float("nan")),
    st.builds(Thing),
    st.lists(st.integers(0, 3), max_size=2),
    st.lists(STRINGS, max_size=2),
    st.just({"a": 1}),
    st.just({1, 2}),
    st.just("\ud800"),
    st.just(np.zeros((2, 2))),
    st.just(np.float32(1)),  # but no datetime64, the two together crash pyarrow 26
    st.just(pd.Timestamp("2024-01-01", tz="UTC")),
    st.just(pd.Period("2024-01")),
    st.just(pd.Interval(0, 1)),
)
PANDAS: list[Any] = ["object", "category", "Int64", "string", "boolean", "Float64", "float16"]
PANDAS += ["datetime64[ns]", "Sparse[float64]", "complex128", "int8", "S3", "U3", "period[M]"]


@st.composite
def python_columns(draw: st.DrawFn, length: int) -> Any:
    """A list, an array or a series; of one type or of mixed ones."""
    values = draw(st.sampled_from([ANYTHING, st.integers(0, 2), FLOATS, STRINGS]))
    if draw(st.booleans()):
        values = st.sampled_from(draw(st.lists(values, min_size=1, max_size=3)))
    length += rarely(draw)
    cells = [draw(values) for _ in range(length)]
    form = draw(st.sampled_from(["list", "tuple", "array", "object", "series", "typed", "matrix"]))
    try:
        if form == "array":
            return np.array(cells)
        if form == "object":
            column = np.empty(length, object)
            column[:] = cells
            return column
        if form == "series":
            return pd.Series(cells)
        if form == "typed":
            return pd.Series(cells, dtype=draw(st.sampled_from(PANDAS)))
        if form == "matrix":
            return np.zeros(draw(st.sampled_from([(length, 0), (length, 2), (length, 1, 2), ()])))
    except Exception:  # pandas and NumPy have their own views of what a column is
        return cells
    return tuple(cells) if form == "tuple" else cells


@examples(200)
@given(st.data())
def test_python_tables_of_anything(data: st.DataObject) -> None:
    length = data.draw(st.sampled_from([12, 12, 12, 12, 12, 2, 1, 0]))
    names = st.one_of(COLUMN_NAMES, st.integers(0, 3), st.just(("a", 1)), st.just(float("nan")))
    nodes: dict[Any, Any] = {"id": list(range(length))}
    if not data.draw(st.integers(0, 4)):
        nodes["id"] = data.draw(python_columns(length))
    nodes |= {
        "size": [i % 5 for i in range(length)],
        "topic": [("x", "y", None)[i % 3] for i in range(length)],
    }
    for _ in range(data.draw(st.integers(1, 4))):
        nodes[data.draw(names)] = data.draw(python_columns(length))
    edges: dict[Any, Any] = {
        "source": list(range(length)),
        "target": [i * 5 % max(length, 1) for i in range(length)],
        "w": list(range(length)),
    }
    if not data.draw(st.integers(0, 9)):
        edges["w"] = data.draw(python_columns(length))
    if not data.draw(st.integers(0, 9)):
        edges["source"] = data.draw(python_columns(length))
    options = data.draw(some_options([str(name) for name in nodes], list(edges)))
    tables: list[Any] = [edges, nodes]
    if data.draw(st.booleans()):
        try:
            tables = [pd.DataFrame(edges), pd.DataFrame(nodes)]
            if data.draw(st.booleans()):  # ids in the index, or a name twice
                tables[1] = tables[1].set_index("id")
            elif data.draw(st.booleans()):
                tables[1] = pd.concat([tables[1], tables[1].iloc[:, -1:]], axis=1)
        except Exception:  # as above
            tables = [edges, nodes]
    try_tables(*tables, options, fit=data.draw(st.integers(0, 9)) == 0)


# New tables for a trained model


def typed_nodes() -> dict[str, Any]:
    day = [datetime.date.fromisoformat(day) for day in NODES["day"]]
    vector = [[float(i), i / 3] for i in range(NUM_NODES)]
    return NODES | {"day": day, "vector": vector}


@examples(80)
@given(st.data())
def test_odd_columns_for_a_trained_encoder(data: st.DataObject) -> None:
    trained = import_tables(EDGES, typed_nodes(), label_column="topic").graph
    encoder = FeatureEncoder.from_dict(json.loads(json.dumps(trained.encoder.to_dict())))
    length = data.draw(st.sampled_from([NUM_NODES, NUM_NODES, 1]))
    nodes = {name: column[:length] for name, column in typed_nodes().items()}
    for name in data.draw(st.lists(st.sampled_from([*nodes][1:]), max_size=2, unique=True)):
        nodes[name] = data.draw(arrow_columns(length))
        if rarely(data.draw):
            del nodes[name]
    options: dict[str, Any] = {"encoder": encoder, "unknown_nodes": "drop"}
    if data.draw(st.booleans()):
        options |= {"label_column": "topic", "label_names": trained.label_names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            x = import_tables(EDGES, nodes, **options).graph.x
        except LGCNError as error:
            check_message(str(error))
        else:
            assert x.shape == (length, trained.num_features)
            assert dense(x).isfinite().all()


# What was found by the tests above


IDS = list(range(8))
TEXT = ("source,target\n1,2\n", "id,f\n1,2\n2,3\n")
ENDS = {"source": [1], "target": [2]}
FOUND: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "weight-is-source": (ENDS, {"id": IDS, "f": IDS}, {"weight_column": "source"}),
    "weight-is-target-in-text": (*TEXT, {"weight_column": "target"}),
    "utf-16-without-mark": (*TEXT, {"encoding": "utf-16"}),
    "text-to-text-codec": (*TEXT, {"encoding": "rot13"}),
    "bytes-to-bytes-codec": (*TEXT, {"encoding": "hex"}),
    "undefined-codec": (*TEXT, {"encoding": "undefined"}),
    "null-codec": (*TEXT, {"encoding": "\0"}),
    "delimiter-beyond-ascii": (*(text.replace(",", "ü") for text in TEXT), {"delimiter": "ü"}),
    "end-not-utf-8": (
        {"source": not_unicode(["a"]), "target": ["b"]},
        {"id": ["a", "b"], "f": [1, 2]},
        {},
    ),
    "id-not-utf-8": (
        {"source": ["a"], "target": ["b"]},
        {"id": not_unicode(["a", "b"]), "f": [1, 2]},
        {"unknown_nodes": "drop"},
    ),
    "label-not-utf-8": (
        ENDS,
        {"id": IDS, "f": IDS, "y": not_unicode(["x", "z"] * 4)},
        {"label_column": "y"},
    ),
    "feature-not-utf-8": (ENDS, {"id": IDS, "f": not_unicode(["x", "z"] * 4)}, {}),
    "float16-ids": (ENDS, {"id": np.arange(8, dtype="f2"), "f": IDS}, {}),
    "dictionary-of-views": (
        {"source": ["a"], "target": ["b"]},
        {"id": pa.array(["a", "b"], pa.string_view()).dictionary_encode(), "f": [1, 2]},
        {},
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, tmp_path: Path) -> None:
    edges, nodes, options = FOUND[name]
    if isinstance(nodes, str):
        paths = tmp_path / "edges.csv", tmp_path / "nodes.csv"
        for path, text in zip(paths, (edges, nodes), strict=True):
            path.write_text(text, encoding="utf-8")
        edges, nodes = paths
    try_tables(edges, nodes, options)


def test_messages_on_damaged_archives_are_short(tmp_path: Path) -> None:
    content = zipped(npy_files(NODES))
    place = content.index(b"id.npy")
    path = tmp_path / "nodes.npz"
    path.write_bytes(content[: place - 4] + b"\xff\x0f" + content[place - 2 :])
    try_tables(EDGES, path, {})


@pytest.mark.parametrize(
    "source", [None, 3, b"nodes.csv", object(), [], [[1, 2]], np.zeros((2, 2)), {}, pd.Series([1])]
)
def test_what_is_no_table_at_all(source: Any) -> None:
    try_tables(EDGES, source, {})
    try_tables(source, NODES, {"label_column": "topic"})


@pytest.mark.parametrize("name", ["nodes", "nodes.", "nodes.xlsx", "no.csv", "\0.csv", "a" * 300])
def test_what_is_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_bytes(NODE_FILES[0][1])
    with pytest.raises(LGCNError, match=r"nodes|no\.csv|aaa|csv"):
        import_tables(EDGES, tmp_path / name)
