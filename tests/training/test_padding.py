"""Steps on padded sub-graphs: equal to those on the sub-graphs, and the same work for each."""

import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from lgcn import Graph
from lgcn.graph.padded import Sizes
from lgcn.ops import structure
from lgcn.training import Settings, padding
from lgcn.training.padding import Padded, Padding, padding_for
from lgcn.training.step import Step
from lgcn.utils.generators import Generators

from .graphs import small_graph
from .padded import CPU, NETWORKS, gradients, training_on, without_dropout


def padded_step(graph: Graph, chosen: Settings) -> tuple[Any, Step]:
    """A step that pads on the CPU, which a training does on a GPU alone, and its loader."""
    data, model, optimizer, loader, _ = training_on(graph, chosen)
    pads = padding_for(model, loader, data.settings, CPU)
    assert isinstance(pads, Padding), pads
    step = Step(model, optimizer, data.settings, CPU, False, Generators(CPU), pads)
    step.begin_epoch(1)
    return loader, step


def assert_same_steps(graph: Graph, chosen: Settings, batches: list[Graph] | None = None) -> None:
    _, model, _, loader, plain = training_on(graph, chosen)
    plain.begin_epoch(1)
    _, padded = padded_step(graph, chosen)
    model.train()
    padded.model.train()
    for batch in [loader.batch(1, 0), loader.batch(1, 1)] if batches is None else batches:
        padded.model.load_state_dict(model.state_dict())
        expected, found = plain(batch), padded(batch)
        assert (expected is None) == (found is None)
        if expected is None or found is None:
            continue
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        for one, other in zip(gradients(padded), gradients(plain), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
        for name, value in model.named_buffers():  # running statistics
            torch.testing.assert_close(padded.model.get_buffer(name), value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_padded_step_is_the_step_on_the_subgraph(name: str) -> None:
    assert_same_steps(small_graph(), without_dropout(**NETWORKS[name]))


@pytest.mark.parametrize("name", ["defaults", "gcn"])
def test_sparse_features_are_padded_too(name: str) -> None:
    graph = small_graph()
    assert graph.x is not None
    sparse = replace(graph, x=(graph.x * (graph.x > 0)).to_sparse_csr())
    assert_same_steps(sparse, without_dropout(**NETWORKS[name]))


@pytest.mark.parametrize("kind", ["several labels", "numbers", "weights", "start nodes", "edges"])
def test_losses_of_all_kinds_are_padded(kind: str) -> None:
    graph, given = small_graph(), {}
    x = graph.features()
    if kind == "several labels":
        graph = replace(graph, y=(x[:, :4] > 0).long())
    elif kind == "numbers":
        in_a_split = graph.train_mask | graph.val_mask | graph.test_mask  # type: ignore[operator]
        graph = replace(graph, y=torch.where(in_a_split, x[:, 0], torch.nan))
    elif kind == "weights":
        graph = replace(graph, sample_weight=torch.linspace(0, 3, graph.num_nodes))
    elif kind == "start nodes":
        given = {"start_nodes": "degree"}
    else:
        graph = replace(graph, edge_weight=torch.linspace(0.1, 2, graph.num_edges))
    assert_same_steps(graph, without_dropout(**given))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs of few nodes, with isolated nodes, hubs and without edges."""
    nodes = draw(st.integers(2, 12))
    number = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(number, number), max_size=40))
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    train = torch.from_numpy(rng.random(nodes) < 0.5)
    return Graph.from_edge_index(
        edge_index,
        nodes,
        x=torch.from_numpy(rng.normal(size=(nodes, 8))).float(),
        y=torch.from_numpy(rng.integers(0, 3, nodes)),
        train_mask=train,
    )


@settings(max_examples=25, deadline=None)
@given(drawn=st.lists(graphs(), min_size=1, max_size=4), name=st.sampled_from(sorted(NETWORKS)))
def test_subgraphs_of_any_sizes_are_padded(drawn: list[Graph], name: str) -> None:
    """Whatever lies in the arrays from the sub-graph before, and however much room they have."""
    small = Sizes(nodes=1, entries=1, degree=1, values=1, column=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(padding, "MULTIPLES", small)  # so that most sub-graphs need other arrays
        assert_same_steps(small_graph(), without_dropout(**NETWORKS[name]), drawn)


def test_arrays_grow_a_few_times_and_never_shrink() -> None:
    graph = small_graph(400)
    _, step = padded_step(graph, without_dropout())
    pads = step.padding
    assert pads is not None
    nodes = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    sizes = [2, 70, 90, 30, 150, 170, 20, 300, 310, 400, 5]
    found = []
    for size in sizes:
        padded = pads.fit(pads.prepare(graph.subgraph(nodes[:size])))
        assert isinstance(padded, Padded)
        assert padded.sizes == pads.sizes
        assert padded.sizes.nodes > size
        found.append(padded.sizes)
    assert all(one.fit_into(later) for one, later in itertools.pairwise(found))
    for place in range(len(Sizes._fields)):
        different = {one[place] for one in found}
        assert len(different) <= 1 + np.log2(max(different) / min(different))
    assert len(set(found)) > 2


def test_sizes_depend_on_the_order_of_steps_alone() -> None:
    graph = small_graph(400)
    parts = [graph.subgraph(torch.arange(size)) for size in (50, 300, 60, 400)]
    _, slow = padded_step(graph, without_dropout())
    _, fast = padded_step(graph, without_dropout())
    assert slow.padding is not None
    assert fast.padding is not None
    expected = [slow.padding.fit(part) for part in parts]
    ahead = [fast.padding.prepare(part) for part in parts]  # before the first step
    found = [fast.padding.fit(part) for part in ahead]
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, Padded)
        assert isinstance(other, Padded)
        assert one.sizes == other.sizes


def test_batches_of_the_next_epoch_are_prepared_ahead() -> None:
    chosen = without_dropout(num_workers=1)
    loader, step = padded_step(small_graph(), chosen)
    for epoch in (1, 2, 5, 6):  # also where epochs are left out, as when a training is resumed
        prepared = list(step.batches(loader, epoch))
        expected = list(loader.epoch(epoch))
        for one, batch in zip(prepared, expected, strict=True):
            assert isinstance(one, Padded)
            assert torch.equal(one.graph.n_id, batch.n_id)
        assert threads_of_loaders()
    some = step.batches(loader, 7)
    next(some)
    some.close()
    assert not threads_of_loaders()
    list(step.batches(loader, 8))
    del step
    assert not threads_of_loaders()


def threads_of_loaders() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("lgcn-loader")]


def test_a_subgraph_without_training_nodes_is_no_step() -> None:
    graph = small_graph()
    assert graph.train_mask is not None
    _, step = padded_step(graph, without_dropout())
    before = {name: value.clone() for name, value in step.model.state_dict().items()}
    assert step(graph.subgraph((~graph.train_mask).nonzero().squeeze(1)[:50])) is None
    for name, value in step.model.state_dict().items():
        assert torch.equal(value, before[name])


class Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators whose result depends on contents: a GPU would be waited for."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        reads = ("_local_scalar_dense", "nonzero", "masked_select", "repeat_interleave", "unique")
        if name.startswith(reads) or (
            name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        ):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@contextmanager
def nothing_is_read() -> Iterator[None]:
    """Neither by an operator, nor within one of ours."""

    def read(*args: Any) -> None:
        raise AssertionError("the contents of a structure were read")

    with pytest.MonkeyPatch.context() as patch, Reads() as reads:
        for name in ("_look_at", "_cut", "_count", "_sort"):
            patch.setattr(structure, name, read)
        yield
    assert reads.found == []


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_padded_step_reads_nothing_that_depends_on_the_subgraph(name: str, sparse: bool) -> None:
    graph = small_graph()
    assert graph.x is not None
    if sparse:
        graph = replace(graph, x=graph.x.to_sparse_csr())
    loader, step = padded_step(graph, without_dropout(**NETWORKS[name]))
    step.model.train()
    batches = [loader.batch(1, number) for number in range(3)]
    step(batches[0])  # makes the arrays and the state of the optimiser
    assert step.padding is not None
    prepared = [step.padding.prepare(batch) for batch in batches]
    with nothing_is_read():
        for one in prepared:
            assert isinstance(one, Padded)
            assert step(one) is not None


def test_the_reads_of_other_steps_are_noticed() -> None:
    _, _, _, loader, step = training_on(small_graph(), without_dropout())
    batch = loader.batch(1, 0)
    step.begin_epoch(1)
    with pytest.raises(AssertionError), nothing_is_read():
        step(batch)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"capture": False}, "capture"),
        ({"compile": True}, "compile"),
        ({"optimizer": "nadam"}, "random numbers"),
        ({"zeros": "pad", "adj_dropout": 0.1}, "random numbers"),
        ({"embedding": "propagated"}, "model=lgcn"),
        ({"k": 129}, "129|128"),
        ({"preset": "gat"}, "CPU"),
    ],
)
def test_what_cannot_be_padded_has_a_reason(given: dict[str, Any], reason: str) -> None:
    data, model, _, loader, _ = training_on(small_graph(), without_dropout(**given))
    found = padding_for(model, loader, data.settings, CPU)
    assert isinstance(found, str)
    assert re.search(reason, found), found


def test_the_largest_k_is_that_of_the_gpu_kernels() -> None:
    gpu = pytest.importorskip("lgcn.ops.gpu.launch", reason="the GPU kernels need Triton")
    assert padding.LARGEST_K == gpu.MAX_K
    assert padding.LONGEST_COLUMN == gpu.SUM_PART
