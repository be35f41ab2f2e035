"""Estimators that are saved and loaded, and files that are damaged."""

import errno
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from lgcn import Graph
from lgcn.datasets import synthetic
from lgcn.errors import CheckpointError, UsageError, WriteError
from lgcn.estimator import LGCNClassifier
from lgcn.inference import predict
from lgcn.tables.encoder import FeatureEncoder
from lgcn.training import Run, Settings, tensor_files, train

from .small import parts, small


@pytest.mark.parametrize(
    "labels", [[0, 1, 2], ["a", "b", "c"], [0.5, 1.0, 2.0], [True, False, True]]
)
def test_saved_and_loaded(graph: Graph, tmp_path: Path, labels: list[Any]) -> None:
    x, y, edges = parts(graph)
    names = [str(label) for label in labels] if labels[0] == 0.5 else labels
    classifier = small(k=np.int64(4), settings={"cnn": "single"}).fit(x, np.array(names)[y], edges)
    classifier.save(tmp_path / "saved")
    loaded = LGCNClassifier.load(tmp_path / "saved")
    assert loaded.get_params() == classifier.get_params()
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    np.testing.assert_array_equal(loaded.predict_proba(x, edges), classifier.predict_proba())
    assert loaded.predictions(x, edges).equals(classifier.predictions(truth=False))
    assert loaded.score(x, np.array(names)[y], edges=edges) == classifier.score(
        None, np.array(names)[y]
    )
    with pytest.raises(UsageError, match="a loaded estimator has no graph"):
        loaded.predict()
    with pytest.raises(UsageError, match="a loaded estimator has no graph"):
        loaded.predict([0])
    assert clone(loaded).fit(graph).graph_ is not None
    assert (
        loaded.set_params(warm_start=True, lr=0.0, max_epochs=1).fit(x, np.array(names)[y]).n_iter_
        == 1
    )


def test_nothing_saved_is_a_pickle(graph: Graph, fitted: LGCNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    names = {"run.json", "estimator.json", "model.safetensors", "result.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())
    fitted.set_params(max_epochs=12).save(tmp_path)  # takes the place of the one before
    assert Run(tmp_path).load_model()[2].label_names == ("0", "1", "2")


def test_column_names_are_saved(graph: Graph, tmp_path: Path) -> None:
    x, y, edges = parts(graph)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(8)])
    small(max_epochs=1, random_state=np.random.RandomState(0)).fit(frame, y, edges).save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert loaded.random_state == loaded.settings_.seed
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[frame.columns[::-1]])


def test_how_features_were_made_is_saved(graph: Graph, tmp_path: Path) -> None:
    table = pa.table({"size": np.arange(200.0), "kind": ["a", "b"] * 100})
    encoder = FeatureEncoder.fit(table, np.ones(200, dtype=bool))
    encoded = replace(graph, x=encoder.transform(table), encoder=encoder)
    classifier = small(max_epochs=1).fit(encoded)
    assert classifier.encoder_ is encoder
    classifier.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.encoder_.to_dict() == encoder.to_dict()
    new = replace(graph, x=loaded.encoder_.transform(table))
    np.testing.assert_array_equal(loaded.predict(new), classifier.predict())


def test_a_run_of_the_command_line_can_be_loaded(tmp_path: Path) -> None:
    graph = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, num_val=40)
    result = train(graph, Settings.create(dataset="tables", seed=4, max_epochs=3), out=tmp_path)
    loaded = LGCNClassifier.load(tmp_path, device="cpu")
    assert loaded.classes_.tolist() == ["0", "1", "2"]
    assert (loaded.max_epochs, loaded.random_state, loaded.device) == (3, 4, "cpu")
    expected = predict(result.model, graph).argmax(dim=1)
    assert loaded.predict(graph).tolist() == [str(i) for i in expected.tolist()]


def test_a_pickled_copy_predicts_the_same(fitted: LGCNClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())


@pytest.fixture(scope="module")
def saved_once(fitted: LGCNClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "run"
    fitted.save(folder)
    return folder


@pytest.fixture
def saved(saved_once: Path, tmp_path: Path) -> Path:
    """A copy of a saved estimator, to be damaged."""
    return Path(shutil.copytree(saved_once, tmp_path / "run"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format must be 1, got 2"),
        ({"params": []}, "params must be a table"),
        ({"params": {"k": 1}}, "params must be a table"),
        ({"params.k": [1]}, r"k must not be \[1\]"),
        ({"params.settings": "x"}, "settings must not be 'x'"),
        ({"classes.type": "object"}, "the type of classes must be one of"),
        ({"classes.values": [0, 1]}, "there must be 3 classes"),
        ({"classes.values": [0, 1, 1]}, "classes must be distinct"),
        ({"classes.values": [0, 1, True]}, "classes must all be of type int"),
        ({"classes.values": "abc"}, "there must be 3 classes"),
        ({"classes": None}, "damaged"),
        ({"feature_names_in": ["a"]}, "feature_names_in must have 8 names"),
        ({"feature_names_in": [1] * 8}, "feature_names_in must be"),
    ],
)
def test_a_damaged_estimator_file_is_named(
    saved: Path, change: dict[str, Any], message: str
) -> None:
    path = saved / "estimator.json"
    record = json.loads(path.read_text())
    for key, value in change.items():
        table, _, inner = key.partition(".")
        if inner:
            record[table][inner] = value
        else:
            record[key] = value
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=message) as caught:
        LGCNClassifier.load(saved)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "null", "{", "{}"])
@pytest.mark.parametrize("name", ["estimator.json", "run.json", "result.json", "model.safetensors"])
def test_other_content_is_named(saved: Path, name: str, content: str) -> None:
    (saved / name).write_text(content)
    with pytest.raises(CheckpointError, match=str(saved / name)):
        LGCNClassifier.load(saved)


def test_no_folder_no_estimator(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such run folder"):
        LGCNClassifier.load(tmp_path / "none")


def test_a_folder_that_another_writes_to_is_not_saved_to(
    fitted: LGCNClassifier, tmp_path: Path
) -> None:
    message = f"another process is writing to the run in {tmp_path}"
    with Run(tmp_path).locked(), pytest.raises(UsageError, match=message):
        fitted.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    fitted.save(tmp_path)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "[]", "5", '{"format": 1, "params": ' + "[" * 300 + "]" * 300 + "}"]
)
def test_an_estimator_file_of_any_content_is_named(
    fitted: LGCNClassifier, tmp_path: Path, content: str
) -> None:
    fitted.save(tmp_path)
    (tmp_path / "estimator.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"estimator\.json is damaged"):
        LGCNClassifier.load(tmp_path)


def test_a_save_that_fails_keeps_the_old_model(
    fitted: LGCNClassifier, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in saved.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before, beside = content(), sorted(saved.parent.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(tensor_files, "save_tensors", full)
        with pytest.raises(WriteError, match="not enough room"):
            fitted.save(saved)
    assert content() == before
    assert sorted(saved.parent.iterdir()) == beside
    (saved / "notes.txt").write_text("mine")
    fitted.save(saved)
    assert content() == before | {"notes.txt": b"mine"}


@pytest.mark.parametrize("with_edges", [True, False])
def test_a_loaded_estimator_knows_whether_there_were_edges(
    graph: Graph, tmp_path: Path, with_edges: bool
) -> None:
    x, y, edges = parts(graph)
    classifier = small(max_epochs=2).fit(x, y, edges if with_edges else None)
    classifier.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.has_edges_ is with_edges
    if with_edges:
        with pytest.raises(UsageError, match="edges must be given for X of 200 rows") as refused:
            loaded.predict(x)
        assert "node numbers" not in str(refused.value)  # it has no graph
        with pytest.raises(UsageError, match=r"edges='fitted' .* a loaded estimator"):
            loaded.predict(x, edges="fitted")
        np.testing.assert_array_equal(loaded.predict(x, edges), classifier.predict())
    else:
        np.testing.assert_array_equal(loaded.predict(x), classifier.predict())


def test_folders_that_do_not_say_had_edges(by_features: LGCNClassifier, tmp_path: Path) -> None:
    by_features.save(tmp_path)
    path = tmp_path / "estimator.json"
    record = json.loads(path.read_text())
    del record["has_edges"]
    path.write_text(json.dumps(record))
    assert LGCNClassifier.load(tmp_path).has_edges_
    path.write_text(json.dumps({**record, "has_edges": "no"}))
    with pytest.raises(CheckpointError, match="has_edges must be true or false, got 'no'"):
        LGCNClassifier.load(tmp_path)
    path.unlink()  # a folder of lgcn train
    assert LGCNClassifier.load(tmp_path).has_edges_
