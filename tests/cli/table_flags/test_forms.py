"""Tables in other forms than two CSV files with names, through the command line."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lgcn.training import Run

from .tables import FEW, OWN, PRINTS_WARNINGS, TOPIC, edge_columns, node_columns, write

pytestmark = PRINTS_WARNINGS


def edge_rows() -> list[tuple[str, str]]:
    return list(zip(*edge_columns().values(), strict=True))


def json_lines(columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def write_forms() -> None:
    """The same edges and nodes in many forms."""
    rows = edge_rows()
    Path("snap.txt").write_text("# by hand\n" + "".join(f"{a}  \t{b}\n" for a, b in rows))
    Path("bare.csv").write_text("".join(f"{a},{b}\n" for a, b in rows))
    for i in range(2):
        half = {end: cells[90 * i : 90 * i + 90] for end, cells in edge_columns().items()}
        write(f"part-{i}.csv", half)
    Path("edges.jsonl.gz").write_bytes(gzip.compress(json_lines(edge_columns()).encode()))
    nodes = node_columns()
    Path("nodes.ndjson").write_text(json_lines(nodes))
    for i in range(2):
        half = {name: cells[30 * i : 30 * i + 30] for name, cells in nodes.items()}
        write(f"people-{i}.csv", half, delimiter=";")
    number = {id: i for i, id in enumerate(nodes["id"])}
    header = "%%MatrixMarket matrix coordinate pattern general\n60 60 180\n"
    entries = "".join(f"{number[a] + 1} {number[b] + 1}\n" for a, b in rows)
    Path("edges.mtx").write_text(header + entries)


FORMS = [
    ["--edges", "snap.txt", "--no-header", "--nodes", "nodes.csv"],
    ["--edges", "bare.csv", "--no-header", "--nodes", "nodes.csv"],
    ["--edges", "part-*.csv", "--nodes", "nodes.csv"],
    ["--edges", "part-0.csv", "--edges", "part-1.csv", "--nodes", "people-*.csv"],
    ["--edges", "edges.jsonl.gz", "--nodes", "nodes.ndjson"],
    ["--edges", "edges.mtx", "--nodes", "nodes.csv"],
]


@pytest.mark.parametrize("tables", FORMS, ids=lambda tables: tables[1])
def test_each_form_is_the_same_graph(lgcn_, tables: list[str]):
    write_forms()
    plain = lgcn_("data", "check", *TOPIC, "--json").json
    found = lgcn_("data", "check", *tables, "--label-column", "topic", "--json").json
    for report in (plain, found):
        for key in ("name", "imported", "notes"):
            report.pop(key)
    assert found == plain
    nodes = (*tables[tables.index("--nodes") :], "--label-column", "topic")
    edges = [flag for flag in tables if flag not in nodes]
    counts = lgcn_("import", "store", *tables, "--label-column", "topic", "--json").json
    assert (counts["nodes"], counts["edges"]) == (60, plain["edges"]), edges


def test_an_edge_as_header_is_advised_against(lgcn_):
    write_forms()
    output = lgcn_("data", "check", "--edges", "bare.csv", "--nodes", "nodes.csv")
    assert output.code != 0
    assert "--no-header" in output.err
    assert "--header" in output.err


def test_files_that_are_not_there(lgcn_):
    for flag in ("--edges", "--nodes", "--features"):
        for name, message in (("no.csv", "does not exist"), ("no-*.csv", "no file matches")):
            output = lgcn_("train", *TOPIC, flag, name, *FEW)
            assert output.code != 0
            assert message in output.err, flag
    output = lgcn_("data", "check", *OWN, "--list-columns", "nope")
    assert "--list-columns" in output.err


def test_features_and_lists_from_training_to_new_tables(lgcn_, place: Path, monkeypatch):
    nodes = node_columns()
    tags = [("x;y", "y", "", "x")[i % 4] for i in range(60)]
    write("nodes.csv", {"id": nodes["id"], "topic": nodes["topic"], "tags": tags})
    with Path("features.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "word", "count"])
        for i, id in enumerate(nodes["id"]):
            writer.writerow([id, f"w{i % 3}", 1 + i % 2])
    flags = ("--features", "features.csv", "--list-columns", "tags")
    output = lgcn_("train", *TOPIC, *flags, *FEW, "--out", "run")
    assert output.code == 0, output.err
    encoder = Run("run").encoder()
    assert encoder is not None
    assert [(c.name, c.kind, c.width) for c in encoder.columns] == [
        ("tags", "list", 2),
        ("features", "long", 3),
    ]
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")  # the run has absolute paths
    assert lgcn_("predict", "../run", "--output", "all.csv").code == 0
    write("n.csv", {"id": ["a", "b"], "tags": ["x", "new"]})
    write("f.csv", {"id": ["a"], "word": ["w1"]})
    new = ("--edges", "none", "--nodes", "n.csv")
    output = lgcn_("predict", "../run", "--output", "new.csv", *new, "--features", "f.csv")
    assert output.code == 0, output.err
    assert len(Path("new.csv").read_text().splitlines()) == 3
    output = lgcn_("predict", "../run", "--output", "new.csv", *new)
    assert output.code != 0
    assert "--features must be given" in output.err
    store = ("--edges", "../edges.csv", "--nodes", "../nodes.csv", "--label-column", "topic")
    given = ("--features", "../features.csv", "--list-columns", "tags")
    assert lgcn_("import", "store", *store, *given).code == 0
    output = lgcn_("train", "--graph", "store", *FEW, "--out", "again")
    assert output.code == 0, output.err
