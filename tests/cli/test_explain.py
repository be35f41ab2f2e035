"""What `lgcn explain` prints and writes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgcn import load_run
from lgcn.cli.explain import _print_changes

from .small import write_npz


def test_it_prints_nodes_edges_columns_and_selections(lgcn_, trained: Path):
    output = lgcn_("explain", trained, "7", "--top", "3")
    assert output.code == 0, output.err
    assert output.out.startswith("7: ")
    for words in (
        "Nodes",
        "Edges",
        "Columns",
        "LGCL 1: 4 ranks of",
        "of those filled",
        "itself",
        "feature ",
    ):
        assert words in output.out


def test_json_has_the_numbers_that_add_up(lgcn_, trained: Path):
    output = lgcn_("explain", trained, "7", "9", "--json", "--top", "1000")
    record = output.json
    assert [one["node"] for one in record["explanations"]] == [7, 9]
    for one in record["explanations"]:
        added = sum(entry["contribution"] for entry in one["by_node"])
        assert added == pytest.approx(one["score"] - one["baseline"], abs=1e-4)


def test_what_would_change_the_prediction_is_printed(lgcn_, trained: Path):
    output = lgcn_("explain", trained, "7", "--counterfactual")
    assert "What would change the prediction" in output.out
    assert "edges: " in output.out
    assert "columns: " in output.out


def test_a_picture_of_named_nodes_is_written(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    options = ("--set", "max_epochs=3", "--set", "hidden_channels=4")
    assert lgcn_("train", "--dataset", "ring.npz", "--out", "a", *options).code == 0
    output = lgcn_("explain", "a", "node-7", "--output", "why.svg", "--target", "green")
    assert output.code == 0, output.err
    assert output.out == "wrote why.svg\n"
    picture = Path("why.svg").read_text(encoding="utf-8")
    assert "node-7" in picture
    assert "explains green" in picture
    wrong = lgcn_("explain", "a", "node-77")
    assert wrong.code == 2
    assert "no node 'node-77'; did you mean 'node-7'" in wrong.err


def test_a_regression_names_its_column_and_the_interval(lgcn_, place: Path):
    size = np.random.default_rng(0).normal(size=60)
    nodes = pd.DataFrame({"id": np.arange(60) - 9, "size": size, "price": 100 * size + 500})
    nodes.to_csv("nodes.csv", index=False)
    edges = {"source": nodes["id"][:-1], "target": nodes["id"].to_numpy()[1:]}
    pd.DataFrame(edges).to_csv("edges.csv", index=False)
    tables = ("--edges", "edges.csv", "--nodes", "nodes.csv", "--label-column", "price")
    options = ("--task", "regression", "--set", "max_epochs=3")
    output = lgcn_("train", *tables, *options, "--set", "hidden_channels=4", "--out", "a")
    assert output.code == 0, output.err
    output = lgcn_("explain", "a", "--counterfactual", "--", "-5")
    assert output.code == 0, output.err
    run = load_run("a")
    value, (level, half) = float(run.predict()[4]), run.interval
    assert output.out.startswith(
        f"-5: price {value:.6g}, {level:.0%} interval {value - half:.6g} to {value + half:.6g}"
    )
    assert "explained: price" in output.out
    assert output.out.count("has no other class") == 1
    wrong = lgcn_("explain", "a", "-5")
    assert wrong.code == 2
    assert "put -- before it: -- -5" in " ".join(wrong.err.replace("│", "").split())
    wrong = lgcn_("explain", "a", "5", "--tagret", "x")
    assert wrong.code == 2
    assert "No such option: --tagret" in wrong.err
    assert "put --" not in wrong.err


@pytest.mark.parametrize("columns", [3, 40])
def test_a_change_of_all_features_is_not_told_as_one_of_the_table(
    capsys: pytest.CaptureFixture[str], columns: int
):
    change = {"column": "size", "from": 1.0, "to": 2.0}
    edges = {"remove": None, "reason": "the node has no neighbours"}
    features = {"changes": [change] * 3, "columns": columns, "predicted": "art"}
    _print_changes({"edges": edges, "features": features})
    text = " ".join(capsys.readouterr().out.split())
    assert "size from 1 to 2" in text
    assert ("No change of up to three columns is enough" in text) == (columns == 40)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere", "1"), "no such run folder: nowhere"),
        (("trained", "1", "--output", "why.pdf"), "--output must end in"),
        (("trained", "1", "2", "--output", "why.svg"), ".csv, .tsv, .parquet or .json for 2 nodes"),
        (("trained", "1", "--top", "0"), "--top must be at least 1"),
        (("trained", "1", "--target", "blue"), "--target must be a class of the model, got 'blue'"),
        (("trained", "1000"), "no node '1000'"),
    ],
)
def test_mistakes_are_one_line(lgcn_, trained: Path, arguments: tuple[str, ...], words: str):
    output = lgcn_("explain", *arguments)
    assert output.code in (1, 2)
    assert words in output.err
    assert output.err.count("Error:") == 1
    assert "Traceback" not in output.err


def test_a_damaged_run_is_one_line(lgcn_, trained: Path):
    (trained / "run.json").write_text("[" * 100_000)
    output = lgcn_("explain", trained, "1")
    assert output.code == 1
    assert "run.json" in output.err
    assert "Traceback" not in output.err
