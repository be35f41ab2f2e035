"""Stores: what is written comes back, and nothing that is wrong does."""

import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph
from lgcn.csr import CSR, sparse_features
from lgcn.data.store import files as store_files
from lgcn.data.store import writer as store_writer
from lgcn.data.store.contents import encode_features, uint8_scale, write_ids
from lgcn.data.store.format import header_digest
from lgcn.data.store.open_store import StoreWriter, is_store, open_store, write_store
from lgcn.data.tables.encoder import FeatureEncoder
from lgcn.errors import DataError, UsageError

RandomGraph = Callable[..., Graph]
TOLERANCE = {"float32": 0.0, "float16": 2e-3, "bfloat16": 2e-2, "uint8": 2e-2}


@pytest.fixture
def graph(random_graph: RandomGraph) -> Graph:
    masks = {f"{s}_mask": torch.arange(12) % 3 == i for i, s in enumerate(("train", "val", "test"))}
    return random_graph(undirected=True, label_names=("a", "b", "c"), name="small", **masks)


@pytest.fixture
def path(tmp_path: Path, graph: Graph) -> Path:
    write_store(tmp_path / "store", graph)
    return tmp_path / "store"


def mapped(tensor: torch.Tensor, path: Path) -> bool:
    """Whether the tensor's memory is a map of the file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, *_, name = line.split(maxsplit=5)
        low, high = (int(bound, 16) for bound in bounds.split("-"))
        if low <= tensor.data_ptr() < high:
            return name == str(path)
    return False


def alter(path: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Changes the header, with a checksum that fits."""
    header = json.loads((path / "header.json").read_text())
    change(header)
    if sign:
        header["sha256"] = header_digest(header)
    (path / "header.json").write_text(json.dumps(header))


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


# What is written comes back.


@pytest.mark.parametrize("kind", TOLERANCE)
def test_a_graph_comes_back_as_it_was(tmp_path: Path, graph: Graph, kind: str) -> None:
    write_store(tmp_path / "store", graph, features=kind)
    store = open_store(tmp_path / "store")
    again = store.graph
    assert is_store(tmp_path / "store")
    for field in ("rowptr", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(again, field), getattr(graph, field)), field
        assert mapped(getattr(again, field), tmp_path / "store" / f"{field}.bin")
    assert again.col.dtype == torch.int32
    assert again.col.tolist() == graph.col.tolist()
    assert again.degree.tolist() == graph.rowptr.diff().tolist()
    assert again.edge_weight is None
    assert (again.name, again.label_names, again.num_classes) == ("small", ("a", "b", "c"), 3)
    assert mapped(again.x, tmp_path / "store" / "x.bin")
    assert str(again.x.dtype) == f"torch.{kind}"
    assert again.features().dtype == torch.float32
    assert (again.features() - graph.x).abs().max() <= TOLERANCE[kind]
    assert store.transpose() is None
    assert "small" in repr(store)


@settings(max_examples=25)
@given(
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([*TOLERANCE, "sparse", "none"]),
    st.data(),
)
def test_the_methods_of_a_mapped_graph_are_those_of_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    random_graph: RandomGraph,
    seed: int,
    weighted: bool,
    undirected: bool,
    self_loops: bool,
    kind: str,
    data: st.DataObject,
) -> None:
    x = torch.randint(0, 3, (9, 4), generator=torch.Generator().manual_seed(seed)) / 2
    x[0], x[1] = 0, 127.5  # so that uint8 has steps of a half, and all kinds are exact
    given_x = {"none": None, "sparse": x.to_sparse_csr()}.get(kind, x)
    if weighted and undirected:
        undirected = False  # the weights of the two directions would differ
    graph = random_graph(
        9,
        0.3,
        seed=seed,
        weighted=weighted,
        undirected=undirected,
        self_loops=self_loops,
        x=given_x,
    )
    path = tmp_path_factory.mktemp("stores") / "store"
    write_store(path, graph, features="float32" if kind in ("sparse", "none") else kind)
    store = open_store(path)
    again = store.graph
    start = data.draw(st.integers(0, 9))
    stop = data.draw(st.integers(start, 9))
    nodes = torch.tensor(data.draw(st.permutations(range(9))))[: data.draw(st.integers(0, 9))]
    if kind != "none":
        for rows in (None, slice(start, stop), nodes):
            found, expected = again.features(rows), graph.features(rows)
            assert found.layout == expected.layout
            assert torch.equal(found.to_dense(), expected.to_dense())
    options = {"normalize": data.draw(st.booleans()), "self_loops": data.draw(st.booleans())}
    expected_rows = graph.adjacency_rows(start, stop, **options)
    assert_same(again.adjacency_rows(start, stop, **options), expected_rows)
    part, expected_part = again.subgraph(nodes), graph.subgraph(nodes)
    for field in fields(Graph):
        one, other = getattr(part, field.name), getattr(expected_part, field.name)
        if isinstance(other, torch.Tensor) and other.layout == torch.strided:
            assert torch.equal(one.to(other.dtype), other), field.name
        elif isinstance(other, torch.Tensor):
            assert torch.equal(one.to_dense(), other.to_dense())
    dense = torch.zeros(9, 9)
    dense[graph.edge_index[1], graph.edge_index[0]] = 1
    assert store.header["directed"] == (weighted or not torch.equal(dense, dense.t()))
    transpose = store.transpose()
    assert (transpose is None) == (not store.header["directed"])
    if transpose is not None:
        assert_same_matrix(transpose, CSR(graph.rowptr, graph.col, graph.edge_weight))


def assert_same(one: CSR, other: CSR) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a is None and b is None) or torch.equal(a.to(b.dtype), b)


def assert_same_matrix(transpose: CSR, matrix: CSR) -> None:
    def dense(m: CSR) -> torch.Tensor:
        return sparse_features(m.rowptr, m.col.long(), m.values(), 9).to_dense()

    assert torch.equal(dense(transpose), dense(matrix).t())


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (None, pa.int64()),
        (np.arange(12) * 10**12 - 5, pa.int64()),
        (np.array(["", "ä", "𝄞", "a b"] * 3), pa.large_string()),
        (pa.array([f"node {i}" for i in range(20)])[3:15], pa.large_string()),
    ],
)
def test_node_ids(tmp_path: Path, graph: Graph, ids: Any, kind: Any) -> None:
    write_store(tmp_path / "store", graph, node_ids=ids)
    store = open_store(tmp_path / "store")
    assert store.graph.node_ids is None
    expected = list(range(12)) if ids is None else ids.tolist()
    for start, stop in ((0, 12), (3, 7), (5, 5), (11, 12)):
        found = store.node_ids(start, stop)
        assert found.type == kind
        assert found.to_pylist() == expected[start:stop]
    with pytest.raises(ValueError, match="between 0 and 12"):
        store.node_ids(3, 13)


def test_a_missing_id_is_refused(tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(DataError, match="missing"):
        write_store(tmp_path / "store", graph, node_ids=pa.array(["a", None] * 6))
    assert not list(tmp_path.iterdir())


def test_labels_of_several_a_node_and_several_graphs(
    tmp_path: Path, random_graph: RandomGraph
) -> None:
    y = (torch.rand(12, 4, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    graph = Graph.concat([random_graph(y=y), random_graph(y=1 - y)])
    write_store(tmp_path / "store", graph)
    again = open_store(tmp_path / "store").graph
    assert again.multi_label
    assert again.y.dtype == torch.uint8
    assert torch.equal(again.y.float(), graph.y)
    assert again.ptr.tolist() == [0, 12, 24]
    with pytest.raises(DataError, match="zeros and ones"):
        write_store(tmp_path / "other", random_graph(y=y / 2))


def test_the_encoder_comes_back(tmp_path: Path, graph: Graph) -> None:
    table = pa.table({"colour": ["red", "blue", "red"] * 4})
    encoder = FeatureEncoder.fit(table, np.ones(12, dtype=bool))
    with_encoder = Graph(graph.rowptr, graph.col, x=encoder.transform(table), encoder=encoder)
    write_store(tmp_path / "store", with_encoder)
    again = open_store(tmp_path / "store").graph
    assert again.encoder.to_dict() == encoder.to_dict()
    assert torch.equal(again.features().to_dense(), with_encoder.features().to_dense())
    alter(tmp_path / "store", lambda header: header["encoder"].update(format=99))
    with pytest.raises(DataError, match="encoder"):
        open_store(tmp_path / "store")


def test_a_graph_without_nodes(tmp_path: Path) -> None:
    graph = Graph(torch.zeros(1, dtype=torch.long), torch.empty(0, dtype=torch.long))
    write_store(tmp_path / "store", graph)
    store = open_store(tmp_path / "store")
    assert (store.graph.num_nodes, store.graph.num_edges) == (0, 0)
    assert len(store.node_ids(0, 0)) == 0


def test_a_kept_degree_is_stored(tmp_path: Path, graph: Graph) -> None:
    part = graph.subgraph(torch.arange(5))
    write_store(tmp_path / "store", part)
    assert torch.equal(open_store(tmp_path / "store").graph.degree, part.degree)


def test_a_store_can_be_written_from_another(tmp_path: Path, path: Path, graph: Graph) -> None:
    write_store(tmp_path / "other", open_store(path).graph, features="float16")
    again = open_store(tmp_path / "other").graph
    assert again.x.dtype == torch.float16
    assert torch.equal(again.features(), graph.x.half().float())


def test_opening_takes_no_memory_for_the_arrays(tmp_path: Path) -> None:
    size = 1 << 22  # 16 MB of features
    with StoreWriter(tmp_path / "store") as writer:
        writer.array("rowptr", (size + 1,), "int64")
        writer.array("col", (0,), "int32")
        writer.array("x", (size, 1), "float32")[:] = 1
        writer.finish()
    graph = open_store(tmp_path / "store").graph
    rows = torch.tensor([0, size - 1])
    assert mapped(graph.x, tmp_path / "store" / "x.bin")
    assert graph.subgraph(rows).x.tolist() == [[1], [1]]
    assert graph.features(slice(5, 9)).data_ptr() == graph.x[5:].data_ptr()


# The writer.


def test_arrays_are_filled_in_any_order_or_appended(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "deep" / "store") as writer:
        rowptr = writer.array("rowptr", (4,), "int64")
        rowptr[2:] = [2, 3]
        rowptr[1] = 1
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
        (lambda w: w.array("../x", (1,), "int64"), "named once"),
        (lambda w: w.array("rowptr", (1,), "int32"), "must be int64"),
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
            writer.array("rowptr", (3,), "int64")[:] = [0, 1, 1]
            writer.array("col", (1,), "int32")[:] = 2
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
    assert writer._lock is not None
    os.close(writer._lock)  # all that the end of a process does
    writer._lock = None
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


@pytest.mark.parametrize("where", ["array", "append", "finish", "block"])
def test_a_full_disk_is_said_plainly(
    tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    def write(writer: StoreWriter) -> None:
        if where == "array":
            monkeypatch.setattr(os, "posix_fallocate", full)
            writer.array("rowptr", (5,), "int64")
        elif where == "append":
            appender = writer.append("col", "int32")
            appender._file.close()
            appender._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115, PTH123
            appender.write(np.zeros(3, np.int32))
        elif where == "finish":
            writer.array("rowptr", (1,), "int64")
            writer.array("col", (0,), "int32")
            monkeypatch.setattr(store_writer, "_sync", full)
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


# Stores that are damaged, or made to do harm.


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
    monkeypatch.setattr(store_files, "PIECE", 16)  # so that there are several
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
    monkeypatch.setattr(store_files, "PIECE", piece)
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
        writer.array("rowptr", (3,), "int64")
        writer.array("col", (0,), "int32")
        writer.append("ids_offsets", "int64").write(np.array([0, 1, 2]))
        writer.append("ids_bytes", "uint8").write(np.array([97, 255], np.uint8))
        writer.finish()
    store = open_store(tmp_path / "store")
    assert store.node_ids(0, 1).to_pylist() == ["a"]
    with pytest.raises(DataError, match="UTF-8"):
        store.node_ids(0, 2)


def test_a_checksum_does_not_depend_on_the_number_of_threads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in (1, 5):
        monkeypatch.setattr(store_files, "num_threads", lambda threads=threads: threads)
        open_store(path)


def test_stores_can_be_opened_by_several_threads(path: Path) -> None:
    opened: list[Any] = []
    threads = [threading.Thread(target=lambda: opened.append(open_store(path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({store.graph.col.sum().item() for store in opened}) == 1
    assert len(opened) == 4


def test_write_ids_of_large_strings(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store") as writer:
        writer.array("rowptr", (3,), "int64")
        writer.array("col", (0,), "int32")
        write_ids(writer, pa.chunked_array([["a"], ["bc"]], pa.string()))
        writer.finish()
    assert open_store(tmp_path / "store").node_ids(0, 2).to_pylist() == ["a", "bc"]
