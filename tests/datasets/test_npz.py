import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.datasets import dataset_files, describe, load_dataset, npz_names
from lgcn.datasets.graph_report import check_graph
from lgcn.datasets.npz import load_npz
from lgcn.errors import DataError, UsageError
from lgcn.training import Settings, train
from lgcn.utils import arrays as arrays_module
from lgcn.utils import memory
from lgcn.utils.memory import PeakMemory, anonymous_memory

from .conftest import need


def write_npz(path: Path, **changed: Any) -> None:
    """Four nodes, five features; ``None`` leaves an array out."""
    arrays = {
        "edges": np.array([[0, 1], [1, 0], [2, 2], [3, 1]], dtype=np.int32),
        "labels": np.array([0, 1, -1, 1], dtype=np.int16),
        "feat_indptr": np.array([0, 2, 3, 3, 5], dtype=np.int32),
        "feat_indices": np.array([4, 0, 1, 2, 3], dtype=np.int16),
        "feat_shape": np.array([4, 5]),
        "feat_values": np.array([3, 1, 7, 2, 2], dtype=np.float32),
    }
    arrays |= changed
    arrays = {name: array for name, array in arrays.items() if array is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(4, 5), (5, 4)], ids=["nodes-first", "features-first"])
def test_load(shape: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    write_npz(path, feat_shape=np.array(shape))
    graph = load_dataset(str(path), normalize_features=False)
    assert (graph.name, graph.num_nodes, graph.num_classes) == ("small", 4, 2)
    assert graph.edge_index.T.tolist() == [[1, 0], [0, 1], [3, 1], [1, 3]]
    assert graph.y is not None
    assert graph.y.tolist() == [0, 1, -1, 1]
    assert graph.x is not None
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense().tolist() == [
        [1, 0, 0, 0, 3],
        [0, 7, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 2, 2, 0],
    ]
    in_split = torch.stack([graph.mask(split) for split in ("train", "val", "test")]).sum(0)  # type: ignore[arg-type, misc]
    assert in_split.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("values", "normalize"),
    [([1e300, 1, 1, 1, 1], False), ([3e38, -3e38 + 1e22, 1, 1, 1], True)],
)
def test_features_that_float32_cannot_hold_are_refused(
    values: list[float], normalize: bool, tmp_path: Path
) -> None:
    write_npz(tmp_path / "small.npz", feat_values=np.array(values) * (1e20 if normalize else 1))
    with pytest.raises(DataError, match=r"small.npz must .*float32 can hold"):
        load_dataset(str(tmp_path / "small.npz"), normalize_features=normalize)


def test_rows_are_normalised_by_the_smallest_of_sums(tmp_path: Path) -> None:
    write_npz(tmp_path / "small.npz", feat_values=np.array([1e-320, 0, 7, 2, 2]))
    graph = load_dataset(str(tmp_path / "small.npz"))
    assert graph.features().to_dense().sum(dim=1).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("name", ["classes", "names"])
def test_texts_of_no_valid_characters_are_refused(name: str, tmp_path: Path) -> None:
    texts = np.array(["a", "b", "c", "d"])
    texts.view(np.uint32)[1] = 0x110000
    write_npz(tmp_path / "small.npz", **{name: texts})
    with pytest.raises(DataError, match=f"small.npz: {name} must hold strings"):
        load_dataset(str(tmp_path / "small.npz"))


def test_features_are_row_normalised_by_default(tmp_path: Path) -> None:
    write_npz(tmp_path / "small.npz")
    graph = load_dataset("small", tmp_path)
    assert graph.x is not None
    assert graph.x.to_dense().tolist() == [
        [0.25, 0, 0, 0, 0.75],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0.5, 0.5, 0],
    ]


def test_values_are_one_where_absent(tmp_path: Path) -> None:
    write_npz(tmp_path / "small.npz", feat_values=None)
    graph = load_dataset("small", tmp_path, normalize_features=False)
    assert graph.x is not None
    assert graph.x.values().tolist() == [1] * 5


def test_names_of_nodes_and_classes(tmp_path: Path) -> None:
    names, classes = np.array(["a", "b", "c", "d"]), np.array(["red", "green", "blue"])
    write_npz(tmp_path / "small.npz", names=names, classes=classes)
    graph = load_dataset("small", tmp_path)
    assert graph.label_names == ("red", "green", "blue")
    assert graph.num_classes == 3
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ["a", "b", "c", "d"]


def test_split_options(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    write_npz(
        tmp_path / "small.npz",
        labels=rng.integers(0, 2, 100),
        feat_indptr=np.zeros(101, dtype=int),
        feat_indices=np.empty(0, dtype=int),
        feat_values=None,
        feat_shape=np.array([100, 5]),
    )
    graph = load_dataset("small", tmp_path, labels_per_class=3, num_val=10, split_seed=1)
    other = load_dataset("small", tmp_path, labels_per_class=3, num_val=10, split_seed=2)
    counts = [int(graph.mask(split).sum()) for split in ("train", "val", "test")]  # type: ignore[union-attr]
    assert counts == [6, 10, 84]
    assert not torch.equal(graph.train_mask, other.train_mask)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["small.npz", "npz/small.npz"])
def test_found_by_bare_name(place: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_npz(cache / place)
    assert load_dataset("small").name == "small"
    assert dataset_files("small") == [cache / place]
    assert str(cache / place) in describe("small")
    assert npz_names() == (["small"] if place.startswith("npz/") else [])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": None}, "edges missing"),
        ({"edges": np.array([[0, 4]])}, "edges"),
        ({"edges": np.array([[-1, 0]])}, "edges"),
        ({"edges": np.array([[0.0, 1.0]])}, "edges"),
        ({"edges": np.array([[0, 1, 2]])}, "edges"),
        ({"edges": np.array([[0, None]])}, "edges"),
        ({"labels": np.array([0, 1, -2, 1])}, "labels"),
        ({"labels": np.array([0, 1, 10**12, 1])}, "labels"),
        ({"labels": np.array([0.0, 1, 0, 1])}, "labels"),
        ({"labels": np.empty(0, dtype=int)}, "labels"),
        ({"labels": np.array([0, 1, 10**6, 1])}, "labels"),
        ({"classes": np.array(["one"])}, "labels"),
        ({"classes": np.zeros(10**6 + 1, dtype="U1")}, "classes"),
        ({"names": np.zeros(4, dtype="M8[s]")}, "names"),
        ({"names": np.array(["one"])}, "names"),
        ({"feat_shape": np.array([3, 5])}, "feat_shape"),
        ({"feat_shape": np.array([4])}, "feat_shape"),
        ({"feat_shape": np.array([4, 4])}, "feature numbers"),
        ({"feat_indptr": np.array([0, 2, 3, 5])}, "row pointer"),
        ({"feat_indptr": np.array([0, 3, 2, 3, 5])}, "row pointer"),
        ({"feat_indptr": np.array([0, 2, 3, 3, 6])}, "row pointer"),
        ({"feat_indptr": np.array([1, 2, 3, 3, 5])}, "row pointer"),
        ({"feat_indices": np.array([4, 0, -1, 2, 3])}, "feature numbers"),
        ({"feat_indices": np.array(4)}, "feature numbers"),
        ({"feat_values": np.ones(4)}, "feature values"),
        ({"feat_values": np.array([1, 2, np.inf, 0, 0])}, "feature values"),
        ({"feat_values": np.array(["a"] * 5)}, "feature values"),
    ],
)
def test_wrong_arrays_are_named(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    write_npz(path, **changed)
    with pytest.raises(DataError, match=rf"small\.npz.*{message}"):
        load_dataset(str(path))


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04garbage", None])
def test_garbage(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    write_npz(path)
    path.write_bytes(path.read_bytes()[:-30] if content is None else content)
    with pytest.raises(DataError, match=r"small\.npz"):
        load_dataset(str(path))


def test_changed_bytes_in_an_array_are_found(tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    write_npz(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"NUMPY") + 130] ^= 255  # in the numbers of the first array; zip has a checksum
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"small\.npz: cannot read the array edges"):
        load_dataset(str(path))


def test_a_single_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(DataError, match="archive"):
        load_dataset(str(path))


def wide(path: Path, num_features: int) -> None:
    write_npz(path, feat_shape=np.array([4, num_features]))


def test_features_that_no_machine_can_train_on_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(tmp_path / "wide.npz", 2**31)
    monkeypatch.setattr(memory, "machine_memory", lambda: 16 * 10**9)
    message = r"wide\.npz: training on 2147483648 features would need 34\.4 GB .* has 16 GB"
    with pytest.raises(DataError, match=message):
        load_dataset("wide", tmp_path)


def test_many_sparse_features_take_no_memory_until_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(tmp_path / "wide.npz", 2**31)
    monkeypatch.setattr(memory, "machine_memory", lambda: 64 * 10**9)
    before = anonymous_memory()
    with PeakMemory(every=0.001) as watch:
        graph = load_dataset("wide", tmp_path)
        check_graph(graph)
    assert watch.peak - before < 100 * 10**6
    assert graph.num_features == 2**31
    with pytest.raises(UsageError, match=r"2147483648 features.* would need 1099"):
        train(replace(graph, val_mask=graph.train_mask), Settings.create(hidden_channels=32))


def test_arrays_that_unpack_to_far_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.npz"
    write_npz(tmp_path / "plain.npz")
    arrays = dict(np.load(tmp_path / "plain.npz"))
    np.savez_compressed(path, **arrays, more=np.zeros(10**6))
    load_dataset(str(path))  # a few MB are no bomb
    monkeypatch.setattr(arrays_module, "MAX_UNPACKED", 10**6)
    with pytest.raises(DataError, match=r"bomb\.npz unpacks to .* more than 200 times"):
        load_dataset(str(path))
    np.savez(path, **arrays, more=np.zeros(10**6))  # as large, but in the file too
    load_dataset(str(path))


@pytest.mark.parametrize("shape", [(2**40,), (2**20, 2**20)])
def test_an_array_that_claims_more_than_its_file_has(tmp_path: Path, shape: Any) -> None:
    header = {"descr": "<i8", "fortran_order": False, "shape": shape}
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, header)
    (tmp_path / "a.npy").write_bytes(claim.getvalue())
    with pytest.raises(DataError, match=r"a\.npy .*claims 8796093022208 bytes, .*128"):
        arrays_module.read_npy(tmp_path / "a.npy")
    write_npz(tmp_path / "a.npz", edges=None)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("edges.npy", claim.getvalue())
    with pytest.raises(DataError, match=r"a\.npz.*edges.*claims 8796093022208 bytes"):
        load_dataset(str(tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("amazon_computers", (13752, 2 * 245861, 767, 10)),
        ("coauthor_cs", (18333, 2 * 81894, 6805, 15)),
    ],
)
def test_real_files(name: str, sizes: tuple[int, ...], real_data: Path) -> None:
    need(real_data, f"{name}.npz")
    graph = load_dataset(name, real_data)
    found = (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes)
    assert found == sizes
    assert int(graph.train_mask.sum()) == 20 * graph.num_classes  # type: ignore[union-attr]
    assert graph.x is not None
    rows = torch.repeat_interleave(graph.x.crow_indices().diff())
    sums = torch.zeros(graph.num_nodes).index_add_(0, rows, graph.x.values())
    assert torch.allclose(sums[sums != 0], torch.ones(()), atol=1e-5)


def test_half_of_the_labelled_nodes_to_train_on(tmp_path: Path) -> None:
    labels = np.repeat([0, 1, -1], [8, 12, 3])
    write_npz(
        tmp_path / "npz" / "small.npz",
        labels=labels,
        feat_indptr=np.arange(24),
        feat_indices=np.zeros(23, dtype=np.int64),
        feat_values=None,
        feat_shape=np.array([23, 1]),
    )
    graph = load_dataset("small-half", tmp_path)
    assert graph.name == "small-half"
    counts = [[int(mask[labels == c].sum()) for c in (0, 1, -1)] for mask in masks_of(graph)]
    assert counts == [[4, 6, 0], [2, 3, 0], [2, 3, 0]]
    share = load_dataset("small", tmp_path, train_share=0.5)
    assert all(torch.equal(a, b) for a, b in zip(masks_of(graph), masks_of(share), strict=True))
    other = load_dataset("small-half", tmp_path, split_seed=1)
    assert not torch.equal(masks_of(other)[0], masks_of(graph)[0])
    assert dataset_files("small-half", tmp_path) == [tmp_path / "npz" / "small.npz"]


def test_half_of_nothing_is_refused(tmp_path: Path) -> None:
    write_npz(tmp_path / "npz" / "small.npz")
    with pytest.raises(UsageError, match="there is no data set 'smal-half'"):
        load_dataset("smal-half", tmp_path)
    with pytest.raises(UsageError, match="train_share"):
        load_dataset("small", tmp_path, train_share=1.5)


def masks_of(graph: Graph) -> list[torch.Tensor]:
    return [graph.train_mask, graph.val_mask, graph.test_mask]  # type: ignore[list-item]


FEATURES = ("feat_indptr", "feat_indices", "feat_shape", "feat_values")


def test_without_features(tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    write_npz(path)
    before = load_npz(path)
    write_npz(path, **dict.fromkeys(FEATURES))
    graph = load_npz(path)
    assert graph.x is None
    assert graph.num_nodes == 4
    assert torch.equal(graph.col, before.col)


@pytest.mark.parametrize("missing", FEATURES[:3])
def test_some_arrays_of_features(tmp_path: Path, missing: str) -> None:
    write_npz(tmp_path / "small.npz", **{missing: None})
    with pytest.raises(DataError, match=f"or none of them; {missing} missing"):
        load_npz(tmp_path / "small.npz")
