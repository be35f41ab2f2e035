"""Stores that are damaged, or made to do harm."""

import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.store import checked_files
from lgcn.store.format import is_store
from lgcn.store.open_store import open_store
from lgcn.store.write_store import write_store
from lgcn.store.writer import StoreWriter
from lgcn.utils import memory
from lgcn.utils.limits import MAX_JSON

from .stores import RandomGraph, alter


def forge(path: Path, name: str, values: Any) -> None:
    """Puts other values of the same type into an array, with checksums that fit."""
    values = np.asarray(values)
    file = path / f"{name}.bin"
    file.write_bytes(values.tobytes())

    def change(header: dict[str, Any]) -> None:
        header["arrays"][name]["shape"] = list(values.shape)
        pieces = hashlib.sha256(hashlib.sha256(values.tobytes()).digest())
        header["arrays"][name]["sha256"] = pieces.hexdigest()

    alter(path, change)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", ["rowptr", "col", "x", "train_mask", "degree"])
def test_a_file_of_another_size_is_named(path: Path, name: str, verify: bool) -> None:
    file = path / f"{name}.bin"
    data = file.read_bytes()
    for changed, message in ((data[:-1], "cut short"), (data + b"1", "too long")):
        file.write_bytes(changed)
        with pytest.raises(DataError, match=rf"{name}\.bin is {message}"):
            open_store(path, verify=verify)
    file.unlink()
    with pytest.raises(DataError, match=rf"{name}\.bin is missing"):
        open_store(path, verify=verify)


@pytest.mark.parametrize("name", ["rowptr", "col", "x", "y", "train_mask", "degree"])
def test_an_altered_file_is_named(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_files, "PIECE", 16)  # so that there are several
    with pytest.raises(DataError, match="checksum"):
        open_store(path)
    monkeypatch.undo()
    file = path / f"{name}.bin"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=rf"{name}\.bin (was altered|is damaged)"):
        open_store(path)


@pytest.mark.parametrize("piece", [8, 16, 1 << 22])
@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("rowptr", lambda v: v[::-1], "must start with 0"),
        ("rowptr", lambda v: np.concatenate([v[:3], [10**9], v[4:]]), "must not decrease"),
        ("rowptr", lambda v: np.concatenate([v[:3], [-1], v[4:]]), "must not decrease"),
        ("rowptr", lambda v: np.minimum(v, v[-1] - 1), "must end with"),
        ("col", lambda v: np.where(np.arange(len(v)) == 7, 12, v), "between 0 and 11"),
        ("col", lambda v: np.where(np.arange(len(v)) == 7, -1, v), "between 0 and 11"),
        ("y", lambda v: np.where(v == 2, 3, v), "between -1 and 2"),
        ("train_mask", lambda v: np.full(12, 2, np.uint8), "zeros and ones"),
        ("degree", lambda v: np.full(12, np.nan, np.float32), "finite"),
    ],
)
def test_wrong_numbers_are_found_though_the_checksums_fit(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    name: str,
    values: Any,
    message: str,
) -> None:
    kind = json.loads((path / "header.json").read_text())["arrays"][name]["dtype"]
    old = np.fromfile(path / f"{name}.bin", kind)
    new = values(old)
    forge(path, name, new.astype(new.dtype if new.dtype == np.uint8 else old.dtype))
    monkeypatch.setattr(checked_files, "PIECE", piece)
    with pytest.raises(DataError, match=rf"{name}\.bin is damaged: .*{message}"):
        open_store(path)
    if name == "rowptr" and "end" in message:
        with pytest.raises(DataError, match=message):
            open_store(path, verify=False)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"[1]", b'{"format": 2}'])
def test_a_file_that_is_no_header(path: Path, text: bytes) -> None:
    (path / "header.json").write_bytes(text)
    with pytest.raises(DataError, match=r"header\.json"):
        open_store(path)


def test_a_changed_header_is_found(path: Path) -> None:
    alter(path, lambda header: header.update(name="other"), sign=False)
    with pytest.raises(DataError, match="checksum"):
        open_store(path)
    alter(path, lambda header: header.update(name="other"))
    assert open_store(path).graph.name == "other"


def set_array(name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["arrays"][name].update(changes)


def move(name: str, to: str) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["arrays"].update({to: header["arrays"].pop(name)})


HOSTILE: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda h: h.update(format=1.5), "format"),
    (lambda h: h.update(format=True), "format"),
    (lambda h: h.update(extra=1), "nothing else"),
    (lambda h: h.pop("name"), "nothing else"),
    (lambda h: h.update(name=["x"]), "name"),
    (lambda h: h.update(name="\x1b[2J"), "name"),
    (lambda h: h.update(num_nodes=-1), "num_nodes"),
    (lambda h: h.update(num_nodes=True), "num_nodes"),
    (lambda h: h.update(num_nodes=12.0), "num_nodes"),
    (lambda h: h.update(num_nodes=2**70), "num_nodes"),
    (lambda h: h.update(num_nodes=11), "shape"),
    (lambda h: h.update(num_edges=3), "shape"),
    (lambda h: h.update(num_features=6), "shape"),
    (lambda h: h.update(directed=1), "directed"),
    (lambda h: h.update(multi_label=True), "multi_label"),
    (lambda h: h.update(source=[1]), "source"),
    (lambda h: h.update(label_names="abc"), "label_names"),
    (lambda h: h.update(label_names=["\ud800"]), "label_names"),
    (lambda h: h.update(encoder={"format": 1}), "encoder"),
    (lambda h: h.update(encoder=3), "encoder"),
    (lambda h: h.update(arrays=[]), "arrays"),
    (lambda h: h["arrays"].pop("rowptr"), "arrays"),
    (lambda h: h["arrays"].update({"../../etc/passwd": h["arrays"]["x"]}), "arrays"),
    (lambda h: h["arrays"].update(x=None), "x in"),
    (set_array("x", path="/etc/passwd"), "nothing else"),
    (set_array("x", dtype="object"), "dtype|must be float32"),
    (set_array("x", dtype=["float32"]), "must be float32"),
    (set_array("x", dtype="uint8"), "x_scale|uint8"),
    (set_array("rowptr", dtype="int32"), "must be int64"),
    (set_array("x", shape=[12, 6]), "shape"),
    (set_array("x", shape=[60]), "2 numbers"),
    (set_array("x", shape="12"), "2 numbers"),
    (set_array("x", shape=[12, -5]), "shape"),
    (set_array("x", shape=[12, 5.0]), "shape"),
    (set_array("x", sha256=5), "sha256"),
    (set_array("col", dtype="int64"), "cut short"),
    (move("test_mask", "ids_bytes"), "uint8"),
    (move("degree", "edge_weight"), "shape"),
    (move("col", "transpose_col"), "arrays"),
    (move("y", "ids"), "col|multi|y|checksum|missing"),
    (move("x", "x_values"), "numbers"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_hostile_headers_are_refused(
    path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    alter(path, change)
    with pytest.raises(DataError, match=message):
        open_store(path)


@settings(max_examples=60)
@given(
    st.sampled_from(["num_nodes", "num_edges", "num_features", "arrays", "label_names", "encoder"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["x", "rowptr", "dtype"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)
def test_any_other_value_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, random_graph: RandomGraph, field: str, value: Any
) -> None:
    path = tmp_path_factory.mktemp("stores") / "store"
    write_store(path, random_graph())
    before = json.loads((path / "header.json").read_text())[field]
    alter(path, lambda header: header.update({field: value}))
    if value == before and type(value) is type(before):
        open_store(path)
    elif field == "label_names" and isinstance(value, list):
        try:
            open_store(path)
        except DataError:
            pass
        else:
            assert len(value) > 2
    else:
        with pytest.raises(DataError):
            open_store(path)


def test_links_pipes_and_other_files(path: Path, tmp_path: Path) -> None:
    (path / "more.bin").write_bytes(b"not looked at")
    (path / "y_old.bin").symlink_to("/dev/zero")
    open_store(path)
    moved = tmp_path / "col"
    (path / "col.bin").rename(moved)
    (path / "col.bin").symlink_to(moved)
    for verify in (True, False):
        with pytest.raises(DataError, match="links"):
            open_store(path, verify=verify)
    (path / "col.bin").unlink()
    os.mkfifo(path / "col.bin")
    with pytest.raises(DataError, match="plain file"):
        open_store(path)
    (path / "header.json").unlink()
    with pytest.raises(DataError, match="no header"):
        open_store(path)
    assert not is_store(path)
    with pytest.raises(DataError, match="no such folder"):
        open_store(tmp_path / "missing")


def test_texts_that_are_no_utf8_are_found_when_they_are_read(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store") as writer:
        writer.append("rowptr", "int64").write(np.zeros(3, np.int64))
        writer.append("col", "int32")
        writer.append("ids_offsets", "int64").write(np.array([0, 1, 2]))
        writer.append("ids_bytes", "uint8").write(np.array([97, 255], np.uint8))
        writer.finish()
    store = open_store(tmp_path / "store")
    assert store.node_ids(0, 1).to_pylist() == ["a"]
    with pytest.raises(DataError, match="UTF-8"):
        store.node_ids(0, 2)


def test_a_header_is_read_with_the_memory_of_its_size(path: Path) -> None:
    open_store(path)  # imports what it needs
    tracemalloc.start()
    try:
        checked_files.read_header(path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_a_header_that_is_nested_or_too_large_is_refused(path: Path) -> None:
    header = path / "header.json"
    header.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"header\.json is damaged .* levels"):
        open_store(path)
    header.write_text('{"format":' + "[" * 500 + "]" * 500 + "}")
    with pytest.raises(DataError, match=r"header\.json is damaged .* levels"):
        open_store(path)
    with header.open("r+b") as file:
        file.truncate(MAX_JSON + 1)
    with pytest.raises(DataError, match=r"header\.json must have at most"):
        open_store(path)


def test_classes_by_the_million_are_refused(tmp_path: Path, random_graph: RandomGraph) -> None:
    write_store(tmp_path / "store", random_graph())
    forge(tmp_path / "store", "y", np.full(12, 2**40))
    with pytest.raises(DataError, match=r"y\.bin is damaged: .*999999"):
        open_store(tmp_path / "store")


def test_features_that_no_machine_can_train_on_are_refused(
    tmp_path: Path, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_store(tmp_path / "store", random_graph(x=torch.eye(12).to_sparse_csr()))
    alter(tmp_path / "store", lambda header: header.update(num_features=2**31))
    monkeypatch.setattr(memory, "machine_memory", lambda: 16 * 10**9)
    with pytest.raises(DataError, match=r"store: training on 2147483648 features would need"):
        open_store(tmp_path / "store")
