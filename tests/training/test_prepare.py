"""Settings, folder and data of a training, before it starts."""

from pathlib import Path
from typing import Any

import pytest

from lgcn.datasets.graph_source import GraphSource, choose_source
from lgcn.errors import DataError, Interrupted, TrainingInterrupted, UsageError
from lgcn.training import Run, Settings, loop
from lgcn.training.prepare import (
    new_folder,
    prepare_training,
    read_settings,
    resumed_settings,
)

OPTIONS = {"num_nodes": 60, "num_classes": 3, "num_features": 5, "labels_per_class": 8}
SMALL: dict[str, Any] = {
    "dataset": "synthetic",
    "dataset_options": {**OPTIONS, "num_val": 15},
    "hidden_channels": 8,
    "k": 4,
    "num_layers": 1,
    "max_epochs": 3,
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_later_settings_override_earlier_ones(place: Path) -> None:
    (place / "a.toml").write_text("k = 3\nseed = 1\nlr = 0.5\n[dataset_options]\na = 1\nb = 2\n")
    found = read_settings("a.toml", ["k=4", "seed=2", "dataset_options.b=3"], seed=5, memory=None)
    assert found == {"k": 4, "seed": 5, "lr": 0.5, "dataset_options": {"a": 1, "b": 3}}
    assert read_settings() == {}


def test_a_new_folder_has_the_name_of_the_graph() -> None:
    config = Settings.create(**SMALL, seed=3)
    assert new_folder(config) == Path("runs/synthetic-seed3")
    Path("runs/synthetic-seed3").mkdir(parents=True)
    Path("runs/synthetic-seed3-2").mkdir()
    assert new_folder(config) == Path("runs/synthetic-seed3-3")
    tables = Settings.create(dataset="tables", dataset_options={"nodes": "/a/mine.csv"})
    assert new_folder(tables, "other") == Path("other/mine-seed0")


def test_a_training_and_its_result() -> None:
    prepared = prepare_training(SMALL, out="run")
    epochs = []
    record = prepared.train(lambda state: epochs.append(state.epoch))
    assert epochs == [1, 2, 3]
    assert record["out"] == "run"
    again = prepare_training(SMALL, out="run", resume=True)
    assert again.train()["val_score"] == record["val_score"]


def test_a_run_is_not_replaced_unasked() -> None:
    prepare_training(SMALL, out="run").train()
    with pytest.raises(UsageError, match=r"run .*out=.*resume=True.*overwrite=True"):
        prepare_training(SMALL, out="run")
    assert prepare_training(SMALL, out="run", overwrite=True).overwrite
    assert prepare_training({**SMALL, "seed": 1}, out="other").run.folder == Path("other")


def test_resuming_keeps_the_settings() -> None:
    prepare_training(SMALL, out="run").train()
    run = Run("run")
    assert resumed_settings(run, {}) == run.read()[0]
    assert resumed_settings(run, {"k": 4, "seed": 0}) == run.read()[0]
    with pytest.raises(UsageError, match="drop k, lr,"):
        resumed_settings(run, {"k": 5, "lr": 1e-5, "seed": 0})
    with pytest.raises(UsageError, match="resume=True needs out="):
        prepare_training(SMALL, resume=True)
    with pytest.raises(UsageError, match="nowhere"):
        prepare_training({}, out="nowhere", resume=True)


def test_a_source_overrides_the_settings() -> None:
    source = GraphSource("digits", {})
    prepared = prepare_training({**SMALL, "dataset_options": {"num_val": 50}}, source=source)
    assert (prepared.source.dataset, prepared.source.options) == ("digits", {"num_val": 50})
    source = GraphSource("synthetic", {"num_nodes": 70})
    assert prepare_training(SMALL, source=source).source.options == {"num_nodes": 70}


def test_data_are_checked(place: Path) -> None:
    with pytest.raises(UsageError, match="'nope'"):
        prepare_training({"dataset": "nope"})
    (place / "n.csv").write_text("id,y\na,1\n")
    tables = choose_source(edges=None, nodes="n.csv")
    with pytest.raises(UsageError, match="label_column="):
        prepare_training({}, source=tables)
    with pytest.raises(DataError, match=r"gone\.csv"):
        prepare_training({}, source=choose_source(edges=None, nodes="gone.csv", label_column="y"))


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_training(SMALL, out="old").train()
    train_epoch = loop._train_epoch

    def second(*args: Any) -> Any:
        return interrupt() if args[3] == 2 else train_epoch(*args)

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    with monkeypatch.context() as patched:
        patched.setattr("lgcn.training.data.evaluation_graphs", interrupt)
        with pytest.raises(Interrupted, match="nothing is kept"):
            prepare_training(SMALL, out="new").train()
        with pytest.raises(Interrupted, match="old is unchanged"):
            prepare_training(SMALL, out="old", overwrite=True).train()
    monkeypatch.setattr(loop, "_train_epoch", second)
    with pytest.raises(TrainingInterrupted, match="lgcn train --resume --out new"):
        prepare_training(SMALL, out="new").train()
