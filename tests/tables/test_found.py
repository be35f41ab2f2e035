"""Tables that once ended in a traceback: what each of them comes to now."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lgcn.errors import LGCNError
from lgcn.tables.from_tables import import_tables
from tests.fuzz.table_files import (
    EDGES,
    NODES,
    not_unicode,
    npy_files,
    text_bytes,
    try_tables,
    zipped,
)

# What was found by the tests above


IDS = list(range(8))
TEXT = ("source,target\n1,2\n", "id,f\n1,2\n2,3\n")
ENDS = {"source": [1], "target": [2]}
NOT_UTF_8 = "row 0, column '{}': the text is not UTF-8"
NO_CODEC = "encoding must be one that Python knows"
# Tables, options, and what the message says; None where they are a graph now.
FOUND: dict[str, tuple[Any, Any, dict[str, Any], str | None]] = {
    "weight-is-source": (
        ENDS,
        {"id": IDS, "f": IDS},
        {"weight_column": "source"},
        "weight_column must not be one of an edge's ends, got 'source'",
    ),
    "weight-is-target-in-text": (
        *TEXT,
        {"weight_column": "target"},
        "weight_column must not be one of an edge's ends, got 'target'",
    ),
    "utf-16-without-mark": (*TEXT, {"encoding": "utf-16"}, "UTF-16 stream does not start with BOM"),
    "text-to-text-codec": (*TEXT, {"encoding": "rot13"}, NO_CODEC),
    "bytes-to-bytes-codec": (*TEXT, {"encoding": "hex"}, NO_CODEC),
    "undefined-codec": (*TEXT, {"encoding": "undefined"}, NO_CODEC),
    "null-codec": (*TEXT, {"encoding": "\0"}, NO_CODEC),
    "delimiter-beyond-ascii": (
        *(text.replace(",", "ü") for text in TEXT),
        {"delimiter": "ü"},
        "delimiter must be one character of ASCII",
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
    assert expected is None or expected in str(message)


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
