import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from lgcn.datasets import dataset_files, load_dataset
from lgcn.datasets.planetoid import SHA256
from lgcn.errors import DataError

from .conftest import need
from .planetoid_files import (
    MISSING,
    NUM_KNOWN,
    NUM_TRAIN,
    TEST_NODES,
    python2_pickle,
    write_planetoid,
)

SIZES = {
    "cora": (2708, 10556, 1433, 7, 140),
    "citeseer": (3327, 9104, 3703, 6, 120),
    "pubmed": (19717, 88648, 500, 3, 60),
}


def test_small_files(tmp_path: Path) -> None:
    parts = write_planetoid(tmp_path)
    graph = load_dataset("cora", tmp_path, normalize_features=False)
    assert (graph.name, graph.num_nodes) == ("cora", max(TEST_NODES) + 1)
    assert graph.edge_index.tolist() == [[1, 0, 512, 3], [0, 1, 3, 512]]
    assert graph.x is not None
    assert graph.x.layout == torch.sparse_csr
    x = graph.x.to_dense().numpy()
    np.testing.assert_array_equal(x[:NUM_KNOWN], parts["known"])
    np.testing.assert_array_equal(x[TEST_NODES], parts["test"])
    assert graph.y is not None
    assert graph.y[:NUM_KNOWN].tolist() == parts["known_y"].argmax(1).tolist()
    assert graph.y[TEST_NODES].tolist() == parts["test_y"].argmax(1).tolist()
    assert graph.mask("train").nonzero().flatten().tolist() == list(range(NUM_TRAIN))  # type: ignore[union-attr]
    assert graph.mask("val").nonzero().flatten().tolist() == list(range(NUM_TRAIN, NUM_TRAIN + 500))  # type: ignore[union-attr]
    assert graph.mask("test").nonzero().flatten().tolist() == sorted(TEST_NODES)  # type: ignore[union-attr]


def test_nodes_without_features_or_label(tmp_path: Path) -> None:
    write_planetoid(tmp_path, "citeseer")
    graph = load_dataset("citeseer", tmp_path)
    assert graph.x is not None
    assert graph.y is not None
    assert graph.x.to_dense()[MISSING].abs().sum() == 0
    assert graph.y[MISSING].tolist() == [-1, -1]
    assert not any(graph.mask(split)[MISSING].any() for split in ("train", "val", "test"))  # type: ignore[index]


def test_features_are_row_normalised_by_default(tmp_path: Path) -> None:
    parts = write_planetoid(tmp_path)
    graph = load_dataset("cora", tmp_path)
    assert graph.x is not None
    x = graph.x.to_dense().numpy()
    wanted = parts["test"] / parts["test"].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(x[TEST_NODES], wanted, rtol=1e-6)
    np.testing.assert_allclose(x[:NUM_KNOWN].sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("folder", ["", "planetoid", "Cora/raw", "cora/raw"])
def test_files_are_found_in_the_usual_folders(folder: str, tmp_path: Path) -> None:
    write_planetoid(tmp_path / folder)
    files = dataset_files("cora", tmp_path)
    assert len(files) == 8
    assert {file.parent for file in files} == {tmp_path / folder}
    assert load_dataset("cora", tmp_path).num_nodes == max(TEST_NODES) + 1


@pytest.mark.parametrize("part", ["x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"])
@pytest.mark.parametrize("content", [b"", b"garbage\n", b"\x80\x02K\x01."])
def test_damaged_file_is_named(part: str, content: bytes, tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    (tmp_path / f"ind.cora.{part}").write_bytes(content)
    with pytest.raises(DataError, match=rf"ind\.cora\.{part}"):
        load_dataset("cora", tmp_path)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("test.index", b"512\n510\n515\n515\n"),
        ("test.index", b"512\n510\n515\n5\n"),
        ("test.index", b"512\n510\n515\n999999999999\n"),
        ("test.index", b"512\n510\n515\n" + b"9" * 30),
        ("test.index", b"512\n510\n"),
        ("graph", python2_pickle({0: [516]})),
        ("graph", python2_pickle({-1: [0]})),
        ("graph", python2_pickle({0: ["a"]})),
        ("graph", python2_pickle({0: 1})),
        ("graph", python2_pickle({2**70: [0]})),
        ("ty", python2_pickle(np.ones((4, 3), dtype=np.int32))),
        ("ty", python2_pickle(np.zeros((4, 0), dtype=np.int32))),
        ("ty", python2_pickle(np.eye(3, dtype=np.int32))),
        ("ty", python2_pickle(np.full((4, 3), -1))),
        ("tx", python2_pickle(np.ones((4, 6)))),
    ],
)
def test_files_that_do_not_fit_are_named(part: str, content: bytes, tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    (tmp_path / f"ind.cora.{part}").write_bytes(content)
    with pytest.raises(DataError, match=rf"ind\.cora\.{part}"):
        load_dataset("cora", tmp_path)


def test_files_of_two_data_sets(tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    for part, source in (("allx", "x"), ("ally", "y")):
        (tmp_path / f"ind.cora.{source}").replace(tmp_path / f"ind.cora.{part}")
    for part in ("x", "y"):
        all_part = tmp_path / f"ind.cora.all{part}"
        (tmp_path / f"ind.cora.{part}").write_bytes(all_part.read_bytes())
    with pytest.raises(DataError, match="do not belong together"):
        load_dataset("cora", tmp_path)


def test_missing_files_without_network(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_dataset("pubmed", tmp_path)
    message = str(caught.value)
    for part in ("ind.pubmed.test.index", str(tmp_path), str(cache), "LGCN_DATA", "LGCN_OFFLINE"):
        assert part in message
    with pytest.raises(DataError, match=r"ind\.pubmed\.x"):
        dataset_files("pubmed", tmp_path)


def test_checksums_are_those_of_the_real_files(real_data: Path) -> None:
    need(real_data, "ind.cora.x")
    files = [file for name in SIZES for file in dataset_files(name, real_data)]
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    assert found == SHA256


@pytest.mark.parametrize("name", SIZES)
def test_real_graph_equals_pyg(name: str, real_data: Path) -> None:
    need(real_data, f"ind.{name}.x")
    from torch_geometric.io import read_planetoid_data

    graph = load_dataset(name, real_data, normalize_features=False)
    sizes = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
    assert (*sizes, int(graph.train_mask.sum())) == SIZES[name]  # type: ignore[union-attr]
    folder = dataset_files(name, real_data)[0].parent
    wanted = read_planetoid_data(str(folder), name)
    assert torch.equal(graph.edge_index, wanted.edge_index)
    assert graph.x is not None
    assert torch.equal(graph.x.to_dense(), wanted.x)
    for split in ("train", "val", "test"):
        assert torch.equal(graph.mask(split), wanted[f"{split}_mask"])  # type: ignore[arg-type]
    assert graph.y is not None
    labelled = graph.y >= 0
    assert torch.equal(graph.y[labelled], wanted.y[labelled])
    assert int((~labelled).sum()) == (15 if name == "citeseer" else 0)


def test_real_citeseer_has_nodes_without_features_or_label(real_data: Path) -> None:
    need(real_data, "ind.citeseer.x")
    graph = load_dataset("citeseer", real_data)
    assert graph.x is not None
    assert graph.y is not None
    unknown = (graph.y < 0).nonzero().flatten()
    sums = graph.x.to_dense().sum(dim=1)
    assert len(unknown) == 15
    assert (sums[unknown] == 0).all()
    assert torch.allclose(sums[sums > 0], torch.ones(()))
    assert not any(graph.mask(split)[unknown].any() for split in ("train", "val", "test"))  # type: ignore[index]


def test_one_list_cannot_stand_for_the_neighbours_of_many_nodes(tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    shared = [1] * 1000
    path = tmp_path / "ind.cora.graph"
    path.write_bytes(python2_pickle(dict.fromkeys(range(500), shared)))
    with pytest.raises(DataError, match=rf"{path.name} is damaged: it lists 500000 neighbours"):
        load_dataset("cora", tmp_path)
