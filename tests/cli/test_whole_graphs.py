"""Whole graphs on the command line: from tables and TU folders to predictions."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

SMALL = ("--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "max_epochs=8")
TABLES = ("--graphs", "graphs.csv", "--edges", "edges.csv", "--nodes", "nodes.csv")
COLUMNS = ("--graph-column", "molecule", "--label-column", "kind")


def write_tables(folder: Path, first: int, count: int, unlabelled: int = 0) -> None:
    """Rings with a chord or without, whose atoms have a letter and a number."""
    graphs, edges, nodes = ["molecule,kind"], ["molecule,source,target"], ["molecule,id,letter,x"]
    for number in range(first, first + count):
        size, chord = 5 + number % 4, number % 2
        label = ("open", "closed")[chord] if number - first >= unlabelled else ""
        graphs.append(f"m{number},{label}")
        nodes += [f"m{number},{i},{'CNO'[i % 3]},{i / 2 + chord}" for i in range(size)]
        edges += [f"m{number},{i},{(i + 1) % size}" for i in range(size)]
        if chord:
            edges.append(f"m{number},0,2")
    for name, rows in (("graphs", graphs), ("edges", edges), ("nodes", nodes)):
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")


def write_tu(folder: Path, count: int = 30) -> None:
    """The same rings in TU's layout."""
    folder.mkdir()
    ends, owner, labels, node_labels = [], [], [], []
    first = 1
    for number in range(count):
        size, chord = 5 + number % 4, number % 2
        pairs = [(i, (i + 1) % size) for i in range(size)] + [(0, 2)] * chord
        ends += [f"{first + a}, {first + b}" for pair in pairs for a, b in (pair, pair[::-1])]
        owner += [str(number + 1)] * size
        node_labels += [str(i % 3 if chord else 3) for i in range(size)]
        labels.append(str(chord * 2))
        first += size
    parts = {"A": ends, "graph_indicator": owner, "graph_labels": labels}
    for name, rows in (parts | {"node_labels": node_labels}).items():
        (folder / f"RINGS_{name}.txt").write_text("\n".join(rows) + "\n")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_tables_become_predictions_of_new_graphs(lgcn_, place: Path):
    write_tables(place, 0, 40, unlabelled=4)
    output = lgcn_("train", *TABLES, *COLUMNS, *SMALL, "--out", "run", "--json")
    assert output.code == 0, output.err
    record = output.json
    assert record["model"] == "graph_lgcn"
    assert record["metrics"]["unit"] == "graph"
    assert record["metrics"]["splits"]["val"]["nodes"] > 0
    output = lgcn_("predict", "run", "--output", "own.csv")
    assert output.code == 0, output.err
    assert "40 predictions" in output.out
    rows = rows_of(place / "own.csv")
    assert [row["graph"] for row in rows] == [f"m{n}" for n in range(40)]
    assert {row["true"] for row in rows[:4]} == {""}
    assert {row["split"] for row in rows[4:]} == {"train", "val", "test"}

    (place / "new").mkdir()
    write_tables(place / "new", 100, 6)
    new = [flag if flag.startswith("--") else f"new/{flag}" for flag in TABLES]
    output = lgcn_("predict", "run", "--output", "new.csv", *new)
    assert output.code == 0, output.err
    rows = rows_of(place / "new.csv")
    assert [row["graph"] for row in rows] == [f"m{n}" for n in range(100, 106)]
    assert {row["true"] for row in rows} == {"open", "closed"}
    assert "split" not in rows[0]
    output = lgcn_("evaluate", "run", *new, "--json")
    assert output.code == 0, output.err
    assert list(output.json["splits"]) == ["test"]
    assert output.json["splits"]["test"]["nodes"] == 6


def test_predictions_do_not_depend_on_the_order_of_graphs_and_rows(lgcn_, place: Path):
    write_tables(place, 0, 24)
    assert lgcn_("train", *TABLES, *COLUMNS, *SMALL, "--out", "run").code == 0
    assert lgcn_("predict", "run", "--output", "a.csv", *TABLES).code == 0
    rng = np.random.default_rng(0)
    for name in ("graphs", "edges", "nodes"):
        head, *rows = (place / f"{name}.csv").read_text().split()
        mixed = [rows[place_] for place_ in rng.permutation(len(rows))]
        (place / f"{name}.csv").write_text("\n".join([head, *mixed]) + "\n")
    assert lgcn_("predict", "run", "--output", "b.csv", *TABLES).code == 0
    one = {row["graph"]: float(row["probability_open"]) for row in rows_of(place / "a.csv")}
    two = {row["graph"]: float(row["probability_open"]) for row in rows_of(place / "b.csv")}
    assert one.keys() == two.keys()
    np.testing.assert_allclose(list(one.values()), [two[key] for key in one], atol=1e-5)


def test_a_changed_table_is_noticed(lgcn_, place: Path):
    write_tables(place, 0, 24)
    assert lgcn_("train", *TABLES, *COLUMNS, *SMALL, "--out", "run").code == 0
    write_tables(place, 0, 26)
    output = lgcn_("evaluate", "run")
    assert output.code != 0
    assert "24" in output.err
    assert "26" in output.err


def test_a_folder_in_tus_layout_is_trained_on_and_resumed(lgcn_, place: Path):
    write_tu(place / "RINGS")
    flags = ("--graphs", "RINGS", *SMALL)
    output = lgcn_("train", *flags, "--out", "run")
    assert output.code == 0, output.err
    for text in ("GRAPH_LGCN on RINGS", "Per class, test graphs", "sizes and mean", "30 graphs"):
        assert text in output.out + output.err
    assert "look at it: lgcn report run" in output.out
    again = lgcn_("train", "--resume", "--out", "run", "--json")
    assert again.code == 0, again.err
    output = lgcn_("embed", "run", "--output", "e.parquet")
    assert "embeddings of 30 graphs" in output.out
    table = pq.read_table(place / "e.parquet")
    assert table.column_names == ["graph", "embedding"]
    assert table.num_rows == 30
    output = lgcn_("evaluate", "run")
    assert output.code == 0, output.err
    assert "graphs" in output.out


def test_a_report_draws_the_graphs_and_names_the_command(lgcn_, place: Path):
    write_tu(place / "RINGS")
    assert lgcn_("train", "--graphs", "RINGS", *SMALL, "--out", "run").code == 0
    output = lgcn_("report", "run", "--sample", "12", "--json")
    assert output.code == 0, output.err
    found = output.json
    assert (found["graphs"], found["sampled"], found["split"]) == (30, 12, "test")
    page = (place / "run" / "report.html").read_text()
    assert f"lgcn train --graphs {place / 'RINGS'} --seed 0" in page
    write_tu(place / "OTHER", 14)
    output = lgcn_("report", "run", "--graphs", "OTHER", "--output", "o.html", "--json")
    assert output.code == 0, output.err
    assert output.json["graphs"] == 14
    assert list(output.json["scores"]) == ["test"]
    shutil.rmtree(place / "RINGS")
    output = lgcn_("report", "run")
    assert output.code != 0
    assert output.err.count("Error:") == 1
    assert "RINGS" in output.err
    assert "--graphs" in output.err


def test_a_published_split_is_a_fold(lgcn_, place: Path):
    write_tu(place / "RINGS")
    numbers = list(range(30))
    folds = [{"train": numbers[:20], "validation": numbers[20:25], "test": numbers[25:]}]
    (place / "RINGS_splits.json").write_text(json.dumps(folds))
    output = lgcn_("train", "--graphs", "RINGS", "--fold", "0", *SMALL, "--out", "run", "--json")
    assert output.code == 0, output.err
    counts = {name: part["nodes"] for name, part in output.json["metrics"]["splits"].items()}
    assert counts == {"val": 5, "test": 5}
    output = lgcn_("train", "--graphs", "RINGS", "--fold", "1", *SMALL, "--out", "other")
    assert output.code != 0
    assert "fold" in output.err


def test_one_of_several_numbers_per_graph_is_the_target(lgcn_, place: Path):
    write_tu(place / "RINGS")
    (place / "RINGS" / "RINGS_graph_labels.txt").unlink()
    rows = (f"{number}.5, {number % 2}\n" for number in range(30))
    (place / "RINGS" / "RINGS_graph_attributes.txt").write_text("".join(rows))
    output = lgcn_("train", "--graphs", "RINGS", *SMALL, "--out", "run")
    assert output.code != 0
    assert "--target" in output.err
    given = ("train", "--graphs", "RINGS", "--target", "0", *SMALL, "--out", "run", "--json")
    output = lgcn_(*given)
    assert output.code == 0, output.err
    assert output.json["metric"] == "r2"
    assert lgcn_("predict", "run", "--output", "p.csv").code == 0
    with (place / "p.csv").open() as file:
        truth = [float(row["true"]) for row in csv.DictReader(file)]
    assert truth == [number + 0.5 for number in range(30)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("train", "--graphs", "RINGS", "--set", "model=lgcn"), ("model=lgcn", "graph_lgcn")),
        (("train", "--graphs", "NOWHERE"), ("NOWHERE",)),
        (("train", "--graphs", "RINGS", "--dataset", "cora"), ("not both",)),
        (("train", "--graphs", "graphs.csv"), ("--edges",)),
        (("train", *TABLES, "--graph-column", "molecule"), ("--label-column", "--graphs")),
        (("train", *TABLES, *COLUMNS, "--graph-column", "no"), ("no", "molecule")),
        (("train", "--graphs", "RINGS", "--time-limit", "10s"), ("time",)),
        (("train", "--graphs", "RINGS", "--positions", "learnt"), ("positions",)),
        (("report", "run", "--graphs", "NOWHERE"), ("NOWHERE",)),
        (("explain", "run", "30"), ("RINGS", "no graph '30'", "from 0 to 29")),
        (("explain", "run", "1", "2", "--output", "why.svg"), ("why.svg", ".json")),
        (("explain", "run", "1", "--target", "9"), ("--target", "'9'")),
        (("evaluate", "run", "--dataset", "digits"), ("predicts whole graphs", "digits")),
        (("embed", "run", "--output", "e.npy", "--layer", "0"), ("layer",)),
    ],
)
def test_what_does_not_work_is_one_line(lgcn_, place: Path, command, words):
    write_tu(place / "RINGS")
    write_tables(place, 0, 12)
    if "run" in command:
        assert lgcn_("train", "--graphs", "RINGS", *SMALL, "--out", "run").code == 0
    output = lgcn_(*command)
    assert output.code != 0
    assert output.err.count("Error:") == 1
    assert "Traceback" not in output.err
    for word in words:
        assert word in output.err


def test_a_run_of_nodes_refuses_whole_graphs(lgcn_, trained: Path, place: Path):
    write_tu(place / "RINGS")
    output = lgcn_("predict", "trained", "--graphs", "RINGS", "--output", "p.csv")
    assert output.code != 0
    assert "predicts nodes of one graph, got 30 whole graphs" in output.err


def test_whole_graphs_are_explained(lgcn_, place: Path):
    write_tables(place, 0, 40)
    assert lgcn_("train", *TABLES, *COLUMNS, *SMALL, "--out", "run").code == 0
    output = lgcn_("explain", "run", "m3", "--top", "3", "--counterfactual")
    assert output.code == 0, output.err
    assert output.out.startswith("m3: ")
    words = ("Nodes", "Edges", "Columns", "letter", "LGCL 1", "Read-out max of the embedding")
    for word in (*words, "What would change the prediction"):
        assert word in output.out
    assert "hops" not in output.out
    output = lgcn_("explain", "run", "m3", "m4", "--json", "--top", "100")
    first, second = output.json["explanations"]
    assert (first["graph"], second["graph"]) == ("m3", "m4")
    assert "node" not in first
    for one in (first, second):
        added = sum(entry["contribution"] for entry in one["by_node"])
        assert added == pytest.approx(one["score"] - one["baseline"], abs=1e-4)
        added = sum(entry["contribution"] for entry in one["by_edge"])
        assert added == pytest.approx(one["score"] - one["without_edges"], abs=1e-4)
    # m3 is a ring of 8 with a chord.
    assert {str(entry["node"]) for entry in first["by_node"]} == {str(n) for n in range(8)}
    assert len(first["by_edge"]) == 9
    wrong = lgcn_("explain", "run", "m33x")
    assert wrong.code == 2
    assert "no graph 'm33x'; did you mean 'm33'" in wrong.err


def test_explanations_of_graphs_are_files_also_of_new_graphs(lgcn_, place: Path):
    write_tables(place, 0, 40)
    assert lgcn_("train", *TABLES, *COLUMNS, *SMALL, "--out", "run").code == 0
    (place / "new").mkdir()
    write_tables(place / "new", 100, 6)
    new = [flag if flag.startswith("--") else f"new/{flag}" for flag in TABLES]
    output = lgcn_("explain", "run", "m101", "m102", *new, "--output", "why.csv")
    assert output.code == 0, output.err
    rows = rows_of(place / "why.csv")
    assert {row["graph"] for row in rows} == {"m101", "m102"}
    assert {"column", "node", "edge", "selected", "readout max"} <= {row["kind"] for row in rows}
    for name in ("why.svg", "why.html"):
        output = lgcn_("explain", "run", "m101", *new, "--output", name)
        assert output.code == 0, output.err
        assert "Why graph m101 is predicted as" in (place / name).read_text(encoding="utf-8")


def test_baselines_of_graphs_are_not_explained(lgcn_, place: Path):
    write_tu(place / "RINGS")
    small = ("--set", "model=gin", "--set", "hidden_channels=4", "--set", "max_epochs=1")
    assert lgcn_("train", "--graphs", "RINGS", *small, "--out", "run").code == 0
    output = lgcn_("explain", "run", "1")
    assert output.code == 2
    assert "GIN cannot be explained" in output.err
    assert "GraphLGCN" in output.err
