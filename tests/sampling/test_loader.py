"""Mini-batches: the same whatever the number of workers, every root served once an epoch."""

import itertools
import threading
from collections.abc import Callable, Iterable

import pytest
import torch

from lgcn import Graph, SubgraphLoader, select_subgraph
from lgcn.sampling import GraphLoader
from lgcn.sampling.batches import ahead

RandomGraph = Callable[..., Graph]
WORKERS = pytest.mark.parametrize("num_workers", [0, 1, 4])


@pytest.fixture
def graph(random_graph: RandomGraph) -> Graph:
    """A hundred nodes, 40 of them for training."""
    return random_graph(100, 0.05, train_mask=torch.arange(100) % 5 < 2)


def nodes_of(batches: Iterable[Graph]) -> list[list[int]]:
    return [batch.n_id.tolist() for batch in batches]


def loader_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("lgcn-loader")]


@WORKERS
@pytest.mark.parametrize("options", [{}, {"resample": False}, {"batch_size": 3}])
def test_workers_do_not_change_the_sequence(
    graph: Graph, num_workers: int, options: dict[str, object]
) -> None:
    def epochs(num_workers: int) -> list[list[list[int]]]:
        loader = SubgraphLoader(
            graph, n_init=3, max_nodes=20, seed=5, num_workers=num_workers, **options
        )
        return [nodes_of(loader) for _ in range(3)]

    assert epochs(num_workers) == epochs(0)


def test_batches_are_induced_subgraphs(graph: Graph) -> None:
    for batch in SubgraphLoader(graph, n_init=10, max_nodes=30):
        expected = graph.subgraph(batch.n_id)
        assert batch.num_nodes == 30
        assert torch.equal(batch.edge_index, expected.edge_index)
        assert torch.equal(batch.x, graph.x[batch.n_id])
        assert torch.equal(batch.degree, graph.rowptr.diff()[batch.n_id].float())


def test_own_degrees(graph: Graph) -> None:
    (batch,) = SubgraphLoader(graph, max_hops=0, keep_degree=False)
    assert batch.degree is None


def test_resampling_changes_from_epoch_to_epoch_and_fixed_does_not(graph: Graph) -> None:
    for resample in (True, False):
        loader = SubgraphLoader(graph, n_init=4, max_nodes=20, resample=resample)
        epochs = [nodes_of(loader) for _ in range(2)]
        assert (epochs[0] != epochs[1]) is resample
        assert epochs[0] == nodes_of(loader.epoch(0))


def test_fixed_subgraphs_are_made_once(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=4, max_nodes=20, resample=False)
    assert all(a is b for a, b in zip(loader, loader, strict=True))


def test_each_subgraph_and_epoch_has_a_sample_of_its_own() -> None:
    leaves = torch.arange(1, 31)
    edge_index = torch.stack([leaves, torch.zeros_like(leaves)])
    star = Graph.as_given(edge_index)
    loader = SubgraphLoader(star, roots=[0, 0, 0, 0], n_init=1, max_nodes=11)
    samples = [tuple(nodes) for _ in range(3) for nodes in nodes_of(loader)]
    assert len(set(samples)) == 12


def test_an_epoch_can_be_repeated(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=4, max_nodes=20)
    epochs = [nodes_of(loader) for _ in range(3)]
    assert nodes_of(loader.epoch(1)) == epochs[1]
    again = SubgraphLoader(graph, n_init=4, max_nodes=20)
    assert nodes_of(again.epoch(2)) == epochs[2]


def test_the_seed_decides(graph: Graph) -> None:
    loaders = [SubgraphLoader(graph, n_init=4, max_nodes=20, seed=seed) for seed in (0, 1)]
    assert nodes_of(loaders[0]) != nodes_of(loaders[1])


@pytest.mark.parametrize("n_init", [1, 7, 40, 99])
def test_each_root_serves_once_an_epoch(graph: Graph, n_init: int) -> None:
    loader = SubgraphLoader(graph, n_init=n_init, max_nodes=None, max_hops=0)
    for _ in range(2):
        served = nodes_of(loader)
        assert len(served) == len(loader)
        assert max(map(len, served)) <= n_init
        assert sorted(itertools.chain(*served)) == graph.train_mask.nonzero().flatten().tolist()


@pytest.mark.parametrize(("batch_size", "batches"), [(1, 3), (2, 2)])
def test_an_epoch_can_have_fewer_subgraphs(graph: Graph, batch_size: int, batches: int) -> None:
    options: dict[str, int] = {"n_init": 2, "max_nodes": 10, "batch_size": batch_size}
    everything = list(SubgraphLoader(graph, **options).epoch(4))
    assert len(everything) > batches
    loader = SubgraphLoader(graph, **options, max_subgraphs=3)
    some = list(loader.epoch(4))
    assert len(some) == len(loader) == batches
    for left, right in zip(some, everything, strict=False):
        assert torch.equal(left.col, right.col)
    assert len(SubgraphLoader(graph, **options, max_subgraphs=10**6)) == len(everything)


def test_start_nodes_are_shuffled(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=10, max_nodes=None, max_hops=0)
    assert nodes_of(loader)[0] != nodes_of(loader)[0]


@pytest.mark.parametrize("as_mask", [True, False])
def test_roots_of_ones_own(graph: Graph, as_mask: bool) -> None:
    mask = torch.arange(100) >= 90
    roots = mask if as_mask else list(range(90, 100))
    (batch,) = SubgraphLoader(graph, roots=roots, max_hops=0)
    assert batch.n_id.tolist() == list(range(90, 100))


def test_all_nodes_are_roots_without_a_training_mask(random_graph: RandomGraph) -> None:
    (batch,) = SubgraphLoader(random_graph(30, 0.1), max_hops=0)
    assert batch.n_id.tolist() == list(range(30))


def test_start_nodes_leave_room_to_grow(graph: Graph) -> None:
    loader = SubgraphLoader(graph, max_nodes=40)
    assert (loader.n_init, len(loader)) == (10, 4)
    assert SubgraphLoader(graph).n_init == 40
    assert SubgraphLoader(graph, max_nodes=None).n_init == 40


def test_limits_are_those_of_algorithm_1(graph: Graph) -> None:
    loader = SubgraphLoader(graph, max_nodes=None, max_expand=[3, 2])
    (batch,) = loader
    assert batch.num_nodes == 40 + 3 + 2
    (batch,) = SubgraphLoader(graph, max_nodes=None, max_hops=1)
    roots = graph.train_mask
    expected = select_subgraph(graph, roots=roots, max_nodes=None, max_hops=1, seed=0)
    assert batch.n_id.tolist() == expected.tolist()


def test_subgraphs_of_a_batch_lie_side_by_side(graph: Graph) -> None:
    options = {"n_init": 6, "max_nodes": 15}  # 7 sub-graphs
    single = list(SubgraphLoader(graph, **options))
    loader = SubgraphLoader(graph, **options, batch_size=3)
    batches = list(loader)
    assert len(batches) == len(loader) == 3
    for batch, first in zip(batches, (0, 3, 6), strict=True):
        parts = single[first : first + 3]
        assert batch.num_graphs == len(parts)
        assert torch.equal(batch.n_id, torch.cat([part.n_id for part in parts]))
        for actual, expected in zip(batch.separate(), parts, strict=True):
            assert torch.equal(actual.edge_index, expected.edge_index)
            assert torch.equal(actual.x, expected.x)
            assert torch.equal(actual.degree, expected.degree)


@WORKERS
def test_stopping_early_leaves_no_threads(graph: Graph, num_workers: int) -> None:
    batches = SubgraphLoader(graph, n_init=1, max_nodes=20, num_workers=num_workers).epoch(0)
    next(batches)
    assert bool(loader_threads()) is (num_workers > 0)
    batches.close()
    assert not loader_threads()


@WORKERS
def test_epochs_follow_each_other_without_end(graph: Graph, num_workers: int) -> None:
    loader = SubgraphLoader(graph, n_init=15, max_nodes=20, num_workers=num_workers)
    assert len(loader) == 3
    batches = loader.epochs(4, lambda batch: batch.n_id.tolist())
    found = list(itertools.islice(batches, 7))
    expected = [nodes_of(loader.epoch(epoch)) for epoch in (4, 5, 6)]
    assert found == list(itertools.chain(*expected))[:7]
    batches.close()
    assert not loader_threads()


def test_workers_stay_a_few_batches_ahead(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    loader = SubgraphLoader(graph, n_init=1, max_nodes=20, num_workers=2)
    subgraph = loader._subgraph
    monkeypatch.setattr(loader, "_subgraph", lambda *args: made.append(args) or subgraph(*args))
    batches = loader.epoch(0)
    next(batches)
    batches.close()
    assert len(made) <= 5


def test_a_worker_uses_one_thread_and_leaves_those_of_the_caller() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert list(ahead(lambda _: torch.get_num_threads(), 3, 0)) == [2, 2, 2]
        assert list(ahead(lambda _: torch.get_num_threads(), 3, 2)) == [1, 1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@WORKERS
def test_errors_in_workers_reach_the_caller(graph: Graph, num_workers: int) -> None:
    loader = SubgraphLoader(graph, roots=[0, 9], n_init=2, max_nodes=1, num_workers=num_workers)
    with pytest.raises(ValueError, match=r"max_nodes must .* \(2\), got 1"):
        list(loader)
    assert not loader_threads()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"num_workers": -1}, r"num_workers must .* got -1"),
        ({"n_init": 0}, "n_init must be at least 1, got 0"),
        ({"roots": []}, r"roots must name .*node, got none"),
        ({"roots": [0, 100]}, "roots must lie between 0 and 99, got 0 to 100"),
        ({"roots": [-1, 0]}, "roots must lie between 0 and 99, got -1 to 0"),
        ({"roots": [0.5]}, "roots must be a list of node numbers, got torch.float32"),
        ({"roots": torch.ones(5).bool()}, "roots as a mask must have 100 entries, got 5"),
    ],
)
def test_wrong_options_are_named(graph: Graph, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SubgraphLoader(graph, **options)


def test_separate_undoes_concat(random_graph: RandomGraph) -> None:
    parts = [random_graph(size, weighted=True, seed=size) for size in (4, 1, 6)]
    for actual, expected in zip(Graph.concat(parts).separate(), parts, strict=True):
        for key in ("rowptr", "col", "x", "y", "edge_weight"):
            assert torch.equal(getattr(actual, key), getattr(expected, key)), key
    assert parts[0].separate() == [parts[0]]


def test_graph_loader_yields_the_one_graph(graph: Graph) -> None:
    loader = GraphLoader(graph)
    assert len(loader) == 1
    (batch,) = loader.epoch(3)
    assert batch is graph


def test_graph_loader_yields_each_training_graph_in_random_order(
    random_graph: RandomGraph,
) -> None:
    masks = [torch.full((size,), size != 4) for size in range(2, 10)]
    graph = Graph.concat([random_graph(len(mask), train_mask=mask) for mask in masks])
    loader = GraphLoader(graph, seed=1)
    orders = [[batch.num_nodes for batch in loader.epoch(epoch)] for epoch in range(3)]
    assert all(sorted(order) == [2, 3, 5, 6, 7, 8, 9] for order in orders)
    assert len(loader) == 7
    assert orders[0] != orders[1]
    assert orders[1] == [batch.num_nodes for batch in loader.epoch(1)]


def test_the_rate_is_that_of_what_was_made(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=4, max_nodes=20, num_workers=2)
    assert loader.subgraphs_per_second is None
    assert len(list(loader)) == 10
    assert loader._made == 10
    assert loader.subgraphs_per_second > 0


def test_only_start_nodes_are_scored_if_asked(graph: Graph) -> None:
    every = SubgraphLoader(graph, n_init=4, max_nodes=30)
    some = SubgraphLoader(graph, n_init=4, max_nodes=30, scored_nodes="start")
    for all_scored, batch in zip(every.epoch(0), some.epoch(0), strict=True):
        assert batch.n_id is not None
        assert batch.n_id.tolist() == all_scored.n_id.tolist()
        assert int(batch.train_mask.sum()) <= 4 < int(all_scored.train_mask.sum())
    scored = torch.cat([batch.n_id[batch.train_mask] for batch in some.epoch(0)])
    assert scored.sort().values.tolist() == graph.train_mask.nonzero().squeeze(1).tolist()


def test_nodes_that_lack_neighbours_are_not_scored_if_asked(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=4, max_nodes=30, scored_nodes="complete")
    some_left_out = False
    for batch in loader.epoch(0):
        whole = graph.rowptr.diff()[batch.n_id]
        complete = (batch.rowptr.diff() == whole) & graph.train_mask[batch.n_id]
        some_left_out |= bool((batch.train_mask != graph.train_mask[batch.n_id]).any())
        if bool(complete.any()):
            assert batch.train_mask.tolist() == complete.tolist()
    assert some_left_out


def test_one_batch_of_an_epoch_can_be_made_alone(graph: Graph) -> None:
    loader = SubgraphLoader(graph, n_init=4, max_nodes=30)
    every = [batch.n_id.tolist() for batch in loader.epoch(3)]
    again = SubgraphLoader(graph, n_init=4, max_nodes=30)
    assert [again.batch(3, number).n_id.tolist() for number in reversed(range(len(every)))] == (
        every[::-1]
    )
