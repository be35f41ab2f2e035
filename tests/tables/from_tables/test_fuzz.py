"""Damaged and odd files: they become a graph, or an error that a user can read.

LGCN_FUZZ_EXAMPLES sets how many examples each test tries.
"""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn.errors import LGCNError
from lgcn.tables.from_tables import import_tables
from tests.fuzz.table_files import (
    EDGES,
    NODES,
    OPTIONS,
    damaged,
    intact,
    not_unicode,
    npy_files,
    text_bytes,
    try_tables,
    zipped,
)

from .odd_tables import COLUMN_NAMES, examples, rarely, some_options

# Bytes that are damaged


NODE_FILES, EDGE_FILES = intact(NODES), intact(EDGES)
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([b",", b";", b"\t", b"\n", b"\r", b'"', b'""', b"'", b"\\", b"\0", b"\xff"]),
    st.sampled_from([b"nan", b"inf", b"-1", b"1e999", b"9" * 30, b"\xef\xbb\xbf", b"\xff\xfe"]),
)
EDITS = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 4), PIECES), max_size=4)


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
    message = try_tables(edges, nodes, options, fit=fit == 0)
    if (nodes.read_bytes(), edges.read_bytes()) == (node_file[1], edge_file[1]) and fit:
        assert message is None


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
    message = try_tables(*paths, options)
    if not node_edits and not edge_edits:
        assert message is None


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
    fit = data.draw(st.integers(0, 9)) == 0
    message = try_tables(*paths, options, fit=fit)
    if not fit:
        assert try_tables(*paths, options) == message


# Tables that once ended in a traceback


IDS = list(range(8))
TEXT = ("source,target\n1,2\n", "id,f\n1,2\n2,3\n")
ENDS = {"source": [1], "target": [2]}
NOT_UTF_8 = "row 0, column '{}': .*UTF-8"
NO_CODEC = "encoding .*Python"
# Tables, options, and what the message says; None where they are a graph now.
FOUND: dict[str, tuple[Any, Any, dict[str, Any], str | None]] = {
    "weight-is-source": (
        ENDS,
        {"id": IDS, "f": IDS},
        {"weight_column": "source"},
        "weight_column .*got 'source'",
    ),
    "weight-is-target-in-text": (
        *TEXT,
        {"weight_column": "target"},
        "weight_column .*got 'target'",
    ),
    "utf-16-without-mark": (*TEXT, {"encoding": "utf-16"}, "UTF-16 .*BOM"),
    "text-to-text-codec": (*TEXT, {"encoding": "rot13"}, NO_CODEC),
    "bytes-to-bytes-codec": (*TEXT, {"encoding": "hex"}, NO_CODEC),
    "undefined-codec": (*TEXT, {"encoding": "undefined"}, NO_CODEC),
    "null-codec": (*TEXT, {"encoding": "\0"}, NO_CODEC),
    "delimiter-beyond-ascii": (
        *(text.replace(",", "ü") for text in TEXT),
        {"delimiter": "ü"},
        "delimiter .*ASCII",
    ),
    "end-not-utf-8": (
        {"source": not_unicode(["a"]), "target": ["b"]},
        {"id": ["a", "b"], "f": [1, 2]},
        {},
        NOT_UTF_8.format("source"),
    ),
    "id-not-utf-8": (
        {"source": ["a"], "target": ["b"]},
        {"id": not_unicode(["a", "b"]), "f": [1, 2]},
        {"unknown_nodes": "drop"},
        NOT_UTF_8.format("id"),
    ),
    "label-not-utf-8": (
        ENDS,
        {"id": IDS, "f": IDS, "y": not_unicode(["x", "z"] * 4)},
        {"label_column": "y"},
        NOT_UTF_8.format("y"),
    ),
    "feature-not-utf-8": (
        ENDS,
        {"id": IDS, "f": not_unicode(["x", "z"] * 4)},
        {},
        NOT_UTF_8.format("f"),
    ),
    "float16-ids": (ENDS, {"id": np.arange(8, dtype="f2"), "f": IDS}, {}, None),
    "dictionary-of-views": (
        {"source": ["a"], "target": ["b"]},
        {"id": pa.array(["a", "b"], pa.string_view()).dictionary_encode(), "f": [1, 2]},
        {},
        None,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, tmp_path: Path) -> None:
    edges, nodes, options, expected = FOUND[name]
    if isinstance(nodes, str):
        paths = tmp_path / "edges.csv", tmp_path / "nodes.csv"
        for path, text in zip(paths, (edges, nodes), strict=True):
            path.write_text(text, encoding="utf-8")
        edges, nodes = paths
    message = try_tables(edges, nodes, options)
    assert (message is None) == (expected is None)
    assert expected is None or re.search(expected, str(message))


def test_messages_on_damaged_archives_are_short(tmp_path: Path) -> None:
    content = zipped(npy_files(NODES))
    place = content.index(b"id.npy")
    path = tmp_path / "nodes.npz"
    path.write_bytes(content[: place - 4] + b"\xff\x0f" + content[place - 2 :])
    message = try_tables(EDGES, path, {})  # which checks the length
    assert message is not None
    assert "nodes.npz" in message


@pytest.mark.parametrize(
    "source", [None, 3, b"nodes.csv", object(), [], [[1, 2]], np.zeros((2, 2)), {}, pd.Series([1])]
)
def test_what_is_no_table_at_all(source: Any) -> None:
    for role, message in (
        ("nodes", try_tables(EDGES, source, {})),
        ("edges", try_tables(source, NODES, {"label_column": "topic"})),
    ):
        if role == "edges" and source is None:  # a graph without edges, on purpose
            assert message is None
        else:
            assert message is not None
            assert message.startswith(role)


@pytest.mark.parametrize("name", ["nodes", "nodes.", "nodes.xlsx", "no.csv", "\0.csv", "a" * 300])
def test_what_is_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_bytes(text_bytes(NODES))
    with pytest.raises(LGCNError, match=r"nodes|no\.csv|aaa|csv"):
        import_tables(EDGES, tmp_path / name)
