"""A trained run in Python does what the command line does, on its own graph and on new data."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lgcn
from lgcn.datasets import synthetic
from lgcn.datasets.graph_source import choose_source
from lgcn.errors import CheckpointError, DataError, UsageError
from lgcn.inference import TrainedRun
from lgcn.store.write_store import write_store
from lgcn.training import Run, Settings, train
from lgcn.training.prepare import prepare_training

SMALL = {"hidden_channels": 8, "k": 4, "num_layers": 1, "max_epochs": 5, "lr": 0.05}
GRAPH = {"num_nodes": 60, "num_classes": 3, "num_features": 5, "labels_per_class": 8, "num_val": 15}


def write_tables(folder: Path, prefix: str, size: int, *, labels: bool = True) -> dict[str, str]:
    """Two tables of a ring, with a label for three of four nodes."""
    folder.mkdir(exist_ok=True)
    kinds = [("art", "law")[i % 2] if i % 4 else "" for i in range(size)]
    nodes = [f"{prefix}{i},{np.sin(3.7 * i) + i % 2:.3f},{kinds[i]}" for i in range(size)]
    edges = [f"{prefix}{i},{prefix}{(i + 2) % size}" for i in range(size)]
    if not labels:
        nodes = [row.rsplit(",", 1)[0] for row in nodes]
    header = "id,size,kind" if labels else "id,size"
    (folder / "nodes.csv").write_text("\n".join([header, *nodes]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    return {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}


@pytest.fixture(scope="module")
def on_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    source = choose_source(**write_tables(folder / "data", "p", 40), label_column="kind")
    prepare_training(SMALL, source=source, out=folder / "run").train()
    return folder / "run"


@pytest.fixture(scope="module")
def on_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    settings = Settings.create(**SMALL, dataset="synthetic", dataset_options=GRAPH)
    train(synthetic(**GRAPH), settings, out=folder)
    return folder


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def same(table: Any, path: Path) -> None:
    """The table has the values of a CSV file, to the last digit that is printed."""
    written = rows(path)
    assert written[0] == table.column_names
    for row, cells in zip(written[1:], table.to_pylist(), strict=True):
        for cell, value in zip(row, cells.values(), strict=True):
            if isinstance(value, float):
                assert np.float32(cell) == np.float32(value)
            else:
                assert cell == ("" if value is None else str(value))


@pytest.mark.parametrize("labels", [True, False])
def test_predictions_are_those_of_the_command(
    lgcn_: Any, on_tables: Path, tmp_path: Path, labels: bool
) -> None:
    new = write_tables(tmp_path / "new", "q", 24, labels=labels)
    flags = ("--edges", new["edges"], "--nodes", new["nodes"])
    run = lgcn.load_run(on_tables)
    for data, options, arguments in (
        ({}, {}, ()),
        (new, {}, flags),
        (new, {"abstain_below": 0.6}, (*flags, "--abstain-below", 0.6)),
        (new, {"unlabelled_only": True}, (*flags, "--unlabelled-only")),
        (new, {"memory": "1GB"}, (*flags, "--memory", "1GB")),
    ):
        assert lgcn_("predict", on_tables, "--output", tmp_path / "p.csv", *arguments).code == 0
        same(run.predictions(**data, **options), tmp_path / "p.csv")


def test_tables_in_memory(on_tables: Path, tmp_path: Path) -> None:
    import pandas as pd

    new = write_tables(tmp_path / "new", "q", 24)
    run = lgcn.load_run(on_tables)
    frames = {role: pd.read_csv(path) for role, path in new.items()}
    assert run.predictions(**frames).equals(run.predictions(**new))


def test_scores_embeddings_and_graph(on_graph: Path) -> None:
    run = TrainedRun(on_graph)
    graph, model = synthetic(**GRAPH), run.model()
    assert run.model() is model
    assert torch.equal(run.predict(), lgcn.predict(model, graph))
    assert torch.equal(run.graph().x, graph.x)
    torch.testing.assert_close(run.embed(layer=0), model.embed(graph.x, graph, layer=0).detach())
    assert run.class_names == ("0", "1", "2")
    assert run.temperature == run.result()["temperature"]
    assert run.settings.model.k == 4
    assert "run" in repr(run)


def test_evaluate_gives_the_scores_of_the_training(on_graph: Path, on_tables: Path) -> None:
    found = TrainedRun(on_graph).evaluate()
    assert found.metric == "accuracy"
    assert set(found.splits) == {"train", "val", "test"}
    assert found.splits["test"]["score"] == TrainedRun(on_graph).result()["test_score"]
    # All labelled nodes of new tables are test nodes.
    tables = TrainedRun(on_tables).settings.dataset_options
    again = TrainedRun(on_tables).evaluate(edges=tables["edges"], nodes=tables["nodes"])
    assert {split: part["nodes"] for split, part in again.splits.items()} == {"test": 30}


def test_the_same_graph_from_memory_and_a_store(on_graph: Path, tmp_path: Path) -> None:
    run = TrainedRun(on_graph)
    graph = replace(synthetic(**GRAPH), node_ids=np.array([f"n{i}" for i in range(60)]))
    write_store(tmp_path / "store", graph)
    for data in ({"graph": graph}, {"store": tmp_path / "store"}):
        table = run.predictions(**data)
        assert table["node"].to_pylist() == [f"n{i}" for i in range(60)]
        assert table.drop_columns("node").equals(run.predictions().drop_columns("node"))
    named = run.predictions(dataset=str(tmp_path / "store"))
    assert named["node"].to_pylist()[0] == "n0"


def test_a_file_of_embeddings(on_graph: Path, tmp_path: Path) -> None:
    run = TrainedRun(on_graph)
    assert run.write_embeddings(tmp_path / "e.npy", layer=0) == (60, 8)
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy"), run.embed(layer=0).numpy())


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"dataset": "nope"}, UsageError, "'nope'"),
        ({"dataset": "digits"}, UsageError, "5 features"),
        ({"store": "nowhere"}, DataError, "nowhere"),
        ({"dataset": "digits", "store": "s"}, UsageError, "dataset= and store="),
        ({"edges": "a.csv", "nodes": "b.csv"}, UsageError, "dataset=.*store="),
        ({"delimiter": ","}, UsageError, "delimiter=.*edges= and nodes="),
    ],
)
def test_data_that_do_not_fit(
    on_graph: Path, data: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TrainedRun(on_graph).predictions(**data)


def test_one_graph_at_a_time(on_graph: Path) -> None:
    with pytest.raises(UsageError, match="graph= and dataset="):
        TrainedRun(on_graph).predict(graph=synthetic(**GRAPH), dataset="digits")


def test_both_tables_are_needed(on_tables: Path) -> None:
    with pytest.raises(UsageError, match="nodes= needs edges="):
        TrainedRun(on_tables).predictions(nodes="nodes.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"abstain_below": 2}, "abstain_below"), ({"memory": "much"}, "memory")],
)
def test_options_are_checked_first(
    on_graph: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "load_model", lambda self: pytest.fail("too late"))
    with pytest.raises(UsageError, match=message):
        TrainedRun(on_graph).predictions(**options)


def test_data_of_the_training_may_be_gone(on_tables: Path, tmp_path: Path) -> None:
    import shutil

    run = Path(shutil.copytree(on_tables, tmp_path / "run"))
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace("nodes.csv", "gone.csv"))
    trained = TrainedRun(run)
    with pytest.raises(DataError, match=r"gone\.csv.*give edges= and nodes="):
        trained.predictions()
    new = write_tables(tmp_path / "new", "q", 24)
    assert len(trained.predictions(**new)) == 24


def test_a_run_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    settings = Settings.create(**SMALL, dataset="synthetic", dataset_options=GRAPH)
    train(synthetic(**GRAPH), settings, out=tmp_path / "run")
    trained = TrainedRun(tmp_path / "run")
    train(synthetic(**GRAPH), settings.replace(seed=1), out=tmp_path / "run")
    with pytest.raises(CheckpointError, match="replaced"):
        trained.predict()


def test_a_run_must_have_finished(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        lgcn.load_run(tmp_path / "nowhere")
