"""Algorithm 1 against the algorithm as printed, and the paper's numbers on real data."""

import gc
import hashlib
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from lgcn import Graph, load_dataset, select_subgraph
from lgcn.ops import reference
from lgcn.sampling import algorithm1 as subgraph
from lgcn.sampling.algorithm1 import adjacency_arrays

RandomGraph = Callable[..., Graph]


def star(leaves: int) -> Graph:
    """Node 0 joined with all others."""
    ends = torch.arange(1, leaves + 1)
    edge_index = torch.stack([torch.zeros_like(ends), ends])
    return Graph.from_edge_index(edge_index, leaves + 1)


def mixed_graph() -> Graph:
    """600 nodes with 0 to 400 neighbours, without random numbers."""
    rows = [
        [(7 * i + 11 * j) % 600 for j in range(400 if i % 50 == 3 else i * i % 37)]
        for i in range(600)
    ]
    rows = [sorted(set(row)) for row in rows]
    rowptr = torch.tensor([0, *map(len, rows)]).cumsum(0)
    return Graph(rowptr, torch.tensor([j for row in rows for j in row]))


@settings(max_examples=60)
@given(data=st.data())
def test_without_limits_it_is_breadth_first_search(
    random_graph: RandomGraph, data: st.DataObject
) -> None:
    num_nodes = data.draw(st.integers(1, 30))
    density = data.draw(st.sampled_from((0.0, 0.04, 0.1, 0.5)))
    graph = random_graph(num_nodes, density, seed=data.draw(st.integers(0, 99)))
    roots = data.draw(st.lists(st.integers(0, num_nodes - 1), min_size=1, max_size=4))
    hops = data.draw(st.none() | st.integers(0, 4))
    nodes = select_subgraph(graph, roots=roots, max_nodes=None, max_hops=hops, seed=0)
    assert nodes.dtype == torch.int64
    expected = reference.select_subgraph(
        graph.rowptr, graph.col, roots, len(set(roots)), max_hops=inf if hops is None else hops
    )
    assert nodes.tolist() == sorted(expected)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_nodes": 4},
        {"max_nodes": 5, "max_expand": 1},
        {"max_nodes": 6, "max_expand": 2},
        {"max_nodes": 6, "max_expand": 2, "max_hops": 2},
    ],
    ids=str,
)
def test_sub_graphs_are_as_frequent_as_by_the_algorithm_as_printed(
    random_graph: RandomGraph, limits: dict[str, int]
) -> None:
    graph, draws = random_graph(8, 0.3, seed=1), 3000
    found, expected = Counter(), Counter()
    for seed in range(draws):
        nodes = select_subgraph(graph, roots=[0, 1, 5], n_init=2, **limits, seed=seed)
        found[frozenset(nodes.tolist())] += 1
        printed = reference.select_subgraph(
            graph.rowptr, graph.col, [0, 1, 5], 2, **limits, seed=seed
        )
        expected[frozenset(printed)] += 1
    outcomes = found.keys() | expected.keys()
    assert len(outcomes) > 3
    # Two samples of the same size: the statistic has one degree of freedom less than outcomes.
    chi_square = sum((found[o] - expected[o]) ** 2 / (found[o] + expected[o]) for o in outcomes)
    assert chi_square < chi2.isf(1e-4, len(outcomes) - 1)


@settings(max_examples=60)
@given(data=st.data())
def test_limits_are_kept(random_graph: RandomGraph, data: st.DataObject) -> None:
    graph = random_graph(30, data.draw(st.sampled_from((0.04, 0.1, 0.5))), undirected=True)
    n_init = data.draw(st.integers(1, 5))
    max_nodes = data.draw(st.integers(n_init, 35))
    expand = data.draw(st.none() | st.integers(1, 9))
    hops = data.draw(st.none() | st.integers(0, 4))
    nodes = select_subgraph(
        graph,
        n_init=n_init,
        max_nodes=max_nodes,
        max_expand=expand,
        max_hops=hops,
        seed=data.draw(st.integers(0, 99)),
    ).tolist()
    assert n_init <= len(nodes) <= max_nodes
    assert nodes == sorted(set(nodes))
    if expand is not None and hops is not None:
        assert len(nodes) <= n_init + expand * hops


def test_max_nodes_is_filled_where_there_are_enough(random_graph: RandomGraph) -> None:
    graph = random_graph(200, 0.05, undirected=True)
    for max_nodes in (3, 50, 199, 200):
        nodes = select_subgraph(graph, roots=[0, 1, 2], max_nodes=max_nodes, seed=1)
        assert nodes.numel() == max_nodes
        assert nodes[:3].tolist() == [0, 1, 2]


def test_max_expand_for_each_iteration_as_in_figure_3(random_graph: RandomGraph) -> None:
    graph = random_graph(300, 0.1, undirected=True)
    for seed in range(5):
        nodes = select_subgraph(graph, n_init=3, max_nodes=1000, max_expand=[5, 7], seed=seed)
        assert nodes.numel() == 3 + 5 + 7


def test_max_expand_as_one_number_holds_for_all_iterations(random_graph: RandomGraph) -> None:
    graph = random_graph(300, 0.1, undirected=True)
    for hops in range(4):
        nodes = select_subgraph(
            graph, n_init=3, max_nodes=None, max_expand=4, max_hops=hops, seed=0
        )
        assert nodes.numel() == 3 + 4 * hops


def test_growth_goes_on_from_new_nodes_only() -> None:
    nodes = select_subgraph(star(20), roots=[0], max_nodes=None, max_expand=1, seed=0)
    assert nodes.numel() == 2  # a leaf leads back to node 0, whose other leaves stay out


def test_nodes_not_taken_can_be_found_again() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
    triangle = Graph.from_edge_index(edges)
    nodes = select_subgraph(triangle, roots=[0], max_nodes=None, max_expand=1, seed=0)
    assert nodes.tolist() == [0, 1, 2]


def test_the_seed_decides(random_graph: RandomGraph) -> None:
    graph = random_graph(100, 0.1)

    def select(seed: int) -> tuple[int, ...]:
        return tuple(select_subgraph(graph, n_init=5, max_nodes=30, seed=seed).tolist())

    assert [select(seed) for seed in range(20)] == [select(seed) for seed in range(20)]
    assert len({select(seed) for seed in range(20)}) == 20
    assert select(-1) == select(2**64 - 1)


@pytest.mark.parametrize(
    "options",
    [
        {"roots": [0], "max_nodes": None, "max_expand": 2, "max_hops": 1},
        {"roots": [0], "max_nodes": 3},
        {"roots": [0], "max_nodes": 4},  # three of five: the two left out are drawn
        {"roots": [1, 2, 3, 4, 5], "n_init": 2, "max_nodes": None, "max_hops": 0},
    ],
    ids=["max_expand", "max_nodes", "more than half", "n_init"],
)
def test_samples_are_uniform(options: dict[str, object]) -> None:
    graph = star(5)
    counts = Counter(
        tuple(node for node in select_subgraph(graph, **options, seed=seed).tolist() if node > 0)
        for seed in range(3000)
    )
    assert len(counts) == 10  # pairs, or triples, out of five
    chi_square = sum((count - 300) ** 2 / 300 for count in counts.values())
    assert chi_square < 35  # 9 degrees of freedom: exceeded once in 10,000 times


def test_start_nodes_drawn_from_all_are_uniform() -> None:
    graph = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 5)
    counts = Counter(
        tuple(select_subgraph(graph, n_init=2, max_nodes=None, seed=seed).tolist())
        for seed in range(3000)
    )
    assert len(counts) == 10
    assert sum((count - 300) ** 2 / 300 for count in counts.values()) < 35


def test_roots_as_mask_list_and_tensor(random_graph: RandomGraph) -> None:
    graph = random_graph(50, 0.1)
    mask = torch.arange(50) % 7 == 0
    numbers = mask.nonzero().squeeze(1)
    selected = [
        select_subgraph(graph, roots=roots, n_init=3, max_nodes=20, seed=4).tolist()
        for roots in (mask, numbers, numbers.tolist(), numbers.int(), [*numbers.tolist(), 0, 7])
    ]
    assert all(nodes == selected[0] for nodes in selected)


@pytest.mark.parametrize("num_nodes", [64, 65, 4096, 4097, 300_000])
def test_graphs_of_any_size_in_any_order_of_use(num_nodes: int) -> None:
    targets = torch.arange(num_nodes)
    ring = Graph.as_given(torch.stack([(targets + 1) % num_nodes, targets]), num_nodes)
    for first in (0, num_nodes // 2, num_nodes - 3):
        nodes = select_subgraph(ring, roots=[first], max_nodes=10, seed=0)
        assert nodes.tolist() == sorted((first + i) % num_nodes for i in range(10))
    small = select_subgraph(star(3), roots=[0], max_nodes=None, seed=0)
    assert small.tolist() == [0, 1, 2, 3]
    assert select_subgraph(ring, roots=[5], max_nodes=None, seed=0).tolist() == targets.tolist()


def test_with_a_bit_per_node_the_same_nodes_are_selected_as_with_a_byte() -> None:
    """Rows of 0 to 400 entries, alone and among many nodes without any."""
    small = mixed_graph()
    rows = torch.cat([small.rowptr, small.rowptr[-1:].expand(subgraph._BYTES)])
    large = Graph(rows, small.col)
    roots = list(range(0, small.num_nodes, 7))
    for seed in range(20):
        options = {"roots": roots, "n_init": 9, "max_expand": 90, "seed": seed}
        nodes = select_subgraph(small, max_nodes=400, **options)
        assert nodes.numel() == 400
        assert torch.equal(select_subgraph(large, max_nodes=400, **options), nodes)


def test_a_seed_selects_what_it_always_selected() -> None:
    """Stored results depend on it."""
    graph = mixed_graph()
    found = hashlib.sha256()
    for seed in range(30):
        for limits in ({"max_nodes": 200}, {"max_nodes": 300, "max_expand": 70}):
            found.update(select_subgraph(graph, n_init=20, seed=seed, **limits).numpy().tobytes())
    assert found.hexdigest()[:16] == "8f52a36500ef3fed"


def test_many_found_and_few_taken_in_several_iterations() -> None:
    """Hubs 0, 1, 2 in a chain, each with leaves of its own; a leaf leads nowhere else."""
    leaves = torch.arange(3, 3003)
    hubs = leaves % 3
    chain = torch.tensor([[0, 1], [1, 2]])
    edges = torch.cat([torch.stack([hubs, leaves]), chain], dim=1)
    graph = Graph.from_edge_index(edges)
    for seed in range(20):
        nodes = select_subgraph(graph, roots=[0], max_nodes=None, max_expand=300, seed=seed)
        taken = Counter((nodes[nodes > 2] % 3).tolist())
        beyond = taken[1] + taken[2]
        assert taken[0] == (299 if 1 in nodes else 300)
        assert (beyond > 0) is (1 in nodes)
        again = select_subgraph(graph, roots=[0], max_nodes=None, max_hops=1, seed=seed)
        assert again.numel() == 1 + 1000 + 1  # no node is left marked by the call before


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_the_index_type_changes_nothing(
    random_graph: RandomGraph, index_dtype: torch.dtype
) -> None:
    graph = random_graph(80, 0.1)
    typed = Graph(graph.rowptr.to(index_dtype), graph.col.to(index_dtype))
    nodes = select_subgraph(typed, n_init=4, max_nodes=30, seed=3)
    assert nodes.dtype == torch.int64
    assert nodes.tolist() == select_subgraph(graph, n_init=4, max_nodes=30, seed=3).tolist()


def test_the_arrays_of_a_store_are_read_where_they_lie(random_graph: RandomGraph) -> None:
    graph = random_graph(80, 0.1)
    stored = Graph._trusted(graph.rowptr, graph.col.int())
    nodes = select_subgraph(stored, n_init=4, max_nodes=30, seed=3)
    assert nodes.tolist() == select_subgraph(graph, n_init=4, max_nodes=30, seed=3).tolist()
    for array, tensor in zip(adjacency_arrays(stored), (stored.rowptr, stored.col), strict=True):
        assert array.ctypes.data == tensor.data_ptr()


def test_what_is_kept_of_a_graph_goes_with_it(random_graph: RandomGraph) -> None:
    graph = random_graph()
    select_subgraph(graph, n_init=1, max_nodes=2, seed=0)
    kept = weakref.ref(adjacency_arrays(graph)[1])
    del graph
    gc.collect()
    assert kept() is None


BIG = 2**31 - 1


@pytest.mark.parametrize("huge", [2**31, 2**63 - 1, 2**70])
def test_huge_limits_are_no_limits(random_graph: RandomGraph, huge: int) -> None:
    graph = random_graph(80, 0.1)
    expected = select_subgraph(graph, n_init=4, max_nodes=None, seed=2**70)
    for expand in (huge, [huge] * 5):
        found = select_subgraph(
            graph, n_init=4, max_nodes=huge, max_expand=expand, max_hops=huge, seed=2**70
        )
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_graph_that_changed_is_checked_again(
    random_graph: RandomGraph, dtype: torch.dtype
) -> None:
    """A graph of 32 bits is read where it lies, so that a change reaches the kernel."""
    graph = random_graph(80, 0.1)
    graph = Graph(graph.rowptr.to(dtype), graph.col.to(dtype))
    wrong = graph.rowptr.clone()
    select_subgraph(graph, n_init=4, max_nodes=30, seed=3)
    graph.col[0] = 80
    with pytest.raises(ValueError, match=r"col must be smaller .*\(80\), got col.max\(\) = 80"):
        select_subgraph(graph, n_init=4, max_nodes=30, seed=3)
    graph.col[0] = 0
    select_subgraph(graph, n_init=4, max_nodes=30, seed=3)
    wrong[1:3] = torch.tensor([BIG, -2])
    graph.rowptr.data = wrong
    with pytest.raises(ValueError, match="rowptr must not decrease"):
        select_subgraph(graph, n_init=4, max_nodes=30, seed=3)
    with pytest.raises(ValueError, match="rowptr must not decrease"):
        graph.subgraph(torch.arange(5))


def test_a_trusted_graph_that_changed_is_checked(random_graph: RandomGraph) -> None:
    graph = random_graph(80, 0.1)
    stored = Graph._trusted(graph.rowptr, graph.col.int())
    select_subgraph(stored, n_init=4, max_nodes=30, seed=3)
    stored.col[0] = -1
    with pytest.raises(ValueError, match="col must not be negative"):
        select_subgraph(stored, n_init=4, max_nodes=30, seed=3)
    with pytest.raises(ValueError, match="col must"):
        stored.subgraph(torch.arange(5))


def test_a_changed_graph_has_other_subgraphs(random_graph: RandomGraph) -> None:
    graph = random_graph(80, 0.1)
    select_subgraph(graph, roots=[3], max_nodes=30, seed=3)
    graph.col.fill_(7)
    assert select_subgraph(graph, roots=[3], max_nodes=30, seed=3).tolist() == [3, 7]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.uint32])
def test_start_nodes_of_any_integer_type(random_graph: RandomGraph, dtype: torch.dtype) -> None:
    graph, roots = random_graph(80, 0.1), torch.tensor([3, 0, 79])
    expected = select_subgraph(graph, roots=roots, max_nodes=30, seed=3)
    found = select_subgraph(graph, roots=roots.to(dtype), max_nodes=30, seed=3)
    assert found.tolist() == expected.tolist()


def test_a_failure_leaves_no_marks(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(50, 0.1)

    def grow(rowptr: Any, col: Any, marks: Any, *_: Any) -> None:
        marks[:] = 255
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(subgraph, "_grow", grow)
        with pytest.raises(MemoryError):
            select_subgraph(graph, n_init=1, max_nodes=2, seed=0)
    nodes = select_subgraph(graph, roots=[0, 1], max_nodes=None, max_hops=1, seed=0)
    expected = reference.select_subgraph(graph.rowptr, graph.col, [0, 1], 2, max_hops=1)
    assert nodes.tolist() == sorted(expected)


def test_threads_do_not_disturb_each_other(random_graph: RandomGraph) -> None:
    graphs = [random_graph(size, 0.05, seed=size) for size in (30, 100, 200)]

    def select(seed: int) -> tuple[list[int], list[int]]:
        graph = graphs[seed % 3]
        nodes = select_subgraph(graph, n_init=3, max_nodes=25, max_expand=6, seed=seed)
        return nodes.tolist(), graph.subgraph(nodes).col.tolist()

    serial = [select(seed) for seed in range(300)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(select, range(300))) == serial


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give n_init .* roots, or both"),
        ({"n_init": 13}, "n_init must be between 1 and the 12 nodes .*, got 13"),
        ({"n_init": 0}, "n_init must be between 1 and the 12 nodes .*, got 0"),
        ({"roots": [1, 2], "n_init": 3}, "between 1 and the 2 nodes .*, got 3"),
        ({"roots": [1, 2], "max_nodes": 1}, r"at least the number of start nodes \(2\), got 1"),
        ({"roots": [1, 12]}, "roots must lie between 0 and 11, got 1 to 12"),
        ({"roots": [-1, 3]}, "roots must lie between 0 and 11, got -1 to 3"),
        ({"roots": []}, r"roots must name .*node, got none"),
        ({"roots": torch.zeros(12).bool()}, r"roots must name .*node, got none"),
        ({"roots": torch.ones(5).bool()}, "roots as a mask must have 12 entries, got 5"),
        ({"roots": [0.5]}, "roots must be a list of node numbers, got torch.float32"),
        ({"roots": [0], "max_hops": -1}, "max_hops must not be negative, got -1"),
        ({"roots": [0], "max_expand": 0}, r"max_expand must .*1 .*, got 0"),
        ({"roots": [0], "max_expand": []}, r"max_expand must .*1 .*, got \[\]"),
    ],
)
def test_wrong_arguments_are_named(
    random_graph: RandomGraph, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        select_subgraph(random_graph(), **{"max_nodes": None, **options}, seed=0)


@pytest.mark.parametrize(
    ("name", "one_hop", "two_hops", "closure"),
    [
        ("cora", 644, 1664, 2550),
        ("citeseer", 442, 1092, 2275),
        ("pubmed", 354, 2798, 19717),
    ],
)
def test_sizes_on_the_paper_s_graphs(
    data_root: Path, name: str, one_hop: int, two_hops: int, closure: int
) -> None:
    graph = load_dataset(name, data_root)

    def size(max_nodes: int | None, max_hops: int | None) -> int:
        return select_subgraph(
            graph, roots=graph.train_mask, max_nodes=max_nodes, max_hops=max_hops, seed=0
        ).numel()

    assert size(None, 1) == one_hop
    assert size(None, 2) == two_hops
    assert size(None, None) == closure
    assert size(2000, None) == 2000
