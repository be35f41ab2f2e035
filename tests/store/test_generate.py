"""The generator: bytes that only the seed decides, and the structure that was asked for."""

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.store import generate
from lgcn.store.generate import generate_store
from lgcn.store.open_store import open_store

SMALL: dict[str, Any] = {
    "num_nodes": 1003,
    "num_edges": 6000,
    "num_features": 5,
    "num_classes": 4,
}


def made(path: Path, **options: Any) -> Graph:
    generate_store(path, **{**SMALL, **options})
    return open_store(path).graph


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


@pytest.mark.parametrize("features", ["float32", "uint8"])
def test_bytes_depend_on_the_seed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, features: str
) -> None:
    generate_store(tmp_path / "one", **SMALL, features=features)
    expected = contents(tmp_path / "one")
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    monkeypatch.setattr(generate, "_VALUES", 37)  # what is made at a time
    try:
        generate_store(tmp_path / "two", **SMALL, features=features, memory="1MB")
    finally:
        numba.set_num_threads(before)
    assert contents(tmp_path / "two") == expected
    generate_store(tmp_path / "other", **SMALL, features=features, seed=1)
    other = contents(tmp_path / "other")
    assert all(other[name] != expected[name] for name in ("col.bin", "x.bin", "y.bin"))


def test_the_graph_is_undirected_and_has_no_duplicates_or_self_loops(tmp_path: Path) -> None:
    graph = made(tmp_path / "store")
    dense = torch.zeros(1003, 1003, dtype=torch.long)
    source, target = graph.edge_index
    dense.index_put_((target, source), torch.ones_like(source), accumulate=True)
    assert dense.max() == 1
    assert torch.equal(dense, dense.t())
    assert dense.diagonal().sum() == 0
    assert 0.95 * 12000 < graph.num_edges <= 12000
    for start, stop in zip(graph.rowptr[:-1].tolist(), graph.rowptr[1:].tolist(), strict=True):
        row = graph.col[start:stop]
        assert torch.equal(row, row.sort().values)


@pytest.mark.parametrize("homophily", [0.0, 0.3, 1.0])
def test_edges_join_nodes_of_one_class_as_often_as_asked(tmp_path: Path, homophily: float) -> None:
    graph = made(tmp_path / "store", homophily=homophily, num_nodes=5000, num_edges=20_000)
    source, target = graph.edge_index
    share = (graph.y[source] == graph.y[target]).float().mean()
    assert abs(float(share) - homophily) < 0.03


@pytest.mark.parametrize("skew", [0.0, 0.5, 0.75, 1.0])
def test_degrees_fall_with_the_rank_to_the_power_asked(tmp_path: Path, skew: float) -> None:
    nodes = 20_000
    graph = made(tmp_path / "store", skew=skew, num_nodes=nodes, num_edges=100_000, num_classes=1)
    degree = graph.degree.sort(descending=True).values.double().numpy()
    if skew == 0:
        assert degree.max() < 5 * degree.mean()
        return
    # Expected degrees, up to what duplicates take from the largest ones.
    weight = np.arange(1, nodes + 1) ** -skew
    expected = weight / weight.sum() * degree.sum()
    low, high = 100, 2000
    slope = np.polyfit(np.log(np.arange(low, high)), np.log(degree[low:high]), 1)[0]
    assert abs(slope + skew) < 0.15
    assert 0.6 < degree[low:high].sum() / expected[low:high].sum() < 1.7


def test_hubs_and_classes_are_spread_over_the_nodes(tmp_path: Path) -> None:
    graph = made(tmp_path / "store", num_nodes=10_000, num_edges=50_000)
    hubs = graph.degree.topk(100).indices
    assert torch.histc(hubs.double(), 10, 0, 10_000).min() >= 5
    for part in graph.y.split(1000):
        assert torch.bincount(part, minlength=4).min() > 200


def test_features_are_the_centre_of_the_class_and_noise(tmp_path: Path) -> None:
    graph = made(tmp_path / "store", num_nodes=20_000, num_features=7, noise=2.0)
    centres = torch.stack([graph.x[graph.y == label].mean(0) for label in range(4)])
    noise = graph.x - centres[graph.y]
    assert (noise.std(0) - 2 / 5**0.5).abs().max() < 0.02
    # Normal, and independent of one another.
    assert (noise.pow(4).mean(0) / noise.pow(2).mean(0) ** 2 - 3).abs().max() < 0.3
    assert (torch.corrcoef(noise.t()) - torch.eye(7)).abs().max() < 0.03
    assert 0.1 < centres.std() < 0.9


@pytest.mark.parametrize("features", ["float16", "bfloat16", "uint8"])
def test_features_of_all_kinds_are_the_same_within_rounding(tmp_path: Path, features: str) -> None:
    exact = made(tmp_path / "exact").x
    rounded = made(tmp_path / "rounded", features=features).features()
    assert (exact - rounded).abs().max() < 0.03


def test_splits(tmp_path: Path) -> None:
    graph = made(tmp_path / "store", labels_per_class=20, num_val=101)
    total = graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int()
    assert total.eq(1).all()
    assert torch.bincount(graph.y[graph.train_mask]).tolist() == [20] * 4
    assert int(graph.val_mask.sum()) == 101
    assert torch.bincount(graph.y).tolist() == [251, 251, 251, 250]
    # Training nodes are of all ranks.
    degree = graph.degree
    assert 0.5 < degree[graph.train_mask].mean() / degree.mean() < 2
    few = made(tmp_path / "few", num_nodes=9, num_edges=5, labels_per_class=100, num_val=100)
    assert torch.bincount(few.y[few.train_mask]).tolist() == [1, 1, 1, 1]
    assert few.test_mask.any()


def test_defaults_of_the_splits(tmp_path: Path) -> None:
    graph = made(tmp_path / "store")
    assert int(graph.train_mask.sum()) == 4 * 25
    assert int(graph.val_mask.sum()) == 100


def test_the_header_says_how_it_was_made_and_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    header = generate_store(
        tmp_path / "store", **SMALL, seed=7, on_progress=lambda *step: told.append(step)
    )
    assert header == open_store(tmp_path / "store").header
    assert header["source"]["seed"] == 7
    assert header["label_names"] == ["0", "1", "2", "3"]
    assert list(dict.fromkeys(what for what, _, _ in told)) == [
        "sort edges",
        "labels",
        "features",
        "checksums",
    ]
    assert all(0 <= done <= total for _, done, total in told)
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize(
    "options", [{"num_nodes": 1, "num_edges": 0, "num_classes": 1}, {"num_edges": 0}]
)
def test_small_graphs(tmp_path: Path, options: dict[str, int]) -> None:
    graph = made(tmp_path / "store", **options)
    assert graph.num_edges == 0
    assert bool(graph.train_mask.any())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 2**31}, "num_nodes"),
        ({"num_edges": 10**9}, "num_edges"),
        ({"num_classes": 2000}, "num_classes"),
        ({"homophily": 1.5}, "homophily"),
        ({"skew": -1}, "skew"),
        ({"noise": float("nan")}, "noise"),
        ({"features": "int8"}, "features"),
        ({"memory": "much"}, "memory"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate_store(tmp_path / "store", **{**SMALL, **options})
    assert not list(tmp_path.iterdir())
