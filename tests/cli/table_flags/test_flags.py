"""What each flag for tables does, mostly shown by `lgcn data check`."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lgcn.cli import table_flags as cli_tables
from lgcn.tables.from_tables import import_tables
from lgcn.training import Run

from .tables import (
    CLASSES,
    FEW,
    NUM_NODES,
    OWN,
    PRINTS_WARNINGS,
    RUN,
    TOPIC,
    edge_columns,
    label,
    node_columns,
    rich_edges,
    rich_nodes,
    rows,
    write,
)

pytestmark = PRINTS_WARNINGS


def column_kinds(report: dict[str, Any]) -> dict[str, str]:
    return {column["name"]: column["kind"] for column in report["columns"]}


def degrees(report: dict[str, Any]) -> dict[int, int]:
    return {part["from"]: part["nodes"] for part in report["degree_histogram"] if part["nodes"]}


Look = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("args", "look", "before", "after"),
    [
        (
            ["--label-column", "topic"],
            lambda r: (r["labels"], list(r["classes"]), r["labelled_nodes"]),
            ("none", [], 0),
            ("one per node", list(CLASSES), 45),
        ),
        (
            ["--label-column", "tags"],
            lambda r: r["classes"],
            {},
            {"a": 15, "a;b": 15, "b": 15},
        ),
        (
            ["--label-column", "tags", "--label-separator", ";"],
            lambda r: (r["labels"], r["classes"]),
            ("none", {}),
            ("several per node", {"a": 30, "b": 30}),
        ),
        (
            ["--label-column", "is_a", "--label-column", "is_b"],
            lambda r: (r["labels"], r["classes"], r["labelled_nodes"]),
            ("none", {}, 0),
            ("several per node", {"is_a": 20, "is_b": 20}, 40),
        ),
        (["--directed"], lambda r: (r["directed"], degrees(r)), (False, {4: 60}), (True, {2: 60})),
        (["--weight-column", "strength"], lambda r: r["weighted"], False, True),
        (
            ["--label-column", "topic", "--split-column", "part"],
            lambda r: r["splits"],
            {},
            {"train": 15, "val": 15, "test": 15},
        ),
        (
            ["--label-column", "topic", "--labels-per-class", "4"],
            lambda r: r["splits"].get("train"),
            None,
            12,
        ),
        (
            ["--label-column", "topic", "--val", "0.4"],
            lambda r: r["splits"],
            {},
            {"train": 18, "val": 18, "test": 9},
        ),
        (
            ["--label-column", "topic", "--test", "0"],
            lambda r: r["splits"],
            {},
            {"train": 36, "val": 9, "test": 0},
        ),
        (
            ["--categorical-columns", "age", "--categorical-columns", "is_a"],
            lambda r: [column_kinds(r)[name] for name in ("age", "is_a", "code")],
            ["number", "number", "number"],
            ["category", "category", "number"],
        ),
        (
            ["--text-columns", "country"],
            lambda r: column_kinds(r)["country"],
            "category",
            "text",
        ),
        (
            ["--ignore-columns", "age", "--ignore-columns", "title"],
            lambda r: [name in column_kinds(r) for name in ("age", "title", "country")],
            [True, True, True],
            [False, False, True],
        ),
    ],
)
def test_flags(lgcn_, args: list[str], look: Look, before: Any, after: Any):
    write("nodes.csv", rich_nodes())
    write("edges.csv", rich_edges())
    check = ("data", "check", *OWN, "--json")
    assert look(lgcn_(*check).json) == before
    assert look(lgcn_(*check, *args).json) == after


def test_numeric_columns_must_hold_numbers(lgcn_):
    output = lgcn_("data", "check", *OWN, "--numeric-columns", "country")
    assert output.code == 1
    assert re.search(r"--numeric-columns names 'country'.*no numbers.*'de'", output.message)


def test_how_cells_are_written(lgcn_):
    size = [f"{i % 7 + 1},{100 + i}" for i in range(NUM_NODES)]
    day = [f"{i % 12 + 1}/{i % 11 + 1}/2022" for i in range(NUM_NODES)]
    topic = ["keine", *node_columns()["topic"][1:]]
    write("nodes.csv", node_columns() | {"size": size, "day": day, "topic": topic}, ";")
    write("edges.csv", edge_columns(), ";")
    check = ("data", "check", *TOPIC, "--delimiter", ";")
    report = lgcn_(*check, "--json").json
    assert {column_kinds(report)[name] for name in ("size", "day")} == {"number", "date"}
    assert "keine" in report["classes"]
    output = lgcn_(*check)
    shown = " ".join(output.out.replace("│", " ").split())
    for flag in ("--decimal ,", "--date-order dmy"):
        assert flag in shown
    flags = ("--decimal", ",", "--date-order", "dmy", "--na-values", "keine")
    report = lgcn_(*check, *flags, "--json").json
    assert "keine" not in report["classes"]
    assert not [note for note in report["notes"] if "'size'" in note or "'day'" in note]
    assert lgcn_("train", *TOPIC, "--delimiter", ";", *flags, *RUN).code == 0
    assert lgcn_("predict", "run", "--output", "p.csv", *OWN, "--decimal", ".").code == 0
    output = lgcn_(*check, "--decimal", ";")
    assert output.code == 2
    assert "--decimal must be" in output.message


def test_columns_of_ids(lgcn_):
    write("nodes.csv", rich_nodes())
    write("edges.csv", rich_edges())
    codes = ("--source-column", "a_code", "--target-column", "b_code")
    plain = lgcn_("data", "check", *TOPIC, "--json").json
    report = lgcn_("data", "check", *TOPIC, "--id-column", "code", *codes, "--json").json
    assert (report["edges"], report["homophily"]) == (plain["edges"], plain["homophily"])
    assert "id" not in column_kinds(plain)
    for wrong, code in ((codes, 1), (("--id-column", "code"), 1), (codes[:2], 2)):
        assert lgcn_("data", "check", *TOPIC, *wrong).code == code
    lgcn_("train", *TOPIC, *RUN, "--id-column", "code", *codes)
    lgcn_("predict", "run", "--output", "p.csv")
    assert [row["node"] for row in rows("p.csv")] == [str(i + 100) for i in range(NUM_NODES)]


def test_the_split_seed(lgcn_):
    def nodes_for_the_test(*args: str) -> Any:
        lgcn_("train", *TOPIC, *RUN, "--overwrite", *args)
        options = Run("run").read()[0].dataset_options
        return import_tables(**options).graph.test_mask.tolist()

    default, same, other = (
        nodes_for_the_test(*args) for args in ((), ("--split-seed", "0"), ("--split-seed", "5"))
    )
    assert default == same != other


@pytest.mark.parametrize(("delimiter", "given"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
def test_the_delimiter(lgcn_, delimiter: str, given: str):
    expected = lgcn_("data", "check", *TOPIC, "--json").json
    write("nodes.csv", node_columns(), delimiter)
    write("edges.csv", edge_columns(), delimiter)
    assert lgcn_("data", "check", *TOPIC, "--delimiter", given, "--json").json == expected
    assert lgcn_("data", "check", *TOPIC, "--json").json == expected
    titles = ["a title, with a comma", *node_columns()["title"][1:]]
    write("nodes.csv", node_columns() | {"title": titles}, delimiter)
    assert lgcn_("data", "check", *TOPIC).code == 0


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_encoding(lgcn_, encoding: str):
    nodes = node_columns()
    nodes["topic"] = [topic.replace("zoo", "zoö") for topic in nodes["topic"]]
    write("nodes.csv", nodes, encoding=encoding)
    write("edges.csv", edge_columns(), encoding=encoding)
    output = lgcn_("data", "check", *TOPIC)
    assert output.code == 1
    assert re.search(rf"--encoding .*{encoding}", output.message)
    report = lgcn_("data", "check", *TOPIC, "--encoding", encoding, "--json").json
    assert list(report["classes"]) == ["art", "law", "zoö"]
    lgcn_("train", *TOPIC, *RUN, "--encoding", encoding)
    assert lgcn_("predict", "run", "--output", "p.csv", "--json").json["classes"][2] == "zoö"
    assert "probability_zoö" in rows("p.csv")[0]


def test_unknown_nodes(lgcn_):
    edges = edge_columns()
    edges["target"][7] = "stranger"
    write("edges.csv", edges)
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 1
    assert "line 9 (target 'stranger')" in output.message
    assert "--unknown-nodes drop" in output.message
    report = lgcn_("data", "check", *TOPIC, "--unknown-nodes", "drop", "--json").json
    assert report["imported"]["unknown_endpoints"] == 1
    output = lgcn_("train", *TOPIC, *RUN, "--unknown-nodes", "drop")
    assert output.code == 0
    assert output.notes("unknown node")
    assert lgcn_("predict", "run", "--output", "p.csv").code == 0


def test_no_edges_on_purpose(lgcn_):
    args = ("--edges", "none", "--nodes", "nodes.csv", "--label-column", "topic")
    report = lgcn_("data", "check", *args, "--json").json
    assert (report["edges"], report["isolated_nodes"]) == (0, NUM_NODES)
    assert "no edge" in report["warnings"][0]
    assert lgcn_("train", *args, *RUN).code == 0
    assert lgcn_("predict", "run", "--output", "p.csv").code == 0
    assert len(rows("p.csv")) == NUM_NODES


def test_all_flags_at_once(lgcn_):
    """They are stored with the run, so that its tables are read again as they were."""
    write("nodes.txt", rich_nodes(), "|", "cp1252")
    write("edges.txt", rich_edges(), "|", "cp1252")
    write("words.txt", {"code": [100, 101], "word": ["a", "b"]}, "|", "cp1252")
    lgcn_(
        *("train", "--nodes", "nodes.txt", "--edges", "edges.txt", "--label-column", "tags"),
        *("--label-separator", ";", "--id-column", "code", "--source-column", "a_code"),
        *("--target-column", "b_code", "--weight-column", "strength", "--directed"),
        *("--val", "0.3", "--test", "0.3", "--split-seed", "1", "--categorical-columns", "age"),
        *("--text-columns", "title", "--numeric-columns", "is_a", "--ignore-columns", "topic"),
        *("--decimal", ".", "--date-order", "dmy", "--na-values", "x", "--na-values", "y"),
        *("--unknown-nodes", "drop", "--delimiter", "|", "--encoding", "cp1252", *RUN),
        *("--header", "--node-header", "--features", "words.txt", "--list-columns", "country"),
        *("--task", "classification"),
    )
    options = Run("run").read()[0].dataset_options
    flags = inspect.signature(cli_tables._flags).parameters
    left_out = {"split_column", "labels_per_class", "sample_weight_column"}
    left_out |= {"edge_columns"}  # for model=residual
    left_out |= {"graphs", "graph_column", "fold", "target"}  # of whole graphs
    assert set(flags) - set(options) == left_out
    assert (options["header"], options["node_header"]) == (True, True)
    graph = import_tables(**options).graph
    record = lgcn_("evaluate", "run", "--json").json
    assert record["metric"] == "micro_f1"
    assert record["splits"]["test"]["nodes"] == int(graph.test_mask.sum())
    assert lgcn_("predict", "run", "--output", "p.csv", "--json").json["classes"] == ["a", "b"]
    for row in rows("p.csv"):
        likely = [name for name in "ab" if float(row[f"probability_{name}"]) > 0.5]
        assert row["predicted"] == ";".join(likely)


def test_options_come_from_a_config_file_too(lgcn_):
    Path("own.toml").write_text(
        'dataset = "tables"\nmax_epochs = 5\n[dataset_options]\n'
        'edges = "edges.csv"\nnodes = "nodes.csv"\nlabel_column = "topic"\n'
    )
    by_file = lgcn_("train", "--config", "own.toml", "--out", "a", "--json").json
    by_flags = lgcn_("train", *TOPIC, "--out", "b", *FEW, "--json").json
    assert by_file["val_score"] == by_flags["val_score"]
    weights = [Path(run, "model.safetensors").read_bytes() for run in "ab"]
    assert weights[0] == weights[1]


def test_data_check_prints_what_was_understood(lgcn_):
    output = lgcn_("data", "check", *TOPIC, "--text-columns", "title")
    assert output.code == 0
    assert output.err == ""
    for name in ("country", "category", "title", "text", *CLASSES, "suggested k", "homophily"):
        assert name in output.out
    report = lgcn_("data", "check", *TOPIC, "--json").json
    assert report["nodes"] == NUM_NODES
    assert report["imported"]["edge_rows"] == 3 * NUM_NODES
    assert report["homophily"] > 0.6
    assert report["warnings"] == []


def test_data_check_says_what_looks_wrong(lgcn_):
    nodes = node_columns()
    nodes["topic"][1] = "rare"
    write("nodes.csv", nodes | {"same": [1] * NUM_NODES, "empty": [""] * NUM_NODES})
    report = lgcn_("data", "check", *TOPIC, "--json").json
    assert any("rare" in text for text in report["warnings"])
    notes = " ".join(report["notes"])
    assert "'same'" in notes
    assert "constant" in notes
    assert "'empty'" in notes
    output = lgcn_("data", "check", *TOPIC)
    assert "rare" in output.out
    assert "'same'" in output.out


@pytest.mark.parametrize("args", [[], [*OWN, "--dataset", "digits"]])
def test_data_check_wants_one_thing(lgcn_, args: list[str]):
    output = lgcn_("data", "check", *args)
    assert output.code == 2
    assert "say what to check" in output.message


def test_training_and_data_check_warn_of_a_copy_of_the_label(lgcn_):
    nodes = node_columns(240)
    write("nodes.csv", nodes | {"code": [f"{label(i)[0]}1" for i in range(240)]})
    write("edges.csv", edge_columns(240))
    for command in (("train", *TOPIC, *RUN), ("data", "check", *TOPIC)):
        shown = lgcn_(*command)
        assert shown.code == 0
        text = " ".join((shown.out + shown.err).split())
        assert "'code'" in text
        assert "gives the label away" in text
        assert "--ignore-columns" in text
    assert (
        "gives the label away"
        not in lgcn_(
            "train",
            *TOPIC,
            *RUN,
            "--ignore-columns",
            "code",
            "--ignore-columns",
            "age",
            "--ignore-columns",
            "title",
            "--overwrite",
        ).err
    )
