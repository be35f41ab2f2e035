"""The generator: bytes that only the seed decides, and the structure that was asked for."""

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse
import torch

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.store import generate, planted
from lgcn.store.generate import generate_store
from lgcn.store.open_store import open_store

CLEAN: dict[str, Any] = {"imbalance": 0.0, "label_noise": 0.0}
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


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("homophily", [0.0, 0.3, 0.5, 1.0])
def test_edges_join_nodes_of_one_class_as_often_as_asked(
    tmp_path: Path, homophily: float, classes: int
) -> None:
    options = {"homophily": homophily, "num_classes": classes, "locality": 0.5, "skew": 0.2}
    graph = made(tmp_path / "store", **options, **CLEAN, num_nodes=9000, num_edges=20_000)
    source, target = graph.edge_index
    share = float((graph.y[source] == graph.y[target]).float().mean())
    assert abs(share - homophily) < 0.03 or (classes == 1 and share == 1)


def test_every_second_pair_of_classes_prefers_the_partner(tmp_path: Path) -> None:
    options = {"num_nodes": 10_000, "num_edges": 50_000, "num_classes": 6, "label_noise": 0.0}
    graph = made(tmp_path / "store", **options)
    source, target = graph.edge_index
    between = torch.zeros(6, 6)
    between.index_put_((graph.y[target], graph.y[source]), torch.ones(len(source)), accumulate=True)
    between /= between.sum(1, keepdim=True)
    for label in range(6):
        partner = label ^ 1
        own, of_partner = between[label, label], between[label, partner]
        others = between[label].sum() - own - of_partner
        assert of_partner > 2 * others / 4
        assert (own < of_partner) == (label in (2, 3))


@pytest.mark.parametrize("imbalance", [0.0, 0.5, 2.0])
def test_class_sizes_fall_as_the_formula_says(tmp_path: Path, imbalance: float) -> None:
    graph = made(tmp_path / "store", imbalance=imbalance, label_noise=0.0, num_classes=7)
    weight = np.arange(1.0, 8) ** -imbalance
    sizes = torch.bincount(graph.y, minlength=7).numpy()
    assert sizes.sum() == 1003
    assert np.abs(sizes - 1003 * weight / weight.sum()).max() <= 1


def test_every_class_has_a_node() -> None:
    assert np.diff(planted.class_starts(12, 10, 5.0)).tolist() == [3, *[1] * 9]
    assert planted.class_starts(5, 5, 1.0).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_share_of_the_labels_is_drawn_anew_and_the_ceiling_says_so(tmp_path: Path) -> None:
    options = {"num_nodes": 20_000, "num_edges": 100}
    clean = made(tmp_path / "clean", **options, label_noise=0.0)
    noisy = made(tmp_path / "noisy", **options, label_noise=0.3)
    right = clean.y == noisy.y
    ceiling = open_store(tmp_path / "noisy").header["source"]["accuracy_ceiling"]
    assert ceiling == pytest.approx(
        1 - 0.3 * (1 - float((clean.y.bincount() / 20_000).square().sum()))
    )
    for mask in (noisy.train_mask, noisy.val_mask, noisy.test_mask):
        assert abs(float(right[mask].float().mean()) - ceiling) < 0.03
    # The shares of the classes stay.
    assert (clean.y.bincount() - noisy.y.bincount()).abs().max() < 0.02 * 20_000
    for name in ("x", "col", "train_mask"):
        assert (
            contents(tmp_path / "clean")[f"{name}.bin"]
            == contents(tmp_path / "noisy")[f"{name}.bin"]
        )
    assert open_store(tmp_path / "clean").header["source"]["accuracy_ceiling"] == 1


def test_with_random_labels_the_largest_class_is_the_best_answer() -> None:
    starts = planted.class_starts(1000, 4, 1.0)
    assert planted.accuracy_ceiling(starts, 1.0) == pytest.approx(float(starts[1]) / 1000)


def test_edges_stay_in_regions(tmp_path: Path) -> None:
    """Half of the pairs of neighbours of a local graph's nodes have a short way to each other."""
    options = {"num_nodes": 20_000, "num_edges": 60_000, "skew": 0.0, "num_classes": 2}
    triangles = {}
    for locality in (0.0, 1.0):
        graph = made(tmp_path / f"{locality}", **options, locality=locality)
        entries = (np.ones(graph.num_edges), graph.col.numpy(), graph.rowptr.numpy())
        matrix = scipy.sparse.csr_matrix(entries, shape=(20_000, 20_000))
        triangles[locality] = (matrix @ matrix).multiply(matrix).sum()
    assert triangles[1.0] > 5 * triangles[0.0]


def test_trees_on_the_features_solve_a_graph_without_noise(tmp_path: Path) -> None:
    """The easy graphs of old are still there."""
    easy = {"homophily": 0.8, "imbalance": 0.0, "label_noise": 0.0, "noise": 0.25, "locality": 0.0}
    accuracy = {}
    for name, options in (("easy", easy), ("default", {})):
        graph = made(tmp_path / name, **options, num_nodes=4000, num_edges=40_000, num_features=32)
        centres = torch.stack(
            [graph.x[graph.train_mask & (graph.y == c)].mean(0) for c in range(4)]
        )
        mean = torch.zeros_like(graph.x).index_add_(
            0, graph.edge_index[1], graph.x[graph.edge_index[0]]
        )
        seen = graph.x + mean / graph.degree.clamp(min=1)[:, None]
        found = torch.cdist(seen, centres * 2).argmin(1)
        accuracy[name] = float((found == graph.y).float().mean())
    assert accuracy["easy"] > 0.97
    assert accuracy["default"] < 0.85


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
    graph = made(tmp_path / "store", num_nodes=10_000, num_edges=50_000, **CLEAN)
    hubs = graph.degree.topk(100).indices
    assert torch.histc(hubs.double(), 10, 0, 10_000).min() >= 5
    for part in graph.y.split(1000):
        assert torch.bincount(part, minlength=4).min() > 200


@pytest.mark.parametrize("width", [7, 64])
def test_features_are_the_centre_of_the_class_and_noise(tmp_path: Path, width: int) -> None:
    options = {"num_nodes": 20_000, "num_edges": 10, "num_classes": 6, **CLEAN}
    graph = made(tmp_path / "store", num_features=width, noise=0.5, **options)
    centres = torch.stack([graph.x[graph.y == label].mean(0) for label in range(6)])
    noise = graph.x - centres[graph.y]
    distance = torch.nn.functional.pdist(centres)
    assert abs(float(noise.std() / distance.mean()) - 0.5) < 0.15
    assert abs(float(graph.x.square().mean()) - 1) < 0.1
    assert (noise.std(0) / noise.std() - 1).abs().max() < 0.02
    # Normal, and independent of one another.
    assert (noise.pow(4).mean(0) / noise.pow(2).mean(0) ** 2 - 3).abs().max() < 0.3
    assert (torch.corrcoef(noise.t()) - torch.eye(width)).abs().max() < 0.03


@pytest.mark.parametrize("features", ["float16", "bfloat16", "uint8"])
def test_features_of_all_kinds_are_the_same_within_rounding(tmp_path: Path, features: str) -> None:
    exact = made(tmp_path / "exact").x
    rounded = made(tmp_path / "rounded", features=features).features()
    assert (exact - rounded).abs().max() < 0.03


def test_splits(tmp_path: Path) -> None:
    graph = made(tmp_path / "store", labels_per_class=20, num_val=101, **CLEAN)
    total = graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int()
    assert total.eq(1).all()
    assert torch.bincount(graph.y[graph.train_mask]).tolist() == [20] * 4
    assert int(graph.val_mask.sum()) == 101
    assert torch.bincount(graph.y).tolist() == [251, 251, 250, 251]
    # Training nodes are of all ranks.
    degree = graph.degree
    assert 0.5 < degree[graph.train_mask].mean() / degree.mean() < 2
    few = made(
        tmp_path / "few", num_nodes=9, num_edges=5, labels_per_class=100, num_val=100, **CLEAN
    )
    assert torch.bincount(few.y[few.train_mask]).tolist() == [1, 1, 1, 1]
    assert few.test_mask.any()


def test_by_default_a_tenth_of_each_class_is_for_training_and_for_validation(
    tmp_path: Path,
) -> None:
    graph = made(tmp_path / "store", label_noise=0.0)
    sizes = torch.bincount(graph.y)
    assert sizes.tolist() == [481, 241, 161, 120]
    for mask in (graph.train_mask, graph.val_mask):
        assert (torch.bincount(graph.y[mask]) - sizes / 10).abs().max() < 1.5
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
        ({"imbalance": -0.5}, r"imbalance.* 0 .*-0\.5"),
        ({"label_noise": 2}, r"label_noise.* 1, got 2"),
        ({"locality": None}, "locality"),
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
