"""What `lgcn explain` prints and writes."""

from pathlib import Path

import pytest

from .small import write_npz


def test_it_prints_nodes_edges_columns_and_selections(lgcn_, trained: Path):
    output = lgcn_("explain", trained, "7", "--top", "3")
    assert output.code == 0, output.err
    assert output.out.startswith("7: ")
    for words in ("Nodes", "Edges", "Columns", "LGCL 1: 4 ranks of", "itself", "feature "):
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere", "1"), "no such run folder: nowhere"),
        (("trained", "1", "--output", "why.pdf"), "--output must end in"),
        (("trained", "1", "2", "--output", "why.svg"), "2 nodes"),
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
