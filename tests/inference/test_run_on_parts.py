"""On a graph in parts, a run writes what it writes on the graph in one piece, part by part."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from lgcn.datasets import synthetic
from lgcn.errors import DataError, UsageError
from lgcn.inference import TrainedRun
from lgcn.inference.predictions import Written
from lgcn.inference.run_on_parts import RunOnParts
from lgcn.partition import Partition, open_partition, write_partition
from lgcn.store.write_store import write_store
from lgcn.training import Settings, train
from lgcn.workers import Workers
from tests.partition.ranks import on_ranks
from tests.workers.processes import run_workers

SMALL: dict[str, Any] = {
    **{"hidden_channels": 8, "k": 4, "num_layers": 1, "max_epochs": 5, "lr": 0.05},
    "positions": "none",
    "structural_features": "no",
}
GRAPH = {"num_nodes": 90, "num_classes": 3, "num_features": 5, "labels_per_class": 8, "num_val": 15}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with ids and names, its partition, and runs on the same graph."""
    folder = tmp_path_factory.mktemp("parts")
    graph = replace(synthetic(**GRAPH), label_names=("red", "green", "blue"))
    assert graph.y is not None
    known = torch.arange(90) >= 5
    graph = replace(graph, y=torch.where(known, graph.y, -1))
    masks = {f"{name}_mask": graph.mask(name) & known for name in ("train", "val", "test")}
    graph = replace(graph, **masks)
    ids = np.array([f"node {7 * number % 90}" for number in range(90)])
    write_store(folder / "store", graph, node_ids=ids)
    write_partition(folder / "store", folder / "parts", 3, method="hash")
    write_partition(folder / "store", folder / "other", 3, method="hash", seed=1)
    train(graph, Settings.create(**SMALL), out=folder / "run")
    numbers = replace(graph, y=graph.x[:, 0].double() * 3 + 1, label_names=None)
    write_store(folder / "numbers", numbers)
    write_partition(folder / "numbers", folder / "parts of numbers", 2, method="hash")
    train(numbers, Settings.create(**SMALL), out=folder / "regression")
    return folder


def table_of(folder: Path) -> pa.Table:
    """The rows of all parts."""
    return pa.concat_tables(parquet.read_table(file) for file in sorted(folder.iterdir()))


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    assert found["node"].type == expected["node"].type
    found, expected = found.sort_by("node"), expected.sort_by("node")
    for name in expected.column_names:
        if pa.types.is_floating(expected[name].type):
            a, b = (table[name].to_numpy() for table in (found, expected))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
        elif expected[name].type != pa.list_(pa.float32()):
            assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("size", [1, 2, 4])
def test_predictions(place: Path, tmp_path: Path, size: int) -> None:
    run, out = TrainedRun(place / "run"), tmp_path / "out"

    def write(workers: Workers) -> Written:
        parts = RunOnParts(run, open_partition(place / "parts"), workers)
        return parts.write_predictions(out, memory="100MB")

    assert on_ranks(size, write) == [Written(90, 0)] * size
    names = [f"part-000{number}.parquet" for number in range(3)]
    assert sorted(path.name for path in out.iterdir()) == names
    assert_same(table_of(out), run.predictions(store=place / "store"))


def test_every_part_has_its_own_nodes(place: Path, tmp_path: Path) -> None:
    partition = open_partition(place / "parts")
    RunOnParts(TrainedRun(place / "run"), partition).write_predictions(tmp_path)
    for number in range(3):
        shard = partition.shard(number)
        assert shard.node_ids is not None
        found = parquet.read_table(tmp_path / f"part-000{number}.parquet")["node"]
        assert found.to_pylist() == shard.node_ids(0, shard.num_owned).to_pylist()


@pytest.mark.parametrize(
    "options",
    [{"truth": False}, {"unlabelled_only": True}, {"abstain_below": 0.5}],
    ids=str,
)
def test_options_of_predictions(place: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    run = TrainedRun(place / "run")
    on_parts = RunOnParts(run, open_partition(place / "parts"))
    written = on_parts.write_predictions(tmp_path, **options)
    expected = run.predictions(store=place / "store", **options)
    assert written == Written(len(expected), expected["predicted"].null_count)
    assert_same(table_of(tmp_path), expected)


def test_a_regression_of_nodes_without_ids(place: Path, tmp_path: Path) -> None:
    run = TrainedRun(place / "regression")
    RunOnParts(run, open_partition(place / "parts of numbers")).write_predictions(tmp_path)
    assert_same(table_of(tmp_path), run.predictions(store=place / "numbers"))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("layer", [0, -1])
def test_embeddings(place: Path, tmp_path: Path, size: int, layer: int) -> None:
    run, out = TrainedRun(place / "run"), tmp_path / "out"

    def write(workers: Workers) -> tuple[int, int]:
        parts = RunOnParts(run, open_partition(place / "parts"), workers)
        return parts.write_embeddings(out, layer=layer)

    width = 8 if layer == 0 else 16
    assert on_ranks(size, write) == [(90, width)] * size
    run.write_embeddings(tmp_path / "all.parquet", store=place / "store", layer=layer)
    found, expected = table_of(out), parquet.read_table(tmp_path / "all.parquet")
    assert found.schema == expected.schema
    found, expected = found.sort_by("node"), expected.sort_by("node")
    assert found["node"] == expected["node"]
    a, b = (np.array(table["embedding"].to_pylist()) for table in (found, expected))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(
    ("name", "store", "parts"),
    [("run", "store", "parts"), ("regression", "numbers", "parts of numbers")],
)
def test_scores_are_those_of_one_piece(
    place: Path, size: int, name: str, store: str, parts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lgcn.training.scored_nodes.MESSAGE_BYTES", 300)  # several messages
    run = TrainedRun(place / name)

    def evaluate(workers: Workers) -> Any:
        return RunOnParts(run, open_partition(place / parts), workers).evaluate()

    first, *others = on_ranks(size, evaluate)
    assert others == [None] * (size - 1)
    expected = run.evaluate(store=place / store)
    assert (first.graph, first.metric) == (expected.graph, expected.metric)
    assert list(first.splits) == list(expected.splits)
    for split, values in expected.splits.items():
        assert first.splits[split] == _about(values)


def _about(values: Any) -> Any:
    """For comparisons up to rounding, also of nested records."""
    if isinstance(values, dict):
        return {key: _about(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_about(value) for value in values]
    return pytest.approx(values, abs=1e-5) if isinstance(values, float) else values


def _predict(workers: Workers, place: str, out: str) -> Written:
    on_parts = RunOnParts(
        TrainedRun(Path(place, "run")), open_partition(Path(place, "parts")), workers
    )
    return on_parts.write_predictions(out)


def test_two_processes(place: Path, tmp_path: Path) -> None:
    found = run_workers(_predict, 2, str(place), str(tmp_path / "out"))
    assert found == [Written(90, 0)] * 2
    expected = TrainedRun(place / "run").predictions(store=place / "store")
    assert_same(table_of(tmp_path / "out"), expected)


def test_ranks_with_different_partitions_are_refused(place: Path) -> None:
    def make(workers: Workers) -> None:
        name = "parts" if workers.is_first else "other"
        RunOnParts(TrainedRun(place / "run"), open_partition(place / name), workers)

    with pytest.raises(UsageError, match=r"rank 1 has the partition .* rank 0 has"):
        on_ranks(2, make)


def test_a_missing_part_is_named_on_all_ranks(place: Path) -> None:
    class Lacking(Partition):
        def shard(self, number: int) -> Any:
            if number == 1:
                raise DataError("part 1 is missing")
            return super().shard(number)

    partition = open_partition(place / "parts")
    lacking = Lacking(partition.folder, partition.header, verify=True)
    errors: list[str] = []

    def make(workers: Workers) -> None:
        try:
            RunOnParts(TrainedRun(place / "run"), lacking, workers)
        except DataError as error:
            errors.append(str(error))

    on_ranks(2, make)
    assert sorted(errors) == [
        "part 1 is missing",
        "rank 1 failed (opening the parts): part 1 is missing",
    ]


@pytest.mark.parametrize("name", ["p.csv", "p.npy", "p.parquet", "/dev/stdout", "file"])
def test_a_single_file_is_refused(place: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    on_parts = RunOnParts(TrainedRun(place / "run"), open_partition(place / "parts"))
    with pytest.raises(UsageError, match=rf"path must be a folder .*got .*{name}. Give a folder"):
        on_parts.write_predictions(tmp_path / name)
    with pytest.raises(UsageError, match="path must be a folder for embeddings"):
        on_parts.write_embeddings(tmp_path / name)


@pytest.mark.parametrize("name", ["part-0003.parquet", "notes.txt"])
def test_a_folder_with_other_files_is_refused(place: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    on_parts = RunOnParts(TrainedRun(place / "run"), open_partition(place / "parts"))
    with pytest.raises(UsageError, match=rf"3 parts, but .* has {name}"):
        on_parts.write_predictions(tmp_path)


def test_a_model_with_features_from_the_edges_is_refused(place: Path, tmp_path: Path) -> None:
    settings = Settings.create(**{**SMALL, "structural_features": "yes", "max_epochs": 1})
    train(synthetic(**GRAPH), settings, out=tmp_path / "run")
    with pytest.raises(UsageError, match="structural_features=no"):
        RunOnParts(TrainedRun(tmp_path / "run"), open_partition(place / "parts"))
