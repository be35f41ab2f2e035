import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn.datasets import dataset_files, load_dataset
from lgcn.errors import DataError

from .conftest import need

# Per split: graph of each row, links between rows, and a feature.
SMALL: dict[str, tuple[list[int], list[tuple[int, int]], list[float]]] = {
    "train": ([1, 1, 1, 2, 2], [(0, 1), (1, 0), (1, 1), (1, 2), (3, 4)], [1, 2, 3, 4, 5]),
    "valid": ([3, 3], [(0, 1), (0, 1)], [100, 200]),
    "test": ([4], [], [-7]),
}


def write_ppi(folder: Path, key: str = "links") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, (graph_id, links, feature) in SMALL.items():
        graph = {
            "directed": False,
            "nodes": [{"id": i} for i in range(len(graph_id))],
            key: [{"source": u, "target": v} for u, v in links],
        }
        (folder / f"{split}_graph.json").write_text(json.dumps(graph))
        x = np.stack([feature, np.full(len(feature), 3.0)], axis=1)
        np.save(folder / f"{split}_feats.npy", x)
        np.save(folder / f"{split}_labels.npy", np.arange(len(feature) * 3).reshape(-1, 3) % 2)
        np.save(folder / f"{split}_graph_id.npy", np.array(graph_id))


@pytest.mark.parametrize("key", ["links", "edges"])
def test_small_files(key: str, tmp_path: Path) -> None:
    write_ppi(tmp_path / "ppi", key)
    graph = load_dataset("ppi", tmp_path, normalize_features=False)
    assert (graph.name, graph.num_nodes, graph.num_graphs) == ("ppi", 8, 4)
    assert graph.ptr is not None
    assert graph.ptr.tolist() == [0, 3, 5, 7, 8]
    # Both directions of every link once, no self-loop, rows of later splits moved up.
    assert graph.edge_index.T.tolist() == [
        [1, 0], [0, 1], [2, 1], [1, 2], [4, 3], [3, 4], [6, 5], [5, 6],
    ]  # fmt: skip
    assert graph.mask("train").tolist() == [True] * 5 + [False] * 3  # type: ignore[union-attr]
    assert graph.mask("val").tolist() == [False] * 5 + [True] * 2 + [False]  # type: ignore[union-attr]
    assert graph.mask("test").tolist() == [False] * 7 + [True]  # type: ignore[union-attr]
    assert graph.inductive
    assert graph.multi_label
    assert graph.y is not None
    assert graph.y.dtype == torch.float32
    assert graph.y[:2].tolist() == [[0, 1, 0], [1, 0, 1]]
    assert graph.x is not None
    assert graph.x[:, 0].tolist() == [1, 2, 3, 4, 5, 100, 200, -7]


def test_features_are_standardised_by_training_nodes_only(tmp_path: Path) -> None:
    write_ppi(tmp_path)
    graph = load_dataset("ppi", tmp_path)
    assert graph.x is not None
    wanted = (np.array([1, 2, 3, 4, 5, 100, 200, -7]) - 3) / np.sqrt(2)
    np.testing.assert_allclose(graph.x[:, 0].numpy(), wanted, rtol=1e-6)
    assert (graph.x[:, 1] == 0).all(), "a constant feature becomes zero, not NaN"


def test_rows_of_a_graph_need_not_be_together(tmp_path: Path) -> None:
    write_ppi(tmp_path)
    np.save(tmp_path / "train_graph_id.npy", np.array([2, 1, 2, 1, 2]))
    links = [{"source": 0, "target": 4}, {"source": 1, "target": 3}]
    (tmp_path / "train_graph.json").write_text(json.dumps({"links": links}))
    graph = load_dataset("ppi", tmp_path, normalize_features=False)
    assert graph.x is not None
    assert graph.x[:5, 0].tolist() == [2, 4, 1, 3, 5]
    assert graph.edge_index[:, :4].T.tolist() == [[1, 0], [0, 1], [4, 2], [2, 4]]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train_graph.json", {"links": [{"source": 2, "target": 3}]}, "within one graph"),
        ("train_graph.json", {"links": [{"source": 0, "target": 5}]}, "train_graph.json"),
        ("train_graph.json", {"links": [{"source": -1, "target": 0}]}, "train_graph.json"),
        ("train_graph.json", {"links": [{"source": "a", "target": "b"}]}, "train_graph.json"),
        ("train_graph.json", {"links": [{"source": 2**70, "target": 0}]}, "train_graph.json"),
        ("train_graph.json", {"links": [{"source": 1}]}, "train_graph.json"),
        ("train_graph.json", {"links": 3}, "train_graph.json"),
        ("train_graph.json", {}, "train_graph.json"),
        ("train_graph.json", [], "train_graph.json"),
        ("valid_feats.npy", np.ones((2, 5)), "valid_feats.npy"),
        ("valid_feats.npy", np.ones(2), "valid_feats.npy"),
        ("valid_feats.npy", np.full((2, 2), np.nan), "valid_feats.npy"),
        ("valid_labels.npy", np.ones((3, 3)), "valid_labels.npy"),
        ("valid_labels.npy", np.full((2, 3), 2), "valid_labels.npy"),
        ("test_graph_id.npy", np.array([0.5]), "test_graph_id.npy"),
        ("test_graph_id.npy", np.array([1, 2]), "test_graph_id.npy"),
        ("test_graph_id.npy", np.array([None]), "test_graph_id.npy"),
    ],
)
def test_wrong_file_is_named(file: str, content: Any, message: str, tmp_path: Path) -> None:
    write_ppi(tmp_path)
    if isinstance(content, np.ndarray):
        np.save(tmp_path / file, content, allow_pickle=True)
    else:
        (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        load_dataset("ppi", tmp_path)


@pytest.mark.parametrize("part", ["graph.json", "feats.npy", "labels.npy", "graph_id.npy"])
def test_cut_file_is_named(part: str, tmp_path: Path) -> None:
    write_ppi(tmp_path)
    path = tmp_path / f"valid_{part}"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match=f"valid_{part}"):
        load_dataset("ppi", tmp_path)


@pytest.mark.parametrize("name", ["ppi", "ppi-rederived"])
def test_missing_files(name: str, tmp_path: Path) -> None:
    write_ppi(tmp_path)
    (tmp_path / "test_feats.npy").unlink()
    for call in (load_dataset, dataset_files):
        with pytest.raises(DataError, match="LGCN_DATA") as caught:
            call(name, tmp_path)
        assert str(tmp_path) in str(caught.value)


def write_rederived(folder: Path, **changed: Any) -> None:
    arrays = {
        "edges": np.array([[0, 2], [1, 1], [2, 0], [3, 4]], dtype=np.int32),
        "graph_id": np.array([1, 1, 1, 2, 2], dtype=np.int8),
        "split": np.array([0, 0, 0, 2, 2], dtype=np.int8),
        "feats": np.array([[0], [1], [2], [9], [9]], dtype=np.uint8),
        "labels_rederived": np.array([[0, 1]] * 5, dtype=np.uint8),
        "label_go_ids": np.array(["GO:1", "GO:2"]),
        "entrez": np.array([70, 50, 60, 50, 80], dtype=np.int32),
    }
    arrays |= changed
    arrays = {name: array for name, array in arrays.items() if array is not None}
    np.savez(folder / "ppi_rederived.npz", **arrays)  # type: ignore[arg-type]


def test_rederived(tmp_path: Path) -> None:
    write_rederived(tmp_path)
    graph = load_dataset("ppi-rederived", tmp_path)
    assert (graph.name, graph.num_graphs) == ("ppi-rederived", 2)
    assert graph.label_names == ("GO:1", "GO:2")
    assert graph.edge_index.T.tolist() == [[2, 0], [0, 2], [4, 3], [3, 4]]
    assert graph.x is not None
    np.testing.assert_allclose(graph.x[:3, 0].numpy(), np.array([-1, 0, 1]) * np.sqrt(1.5))
    assert graph.mask("test").tolist() == [False] * 3 + [True] * 2  # type: ignore[union-attr]


def test_genes_are_the_names_of_nodes_and_follow_their_order(tmp_path: Path) -> None:
    write_rederived(tmp_path, split=np.array([2, 2, 2, 0, 0]))
    graph = load_dataset("ppi-rederived", tmp_path)
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == [50, 80, 70, 50, 60]
    write_rederived(tmp_path, entrez=None)
    assert load_dataset("ppi-rederived", tmp_path).node_ids is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": np.array([[2, 3]])}, "within one graph"),
        ({"edges": np.array([[0, 5]])}, "edges"),
        ({"split": np.array([0, 0, 2, 2, 2])}, "within one graph"),
        ({"split": np.array([0, 0, 0, 3, 3])}, "split"),
        ({"split": np.array([1, 1, 1, 2, 2])}, "training nodes"),
        ({"label_go_ids": np.array(["GO:1"])}, "label_go_ids"),
        ({"entrez": np.array([1, 2])}, "entrez"),
        ({"feats": None}, "feats missing"),
    ],
)
def test_wrong_rederived(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_rederived(tmp_path, **changed)
    with pytest.raises(DataError, match=rf"ppi_rederived\.npz.*{message}"):
        load_dataset("ppi-rederived", tmp_path)


def test_real_rederived(real_data: Path) -> None:
    need(real_data, "ppi_rederived.npz")
    graph = load_dataset("ppi-rederived", real_data)
    assert (graph.num_nodes, graph.num_edges, graph.num_graphs) == (56944, 2 * (818716 - 25084), 24)
    assert (graph.num_features, graph.num_classes) == (50, 121)
    counts = [int(graph.mask(split).sum()) for split in ("train", "val", "test")]  # type: ignore[union-attr]
    assert counts == [44906, 6514, 5524]
    assert graph.inductive
    assert graph.x is not None
    train = graph.x[graph.train_mask]
    assert torch.allclose(train.mean(0), torch.zeros(50), atol=1e-4)
    deviation = train.std(0, correction=0)
    assert deviation[10] == 0  # this feature is the same in all training nodes
    assert torch.allclose(deviation[torch.arange(50) != 10], torch.ones(()), atol=1e-4)


def test_nested_json_is_named(tmp_path: Path) -> None:
    write_ppi(tmp_path)
    (tmp_path / "train_graph.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"train_graph\.json is damaged: .* levels"):
        load_dataset("ppi", tmp_path)
