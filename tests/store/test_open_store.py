"""Stores: what is written comes back."""

import threading
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
from lgcn.errors import DataError
from lgcn.graph.csr import CSR
from lgcn.store import checked_files
from lgcn.store.format import is_store
from lgcn.store.open_store import open_store
from lgcn.store.write_store import write_store
from lgcn.store.writer import StoreWriter
from lgcn.tables.encoder import FeatureEncoder

from .stores import RandomGraph, alter

TOLERANCE = {"float32": 0.0, "float16": 2e-3, "bfloat16": 2e-2, "uint8": 2e-2}


def mapped(tensor: torch.Tensor, path: Path) -> bool:
    """Whether the tensor's memory is a map of the file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, *_, name = line.split(maxsplit=5)
        low, high = (int(bound, 16) for bound in bounds.split("-"))
        if low <= tensor.data_ptr() < high:
            return name == str(path)
    return False


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


def test_a_transpose_of_version_0_1_0_is_not_read(path: Path, graph: Graph) -> None:
    """It was written for directed graphs. Its file may even be damaged."""

    def add(header: dict[str, Any]) -> None:
        header["directed"] = True
        for name in ("rowptr", "col"):
            header["arrays"][f"transpose_{name}"] = header["arrays"][name]

    alter(path, add)
    (path / "transpose_rowptr.bin").write_bytes(b"short")
    again = open_store(path)
    assert again.graph.col.tolist() == graph.col.tolist()
    write_store(path, again.graph, overwrite=True)  # no file of it is a stranger's
    assert not list(path.glob("transpose_*"))
    assert "transpose_col" not in open_store(path).header["arrays"]


def assert_same(one: CSR, other: CSR) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a is None and b is None) or torch.equal(a.to(b.dtype), b)


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
        writer.append("rowptr", "int64").write(np.zeros(size + 1, np.int64))
        writer.append("col", "int32")
        writer.append("x", "float32", 1).write(np.ones((size, 1), np.float32))
        writer.finish()
    graph = open_store(tmp_path / "store").graph
    rows = torch.tensor([0, size - 1])
    assert mapped(graph.x, tmp_path / "store" / "x.bin")
    assert graph.subgraph(rows).x.tolist() == [[1], [1]]
    assert graph.features(slice(5, 9)).data_ptr() == graph.x[5:].data_ptr()


def test_a_checksum_does_not_depend_on_the_number_of_threads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in (1, 5):
        monkeypatch.setattr(checked_files, "num_threads", lambda threads=threads: threads)
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


def test_what_is_written_to_a_tensor_stays_in_memory(tmp_path: Path, graph: Graph) -> None:
    write_store(tmp_path / "store", graph)
    before = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    opened = open_store(tmp_path / "store").graph
    opened.col[0] = 1  # which ended the process
    assert opened.x is not None
    opened.x.div_(2)
    assert int(opened.col[0]) == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()} == before
    opened.col[0] = opened.num_nodes
    with pytest.raises(ValueError, match="col"):
        opened.subgraph(torch.arange(opened.num_nodes))
