"""Over the shards of a graph, on one process or several, the outputs are those of the graph."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Module

from lgcn import LGCN, Graph
from lgcn.errors import DataError, UsageError
from lgcn.nn.layerwise import layerwise
from lgcn.nn.residual import ResidualLGCN
from lgcn.partition import Shard, cut_shard
from lgcn.training.layerwise_shards import layerwise_shards
from lgcn.utils.memory import PeakMemory, anonymous_memory, trim_memory
from lgcn.workers import Workers
from tests.conftest import make_graph
from tests.partition.ranks import ThreadWorkers, on_ranks
from tests.workers.processes import run_workers

RandomGraph = Callable[..., Graph]

MODELS: list[dict[str, Any]] = [
    {},
    {"rank": "raw", "self_loops": False},
    {"zeros": "pad", "mean": True, "activation": "relu"},
    {"embedding": "linear", "cnn": "single", "mean": True, "rank": "raw"},
    {"classifier": "diffusion", "hops": 3},
    {"classifier": "sum", "self_loops": False, "cnn": "shared"},
    {"classifier": "none", "layer": "gcn", "batch_norm": "batch"},
    {"batch_norm": "batch", "activation": "gelu"},
    {"batch_norm": "running"},
    {"num_layers": 0},
    *({"aggregate": kind} for kind in ("lgcl", "mean", "max", "sum", "gcn", "attention", "none")),
    {"aggregate": "lgcl", "cnn": "depthwise", "mean": False},
    {"aggregate": "mean", "norm": "batch", "residual": False},
]
GRAPHS: list[dict[str, Any]] = [
    {},
    {"weighted": True, "self_loops": True, "undirected": True},
    {"density": 0.02},  # isolated nodes, and shards without a halo
]


def model_of(options: dict[str, Any], dtype: torch.dtype = torch.double) -> Module:
    torch.manual_seed(0)
    if "aggregate" in options:
        model: Module = ResidualLGCN(5, 3, hidden_channels=8, num_layers=2, **options)
    else:
        model = LGCN(5, 3, hidden_channels=6, lgcl_channels=4, **options)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return model.to(dtype).eval()


def parts_of(num_nodes: int, num_parts: int, seed: int = 0) -> Tensor:
    """Random parts, the last of which exists."""
    generator = torch.Generator().manual_seed(seed)
    part = torch.randint(num_parts, (num_nodes,), generator=generator)
    part[-1] = num_parts - 1
    return part


def cut(graph: Graph, part: Tensor) -> list[Shard]:
    return [cut_shard(graph, part, number) for number in range(int(part.max()) + 1)]


def together(shards: list[Shard], found: list[Tensor]) -> Tensor:
    """The rows of all shards, in the order of the whole graph."""
    n_id = [shard.graph.n_id for shard in shards]
    nodes = torch.cat(
        [n[: s.num_owned] for n, s in zip(n_id, shards, strict=True) if n is not None]
    )
    out = torch.full((shards[0].num_nodes, found[0].size(1)), torch.nan, dtype=found[0].dtype)
    out[nodes] = torch.cat(found)
    return out


def over_ranks(size: int, model: Module, shards: list[Shard], **options: Any) -> Tensor:
    found = on_ranks(
        size,
        lambda workers: layerwise_shards(
            model, shards[workers.rank :: workers.size], workers, **options
        ),
    )
    return together(shards, [found[one.number % size][one.number // size] for one in shards])


def assert_same(found: Tensor, expected: Tensor) -> None:
    atol = 1e-10 if found.dtype == torch.double else 1e-5
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("options", MODELS, ids=str)
@pytest.mark.parametrize("kind", GRAPHS, ids=str)
def test_equals_the_whole_graph(
    random_graph: RandomGraph, kind: dict[str, Any], options: dict[str, Any], size: int
) -> None:
    graph = random_graph(40, **{"density": 0.15, **kind})
    model = model_of(options)
    shards = cut(graph, parts_of(40, 3))

    assert_same(over_ranks(size, model, shards), layerwise(model, graph))
    layers = over_ranks(size, model, shards, layer=-1, memory=1)
    assert_same(layers, layerwise(model, graph, layer=-1))


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("num_parts", [1, 2, 5])
def test_any_number_of_parts_on_any_number_of_ranks(
    random_graph: RandomGraph,
    num_parts: int,
    size: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lgcn.partition.border.HALO_BLOCK", 3)
    graph = random_graph(40, 0.15, weighted=True)
    model = model_of({"batch_norm": "batch"}, dtype)
    shards = cut(graph, parts_of(40, num_parts, seed=1))

    assert_same(over_ranks(size, model, shards), layerwise(model, graph))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("kind", ["sparse", "uint8"])
def test_kinds_of_features(random_graph: RandomGraph, kind: str, size: int) -> None:
    graph = random_graph(40, 0.15)
    assert graph.x is not None
    if kind == "sparse":
        graph = replace(graph, x=(graph.x * (graph.x > 0.5)).to_sparse_csr())
        shards = cut(graph, parts_of(40, 2))
    else:
        x, scale = (graph.x.abs() * 50).to(torch.uint8), torch.rand(2, 5)
        graph = replace(graph, x=x, feature_scale=scale)
        shards = [
            replace(one, graph=replace(one.graph, x=x[one.graph.n_id], feature_scale=scale))
            for one in cut(graph, parts_of(40, 2))
        ]
    model = model_of({})

    assert_same(over_ranks(size, model, shards), layerwise(model, graph))


@pytest.mark.parametrize("size", [1, 2])
def test_parts_that_own_nothing(random_graph: RandomGraph, size: int) -> None:
    graph = random_graph(40, 0.15)
    part = torch.where(parts_of(40, 3) == 1, 0, parts_of(40, 3))
    part[part == 0] = 1  # the first part is empty
    shards = cut(graph, part)
    assert [shard.num_owned == 0 for shard in shards] == [True, False, False]
    model = model_of({"batch_norm": "batch"})

    assert_same(over_ranks(size, model, shards), layerwise(model, graph))


def test_index_types_of_a_store(random_graph: RandomGraph) -> None:
    graph, model = random_graph(40, 0.15), model_of({})
    shards = [replace(shard, graph=_stored(shard.graph)) for shard in cut(graph, parts_of(40, 3))]
    assert_same(over_ranks(2, model, shards), layerwise(model, graph))


def _stored(graph: Graph) -> Graph:
    given = {"x": graph.x, "degree": graph.degree, "n_id": graph.n_id}
    return Graph._trusted(graph.rowptr.long(), graph.col.int(), **given)


def test_nodes_of_one_process_have_one_row_and_nothing_is_sent(random_graph: RandomGraph) -> None:
    graph, model = random_graph(40, 0.15), model_of({}, torch.float)
    shards = cut(graph, parts_of(40, 3))

    found = layerwise_shards(model, shards, Workers())

    base = found[0].untyped_storage()
    assert base.nbytes() == 40 * 3 * 4
    assert all(one.untyped_storage().data_ptr() == base.data_ptr() for one in found)


def test_messages_are_labelled_and_bounded(random_graph: RandomGraph) -> None:
    graph, model = random_graph(40, 0.3), model_of({}, torch.float)
    shards = cut(graph, parts_of(40, 2))

    def sent(workers: Workers) -> list[tuple[str, int]]:
        assert isinstance(workers, ThreadWorkers)
        layerwise_shards(model, shards[workers.rank :: 2], workers, memory=8_000)
        return workers.sent

    first, _ = on_ranks(2, sent)

    sizes: dict[str, list[int]] = {}
    for what, size in first:
        sizes.setdefault(what, []).append(size)
    start = "the border's activations after "
    of_layers = {what[len(start) :]: size for what, size in sizes.items() if start in what}
    assert set(of_layers) == {"embedding", "layer 1", "classifier"}
    for found in of_layers.values():
        assert len(found) > 1
        assert max(found) <= 500  # of the 1000 bytes for what is sent and what arrives
    halo = shards[1].num_halo  # what part 0 sends
    assert sum(of_layers["layer 1"]) == 4 * (6 + 4) * halo


@pytest.mark.parametrize("size", [1, 2])
def test_shards_of_different_partitions_are_refused(random_graph: RandomGraph, size: int) -> None:
    graph, model = random_graph(40, 0.3), model_of({})
    one, other = cut(graph, parts_of(40, 2)), cut(graph, parts_of(40, 2, seed=1))

    with pytest.raises(DataError, match=r"part \d .*does not own node \d+.*different partitions"):
        over_ranks(size, model, [one[0], other[1]])


@pytest.mark.parametrize("size", [1, 2])
def test_all_parts_must_be_there_once(random_graph: RandomGraph, size: int) -> None:
    graph, model = random_graph(40, 0.3), model_of({})
    shards = cut(graph, parts_of(40, 3))
    with pytest.raises(UsageError, match="part 2 is on no rank"):
        over_ranks(size, model, shards[:2])
    with pytest.raises(UsageError, match="another part 0 on rank"):
        over_ranks(size, model, [*shards, shards[0]])
    with pytest.raises(DataError, match=r"part 2 .* has num_parts 7, part 0 .* has 3"):
        over_ranks(size, model, [*shards[:2], replace(shards[2], num_parts=7)])
    with pytest.raises(UsageError, match="none on any rank"):
        over_ranks(size, model, [])


def test_a_graph_without_features_is_refused(random_graph: RandomGraph) -> None:
    shards = cut(random_graph(x=None, name="toy"), parts_of(12, 2))
    with pytest.raises(UsageError, match=r"toy has no features \(x\)"):
        over_ranks(1, model_of({}), shards)


def _of_rank(workers: Workers) -> list[Tensor]:
    shards = cut(make_graph(40, 0.15, weighted=True), parts_of(40, 3))
    model = model_of({"batch_norm": "batch"})
    return layerwise_shards(model, shards[workers.rank :: workers.size], workers)


def test_two_processes() -> None:
    first, second = run_workers(_of_rank, 2)
    graph = make_graph(40, 0.15, weighted=True)
    rows = together(cut(graph, parts_of(40, 3)), [first[0], second[0], first[1]])
    assert_same(rows, layerwise(model_of({"batch_norm": "batch"}), graph))


def _growth(workers: Workers) -> tuple[int, int]:
    """Bytes that a process takes at most, and those of one layer of its nodes and its halo."""
    nodes = 400_000
    generator = torch.Generator().manual_seed(0)
    col = torch.randint(nodes, (3 * nodes,), dtype=torch.int32, generator=generator)
    rowptr, degree = torch.arange(nodes + 1, dtype=torch.int32) * 3, torch.full((nodes,), 3.0)
    graph = Graph._trusted(rowptr, col, x=torch.ones(nodes, 8), degree=degree)
    shard = cut_shard(graph, torch.arange(nodes) % workers.size, workers.rank)
    del graph, col, rowptr, degree
    trim_memory()
    before = anonymous_memory()
    with PeakMemory() as memory:
        layerwise_shards(LGCN(8, 4, num_layers=1, k=3), [shard], workers, memory="40MB")
    return memory.peak - before, 4 * 32 * shard.graph.num_nodes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_of_a_process_stays_below_the_ceiling() -> None:
    for growth, layer in run_workers(_growth, 2):
        assert layer > 45_000_000
        assert growth < 40_000_000 + 25_000_000  # the rows to send and to receive are known
