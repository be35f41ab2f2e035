"""Targets of a regression and weights of rows in a node table, read with pandas beside."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import lgcn
from lgcn.errors import DataError, UsageError
from lgcn.store.import_store import import_store
from lgcn.store.open_store import open_store
from lgcn.store.write_store import write_store

EDGES = pd.DataFrame({"source": np.arange(59), "target": np.arange(1, 60)})


def nodes(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    price = np.round(rng.normal(200, 50, 60), 2)
    price[::6] = np.nan
    frame = {"id": np.arange(60), "size": rng.normal(size=60), "price": price}
    return pd.DataFrame({**frame, "weight": rng.uniform(0, 3, 60), **columns})


def graph_of(frame: pd.DataFrame, **options: Any) -> lgcn.Graph:
    named = {"label_column": "price", "task": "regression", **options}
    if "weight" in frame and "sample_weight_column" not in named:
        named["ignore_columns"] = "weight"
    return lgcn.from_tables(EDGES, frame, **named)


def test_numbers_of_the_label_column_are_targets():
    frame = nodes()
    graph = graph_of(frame, split_seed=3)
    assert graph.task == "regression"
    assert graph.label_names is None
    np.testing.assert_array_equal(graph.y, frame["price"])
    assert graph.num_features == 1
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert masks.sum(1).tolist() == [30, 10, 10]
    assert torch.equal(masks.any(0), ~graph.y.isnan())


def test_the_column_of_weights_is_no_feature():
    frame = nodes()
    graph = graph_of(frame, sample_weight_column="weight")
    np.testing.assert_allclose(graph.sample_weight, frame["weight"], rtol=1e-6)
    assert graph.num_features == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_and_stores_say_the_same(tmp_path: Path, suffix: str):
    frame = nodes()
    files = {"edges": tmp_path / f"e{suffix}", "nodes": tmp_path / f"n{suffix}"}
    for table, path in ((EDGES, files["edges"]), (frame, files["nodes"])):
        table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    options = {"label_column": "price", "task": "regression", "sample_weight_column": "weight"}
    graph = lgcn.from_tables(**files, **options)
    import_store(tmp_path / "imported", **files, **options)
    write_store(tmp_path / "written", graph)
    for name in ("imported", "written"):
        store = open_store(tmp_path / name).graph
        assert store.task == "regression"
        assert store.label_names is None
        np.testing.assert_array_equal(store.y, frame["price"])
        for key in ("train_mask", "val_mask", "test_mask", "sample_weight"):
            assert torch.equal(getattr(store, key), getattr(graph, key))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "1.5", "2"] * 20, "label column 'price'.*'a'"),
        ([np.nan] * 60, "no number"),
        ([2.5] * 60, "2.5: there is nothing to learn"),
        ([1.0, np.inf] * 30, "line 3|row 1"),
        ([[1.0, 2.0]] * 60, "a number per row"),
        (pd.date_range("2020-01-01", periods=60), "a number per row"),
    ],
)
def test_columns_that_are_no_targets(values: Any, message: str):
    frame = nodes().drop(columns="price")
    frame["price"] = values
    with pytest.raises(DataError, match=message):
        graph_of(frame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "regress"}, "task must be one of auto, classification, regression.*'regress'"),
        ({"label_column": ["price", "size"]}, "task='regression' needs one label column"),
        ({"label_separator": ";"}, "task='regression' needs one label column"),
        ({"labels_per_class": 3}, "labels_per_class needs one class per node.*a number each"),
        ({"sample_weight_column": "wieght"}, "sample_weight_column.*'wieght'.*'weight'"),
        ({"sample_weight_column": "price"}, "'price' is named in label_column and in sample_w"),
        ({"label_column": None, "sample_weight_column": "weight"}, "needs labels"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        graph_of(nodes(), **options)


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (7, -2.0, "row 7: .*at least 0, got -2"),
        (7, np.nan, "row 7: .*an empty cell"),
        (slice(None), 0.0, "sum to zero"),
        (7, 1e60, "float32"),
        (7, np.inf, "row 7"),
    ],
)
def test_wrong_weights(row: Any, value: float, message: str):
    frame = nodes()
    weight = frame["weight"].to_numpy(copy=True)
    weight[row] = value
    with pytest.raises(DataError, match=f"sample_weight_column 'weight'.*{message}"):
        graph_of(frame.assign(weight=weight), sample_weight_column="weight")


def test_rows_to_predict_need_no_weight():
    frame = nodes()
    frame.loc[frame["price"].isna(), "weight"] = np.nan
    weight = graph_of(frame, sample_weight_column="weight").sample_weight
    np.testing.assert_allclose(weight, frame["weight"].fillna(0), rtol=1e-6)


@pytest.mark.parametrize(
    "label",
    [
        np.arange(600) % 120,  # 120 numbers, five times each
        np.arange(600) % 48 + 18,  # ages
        np.round(np.linspace(0, 1, 600), 1),  # 0.0 to 1.0
        np.arange(600) // 4 * 10,
    ],
    ids=["many", "ages", "decimals", "rare"],
)
def test_numbers_that_look_like_a_quantity_ask_for_the_task(label: Any):
    edges = {"source": [0], "target": [1]}
    table = {"id": np.arange(600), "size": np.arange(600) ** 0.5, "label": label}
    with pytest.raises(DataError, match=r"task='regression'.*task='classification'"):
        lgcn.from_tables(edges, table, label_column="label")
    graph = lgcn.from_tables(edges, table, label_column="label", task="classification")
    assert graph.num_classes == len(np.unique(label))
    assert lgcn.from_tables(edges, table, label_column="label", task="regression").num_classes == 0


@pytest.mark.parametrize(
    "label",
    [np.arange(600) % 47, np.arange(600) % 20 * 7, np.arange(600) % 9 / 2 + 1, np.arange(600) % 2],
    ids=["codes", "few", "ratings", "two"],
)
def test_numbers_that_look_like_classes_are_classes(label: Any):
    table = {"id": np.arange(600), "size": np.arange(600) ** 0.5, "label": label}
    graph = lgcn.from_tables({"source": [0], "target": [1]}, table, label_column="label")
    assert graph.num_classes == len(np.unique(label))


def test_graphs_of_other_libraries():
    from scipy.sparse import csr_array

    y = np.linspace(0, 5, 30)
    y[3] = np.nan
    graph = lgcn.from_scipy(csr_array(np.eye(30, k=1)), np.ones((30, 2)), y, task="regression")
    np.testing.assert_array_equal(graph.y, y)
    with pytest.raises(DataError, match="task="):
        lgcn.from_scipy(csr_array(np.eye(30, k=1)), np.ones((30, 2)), y)
