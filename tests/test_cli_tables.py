"""The command line on a user's own tables: two files in, predictions out, and what can go wrong."""

import csv
import gzip
import inspect
import json
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from lgcn import cli_tables
from lgcn.data.check import suggest_k
from lgcn.data.tables.import_tables import import_tables
from lgcn.training import Run, loop

NUM_NODES = 60
CLASSES = ("art", "law", "zoo")
WORDS = {"art": "paint brush canvas", "law": "court judge trial", "zoo": "lion tiger zebra"}
Columns = dict[str, list[Any]]
OWN = ("--edges", "edges.csv", "--nodes", "nodes.csv")
TOPIC = (*OWN, "--label-column", "topic")
FEW = ("--set", "max_epochs=5")
RUN = ("--out", "run", *FEW)

# The command line prints the library's warnings, which are errors elsewhere in the tests.
pytestmark = pytest.mark.filterwarnings("always::UserWarning")


def label(i: int) -> str:
    return CLASSES[i % 3]


def node_columns(size: int = NUM_NODES, prefix: str = "p") -> Columns:
    """Every fourth node has no label."""
    return {
        "id": [f"{prefix}{i}" for i in range(size)],
        "age": [10 * (i % 3) + i % 7 for i in range(size)],
        "country": [("de", "fr", "us")[i * 7 % 5 % 3] for i in range(size)],
        "title": [f"{WORDS[label(i)]} {('more', 'less')[i % 2]}" for i in range(size)],
        "topic": [label(i) if i % 4 else "" for i in range(size)],
    }


def edge_columns(size: int = NUM_NODES, prefix: str = "p") -> Columns:
    """Each node with two others of its class and one of another."""
    pairs = [(i, (i + step) % size) for i in range(size) for step in (3, 6, 10)]
    return {
        "source": [f"{prefix}{i}" for i, _ in pairs],
        "target": [f"{prefix}{j}" for _, j in pairs],
    }


def write(
    path: str, columns: Columns, delimiter: str = ",", encoding: str = "utf-8", newline: str = "\n"
) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    with Path(path).open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def rows(path: str, delimiter: str = ",") -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with two tables, and no data set on this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LGCN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    write("nodes.csv", node_columns())
    write("edges.csv", edge_columns())
    return tmp_path


@pytest.fixture
def trained(lgcn_, place: Path) -> Path:
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 0, output.err
    return place / "run"


# The two commands


def test_two_commands_from_two_tables_to_predictions(lgcn_):
    output = lgcn_("train", *TOPIC, "--out", "runs/mine", "--set", "max_epochs=30")
    assert output.code == 0
    assert output.err == ""
    assert "lgcn predict runs/mine --output FILE.csv" in output.out
    assert "released program" not in output.out
    output = lgcn_("predict", "runs/mine", "--output", "predictions.csv")
    assert (output.code, output.out) == (0, f"wrote {NUM_NODES} predictions to predictions.csv\n")
    assert output.err == ""
    table = rows("predictions.csv")
    probabilities = [f"probability_{name}" for name in CLASSES]
    assert list(table[0]) == ["node", "predicted", "confidence", *probabilities]
    assert [row["node"] for row in table] == node_columns()["id"]
    assert [row["predicted"] for row in table] == [label(i) for i in range(NUM_NODES)]
    for row in table:
        chances = [float(row[name]) for name in probabilities]
        assert sum(chances) == pytest.approx(1, abs=1e-5)
        assert float(row["confidence"]) == max(chances)
        assert row["predicted"] == CLASSES[int(np.argmax(chances))]


def test_train_prints_one_json_object(lgcn_, place: Path):
    output = lgcn_("train", *TOPIC, *RUN, "--json")
    record = output.json
    assert output.err == ""
    assert (record["dataset"], record["graph"], record["metric"]) == ("tables", "nodes", "accuracy")
    saved = json.loads((place / "run" / "result.json").read_text())
    assert {key: saved[key] for key in record} == record
    config, spec = Run("run").read()
    assert config.k == suggest_k(import_tables("edges.csv", "nodes.csv").graph)
    assert spec.label_names == CLASSES


def test_notes_go_to_standard_error(lgcn_):
    write("edges.csv", edge_columns() | {"weight": [1] * (3 * NUM_NODES)})
    output = lgcn_("train", *TOPIC, *RUN, "--json")
    assert output.json["dataset"] == "tables"
    (note,) = output.notes("edges.csv")
    assert "weight_column='weight'" in note


def test_the_default_folder_has_the_name_of_the_node_table(lgcn_):
    record = lgcn_("train", *TOPIC, *FEW, "--json").json
    assert record["out"] == "runs/nodes-seed0"


def test_predictions_score_as_trained(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "p.csv")
    graph = import_tables("edges.csv", "nodes.csv", label_column="topic").graph
    right = [row["predicted"] == label(i) for i, row in enumerate(rows("p.csv"))]
    assert np.mean(np.array(right)[graph.test_mask]) == Run(trained).result()["test_score"]
    record = lgcn_("evaluate", trained, "--json").json
    splits = {split: part["nodes"] for split, part in record["splits"].items()}
    assert splits == {s: int(graph.mask(s).sum()) for s in ("train", "val", "test")}
    assert record["splits"]["test"]["score"] == Run(trained).result()["test_score"]


def test_help_lists_the_flags(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    for command in (["train"], ["data", "check"]):
        text = lgcn_(*command, "--help").out
        assert "Your own tables" in text
        for name in inspect.signature(cli_tables._flags).parameters:
            assert f"--{name.replace('_', '-')} " in text
    for command in ("predict", "evaluate"):
        text = lgcn_(command, "--help").out
        assert "--edges" in text
        assert "--nodes" in text


# Files of all kinds, from everywhere


def save(kind: str, path: str, columns: Columns) -> str:
    """Writes a table in another format and returns its path."""
    path += kind
    if kind == ".parquet":
        cells = {k: [None if v == "" else v for v in c] for k, c in columns.items()}
        pyarrow.parquet.write_table(pa.table(cells), path)
    elif kind == ".npz":
        np.savez(path, **{name: np.array(column) for name, column in columns.items()})
    elif kind == ".csv.gz":
        write("plain.csv", columns)
        Path(path).write_bytes(gzip.compress(Path("plain.csv").read_bytes()))
    else:
        write(path, columns, {".tsv": "\t", ".txt": ";"}[kind], newline="\r\n")
    return path


@pytest.mark.parametrize("kind", [".tsv", ".txt", ".csv.gz", ".parquet", ".npz"])
def test_files_of_all_kinds_train_the_same(lgcn_, trained: Path, kind: str):
    nodes, edges = save(kind, "nodes", node_columns()), save(kind, "edges", edge_columns())
    args = ("--nodes", nodes, "--edges", edges, "--label-column", "topic")
    assert lgcn_("train", *args, "--out", "other", *FEW).code == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]
    lgcn_("predict", "run", "--output", "a.csv")
    lgcn_("predict", "other", "--output", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_run_is_used_from_another_folder(lgcn_, trained: Path, monkeypatch: pytest.MonkeyPatch):
    lgcn_("predict", trained, "--output", "p.csv")
    (trained.parent / "elsewhere").mkdir()
    monkeypatch.chdir(trained.parent / "elsewhere")
    assert lgcn_("predict", "../run", "--output", "p.csv").code == 0
    assert Path("p.csv").read_bytes() == Path("../p.csv").read_bytes()
    assert lgcn_("evaluate", "../run").code == 0
    assert lgcn_("train", "--resume", "--out", "../run").code == 0


def test_the_tables_of_a_run_may_not_vanish(lgcn_, trained: Path):
    Path("nodes.csv").unlink()
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.code == 1
    assert "nodes.csv does not exist" in output.message


# What the flags do, told by `lgcn data check`


def rich_nodes() -> Columns:
    """A column for every flag."""
    size = NUM_NODES
    return node_columns() | {
        "code": [i + 100 for i in range(size)],
        "tags": [("", "a", "b", "a;b")[i % 4] for i in range(size)],
        "is_a": [i % 2 for i in range(size)],
        "is_b": [("true", "False", "")[i % 3] for i in range(size)],
        "part": [("", "train", "VAL", "Test")[i % 4] for i in range(size)],
    }


def rich_edges() -> Columns:
    edges = edge_columns()
    codes = {end: [int(id[1:]) + 100 for id in edges[end]] for end in edges}
    strength = [i % 4 + 0.5 for i in range(3 * NUM_NODES)]
    return edges | {"a_code": codes["source"], "b_code": codes["target"], "strength": strength}


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
            ("one a node", list(CLASSES), 45),
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
            ("several a node", {"a": 30, "b": 30}),
        ),
        (
            ["--label-column", "is_a", "--label-column", "is_b"],
            lambda r: (r["labels"], r["classes"], r["labelled_nodes"]),
            ("none", {}, 0),
            ("several a node", {"is_a": 20, "is_b": 20}, 40),
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
    assert re.search(r"column 'country', line 2: .*number.*'de'", output.message)


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
    output = lgcn_("data", "check", *TOPIC)
    assert output.code == 1
    assert f"delimiter={delimiter!r}" in output.message


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_encoding(lgcn_, encoding: str):
    nodes = node_columns()
    nodes["topic"] = [topic.replace("zoo", "zoö") for topic in nodes["topic"]]
    write("nodes.csv", nodes, encoding=encoding)
    write("edges.csv", edge_columns(), encoding=encoding)
    output = lgcn_("data", "check", *TOPIC)
    assert output.code == 1
    assert repr(encoding) in output.message
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
    assert output.notes("name unknown nodes are left out")
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
    lgcn_(
        *("train", "--nodes", "nodes.txt", "--edges", "edges.txt", "--label-column", "tags"),
        *("--label-separator", ";", "--id-column", "code", "--source-column", "a_code"),
        *("--target-column", "b_code", "--weight-column", "strength", "--directed"),
        *("--val", "0.3", "--test", "0.3", "--split-seed", "1", "--categorical-columns", "age"),
        *("--text-columns", "title", "--numeric-columns", "is_a", "--ignore-columns", "topic"),
        *("--unknown-nodes", "drop", "--delimiter", "|", "--encoding", "cp1252", *RUN),
    )
    options = Run("run").read()[0].dataset_options
    flags = inspect.signature(cli_tables._flags).parameters
    assert set(flags) - set(options) == {"split_column", "labels_per_class"}
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


# data check


def test_data_check_prints_what_was_understood(lgcn_):
    output = lgcn_("data", "check", *TOPIC)
    assert output.code == 0
    assert output.err == ""
    for name in ("country", "category", "title", "text", *CLASSES, "k by the degrees", "homophily"):
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


# Predictions


def test_predictions_in_all_formats(lgcn_, trained: Path):
    for name in ("p.csv", "p.tsv", "p.parquet", "new/p.PARQUET"):
        assert lgcn_("predict", trained, "--output", name).code == 0
    table = pyarrow.parquet.read_table("p.parquet")
    assert table.equals(pyarrow.parquet.read_table("new/p.PARQUET"))
    assert table["node"].to_pylist() == node_columns()["id"]
    assert set(table["predicted"].to_pylist()) <= set(CLASSES)
    assert rows("p.csv") == rows("p.tsv", "\t")
    for row, cells in zip(rows("p.csv"), table.to_pylist(), strict=True):
        assert (row["node"], row["predicted"]) == (cells["node"], cells["predicted"])
        assert float(row["confidence"]) == pytest.approx(cells["confidence"], rel=1e-5)


def test_abstaining(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "all.csv")
    confidence = [float(row["confidence"]) for row in rows("all.csv")]
    threshold = sorted(confidence)[20] + 1e-6
    args = ("--output", "p.csv", "--abstain-below", threshold)
    abstained = sum(c < threshold for c in confidence)
    assert lgcn_("predict", trained, *args, "--json").json["abstained"] == abstained > 0
    for row, before in zip(rows("p.csv"), rows("all.csv"), strict=True):
        sure = float(row["confidence"]) >= threshold
        assert row == before | {"predicted": before["predicted"] if sure else ""}
    assert f"{abstained} of them left open" in lgcn_("predict", trained, *args).out


def test_only_nodes_without_a_label(lgcn_, trained: Path):
    lgcn_("predict", trained, "--output", "all.csv")
    output = lgcn_("predict", trained, "--output", "p.csv", "--unlabelled-only")
    unlabelled = [f"p{i}" for i in range(0, NUM_NODES, 4)]
    assert output.out == f"wrote {len(unlabelled)} predictions to p.csv\n"
    assert rows("p.csv") == [row for row in rows("all.csv") if row["node"] in unlabelled]


def test_only_nodes_without_any_of_several_labels(lgcn_):
    write("nodes.csv", rich_nodes())
    lgcn_("train", *OWN, "--label-column", "tags", "--label-separator", ";", *RUN)
    lgcn_("predict", "run", "--output", "p.csv", "--unlabelled-only")
    assert [row["node"] for row in rows("p.csv")] == [f"p{i}" for i in range(0, NUM_NODES, 4)]


def test_labels_that_are_numbers(lgcn_):
    nodes = node_columns()
    nodes["topic"] = [{"art": 2, "law": 10, "zoo": -2, "": ""}[topic] for topic in nodes["topic"]]
    write("nodes.csv", nodes)
    lgcn_("train", *TOPIC, *RUN)
    assert lgcn_("predict", "run", "--output", "p.csv", "--json").json["classes"] == [
        "-2",
        "2",
        "10",
    ]
    assert {row["predicted"] for row in rows("p.csv")} <= {"-2", "2", "10"}


# New tables


def new_tables(size: int = 24, **columns: list[Any]) -> tuple[str, ...]:
    """Writes tables of other nodes, and returns the flags for them."""
    nodes = node_columns(size, "q") | columns
    write("new_nodes.csv", {name: cells for name, cells in nodes.items() if cells})
    write("new_edges.csv", edge_columns(size, "q"))
    return ("--nodes", "new_nodes.csv", "--edges", "new_edges.csv")


def test_predict_new_tables_without_labels(lgcn_, trained: Path):
    new = new_tables(topic=[])
    output = lgcn_("predict", trained, "--output", "p.csv", *new)
    assert (output.code, output.err) == (0, "")
    table = rows("p.csv")
    assert [row["node"] for row in table] == [f"q{i}" for i in range(24)]
    new_tables()
    lgcn_("predict", trained, "--output", "again.csv", *new)
    assert rows("again.csv") == table


def test_predict_the_same_nodes_as_new_ones(lgcn_, trained: Path):
    """Features are scaled as in training, whichever rows come."""
    lgcn_("predict", trained, "--output", "a.csv")
    lgcn_("predict", trained, "--output", "b.csv", *OWN)
    assert rows("a.csv") == rows("b.csv")


def test_unseen_categories_are_told_of(lgcn_, trained: Path):
    countries = ["jp", "de"] * 12
    output = lgcn_("predict", trained, "--output", "p.csv", *new_tables(country=countries))
    assert output.code == 0
    (note,) = output.notes("country")
    assert "12 rows" in note
    assert "'jp'" in note
    assert len(rows("p.csv")) == 24


def test_evaluate_new_tables(lgcn_, trained: Path):
    new = new_tables()
    record = lgcn_("evaluate", trained, *new, "--json").json
    nodes = {split: part["nodes"] for split, part in record["splits"].items()}
    assert nodes == {"test": 18}
    lgcn_("predict", trained, "--output", "p.csv", *new)
    right = [row["predicted"] == label(i) for i, row in enumerate(rows("p.csv")) if i % 4]
    assert record["splits"]["test"]["score"] == pytest.approx(np.mean(right))
    output = lgcn_("evaluate", trained, *new)
    assert output.code == 0
    assert "18" in output.out


def test_predict_new_nodes_without_labels_only(lgcn_, trained: Path):
    args = ("predict", trained, "--output", "p.csv", "--unlabelled-only")
    assert lgcn_(*args, *new_tables(), "--json").json["nodes"] == 6
    assert lgcn_(*args, *new_tables(topic=[]), "--json").json["nodes"] == 24


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": []}, "lacks the column 'age'"),
        ({"age": ["x"] * 24}, "'age', line 2"),
        ({"age": ["inf"] * 24}, "'age', line 2"),
        ({"topic": ["art", "chess"] * 12}, "'chess'"),
        ({"topic": []}, "label_column"),
        ({"topic": [""] * 24}, "label"),
    ],
)
def test_new_tables_that_do_not_fit(lgcn_, trained: Path, columns: Columns, message: str):
    output = lgcn_("evaluate", trained, *new_tables(**columns))
    assert output.code in (1, 2)
    assert message in output.message


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nodes", "nodes.csv"], "give both --edges and --nodes"),
        (["--edges", "edges.csv"], "give both --edges and --nodes"),
        ([*OWN, "--dataset", "digits"], "not both"),
    ],
)
def test_new_tables_are_two(lgcn_, trained: Path, args: list[str], message: str):
    for command in (("evaluate",), ("predict", "--output", "p.csv")):
        output = lgcn_(*command, trained, *args)
        assert output.code == 2
        assert message in output.message


def test_tables_for_a_run_that_has_none(lgcn_):
    options = ["dataset_options.num_nodes=60", "max_epochs=1", "max_nodes=60"]
    settings = [word for option in options for word in ("--set", option)]
    assert lgcn_("train", "--dataset", "synthetic", "--out", "run", *settings).code == 0
    output = lgcn_("predict", "run", "--output", "p.csv", *OWN)
    assert output.code == 2
    assert "was not trained on tables" in output.message


# Going on


def test_an_interrupted_run_goes_on_from_anywhere(lgcn_, monkeypatch: pytest.MonkeyPatch):
    args = ("train", *TOPIC, "--set", "max_epochs=12", "--set", "patience=12", "--out")
    assert lgcn_(*args, "whole").code == 0
    train_epoch, epochs = loop._train_epoch, iter(range(100))

    def interrupted(*more: Any, **named: Any) -> Any:
        if next(epochs) == 5:
            signal.raise_signal(signal.SIGINT)
        return train_epoch(*more, **named)

    monkeypatch.setattr(loop, "_train_epoch", interrupted)
    output = lgcn_(*args, "run")
    assert (output.code, output.out) == (130, "")
    command = re.search(r"Go on with: lgcn (.*)", output.err)
    assert command is not None
    assert 0 < Run("run").load_checkpoint()[0] < 12
    monkeypatch.setattr(loop, "_train_epoch", train_epoch)
    resume = [word.replace("run", str(Path("run").absolute())) for word in shlex.split(command[1])]
    whole = Path("whole").absolute()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    resumed = lgcn_(*resume, "--json").json
    assert resumed["epochs"] == 12
    weights = [Path(run, "model.safetensors").read_bytes() for run in (resumed["out"], whole)]
    assert weights[0] == weights[1]


def test_resume_takes_the_same_tables_and_no_others(lgcn_, trained: Path):
    assert lgcn_("train", *TOPIC, *RUN, "--resume").code == 0
    output = lgcn_("train", *TOPIC, *RUN, "--resume", "--directed")
    assert output.code == 2
    assert "--resume keeps the settings" in output.message


def test_an_existing_run_is_not_touched(lgcn_, trained: Path):
    before = (trained / "model.safetensors").read_bytes()
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 2
    assert "already holds a run" in output.message
    assert (trained / "model.safetensors").read_bytes() == before


# Bad input


def bad_tables(**columns: list[Any]) -> None:
    write("nodes.csv", node_columns() | columns)


CELLS = [""] * NUM_NODES


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["p0", *node_columns()["id"][:-1]]}, r"'p0' in line 2 and in line 3"),
        ({"id": ["", *node_columns()["id"][1:]]}, r"line 2, column 'id': the id is missing"),
        ({"topic": CELLS}, r"'topic' has no label"),
        ({"topic": ["art", *CELLS[1:]]}, r"'topic' has one class only, 'art'"),
        ({"topic": [f"t{i}" for i in range(NUM_NODES)]}, r"60 different values .*classes"),
        ({"age": ["inf", *range(1, NUM_NODES)]}, r"column 'age', line 2: .*finite.* got inf"),
        (
            {"age": CELLS, "country": ["de"] * NUM_NODES, "title": CELLS},
            r"no feature is left: .*'age' .*empty.*'country' .*'de' in all rows",
        ),
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
        ({"age": CELLS}, "column 'age' left out: it is empty"),
        ({"age": [7] * NUM_NODES}, "column 'age' left out: it is constant"),
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
        ("source;target\np1;p2,5\n", r"line 1: ',' parts no columns.*delimiter=';'"),
        ("p1,p2\np3,p4\n", r"first line must be column names, got the edge 'p1' to 'p2'"),
        ("source,target\np1,p2,p3\n", r"line 2: must have 2 cells.*got 3"),
        ("source,target\np1,\xe4\n", r"line 2: not in utf-8 \(byte 0xe4\).*encoding='latin-1'"),
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
        (["--edges", "edges.csv", "--label-column", "topic"], 2, "both tables"),
        (["--nodes", "nodes.csv", "--label-column", "topic"], 2, "--edges none"),
        (["--label-column", "topic"], 2, "--label-column needs both tables"),
        (["--directed"], 2, "--directed needs both tables"),
        ([*OWN], 2, "--label-column is missing"),
        ([*TOPIC, "--dataset", "digits"], 2, "not both"),
        ([*OWN, "--label-column", "topics"], 2, "did you mean 'topic'?"),
        ([*TOPIC, "--id-column", "idd"], 2, "did you mean 'id'?"),
        ([*TOPIC, "--split-column", "part"], 2, "split_column"),
        ([*TOPIC, "--source-column", "source"], 2, "given together"),
        ([*TOPIC, "--weight-column", "w"], 2, "weight_column must name a column, got 'w'"),
        ([*TOPIC, "--weight-column", "source"], 2, "'source'"),
        ([*TOPIC, "--ignore-columns", "nope"], 2, "ignore_columns"),
        ([*TOPIC, "--text-columns", "id"], 2, "'id' is named in id_column and in text_columns"),
        ([*TOPIC, "--val", "0.7", "--test", "0.4"], 2, "val + test must be below 1"),
        ([*TOPIC, "--val", "-1"], 2, "val must be a number from 0 to 1"),
        ([*TOPIC, "--val", "0"], 2, "no val nodes"),
        ([*TOPIC, "--val", "0.2", "--labels-per-class", "5"], 2, "Leave out all but one"),
        ([*TOPIC, "--labels-per-class", "0"], 2, "labels_per_class"),
        ([*TOPIC, "--split-seed", "-1"], 2, "split_seed"),
        ([*TOPIC, "--unknown-nodes", "keep"], 2, "'error' or 'drop', got 'keep'"),
        ([*TOPIC, "--delimiter", "::"], 2, "delimiter must be one character, got '::'"),
        ([*TOPIC, "--encoding", "klingon"], 2, "encoding must be one that Python knows"),
        ([*TOPIC, "--label-separator", ""], 2, "label_separator"),
        (["--edges", "no.csv", "--nodes", "nodes.csv", "--label-column", "topic"], 1, "no.csv"),
        (["--edges", "e.xlsx", "--nodes", "nodes.csv", "--label-column", "topic"], 2, ".xlsx"),
        (["--edges", ".", "--nodes", "nodes.csv", "--label-column", "topic"], 2, "must end in"),
    ],
)
def test_flags_that_cannot_be(lgcn_, args: list[str], code: int, message: str):
    output = lgcn_("train", *args, *RUN)
    assert message in output.message
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
    assert "abstain_below" in output.message
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"format": 1}'])
def test_a_damaged_encoder(lgcn_, trained: Path, content: str):
    (trained / "features.json").write_text(content)
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.code == 1
    assert "features.json" in output.message
