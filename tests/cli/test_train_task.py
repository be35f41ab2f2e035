"""`lgcn train` with a metric, weights, a threshold and a task, from the shell."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgcn import load_run
from lgcn.training import Run

TABLES = ("--edges", "edges.csv", "--nodes", "nodes.csv", "--ignore-columns", "bad")
SMALL = ("--set", "hidden_channels=8", "--set", "max_epochs=4", "--set", "device=cpu")
FRAUD = ("--label-column", "fraud", "--ignore-columns", "price", "--ignore-columns", "weight")
PRICE = ("--label-column", "price", "--ignore-columns", "fraud", "--ignore-columns", "weight")


@pytest.fixture(autouse=True)
def tables(place: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size, noise = rng.normal(size=(2, 90))
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(90)], "size": size})
    nodes["price"] = np.where(np.arange(90) % 9 == 0, np.nan, 100 * size + noise + 500)
    nodes["fraud"] = np.where(size + noise > 0.8, "yes", "no")
    nodes["weight"] = rng.uniform(0.5, 2, 90)
    nodes["bad"] = -1
    nodes.to_csv(place / "nodes.csv", index=False)
    ends = nodes["id"].to_numpy()[rng.integers(0, 90, (200, 2))]
    ends = ends[ends[:, 0] != ends[:, 1]]
    pd.DataFrame(ends, columns=["source", "target"]).to_csv(place / "edges.csv", index=False)
    return nodes


def test_metric_class_weight_and_threshold(lgcn_):
    flags = ("--metric", "macro_f1", "--class-weight", "balanced", "--out", "a", "--json")
    record = lgcn_("train", *TABLES, *FRAUD, *SMALL, *flags).json
    assert record["metric"] == "macro_f1"
    assert 0 <= record["threshold"] <= 1
    chosen = load_run("a").settings
    assert chosen.evaluation.metric == "macro_f1"
    assert chosen.optimisation.class_weight == "balanced"
    output = lgcn_("evaluate", "a", "--json").json
    assert output["metric"] == "macro_f1"
    assert output["splits"]["test"]["score"] == pytest.approx(record["test_score"])


def test_weights_by_name_and_a_given_threshold(lgcn_):
    flags = ("--class-weight", "yes=4", "--class-weight", "no=0.5", "--threshold", "0.3")
    output = lgcn_("train", *TABLES, *FRAUD, *SMALL, *flags, "--out", "a")
    assert output.code == 0
    assert "0.300" in output.out
    assert load_run("a").settings.optimisation.class_weight == {"yes": 4.0, "no": 0.5}
    assert Run("a").threshold() == 0.3


def test_a_regression_with_weights_its_interval_and_new_tables(lgcn_, tables: pd.DataFrame):
    flags = ("--task", "regression", "--sample-weight-column", "weight", "--metric", "mae")
    labels = ("--label-column", "price", "--ignore-columns", "fraud")
    output = lgcn_("train", *TABLES, *labels, *SMALL, *flags, "--out", "a")
    assert output.code == 0, output.err
    assert "mae" in output.out
    assert "±" in output.out
    run = load_run("a")
    new = tables.drop(columns=["weight", "fraud", "bad"])
    new.to_csv("new.csv", index=False)
    values = run.predict(edges="edges.csv", nodes="new.csv").numpy()
    np.testing.assert_allclose(values, run.predict().numpy())
    found = lgcn_("evaluate", "a", "--edges", "edges.csv", "--nodes", "new.csv", "--json").json
    known = tables["price"].notna().to_numpy()
    expected = np.abs(tables["price"].to_numpy() - values)[known].mean()
    assert found["splits"]["test"]["score"] == pytest.approx(expected)
    assert found["splits"]["test"]["nodes"] == known.sum()


def test_a_regression_on_a_store(lgcn_):
    flags = ("--task", "regression", "--ignore-columns", "bad")
    output = lgcn_("import", "s", "--edges", "edges.csv", "--nodes", "nodes.csv", *PRICE, *flags)
    assert output.code == 0, output.err
    record = lgcn_("train", "--graph", "s", *SMALL, "--out", "a", "--json").json
    assert record["metric"] == "r2"
    same = lgcn_("train", *TABLES, *PRICE, "--task", "regression", *SMALL, "--out", "b", "--json")
    assert same.code == 0
    assert load_run("a").spec == load_run("b").spec  # also mean and deviation of the targets
    report = lgcn_("data", "check", "--graph", "s", "--json")
    if report.code == 0:
        assert report.json["labels"] == "a number per node"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((*FRAUD, "--metric", "balanced_acuracy"), ("'balanced_accuracy'",)),
        ((*FRAUD, "--metric", "rmse"), ("rmse", "balanced_accuracy")),
        ((*FRAUD, "--class-weight", "yes=-1"), ("--class-weight", "at least 0")),
        ((*FRAUD, "--class-weight", "heavy"), ("--class-weight", "balanced", "'heavy'")),
        ((*FRAUD, "--class-weight", "yes=x"), ("--class-weight", "NAME=NUMBER")),
        ((*FRAUD, "--class-weight", "yes=1", "--class-weight", "yes=2"), ("'yes'", "twice")),
        ((*FRAUD, "--class-weight", "yse=2"), ("'yse'", "'yes'")),
        ((*FRAUD, "--class-weight", "yes=0", "--class-weight", "no=0"), ("sum to zero",)),
        ((*FRAUD, "--threshold", "1.5"), ("threshold", "from 0 to 1")),
        ((*FRAUD, "--threshold", "tuned", "--metric", "roc_auc"), ("roc_auc", "macro_f1")),
        ((*FRAUD, "--task", "ranking"), ("--task", "regression")),
        (PRICE, ("80 different numbers", "--task regression", "--task classification")),
        ((*PRICE, "--task", "regression", "--labels-per-class", "3"), ("--labels-per-class",)),
        ((*PRICE, "--task", "regression", "--class-weight", "balanced"), ("--class-weight",)),
        ((*PRICE, "--task", "regression", "--metric", "accuracy"), ("accuracy", "r2, rmse, mae")),
        (
            ("--label-column", "fraud", "--sample-weight-column", "price"),
            ("--sample-weight-column", "an empty cell"),
        ),
    ],
)
def test_mistakes_are_one_line(lgcn_, flags: tuple[str, ...], words: tuple[str, ...]):
    output = lgcn_("train", *TABLES, *SMALL, *flags, "--out", "a")
    assert output.code in (1, 2)
    last = [line for line in output.err.splitlines() if line.startswith("Error")]
    assert len(last) == 1
    assert all(word in last[0] for word in words), last[0]
    assert not Path("a").exists()


def test_negative_sample_weights(lgcn_):
    flags = ("--edges", "edges.csv", "--nodes", "nodes.csv", "--sample-weight-column", "bad")
    output = lgcn_("train", *flags, *FRAUD, *SMALL, "--out", "a")
    assert output.code == 1
    assert "line 2" in output.err
    assert "-1" in output.err
