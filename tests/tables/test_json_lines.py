"""JSON lines, written by pandas and by hand."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.tables import json_lines
from lgcn.tables.json_depth import deepest
from lgcn.tables.open_table import open_table, read_table


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_pandas_writes(tmp_path: Path):
    frame = pd.DataFrame({"id": ["a", "b"], "x": [1.5, None], "tags": [["u", "v"], []]})
    frame.to_json(tmp_path / "n.jsonl", orient="records", lines=True)
    packed = tmp_path / "n.ndjson.gz"
    packed.write_bytes(gzip.compress((tmp_path / "n.jsonl").read_bytes()))
    for path in (tmp_path / "n.jsonl", packed):
        found = read_table(path).to_pydict()
        assert found == {"id": ["a", "b"], "x": [1.5, None], "tags": [["u", "v"], []]}


def test_types_and_keys_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    rows = [
        {"id": i, "x": i if i < 9 else i + 0.5, "d": "2020-01-01" if i < 9 else "?"}
        for i in range(20)
    ]
    del rows[3]["x"]
    table = open_table(lines(tmp_path / "n.jsonl", *rows), "nodes")
    found = table.read().to_pydict()
    assert found["x"] == [row.get("x") for row in rows]
    assert found["d"] == [row["d"] for row in rows]
    assert table.where([4, 19]) == ["line 5", "line 20"]
    assert table.first_line(20) == 1
    late = open_table(lines(tmp_path / "l.jsonl", *rows, {"id": 1, "new": 2}), "nodes")
    with pytest.raises(DataError, match=r"line \d+ on: there is a key 'new'"):
        late.read()
    mixed = open_table(lines(tmp_path / "m.jsonl", *rows, {"id": "a"}), "nodes")
    with pytest.raises(DataError, match="column 'id': must hold values of one type"):
        mixed.read()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b'{"a": 1}\n\n{"a": }\n', "line 3: not JSON"),
        (b'{"a": 1}\n[1]\n', r"line 2: must be a JSON object.*'\[1\]'"),
        (b'{"a": 1}\n{"a": "x"}\n', "line 2, column 'a': must hold values of one type"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2: JSON must be in UTF-8.*0xff"),
        (b'{"a": 1, "a": 2}\n', "twice"),
        (b"{}\n", "no keys"),
        (b'{"a": 1}\n{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}\n", "line 2: nested more than"),
        (b'{"s": "]]]' + b"]" * 9000 + b'", "a": ' + b"[" * 9000 + b"}\n", "nested more than"),
        (b'{"s": "\n' + b'{"a":' * 9000 + b"\n", "nested more than"),
        (b"PK\x03\x04 not json", "line 1: not JSON"),
    ],
)
def test_damaged_files(text: bytes, message: str, tmp_path: Path):
    path = tmp_path / "n.jsonl"
    path.write_bytes(text)
    with pytest.raises(DataError, match=message) as error:
        read_table(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_a_cut_gzip(tmp_path: Path):
    path = tmp_path / "n.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-10])
    with pytest.raises(DataError, match="not readable"):
        read_table(path)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text('[]{}"\\a', max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=20,
    )
)
def test_depth_as_python_counts_it(value: Any):
    def depth(value: Any) -> int:
        if isinstance(value, dict):
            return 1 + max(map(depth, value.values()), default=0)
        if isinstance(value, list):
            return 1 + max(map(depth, value), default=0)
        return 0

    data = np.frombuffer(json.dumps(value).encode(), np.uint8)
    assert deepest(data)[0] == depth(value)
    assert depth(value) < sys.getrecursionlimit()
