"""Comments, names and delimiters of text files, as other programs write them."""

import io
from pathlib import Path

import networkx as nx
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, UsageError
from lgcn.tables.blanks import SingleBlanks
from lgcn.tables.open_table import open_table, read_table


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


SNAP = "# Directed graph\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n"


@pytest.mark.parametrize(
    ("name", "text", "columns", "rows"),
    [
        ("e.txt", SNAP, ["FromNodeId", "ToNodeId"], [(0, 1), (1, 2)]),
        ("e.txt", "% sym unweighted\n% 2 3 3\n5 6\n7   8 \n", ["1", "2"], [(5, 6), (7, 8)]),
        ("e.txt", "  5\t 6\r\n7 8\r\n", ["1", "2"], [(5, 6), (7, 8)]),
        ("e.csv", "5 6\n7 8\n", ["1", "2"], [(5, 6), (7, 8)]),
        ("e.csv", "5,6,x\n7,8,y\n", ["1", "2", "3"], [(5, 6, "x"), (7, 8, "y")]),
        ("e.csv", "\n# by hand\n\nfrom;to\n5;6\n", ["from", "to"], [(5, 6)]),
        ("e.csv", "#from,to\na,b\n", ["#from", "to"], [("a", "b")]),
        ("e.csv", "# my edges\nfrom,to\na,b\n", ["from", "to"], [("a", "b")]),
        ("e.txt", "from  to\na b\n", ["from", "to"], [("a", "b")]),
        ("e.tsv", "5\t6\n", ["1", "2"], [(5, 6)]),
        ("e.txt", "from \tto\na  \tb\n", ["from", "to"], [("a", "b")]),
    ],
)
def test_edges(name: str, text: str, columns: list[str], rows: list[tuple], tmp_path: Path):
    table = open_table(write(tmp_path / name, text), "edges")
    assert table.columns == columns
    found = table.read().to_pydict()
    assert list(zip(*found.values(), strict=True)) == rows
    batches = list(table.batches(columns[:2], dict.fromkeys(columns[:2], pa.string())))
    assert sum(map(len, batches)) == len(rows)
    lines = text.replace("\r\n", "\n").split("\n")
    line = int(table.where([0])[0].removeprefix("line "))
    assert lines[line - 1].split() == text.splitlines()[line - 1].split()
    assert str(rows[0][0]) in lines[line - 1]
    assert bool(table.notes) == (columns[0] == "1")
    if table.notes:
        assert f"line {line} is its first row" in table.notes[0]


def test_the_header_as_the_user_says(tmp_path: Path):
    path = write(tmp_path / "e.csv", "0,1\n1,2\n")
    assert open_table(path, "edges", header=True).columns == ["0", "1"]
    without = open_table(path, "edges", header=False)
    assert without.columns == ["1", "2"]
    assert without.read()["1"].to_pylist() == [0, 1]
    assert not without.notes
    with pytest.raises(DataError, match="header=True or header=False"):  # as pandas names columns
        open_table(path, "edges")
    with pytest.raises(DataError, match=r"names must come first.*node_header=False"):
        open_table(path, "nodes")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("id;text;y\n1;a, b;x\n", ";"),
        ("id;price, EUR;y\n1;2,5;x\n", ";"),
        ("id;a, b, c, d;y\n1;2;x\n", ";"),
        ("id,tags\n1,a;b;c\n2,d\n", ","),
        ('id,"a;b;c;d"\n1,2\n', ","),
        ("id|x\n1|2,5\n", "|"),
        ("id\tx y z\n1\ta b\n", "\t"),
        ("id\n1,5\n", ","),
    ],
)
def test_the_delimiter_of_the_first_line(text: str, delimiter: str, tmp_path: Path):
    table = open_table(write(tmp_path / "n.csv", text), "nodes")
    assert table.delimiter == delimiter


def test_edge_lists_of_networkx(tmp_path: Path):
    graph = nx.gnp_random_graph(20, 0.2, seed=1)
    nx.write_edgelist(graph, tmp_path / "a.txt")  # 0 1 {}
    for source, target in graph.edges():
        graph[source][target]["weight"] = 2
    nx.write_weighted_edgelist(graph, tmp_path / "b.txt")
    nx.write_edgelist(graph, tmp_path / "c.txt", data=False, delimiter="\t")
    nx.write_edgelist(graph, tmp_path / "d.txt.gz", data=False)
    for name in ("a.txt", "b.txt", "c.txt", "d.txt.gz"):
        table = open_table(tmp_path / name, "edges").read()
        found = set(zip(table["1"].to_pylist(), table["2"].to_pylist(), strict=True))
        assert found == set(graph.edges())


def test_whitespace_by_name(tmp_path: Path):
    path = write(tmp_path / "m.csv", "id   x\n1 \t 2\n")
    assert read_table(path, delimiter="whitespace").to_pydict() == {"id": [1], "x": [2]}
    with pytest.raises(UsageError, match="one character or 'whitespace', got ', '"):
        read_table(path, delimiter=", ")
    wide = tmp_path / "w.csv"
    wide.write_bytes("id   x\n1   2\n".encode("utf-16"))
    with pytest.raises(UsageError, match="UTF-8"):
        read_table(wide, delimiter="whitespace", encoding="utf-16")


def test_broken_rows_of_whitespace_have_their_line(tmp_path: Path):
    path = write(tmp_path / "e.txt", "# a\n1  2\n3  4\n5\n")
    table = open_table(path, "edges", delimiter="whitespace")
    with pytest.raises(DataError, match=r"line 4: must have 2 cells as the first row has, got 1"):
        table.read()
    with pytest.raises(DataError, match="comments"):
        open_table(write(tmp_path / "f.txt", "# x\n" * 50_000), "edges")


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 99), min_size=2, max_size=2), min_size=1, max_size=30),
    st.lists(st.sampled_from([" ", "\t", "  ", " \t "]), min_size=1),
    st.sampled_from(["\n", "\r\n", " \n", "\n "]),
    st.integers(1, 40),
)
def test_single_blanks_as_split_does(rows, blanks, end, size):
    text = end.join(
        blanks[i % len(blanks)].join(map(str, row)) for i, row in enumerate(rows)
    ).encode()
    stream = SingleBlanks(io.BytesIO(text), "x")
    found = b""
    while piece := stream.read(size):
        found += piece
    assert [line.split(b" ") for line in found.splitlines()] == [
        line.split() for line in text.splitlines()
    ]


def test_what_pandas_writes_is_read(tmp_path: Path):
    frame = pd.DataFrame({"id": [1, 2], "t": ["a, b", "c;d"], "x": [0.5, 1.5]})
    for separator in (",", ";", "\t", "|"):
        frame.to_csv(tmp_path / "n.csv", sep=separator, index=False)
        assert read_table(tmp_path / "n.csv").to_pydict() == frame.to_dict("list")
