"""Sampled neighbours against a slow sampler that draws the same, and what batches must be."""

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.sampling import NeighborLoader
from lgcn.sampling.alternatives.neighbors import SampledGraph, _sample, rows_of_layers
from lgcn.store.open_store import open_store
from lgcn.store.write_store import write_store
from lgcn.utils.splitmix import STEP, mix

RandomGraph = Callable[..., Graph]


def sample(
    graph: Graph, roots: list[int], fanout: list[int], seed: int, replace: bool = False
) -> Any:
    arrays = graph.rowptr.numpy(), graph.col.numpy()
    return _sample(*arrays, np.array(roots), np.array(fanout), replace, np.uint64(seed))


def slow_sample(graph: Graph, roots: list[int], fanout: list[int], seed: int, replace: bool) -> Any:
    """Nodes, hops, and the sampled neighbours of each node: shuffles of lists, and a dictionary."""
    state, rowptr, col = seed, graph.rowptr.tolist(), graph.col.tolist()
    rows: dict[int, list[int]] = {root: [] for root in roots}  # in the order in which they are met
    hops, new = [len(rows)], list(rows)
    for size in fanout:
        met = len(rows)
        for node in new:
            others = col[rowptr[node] : rowptr[node + 1]]
            full = replace and len(others) > 0
            for i in range(size if full else min(size, len(others))):
                state = (state + int(STEP)) % 2**64
                bits = int(mix(np.uint64(state))) >> 32
                if replace:
                    rows[node].append(others[bits * len(others) >> 32])
                else:
                    j = i + (bits * (len(others) - i) >> 32)
                    others[i], others[j] = others[j], others[i]
                    rows[node].append(others[i])
            for other in rows[node]:
                rows.setdefault(other, [])
        hops.append(len(rows))
        new = list(rows)[met:]
    return list(rows), hops, rows


@pytest.mark.parametrize("fanout", [[1], [3, 2], [2, 4, 3], [100, 100], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("density", [0.01, 0.1, 0.6])
@pytest.mark.parametrize("replace", [False, True])
def test_equals_the_slow_sampler(
    random_graph: RandomGraph, fanout: list[int], density: float, replace: bool
) -> None:
    graph = random_graph(60, density, self_loops=True)
    for seed in range(10):
        roots = np.random.default_rng(seed).permutation(60)[: 1 + seed].tolist()
        nodes, hops, rowptr, col, entry = sample(graph, roots, fanout, seed, replace)
        expected = slow_sample(graph, roots, fanout, seed, replace)
        assert nodes.tolist() == expected[0]
        assert hops.tolist() == expected[1]
        rows = [nodes[col[a:b]].tolist() for a, b in pairwise(rowptr)]
        assert rows == [expected[2][node] for node in nodes]
        assert np.array_equal(graph.col.numpy()[entry], nodes[col])


def test_rows_that_are_longer_than_any_before() -> None:
    ends = torch.arange(1, 3000)
    graph = Graph.from_edge_index(torch.stack([torch.zeros_like(ends), ends]))
    for fanout in ([1, 5], [1, 5000]):
        nodes, hops, rowptr, col, _ = sample(graph, [7], fanout, 3)
        assert nodes[:2].tolist() == [7, 0]
        count = min(fanout[1], 2999)
        assert hops.tolist()[:2] == [1, 2]
        assert rowptr.tolist()[:3] == [0, 1, 1 + count]
        assert len(set(nodes[col[1:]])) == count


def test_samples_and_their_orders_are_as_likely() -> None:
    """Of four neighbours three are drawn: 24 outcomes with their order."""
    graph = Graph.as_given(torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]), 5)
    draws = Counter(tuple(sample(graph, [0], [3], seed)[0][1:].tolist()) for seed in range(4800))
    assert draws.keys() == set(permutations((1, 2, 3, 4), 3))
    counts = np.array(list(draws.values()))
    assert ((counts - 200) ** 2 / 200).sum() < 59  # 23 degrees of freedom: once in 20,000 times


def test_with_replacement_each_draw_is_of_all_neighbours() -> None:
    graph = Graph.as_given(torch.tensor([[1, 2, 3], [0, 0, 0]]), 4)
    draws: Counter[tuple[int, ...]] = Counter()
    for seed in range(5400):
        nodes, _, rowptr, col, _ = sample(graph, [0], [3], seed, replace=True)
        assert rowptr.tolist() == [0, 3] + [3] * (len(nodes) - 1)
        draws[tuple(nodes[col].tolist())] += 1
    assert draws.keys() == set(product((1, 2, 3), repeat=3))
    counts = np.array(list(draws.values()))
    assert ((counts - 200) ** 2 / 200).sum() < 63  # 26 degrees of freedom: once in 15,000 times


def test_with_replacement_every_row_is_full(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.05)
    degree = graph.rowptr.diff()
    for batch in NeighborLoader(graph, n_init=10, fanout=(7, 6), with_replacement=True):
        rows, roots, first = batch.rowptr.diff(), *batch.hops[:2]
        some = degree[batch.n_id] > 0
        assert torch.equal(rows[:roots], 7 * some[:roots])
        assert torch.equal(rows[roots:first], 6 * some[roots:first])
        source, target = batch.n_id[batch.edge_index]
        assert set(zip(source.tolist(), target.tolist(), strict=True)) <= set(
            zip(*graph.edge_index.tolist(), strict=True)
        )


def test_a_batch_is_cut_from_the_graph(random_graph: RandomGraph) -> None:
    graph = random_graph(
        80, 0.2, weighted=True, train_mask=torch.arange(80) < 50, val_mask=torch.arange(80) >= 60
    )
    graph = replace(graph, node_ids=np.array([f"n{i}" for i in range(80)]), label_names=("a", "b"))
    dense = torch.zeros(80, 80)
    source, target = graph.edge_index
    dense[target, source] = graph.edge_weight
    degree = dense.sum(1)
    for batch in NeighborLoader(graph, n_init=10, fanout=(3, 4), seed=1):
        assert isinstance(batch, SampledGraph)
        nodes, hops = batch.n_id, batch.hops
        assert hops[-1] == batch.num_nodes == len(nodes.unique())
        for key in ("x", "y"):
            assert torch.equal(getattr(batch, key), getattr(graph, key)[nodes])
        assert batch.node_ids.tolist() == [f"n{i}" for i in nodes]
        assert batch.label_names == ("a", "b")
        torch.testing.assert_close(batch.degree, degree[nodes])
        source, target = batch.edge_index
        torch.testing.assert_close(batch.edge_weight, dense[nodes[target], nodes[source]])
        rows = batch.rowptr.diff()
        wanted = graph.rowptr.diff()[nodes]
        assert torch.equal(rows[: hops[0]], wanted[: hops[0]].clamp(max=3).to(rows))
        assert torch.equal(rows[hops[0] : hops[1]], wanted[hops[0] : hops[1]].clamp(max=4).to(rows))
        assert not rows[hops[1] :].any()
        # Masks are true at the roots alone, and these are training nodes.
        assert batch.train_mask.tolist() == [i < hops[0] for i in range(batch.num_nodes)]
        assert bool(graph.train_mask[nodes[: hops[0]]].all())
        assert not batch.val_mask.any()
        assert batch.test_mask is None


@pytest.mark.parametrize("keep_degree", [True, False])
def test_the_degrees_of_the_rows_where_wanted(random_graph: RandomGraph, keep_degree: bool) -> None:
    graph = random_graph(40, 0.4)
    loader = NeighborLoader(graph, n_init=5, fanout=(2, 2), keep_degree=keep_degree)
    for batch in loader:
        assert (batch.degree is not None) == keep_degree
        weight = batch.adjacency(normalize=True).weight
        degree = graph.rowptr.diff()[batch.n_id] if keep_degree else batch.rowptr.diff()
        source, target = batch.edge_index
        expected = (degree[source] * degree[target]).float().rsqrt()
        expected[degree[source] == 0] = 0
        torch.testing.assert_close(weight, expected)


def test_each_root_serves_once_in_every_epoch(random_graph: RandomGraph) -> None:
    graph = random_graph(50, 0.1, train_mask=torch.arange(50) % 2 == 0)
    loader = NeighborLoader(graph, n_init=7, fanout=(2,))
    orders = []
    for epoch in range(2):
        served = [batch.n_id[batch.train_mask].tolist() for batch in loader.epoch(epoch)]
        assert [len(roots) for roots in served] == [7, 6, 6, 6]
        orders.append([root for roots in served for root in roots])
        assert sorted(orders[-1]) == list(range(0, 50, 2))
    assert orders[0] != orders[1]
    assert len(loader) == 4


def test_without_n_init_batches_have_512_roots(random_graph: RandomGraph) -> None:
    graph = random_graph(1025, 0.001)
    assert [batch.hops[0] for batch in NeighborLoader(graph)] == [342, 342, 341]


@pytest.mark.parametrize("num_workers", [1, 3])
def test_workers_do_not_change_the_sequence(random_graph: RandomGraph, num_workers: int) -> None:
    graph = random_graph(60, 0.2, weighted=True)
    alone, others = (
        NeighborLoader(graph, n_init=9, fanout=(3, 2), seed=3, num_workers=n)
        for n in (0, num_workers)
    )
    for _ in range(2):
        for batch, other in zip(alone, others, strict=True):
            for key in ("n_id", "rowptr", "col", "edge_weight", "x", "hops"):
                ours, theirs = getattr(batch, key), getattr(other, key)
                assert torch.equal(torch.as_tensor(ours), torch.as_tensor(theirs))


def test_seeds_differ_and_repeat(random_graph: RandomGraph) -> None:
    graph = random_graph(60, 0.4)

    def rows(seed: int, epoch: int) -> list[list[int]]:
        loader = NeighborLoader(graph, n_init=60, fanout=(3,), seed=seed)
        return [batch.n_id[batch.col].tolist() for batch in loader.epoch(epoch)]

    assert rows(0, 0) == rows(0, 0)
    assert rows(0, 0) != rows(1, 0)
    assert rows(0, 0) != rows(0, 1)


def test_batches_side_by_side(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.2)
    one, two = (NeighborLoader(graph, n_init=10, fanout=(3, 3), batch_size=n) for n in (1, 2))
    singles = list(one)
    for batch, first in zip(two, range(0, 4, 2), strict=True):
        assert torch.equal(
            batch.n_id, torch.cat([part.n_id for part in singles[first : first + 2]])
        )
        assert batch.num_graphs == 2
        assert not isinstance(batch, SampledGraph)  # the roots are no longer in front


def test_neighbours_stay_in_their_graph(random_graph: RandomGraph) -> None:
    graph = Graph.concat([random_graph(20, 0.3, seed=seed) for seed in range(3)])
    for batch in NeighborLoader(graph, n_init=6, fanout=(4, 4)):
        source, target = batch.n_id[batch.edge_index]
        assert torch.equal(source // 20, target // 20)


def test_a_store_gives_the_same_batches(random_graph: RandomGraph, tmp_path: Path) -> None:
    graph = random_graph(50, 0.2, undirected=True)
    write_store(tmp_path / "store", graph)
    stored = open_store(tmp_path / "store").graph
    assert stored.rowptr.dtype != stored.col.dtype
    for batch, other in zip(
        NeighborLoader(graph, n_init=8), NeighborLoader(stored, n_init=8), strict=True
    ):
        assert torch.equal(batch.n_id, other.n_id)
        assert torch.equal(batch.edge_index, other.edge_index)
        torch.testing.assert_close(batch.x, other.x)


def test_the_rows_that_layers_need(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.2)
    assert rows_of_layers(graph, 3) == [40, 40, 40]
    batch = next(iter(NeighborLoader(graph, n_init=4, fanout=(2, 2))))
    roots, first, second = batch.hops
    assert rows_of_layers(batch, 1) == [roots]
    assert rows_of_layers(batch, 2) == [first, roots]
    assert rows_of_layers(batch, 4) == [second, second, first, roots]
    assert rows_of_layers(batch.to("cpu"), 2) == [first, roots]
    assert rows_of_layers(replace(batch, val_mask=None), 2) == [first, roots]


def test_a_batch_remembers_nothing_of_the_graph(random_graph: RandomGraph) -> None:
    """What is derived from one adjacency must not be used for another."""
    graph = random_graph(30, 0.3)
    graph.adjacency(normalize=True)
    batch = next(iter(NeighborLoader(graph, n_init=3, fanout=(2,))))
    assert batch.adjacency().col.numel() == batch.num_edges < graph.num_edges
    assert {f.name for f in fields(batch)} - {f.name for f in fields(graph)} == {"hops"}
    assert repr(batch).startswith("Graph(name='graph', num_nodes=")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_init": 0}, "n_init must be at least 1, got 0"),
        ({"fanout": ()}, r"fanout must .*1 in each hop, got \[\]"),
        ({"fanout": (3, 0)}, r"fanout must .*1 in each hop, got \[3, 0\]"),
        ({"roots": [3, 12]}, "roots must lie between 0 and 11, got 3 to 12"),
        ({"roots": [-1]}, "roots must lie between 0 and 11, got -1 to -1"),
        ({"roots": []}, r"roots must name .*node, got none"),
    ],
)
def test_wrong_options_are_named(
    random_graph: RandomGraph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        NeighborLoader(random_graph(), **options)


@pytest.mark.parametrize("huge", [2**31, 2**62, 2**63 - 1, 2**70])
def test_a_sample_whose_size_would_overflow_is_refused(
    random_graph: RandomGraph, huge: int
) -> None:
    """Four nodes times 2**62 neighbours are none."""
    with pytest.raises(ValueError, match=rf"fanout must .*2147483647.*{huge}"):
        NeighborLoader(random_graph(), fanout=(2, huge), with_replacement=True)


def test_a_graph_that_changed_is_checked_again(random_graph: RandomGraph) -> None:
    graph = random_graph()
    loader = NeighborLoader(graph, num_workers=0)
    list(loader)
    graph.col[0] = 10**9
    with pytest.raises(ValueError, match=r"col must be smaller .*\(12\), got .* = 1000000000"):
        list(loader)
