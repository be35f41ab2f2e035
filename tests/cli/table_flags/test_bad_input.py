"""Tables, flags and saved encoders that are wrong, and how that is said."""

import re
from pathlib import Path
from typing import Any

import pytest

from .tables import NUM_NODES, OWN, PRINTS_WARNINGS, RUN, TOPIC, Columns, node_columns, write

CELLS = [""] * NUM_NODES

pytestmark = PRINTS_WARNINGS


def bad_tables(**columns: list[Any]) -> None:
    write("nodes.csv", node_columns() | columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["p0", *node_columns()["id"][:-1]]}, r"'p0' in line 2 and in line 3"),
        ({"id": ["", *node_columns()["id"][1:]]}, r"line 2, column 'id': "),
        ({"topic": CELLS}, r"'topic' has no label"),
        ({"topic": ["art", *CELLS[1:]]}, r"'topic' .*one class.*'art'"),
        ({"topic": [f"t{i}" for i in range(NUM_NODES)]}, r"60 different values .*classes"),
        ({"age": ["inf", *range(1, NUM_NODES)]}, r"column 'age', line 2: .*finite.* got inf"),
    ],
)
def test_bad_node_tables(lgcn_, columns: Columns, message: str):
    bad_tables(**columns)
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 1
    assert "nodes.csv" in output.message
    assert re.search(message, output.message)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"age": CELLS}, "column 'age' left out"),
        ({"age": [7] * NUM_NODES}, "column 'age' left out"),
        ({"country": ["de"] * NUM_NODES}, "column 'country' left out"),
        ({"topic": ["rare", *node_columns()["topic"][1:]]}, ""),
    ],
)
def test_odd_node_tables_that_do(lgcn_, columns: Columns, note: str):
    bad_tables(**columns)
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 0
    assert note in output.err
    assert lgcn_("predict", "run", "--output", "p.csv").code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source,target\n", r"edges\.csv has no edges \(0 rows"),
        ("source,target\np1,p1\n", r"no edges \(1 rows, of which 1 are self-loops"),
        ("source,target\np1,x1\n", r"1 of 1 edges .*line 2 \(target 'x1'\).*--unknown-nodes drop"),
        ("source;target\np1;p2,5\n", r"1 of 1 edges .*line 2 \(target 'p2,5'\)"),
        ("p1,p2\np3,p4\n", r"column names.*'p1' to 'p2'.*--no-header"),
        ("source,target\np1,p2,p3\n", r"line 2: must have 2 cells.*got 3"),
        ("source,target\np1,\xe4\n", r"line 2: not in utf-8 \(byte 0xe4\).*--encoding latin-1"),
        ("", r"edges\.csv is empty"),
        ("source\np1\n", r"must have two columns"),
    ],
)
def test_bad_edge_tables(lgcn_, content: str, message: str):
    Path("edges.csv").write_bytes(content.encode("latin-1"))
    for command in (("train", *RUN), ("data", "check", "--json")):
        output = lgcn_(*command, *TOPIC)
        assert output.code == 1
        assert re.search(message, output.message)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--edges", "edges.csv", "--label-column", "topic"], 2, r"--edges needs --nodes"),
        (["--nodes", "nodes.csv", "--label-column", "topic"], 2, "--edges none"),
        (["--label-column", "topic"], 2, "--label-column needs --nodes"),
        (["--directed"], 2, "--directed needs --nodes"),
        ([*OWN], 2, "--label-column is missing"),
        ([*TOPIC, "--dataset", "digits"], 2, "--dataset"),
        ([*OWN, "--label-column", "topics"], 2, r"--label-column .*'topics'.*'topic'"),
        ([*TOPIC, "--id-column", "idd"], 2, r"--id-column .*'idd'.*'id'"),
        ([*TOPIC, "--split-column", "part"], 2, "--split-column"),
        ([*TOPIC, "--source-column", "source"], 2, "given together"),
        ([*TOPIC, "--weight-column", "w"], 2, "--weight-column .*'w'"),
        ([*TOPIC, "--weight-column", "source"], 2, "--weight-column .*'source'"),
        ([*TOPIC, "--ignore-columns", "nope"], 2, "--ignore-columns"),
        ([*TOPIC, "--text-columns", "id"], 2, "'id' .*--id-column .*--text-columns"),
        ([*TOPIC, "--val", "0.7", "--test", "0.4"], 2, r"--val \+ --test .*\b1\b"),
        ([*TOPIC, "--val", "-1"], 2, r"\bval .*0 to 1.*-1"),
        ([*TOPIC, "--val", "0"], 2, r"\bval nodes.*--val"),
        (
            [*TOPIC, "--val", "0.2", "--labels-per-class", "5"],
            2,
            "--labels-per-class",
        ),
        ([*TOPIC, "--labels-per-class", "0"], 2, "--labels-per-class"),
        ([*TOPIC, "--split-seed", "-1"], 2, "--split-seed"),
        ([*TOPIC, "--unknown-nodes", "keep"], 2, "--unknown-nodes .*'error' or 'drop', got 'keep'"),
        ([*TOPIC, "--delimiter", "::"], 2, "delimiter .*got '::'"),
        ([*TOPIC, "--encoding", "klingon"], 2, "encoding .*'klingon'"),
        ([*TOPIC, "--label-separator", ""], 2, "--label-separator"),
        (["--edges", "no.csv", "--nodes", "nodes.csv", "--label-column", "topic"], 1, r"no\.csv"),
        (["--edges", "e.xlsx", "--nodes", "nodes.csv", "--label-column", "topic"], 2, r"\.xlsx"),
        (["--edges", ".", "--nodes", "nodes.csv", "--label-column", "topic"], 2, "must end in"),
    ],
)
def test_flags_that_cannot_be(lgcn_, args: list[str], code: int, message: str):
    output = lgcn_("train", *args, *RUN)
    assert re.search(message, output.message)
    assert output.code == code
    assert not Path("run").exists()


@pytest.mark.parametrize("name", ["p.xlsx", "p", "."])
def test_predictions_have_a_format(lgcn_, trained: Path, name: str):
    output = lgcn_("predict", trained, "--output", name)
    assert output.code == 2
    assert "--output" in output.message


@pytest.mark.parametrize("value", ["-0.1", "1.5", "nan"])
def test_abstain_below_is_a_probability(lgcn_, trained: Path, value: str):
    output = lgcn_("predict", trained, "--output", "p.csv", "--abstain-below", value)
    assert output.code == 2
    assert "--abstain-below" in output.message
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"format": 1}'])
def test_a_damaged_encoder(lgcn_, trained: Path, content: str):
    (trained / "features.json").write_text(content)
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.code == 1
    assert "features.json" in output.message
