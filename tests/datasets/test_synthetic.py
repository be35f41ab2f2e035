import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.datasets import synthetic
from lgcn.errors import UsageError
from lgcn.graph import Graph


def same_class_share(graph: Graph) -> float:
    assert graph.y is not None
    source, target = graph.edge_index
    return float((graph.y[source] == graph.y[target]).double().mean())


def test_defaults() -> None:
    graph = synthetic()
    assert (graph.name, graph.num_nodes, graph.num_features) == ("synthetic", 2000, 32)
    assert graph.num_edges == 20_000
    assert graph.y is not None
    assert graph.y.bincount().tolist() == [400] * 5
    assert same_class_share(graph) == pytest.approx(0.8, abs=0.02)
    counts = [int(graph.mask(split).sum()) for split in ("train", "val", "test")]  # type: ignore[union-attr]
    assert counts == [100, 500, 1400]
    assert graph.x is not None
    assert graph.x.dtype == torch.float32
    assert float(graph.x.std()) == pytest.approx(1, abs=0.1)


@settings(max_examples=40, deadline=None)
@given(
    num_nodes=st.integers(1, 60),
    mean_degree=st.floats(0, 12),
    num_classes=st.integers(1, 8),
    homophily=st.sampled_from([0.0, 0.5, 1.0]),
    skew=st.sampled_from([0.0, 0.7, 1.0]),
    seed=st.integers(0, 3),
)
def test_any_size(num_nodes: int, mean_degree: float, seed: int, **options: Any) -> None:
    graph = synthetic(num_nodes=num_nodes, mean_degree=mean_degree, seed=seed, **options)
    assert graph.num_nodes == num_nodes
    assert graph.num_edges <= round(min(num_nodes * mean_degree / 2, math.comb(num_nodes, 2))) * 2
    source, target = graph.edge_index
    assert bool((source != target).all())
    assert graph.edge_index.unique(dim=1).size(1) == graph.num_edges
    again = synthetic(num_nodes=num_nodes, mean_degree=mean_degree, seed=seed, **options)
    for key in ("rowptr", "col", "x", "y", "train_mask"):
        assert torch.equal(getattr(graph, key), getattr(again, key))


@pytest.mark.parametrize("homophily", [0.0, 0.3, 1.0])
def test_homophily(homophily: float) -> None:
    graph = synthetic(homophily=homophily, skew=0.8, num_classes=3)
    assert same_class_share(graph) == pytest.approx(homophily, abs=0.03)


def test_skew_makes_hubs() -> None:
    largest = [int(synthetic(skew=skew).rowptr.diff().max()) for skew in (0, 0.5, 1)]
    assert largest[0] < 40
    assert 60 < largest[1] < largest[2]


def test_noise() -> None:
    clear = synthetic(noise=0)
    assert clear.x is not None
    assert clear.y is not None
    assert clear.x.unique(dim=0).size(0) == 5
    for c in range(5):
        rows = clear.x[clear.y == c]
        assert torch.equal(rows, rows[:1].expand_as(rows))
    assert synthetic(noise=1).x.unique(dim=0).size(0) == 2000  # type: ignore[union-attr]


def test_seed() -> None:
    a, b = synthetic(seed=0), synthetic(seed=1)
    assert not torch.equal(a.col, b.col)
    assert not torch.equal(a.x, b.x)  # type: ignore[arg-type]


def test_smallest() -> None:
    graph = synthetic(num_nodes=1)
    assert (graph.num_nodes, graph.num_edges) == (1, 0)
    assert synthetic(num_nodes=50, mean_degree=0).num_edges == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_nodes", 0),
        ("num_nodes", 2.5),
        ("mean_degree", -1),
        ("mean_degree", math.nan),
        ("mean_degree", "10"),
        ("num_features", 0),
        ("num_classes", 0),
        ("homophily", 1.1),
        ("skew", -0.1),
        ("noise", math.inf),
        ("labels_per_class", 0),
        ("num_val", None),
        ("seed", -1),
    ],
)
def test_wrong_options(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} must be"):
        synthetic(**{option: value})


@pytest.mark.parametrize("option", ["num_nodes", "num_features", "num_classes"])
def test_more_than_fits_in_memory_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=rf"{option}=10{{15}}.* would need .* of memory"):
        synthetic(**{option: 10**15})
