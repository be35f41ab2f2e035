"""What `lgcn evaluate` prints."""

from pathlib import Path

from lgcn.training import Run


def test_evaluate_scores_all_splits(lgcn_, trained: Path):
    record = lgcn_("evaluate", trained, "--json").json
    result = Run(trained).result()
    assert record["metric"] == "accuracy"
    assert {split: part["nodes"] for split, part in record["splits"].items()} == {
        "train": 30,
        "val": 60,
        "test": 110,
    }
    assert record["splits"]["val"]["score"] == result["val_score"]
    assert record["splits"]["test"]["score"] == result["test_score"]


def test_evaluate_prints_a_table(lgcn_, trained: Path):
    output = lgcn_("evaluate", trained)
    score = f"{100 * Run(trained).result()['test_score']:.1f} %"
    (line,) = [line for line in output.out.splitlines() if "│ test" in line]
    assert score in line
    assert "110" in line
