"""An edge list and a table of labels: train, predict, evaluate, and what is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

QUICK = ("--set", "max_epochs=5", "--set", "hidden_channels=8", "--set", "k=4")


@pytest.fixture(autouse=True)
def tables(place: Path) -> None:
    rng = np.random.default_rng(0)
    group = np.arange(60) // 20
    inside = [(a, b) for a, b in rng.integers(0, 60, (600, 2)) if group[a] == group[b] and a != b]
    lines = [f"n{a},n{b}" for a, b in inside]
    (place / "edges.csv").write_text("\n".join(["source,target", *lines]))
    (place / "fewer.csv").write_text("\n".join(["source,target", *lines[:100]]))
    rows = [f"n{i},{'abc'[group[i]] if i % 5 else ''}" for i in range(60)]
    (place / "nodes.csv").write_text("\n".join(["id,kind", *rows]))
    named = [f"{row},person number {i}" for i, row in enumerate(rows)]
    (place / "named.csv").write_text("\n".join(["id,kind,name", *named]))


def train(lgcn_, *more: str, nodes: str = "nodes.csv") -> object:
    tables = ("--edges", "edges.csv", "--nodes", nodes, "--label-column", "kind")
    return lgcn_("train", *tables, "--out", "run", *QUICK, *more)


def read(path: Path) -> dict[str, str]:
    with path.open() as file:
        return {row["node"]: row["predicted"] for row in csv.DictReader(file)}


def test_train_predict_evaluate(lgcn_, place: Path) -> None:
    output = train(lgcn_)
    assert output.code == 0, output.err
    output = lgcn_("predict", "run", "--output", "p.csv")
    assert output.code == 0, output.err
    predicted = read(place / "p.csv")
    assert set(predicted) == {f"n{i}" for i in range(60)}
    assert set(predicted.values()) <= set("abc")
    output = lgcn_(
        "predict", "run", "--output", "q.csv", "--edges", "edges.csv", "--nodes", "nodes.csv"
    )
    assert output.code == 0, output.err
    assert read(place / "q.csv") == predicted
    assert lgcn_("evaluate", "run").code == 0
    other = ("--edges", "fewer.csv", "--nodes", "nodes.csv")
    output = lgcn_("predict", "run", "--output", "q.csv", *other)
    assert output.code != 0
    assert "positions" in output.err


def test_other_graphs_without_positions(lgcn_, place: Path) -> None:
    assert train(lgcn_, "--positions", "none").code == 0
    other = ("--edges", "fewer.csv", "--nodes", "named.csv")
    output = lgcn_("predict", "run", "--output", "q.csv", *other)
    assert output.code == 0, output.err
    assert len(read(place / "q.csv")) == 60


def test_a_column_that_is_no_feature(lgcn_) -> None:
    output = train(lgcn_, nodes="named.csv")
    assert output.code == 0, output.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--no-structural-features",), "no features"),
        (("--positions", "gps"), "must be one of auto, none, spectral, learnt, got 'gps'"),
    ],
)
def test_refused(lgcn_, place: Path, flags: tuple[str, ...], message: str) -> None:
    output = train(lgcn_, *flags)
    assert output.code != 0
    assert message in output.err
    assert not (place / "run").exists()


def test_stores(lgcn_, place: Path) -> None:
    imported = ("import", "store", "--edges", "edges.csv", "--nodes", "nodes.csv")
    output = lgcn_(*imported, "--label-column", "kind")
    assert output.code == 0, output.err
    output = lgcn_("train", "--graph", "store", "--max-steps", "5", "--out", "run", *QUICK)
    assert output.code == 0, output.err
    output = lgcn_("predict", "run", "--output", "p.csv", "--memory", "1GB")
    assert output.code == 0, output.err
    assert len(read(place / "p.csv")) == 60
