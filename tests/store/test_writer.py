"""The writer of stores: what it fills and refuses, and what it leaves when it is stopped."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from lgcn import Graph
from lgcn.errors import DataError, UsageError
from lgcn.store import writer as store_writer
from lgcn.store.format import is_store
from lgcn.store.open_store import open_store
from lgcn.store.write_store import encode_features, uint8_scale, write_ids, write_store
from lgcn.store.writer import StoreWriter

from .stores import RandomGraph


def test_arrays_are_appended_to(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "deep" / "store") as writer:
        rowptr = writer.append("rowptr", "int64")
        rowptr.write(np.array([0, 1]))
        rowptr.write(np.array([2, 3]))
        col = writer.append("col", "int32")
        weight = writer.append("edge_weight", "float32")
        x = writer.append("x", "bfloat16", 2)
        for value in range(3):
            col.write(np.array([value], np.int32))
            weight.write(np.array([value + 0.5], np.float32))
            x.write(encode_features(np.full((1, 2), value), "bfloat16"))
        (writer.scratch / "bucket").write_text("for sorting")
        header = writer.finish(name="made", source={"rows": 3, 4: "a key that JSON changes"})
        assert header["arrays"]["x"]["shape"] == [3, 2]
    store = open_store(tmp_path / "deep" / "store")
    assert store.graph.col.tolist() == [0, 1, 2]
    assert store.graph.degree.tolist() == [0.5, 1.5, 2.5]
    assert store.graph.features().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert store.header["source"] == {"rows": 3, "4": "a key that JSON changes"}
    names = {file.name for file in (tmp_path / "deep" / "store").iterdir()}
    assert names == {"header.json", *(f"{name}.bin" for name in header["arrays"])}
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["store"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.append("../x", "int64"), "named once"),
        (lambda w: w.append("rowptr", "int32"), "must be int64"),
        (lambda w: (w.append("col", "int32"), w.append("col", "int32")), "named once"),
        (lambda w: w.append("col", "int32").write(np.zeros(2)), "must be int32"),
        (lambda w: w.append("x", "float32", 3).write(np.zeros((2, 2), "f4")), r"shape \(2, 2\)"),
        (lambda w: w.finish(), "rowptr and col"),
    ],
)
def test_wrong_use_of_the_writer(tmp_path: Path, call: Any, message: str) -> None:
    with pytest.raises((ValueError, KeyError), match=message), StoreWriter(tmp_path / "s") as w:
        call(w)
    assert not list(tmp_path.iterdir())


def test_the_writer_finds_wrong_arrays(tmp_path: Path) -> None:
    def write() -> None:
        with StoreWriter(tmp_path / "store") as writer:
            writer.append("rowptr", "int64").write(np.array([0, 1, 1]))
            writer.append("col", "int32").write(np.array([2], np.int32))
            writer.finish()

    with pytest.raises(DataError, match=r"col\.bin.*between 0 and 1"):
        write()
    assert not list(tmp_path.iterdir())


def test_an_error_while_writing_leaves_nothing_and_the_old_store(path: Path, graph: Graph) -> None:
    before = open_store(path).header

    def stop() -> None:
        with StoreWriter(path, overwrite=True) as writer:
            writer.append("col", "int32").write(np.zeros(5, np.int32))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert [file.name for file in path.parent.iterdir()] == ["store"]
    assert open_store(path).header == before
    write_store(path, graph, features="uint8", overwrite=True)
    assert [file.name for file in path.parent.iterdir()] == ["store"]
    assert open_store(path).graph.x.dtype == torch.uint8


def test_what_exists_is_overwritten_on_request_and_if_it_is_a_store(
    tmp_path: Path, path: Path, graph: Graph
) -> None:
    with pytest.raises(UsageError, match="exists"):
        write_store(path, graph)
    (path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        write_store(path, graph, overwrite=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(path)
    for other in ("folder", "link"):
        with pytest.raises(UsageError, match="not a store"):
            write_store(tmp_path / other, graph, overwrite=True)
    with pytest.raises(UsageError, match="must end with a name"):
        StoreWriter(tmp_path / "..")


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "store"
    writer = StoreWriter(path)
    (writer.scratch / "bucket").write_text("for sorting")
    writer.append("col", "int32").write(np.zeros(9, np.int32))
    assert writer._place._lock is not None
    os.close(writer._place._lock)  # all that the end of a process does
    writer._place._lock = None
    left = [file.name for file in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith("store.partial-")
    assert not is_store(tmp_path / left[0])
    others = [tmp_path / "store.partial-notes", tmp_path / "store2.partial-00000000"]
    for other in others:
        other.mkdir()
        (other / "mine.txt").write_text("not of a store")
    with StoreWriter(path) as living:  # which removes what was left
        assert not (tmp_path / left[0]).exists()
        with StoreWriter(path):  # and this one does not remove the other
            assert living.folder.is_dir()
    write_store(path, graph)
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


@pytest.mark.parametrize("where", ["append", "finish", "block"])
def test_a_full_disk_is_said_plainly(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    def write(writer: StoreWriter) -> None:
        if where == "append":
            appender = writer.append("col", "int32")
            appender._file.close()
            appender._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115, PTH123
            appender.write(np.zeros(3, np.int32))
        elif where == "finish":
            writer.append("rowptr", "int64").write(np.zeros(1, np.int64))
            writer.append("col", "int32")
            monkeypatch.setattr(store_writer, "sync", full)
            writer.finish()
        else:
            full()

    message = "not enough room on the disk"
    with pytest.raises(DataError, match=message), StoreWriter(tmp_path / "store") as writer:
        write(writer)
    assert not list(tmp_path.iterdir())


def test_another_error_in_the_block_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), StoreWriter(tmp_path / "store"):
        (tmp_path / "missing").read_text()


def test_uint8_covers_the_range_of_each_feature() -> None:
    x = np.array([[0.0, 5.0, -1.0], [1.0, 5.0, 3.0], [0.5, 5.0, 99.0]], np.float32)
    scale = uint8_scale(x.min(0), x.max(0))
    codes = encode_features(x, "uint8", scale)
    assert codes[:, 0].tolist() in ([0, 255, 127], [0, 255, 128])
    assert codes[:, 1].tolist() == [0, 0, 0]
    np.testing.assert_allclose(codes * scale[0] + scale[1], x, atol=0.2)
    with pytest.raises(DataError, match="finite"):
        uint8_scale(np.array([0.0]), np.array([np.inf]))


def test_features_that_do_not_fit_are_refused(tmp_path: Path, random_graph: RandomGraph) -> None:
    with pytest.raises(DataError, match="bfloat16"):
        encode_features(np.array([1e6]), "float16")
    with pytest.raises(UsageError, match="features must be one of"):
        write_store(tmp_path / "store", random_graph(), features="int4")  # type: ignore[arg-type]
    sparse = random_graph(x=torch.eye(12).to_sparse_csr())
    with pytest.raises(UsageError, match="sparse"):
        write_store(tmp_path / "store", sparse, features="uint8")


def test_write_ids_of_large_strings(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store") as writer:
        writer.append("rowptr", "int64").write(np.zeros(3, np.int64))
        writer.append("col", "int32")
        write_ids(writer, pa.chunked_array([["a"], ["bc"]], pa.string()))
        writer.finish()
    assert open_store(tmp_path / "store").node_ids(0, 2).to_pylist() == ["a", "bc"]


def test_a_store_may_have_a_long_name(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / ("s" * 255)
    write_store(path, graph)
    writer = StoreWriter(path, overwrite=True)
    assert writer._place._lock is not None
    os.close(writer._place._lock)  # all that the end of a process does
    writer._place._lock = None
    write_store(path, graph, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]
