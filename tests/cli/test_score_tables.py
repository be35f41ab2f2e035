"""What `lgcn train` and `lgcn evaluate` say of a model, class by class."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lgcn.cli import score_tables
from lgcn.cli.score_tables import print_scores
from lgcn.training import Run
from lgcn.training.score_report import score_report


def test_train_prints_the_classes_and_what_the_graph_adds(lgcn_: Any, place: Path) -> None:
    output = lgcn_("train", "--config", "small.toml", "--out", "a")
    metrics = json.loads((place / "a" / "metrics.json").read_text())
    assert metrics["summary"] in output.out
    for word in ("balanced_accuracy", "roc_auc", "log_loss", "recall", "Confusion matrix"):
        assert word in output.out
    assert "without the graph" in output.out
    again = lgcn_("train", "--resume", "--out", "a")  # a finished run prints what is stored
    assert metrics["summary"] in again.out
    assert lgcn_("train", "--resume", "--out", "a", "--json").json["metrics"] == metrics


def test_baselines_can_be_left_out(lgcn_: Any) -> None:
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--no-baselines")
    assert output.code == 0
    assert "without the graph" not in output.out
    assert Run("a").metrics()["baselines"] is None
    assert Run("a").read()[0].evaluation.baselines is False


def test_evaluate_prints_what_is_in_json(lgcn_: Any, trained: Path) -> None:
    record = lgcn_("evaluate", trained, "--json").json
    stored = Run(trained).metrics()
    assert record["baselines"] == stored["baselines"]
    assert record["summary"] == stored["summary"]
    for split in ("val", "test"):
        for key, value in stored["splits"][split].items():
            assert record["splits"][split][key] == pytest.approx(value), key
    output = lgcn_("evaluate", trained)
    assert record["summary"] in output.out
    assert "Confusion matrix" in output.out


def test_a_confusion_matrix_from_the_shell(lgcn_: Any, trained: Path) -> None:
    assert lgcn_("predict", trained, "--output", "p.csv").code == 0
    with Path("p.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    found = Counter((row["true"], row["predicted"]) for row in rows)
    matrix = Run(trained).metrics()["splits"]["test"]["confusion_matrix"]
    assert [[found[a, b] for b in "012"] for a in "012"] == matrix
    lgcn_("predict", trained, "--output", "p.csv", "--no-truth")
    with Path("p.csv").open(newline="") as file:
        assert next(csv.reader(file))[:4] == ["node", "predicted", "confidence", "probability_0"]


@pytest.mark.filterwarnings("always::UserWarning")
def test_a_class_that_is_never_predicted_is_told(lgcn_: Any) -> None:
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--set", "lr=0")
    (note,) = output.notes("never predicted")
    assert "test nodes" in note
    assert "never" in output.out
    assert any(note.endswith(text) for text in Run("a").metrics()["warnings"])


def test_runs_of_earlier_versions_are_evaluated(lgcn_: Any, trained: Path) -> None:
    for name in ("metrics.json", "split.npz"):
        (trained / name).unlink()
    record = lgcn_("evaluate", trained, "--json").json
    assert record["baselines"] is None
    assert record["splits"]["test"]["scores"]["accuracy"] > 0
    assert lgcn_("predict", trained, "--output", "p.csv").code == 0
    assert "train" in Path("p.csv").read_text()


def report(classes: int) -> dict[str, Any]:
    names = [f"[kind] {i}" for i in range(classes)]
    y = [i for i in range(classes) for _ in range(3)]
    guess = [0 if i == classes - 1 else i for i in y]
    p = [[0.9 if i == c else 0.1 / (classes - 1) for c in range(classes)] for i in guess]
    return {"test": score_report("classification", p, y, names)}


def test_many_classes_are_cut_to_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    print_scores(report(30), None, None)
    text = capsys.readouterr().out
    assert "the 20 of 30 classes with the lowest F1" in text
    assert "[kind] 29" in text  # never predicted
    assert "most frequent confusions, test nodes: [kind] 29 as [kind] 0 (3)" in text
    assert "Confusion matrix" not in text
    print_scores(report(score_tables.MAX_MATRIX), None, None)
    assert "Confusion matrix" in capsys.readouterr().out


def test_numbers_and_notes_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = score_report("regression", [1.0, 2.0, 3.0], [1.0, 2.5, 5.0], interval=(0.9, 1.0))
    print_scores({"val": found}, None, "The graph adds nothing.")
    text = capsys.readouterr().out
    assert "66.7 % of the validation nodes lie in their 90.0 % interval" in text
    assert "rmse" in text
    assert "The graph adds nothing." in text
    print_scores({"val": score_report("regression", [1.0, 2.0], [3.0, 3.0])}, None, None)
    assert "r2 on validation nodes: all true values are equal" in capsys.readouterr().out
