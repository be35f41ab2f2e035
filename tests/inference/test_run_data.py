"""Data that are no longer what a model was trained on."""

import re
from pathlib import Path

import pytest

import lgcn
from lgcn.datasets.graph_source import choose_source
from lgcn.errors import UsageError
from lgcn.training.prepare import prepare_training

from .test_trained_run import SMALL, write_tables


@pytest.fixture
def run(tmp_path: Path) -> Path:
    source = choose_source(**write_tables(tmp_path / "data", "p", 40), label_column="kind")
    prepare_training(SMALL, source=source, out=tmp_path / "run").train()
    return tmp_path / "run"


def reverse(path: Path) -> None:
    head, *rows = path.read_text().split("\n")
    path.write_text("\n".join([head, *reversed(rows)]))


def label_all(path: Path) -> None:
    path.write_text(re.sub(",$", ",art", path.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("change", [reverse, label_all])
def test_scores_are_refused_if_the_rows_or_labels_changed(run: Path, change) -> None:
    before = lgcn.load_run(run).predictions()
    assert lgcn.load_run(run).evaluate().splits["test"]["nodes"] > 0
    change(run.parent / "data" / "nodes.csv")
    changed = lgcn.load_run(run)
    with pytest.raises(UsageError, match=r"nodes has changed .* edges= and nodes="):
        changed.evaluate()
    with pytest.raises(UsageError, match="nodes has changed"):
        changed.scored_graph()
    with pytest.warns(UserWarning, match=r"no column of the split: nodes has changed"):
        table = changed.predictions()
    assert "split" not in table.column_names
    now = dict(zip(table["node"].to_pylist(), table["predicted"].to_pylist(), strict=True))
    then = dict(zip(before["node"].to_pylist(), before["predicted"].to_pylist(), strict=True))
    assert now == then


def test_the_same_file_named_as_new_data_is_scored(run: Path) -> None:
    data = run.parent / "data"
    reverse(data / "nodes.csv")
    found = lgcn.load_run(run).evaluate(
        edges=str(data / "edges.csv"), nodes=str(data / "nodes.csv")
    )
    assert found.splits["test"]["nodes"] == 30
    assert found.baselines is None


def test_other_numbers_of_nodes_are_named(run: Path) -> None:
    data = run.parent / "data"
    write_tables(data, "p", 44)
    with pytest.raises(UsageError, match="had 40 nodes in training, and has 44 now"):
        lgcn.load_run(run).evaluate()
