"""The columns of true labels and splits in a table of predictions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.metrics import confusion_matrix

import lgcn
from lgcn.datasets import synthetic
from lgcn.datasets.graph_source import choose_source
from lgcn.errors import UsageError
from lgcn.inference.predictions import predicted_values, prediction_blocks, predictions
from lgcn.inference.truth import Truth
from lgcn.nn import layerwise
from lgcn.training import Settings, train
from lgcn.training.prepare import prepare_training

GRAPH = {"num_nodes": 60, "num_classes": 3, "num_features": 5, "labels_per_class": 8, "num_val": 15}
SMALL = {"hidden_channels": 8, "k": 4, "num_layers": 1, "max_epochs": 5, "lr": 0.05}
LOGITS = torch.tensor([[2.0, 0.0], [0.0, 0.1], [0.0, -5.0], [0.0, 3.0]])
SPLIT = {
    "train": np.array([1, 0, 0, 0], np.uint8),
    "val": np.array([0, 1, 0, 0], np.uint8),
    "test": np.array([0, 0, 1, 0], np.uint8),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    settings = Settings.create(**SMALL, dataset="synthetic", dataset_options=GRAPH)
    train(synthetic(**GRAPH), settings, out=folder)
    return folder


def test_classes() -> None:
    truth = Truth(torch.tensor([0, -1, 1, 1]), None, SPLIT)
    table = predictions(LOGITS, ["no", "yes"], truth=truth)
    assert table.column_names[:5] == ["node", "predicted", "confidence", "true", "split"]
    assert table["true"].to_pylist() == ["no", None, "yes", "yes"]
    assert table["split"].to_pylist() == ["train", "val", "test", None]
    assert "split" not in predictions(LOGITS, ["no", "yes"], truth=Truth(truth.y)).column_names


def test_several_labels() -> None:
    y, unknown = torch.tensor([[1, 1], [0, 1], [0, 0], [0, 0]]), torch.tensor([0, 0, 0, 1]).bool()
    table = predictions(LOGITS, ["a", "b"], multi_label=True, truth=Truth(y, unknown))
    assert table["true"].to_pylist() == ["a;b", "b", "", None]


def test_numbers_come_with_their_interval() -> None:
    truth = Truth(torch.tensor([1.5, float("nan"), 3.0, 0.0]), None, SPLIT)
    values = torch.tensor([1.0, 2.0, 3.0, 4.0])
    table = predicted_values(values, half_width=0.5, node_ids=list("abcd"), truth=truth)
    assert table.column_names == ["node", "predicted", "lower", "upper", "true", "split"]
    assert table["lower"].to_pylist() == [0.5, 1.5, 2.5, 3.5]
    assert table["upper"].to_pylist() == [1.5, 2.5, 3.5, 4.5]
    assert table["true"].to_pylist() == [1.5, None, 3.0, 0.0]
    assert predicted_values(values)["upper"].null_count == 4


def test_some_nodes_by_their_numbers() -> None:
    truth = Truth(torch.tensor([0, -1, 1, 1]), None, SPLIT)
    table = predictions(LOGITS[[3, 1]], ["no", "yes"], truth=truth.take(np.array([3, 1])))
    assert table["true"].to_pylist() == ["yes", None]
    assert table["split"].to_pylist() == [None, "val"]
    assert Truth().take(np.array([3, 1])) == Truth()


def test_a_run_that_was_loaded_once_gives_the_table_of_predictions(folder: Path) -> None:
    run = lgcn.load_run(folder)
    loaded, truth = run.load()
    scores = run.scores(loaded.graph)
    for below in (None, 0.5):
        decision = run.decision(abstain_below=below)
        pieces = decision.tables(scores, node_ids=loaded.node_ids, truth=truth)
        assert pa.concat_tables(pieces).equals(run.predictions(abstain_below=below))
    with pytest.raises(UsageError, match="abstain_below"):
        run.decision(abstain_below=2)


def test_the_threshold_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    table = predictions(LOGITS, ["no", "yes"], threshold=0.1)
    chances = torch.softmax(LOGITS, dim=1)[:, 1]
    assert table["predicted"].to_pylist() == ["yes" if c >= 0.1 else "no" for c in chances]
    assert table["confidence"].to_pylist()[0] == pytest.approx(float(chances[0]))
    truth = Truth(torch.tensor([0, -1, 1, 1]), None, SPLIT)
    whole = predictions(LOGITS, ["no", "yes"], threshold=0.1, truth=truth)
    monkeypatch.setattr(layerwise, "MAX_READ_ROWS", 3)
    parts = list(prediction_blocks(LOGITS, ["no", "yes"], threshold=0.1, truth=truth))
    assert [len(part) for part in parts] == [3, 1]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


def test_the_confusion_matrix_can_be_made_from_the_predictions(folder: Path) -> None:
    run = lgcn.load_run(folder)
    table = run.predictions().to_pandas()
    graph = synthetic(**GRAPH)
    for split in ("train", "val", "test"):
        np.testing.assert_array_equal((table["split"] == split).to_numpy(), graph.mask(split))
    test = table[table["split"] == "test"]
    matrix = confusion_matrix(test["true"], test["predicted"], labels=run.class_names)
    assert matrix.tolist() == run.metrics()["splits"]["test"]["confusion_matrix"]
    found = run.evaluate()
    assert matrix.tolist() == found.splits["test"]["confusion_matrix"]
    assert found.baselines == run.metrics()["baselines"]
    assert found.summary == run.metrics()["summary"]
    assert list(found.splits) == ["train", "val", "test"]
    plain = run.predictions(truth=False)
    assert not {"true", "split"} & set(plain.column_names)
    pd.testing.assert_frame_equal(plain.to_pandas(), table.drop(columns=["true", "split"]))


def test_the_split_is_that_of_the_training(folder: Path, tmp_path: Path) -> None:
    """Not that of a data set whose split has changed since."""
    run = lgcn.load_run(folder)
    own, other = run.predictions()["split"], {**GRAPH, "num_val": 20}
    graph = replace(synthetic(**other), name="other")
    assert run.predictions(graph=graph)["split"] != own
    assert run.evaluate(graph=graph).baselines is None


def test_new_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(60), "size": rng.normal(size=60)})
    nodes["kind"] = np.where(nodes["size"] > 0, "big", "small")
    nodes.loc[nodes["id"] % 5 == 0, "kind"] = None
    edges = pd.DataFrame({"source": range(59), "target": range(1, 60)})
    paths = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    nodes.to_csv(paths["nodes"], index=False)
    edges.to_csv(paths["edges"], index=False)
    source = choose_source(**paths, label_column="kind")
    prepare_training(SMALL, source=source, out=tmp_path / "run").train()
    run = lgcn.load_run(tmp_path / "run")
    own = run.predictions().to_pandas()
    assert set(own["split"].dropna()) == {"train", "val", "test"}
    assert own["split"].isna().tolist() == nodes["kind"].isna().tolist()
    new = run.predictions(nodes=nodes, edges=edges).to_pandas()
    assert "split" not in new
    assert new["true"].fillna("").tolist() == nodes["kind"].fillna("").tolist()
    without = run.predictions(nodes=nodes.drop(columns="kind"), edges=edges)
    assert "true" not in without.column_names
    # A class that the model does not know does not keep it from predicting.
    strange = nodes.assign(kind="huge")
    with pytest.warns(UserWarning, match="no column of true labels.*huge"):
        odd: Any = run.predictions(nodes=strange, edges=edges)
    assert "true" not in odd.column_names
    assert len(odd) == 60
    # More rows in the file than in training.
    more = pd.concat([nodes, nodes.assign(id=nodes["id"] + 100)])
    more.to_csv(paths["nodes"], index=False)
    with pytest.warns(UserWarning, match="60 nodes in training.*120 now"):
        grown = run.predictions()
    assert "split" not in grown.column_names
