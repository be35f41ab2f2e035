"""Layer by layer over blocks of rows, the outputs are those of the forward."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lgcn import LGCN, Graph
from lgcn.errors import UsageError
from lgcn.graph.csr import CSR
from lgcn.nn import GCNLayer
from lgcn.nn.layerwise import _gather, layerwise
from lgcn.nn.rows import RowLayer, Rows, concat, row_wise
from lgcn.ops import spmm
from lgcn.utils.out_of_memory import OutOfMemory
from lgcn.utils.scratch import Scratch

RandomGraph = Callable[..., Graph]

# Of 40 nodes: one block in memory; several blocks in memory; single rows, and layers in files.
MEMORY = ("1GB", 40_000, 1)


@pytest.fixture(autouse=True)
def one_model() -> None:
    # Of some models, batch norm makes rounding errors of both ways larger than 1e-5.
    torch.manual_seed(0)


def assert_same(result: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def trained(model: LGCN, graph: Graph) -> LGCN:
    """With biases and running averages that are not those of a new model."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    model(graph.x, graph)
    return model.eval()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"rank": "raw"},
    {"zeros": "pad"},
    {"rank": "raw", "zeros": "pad", "self_loops": False},
    {"self_loops": False},
    {"classifier": "sum"},
    {"classifier": "none"},
    {"embedding": "linear"},
    {"embedding": "linear", "classifier": "none", "activation": "relu"},
    {"layer": "gcn", "activation": "elu"},
    {"layer": "gcn", "batch_norm": "batch"},
    {"cnn": "single"},
    {"cnn": "depthwise"},
    {"cnn": "depthwise", "mean": True, "rank": "raw"},
    {"classifier": "diffusion", "hops": 3},
    {"classifier": "diffusion", "hops": 0, "embedding": "linear", "cnn": "shared"},
    {"mean": True, "rank": "raw", "cnn": "single", "self_loops": False},
    {"mean": True},
    {"activation": "relu", "k": 3},
    {"activation": "gelu", "batch_norm": "running"},
    {"activation": "relu", "batch_norm": "batch"},
    {"num_layers": 0},
    {"num_layers": 3, "k": 20},
]


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_forward(
    random_graph: RandomGraph, options: dict[str, Any], memory: str | int
) -> None:
    graph = random_graph(40, 0.15, weighted=True, self_loops=True)
    model = trained(LGCN(5, 3, hidden_channels=6, lgcl_channels=4, **options), graph)
    with torch.no_grad():
        assert_same(layerwise(model, graph, memory=memory), model(graph.x, graph))
        for layer in range(-1, len(model.layers) + 1):
            found = layerwise(model, graph, layer=layer, memory=memory)
            assert_same(found, model.embed(graph.x, graph, layer=layer))


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("kind", ["uint8", "float16", "bfloat16", "sparse", "double"])
def test_kinds_of_features(random_graph: RandomGraph, kind: str, memory: str | int) -> None:
    graph, scale = random_graph(40, 0.15), None
    x = graph.x
    if kind == "uint8":
        x, scale = (x.abs() * 50).to(torch.uint8), torch.rand(2, 5)
    elif kind == "sparse":
        x = (x * (x > 0.5)).to_sparse_csr()
    else:
        x = x.to(getattr(torch, kind))
    graph = Graph(graph.rowptr, graph.col, x=x, feature_scale=scale)
    model = LGCN(5, 3).to(torch.float64 if kind == "double" else torch.float32).eval()
    with torch.no_grad():
        assert_same(layerwise(model, graph, memory=memory), model(graph.features(), graph))


@pytest.mark.parametrize("memory", MEMORY)
def test_index_types_of_a_store(random_graph: RandomGraph, memory: str | int) -> None:
    graph, model = random_graph(40, 0.15), LGCN(5, 3).eval()
    stored = Graph._trusted(graph.rowptr, graph.col.int(), x=graph.x)
    with torch.no_grad():
        assert_same(layerwise(model, stored, memory=memory), model(graph.x, graph))


def test_the_whole_adjacency_is_never_made(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    monkeypatch.setattr(Graph, "adjacency", None)
    layerwise(model, graph)
    assert set(graph._adjacency._kept[1]) <= {"row_degree", "self_loops"}


def test_rows_can_be_taken(random_graph: RandomGraph) -> None:
    graph, model = random_graph(40), LGCN(5, 3).eval()
    expected = model.embed(graph.x, graph).detach()
    found = layerwise(model, graph, layer=-1, memory=1)
    mask = torch.arange(40) % 3 == 0
    for rows in (slice(3, 9), mask, mask.nonzero().squeeze(1), slice(40, 50)):
        torch.testing.assert_close(found[rows], expected[rows])


def test_a_graph_without_nodes() -> None:
    graph = Graph(torch.zeros(1, dtype=torch.long), torch.empty(0, dtype=torch.long))
    graph = Graph(graph.rowptr, graph.col, x=torch.empty(0, 5))
    assert layerwise(LGCN(5, 3), graph, memory=1).shape == (0, 3)


def test_progress_covers_all_rows_of_all_steps(random_graph: RandomGraph) -> None:
    graph, seen = random_graph(40), []
    layerwise(LGCN(5, 3), graph, memory=40_000, on_progress=lambda *step: seen.append(step))
    done: dict[str, list[int]] = {}
    for name, rows, total in seen:
        assert total == 40
        done.setdefault(name, []).append(rows)
    steps = ["embedding, linear", "embedding", "layer 1", "layer 2"]
    assert list(done) == [*steps, "classifier, linear", "classifier"]
    assert all(rows == sorted(rows) and rows[-1] == 40 for rows in done.values())
    assert len(done["layer 2"]) > 1


def test_no_file_is_ever_seen(random_graph: RandomGraph, tmp_path: Path) -> None:
    def look(*_: Any) -> None:
        assert list(tmp_path.iterdir()) == []

    scores = layerwise(LGCN(5, 3), random_graph(), memory=1, scratch=tmp_path, on_progress=look)
    assert scores.shape == (12, 3)
    with pytest.raises(UsageError, match=r"scratch must be .*missing"):
        layerwise(LGCN(5, 3), random_graph(), memory=1, scratch=tmp_path / "missing")


MEMORY_OF_TWO_SIZES = """
import torch
from lgcn import LGCN, Graph
from lgcn.nn.layerwise import layerwise
from lgcn.utils.memory import PeakMemory, anonymous_memory

torch.set_num_threads(1)
model = LGCN(8, 4, num_layers=1, k=3)
for nodes in (1000, 200_000, 600_000):
    rowptr = torch.arange(nodes + 1) * 3
    graph = Graph._trusted(rowptr, torch.randint(nodes, (3 * nodes,), dtype=torch.int32),
                           x=torch.ones(nodes, 8), degree=torch.full((nodes,), 3.0))
    before = anonymous_memory()
    with PeakMemory() as memory:
        scores = layerwise(model, graph, memory="100MB")
    print(memory.peak - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_stays_below_the_ceiling_and_does_not_grow_with_the_graph() -> None:
    # The layers of the larger graphs take 64 and 192 MB, more than the half that they may.
    command = [sys.executable, "-c", MEMORY_OF_TWO_SIZES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, small, large = (int(line) for line in done.stdout.split())
    assert max(small, large) < 100_000_000
    assert large < small + 30_000_000


def test_the_model_is_left_in_evaluation_mode_without_gradients(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3).train()
    scores = layerwise(model, graph)
    assert not model.training
    assert not scores.requires_grad


def test_autocast_changes_nothing(random_graph: RandomGraph) -> None:
    graph, model = random_graph(40), LGCN(5, 3)
    expected = layerwise(model, graph)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layerwise(model, graph), expected)


def test_features_gathered_for_a_device_that_cannot_hold_all(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.02, weighted=True)
    rows = CSR(graph.rowptr, graph.col, graph.edge_weight).rows(10, 20)
    near, local = _gather(graph.x, rows)
    assert len(near) == len(rows.col.unique())
    expected = spmm(rows.rowptr, rows.col, rows.weight, graph.x)
    assert torch.equal(spmm(local.rowptr, local.col, local.weight, near), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("options", OPTIONS[:16], ids=str)
def test_a_gpu_computes_the_same(
    random_graph: RandomGraph, options: dict[str, Any], fits: bool, monkeypatch: Any
) -> None:
    if not fits:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 0))
    graph = random_graph(40, 0.15, weighted=True, self_loops=True)
    model = trained(LGCN(5, 3, **options), graph)
    with torch.no_grad():
        expected = model(graph.x, graph)
    for found in (
        layerwise(model, graph, memory=40_000, device="cuda"),
        layerwise(model.cuda(), graph.to("cuda"), memory=40_000),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert next(model.parameters()).is_cuda


def test_what_cannot_be(random_graph: RandomGraph) -> None:
    graph, model = random_graph(name="toy"), LGCN(5, 3)
    with pytest.raises(UsageError, match=r"toy has no features \(x\)"):
        layerwise(model, random_graph(x=None, name="toy"))
    with pytest.raises(UsageError, match=r"features of toy .* 4 columns, got 5"):
        layerwise(LGCN(4, 3), graph)
    with pytest.raises(UsageError, match="memory must be a size such as '2GB'"):
        layerwise(model, graph, memory="much")
    with pytest.raises(UsageError, match=r"layer must be from 0 .* to 2, or -1 .*, got 3"):
        layerwise(model, graph, layer=3)


class SumLayer(RowLayer):
    """A user's own layer: its input, plus the sum over the neighbours' rows."""

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.add(x, x, graph.adjacency())

    def rows(self, x: Rows) -> Rows:
        return x.from_neighbours(
            self.add,
            {"normalize": False, "self_loops": False},
            width=x.width,
            values=2 * x.width,
        )

    @staticmethod
    def add(near: Tensor, own: Tensor, adjacency: CSR) -> Tensor:
        return own + spmm(adjacency.rowptr, adjacency.col, adjacency.values(), near)


class OwnModel(torch.nn.Module):
    """A user's own model, of a layer that nn does not know, one that it does, and torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = torch.nn.ModuleList([SumLayer(), SumLayer()])
        self.last = GCNLayer(15, 4)
        self.norm = torch.nn.LayerNorm(4)

    def compute(self, x: Any, graph: Graph) -> Any:
        once = self.sums[0](x, graph)
        twice = self.sums[1](once, graph)
        return row_wise(self.norm, self.last(concat(concat(x, once), twice), graph))

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        return self.compute(x, graph)

    def rows(self, x: Rows, *, layer: int | None = None) -> Rows:
        assert layer is None
        return self.compute(x, x.work.graph)

    def forward_values(self, num_rows: int) -> tuple[int, int]:
        return 5 * num_rows, 30 * num_rows


@pytest.mark.parametrize("memory", MEMORY)
def test_a_users_own_model(random_graph: RandomGraph, memory: str | int) -> None:
    graph, model, steps = random_graph(40, 0.15, weighted=True), OwnModel().eval(), []
    with torch.no_grad():
        expected = model(graph.x, graph)
    found = layerwise(model, graph, memory=memory, on_progress=lambda *step: steps.append(step))
    assert_same(found, expected)
    names = dict.fromkeys(name for name, _, _ in steps)
    assert list(names) == ["features", "sum 1", "sum 2", "last, linear", "last"]


def test_a_model_that_does_not_describe_its_rows_is_refused(random_graph: RandomGraph) -> None:
    with pytest.raises(UsageError, match=r"Linear .*RowModel.*memory"):
        layerwise(torch.nn.Linear(5, 3), random_graph())


def test_the_memory_of_kept_layers_is_what_exists_at_a_time(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    class Noted(Scratch):
        def __init__(self, size: int, *rest: Any) -> None:
            sizes.append(size)
            super().__init__(size, *rest)

    monkeypatch.setattr("lgcn.nn.layerwise.Scratch", Noted)
    graph = random_graph(40)
    layerwise(LGCN(5, 3, hidden_channels=6, lgcl_channels=4, num_layers=2), graph)
    # The input of the second LGCL, [40, 6 + 4], and its output beside it, [40, 6 + 4 + 4].
    assert sizes == [4 * 40 * (10 + 14)]


def test_a_gpu_without_memory_is_named(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(GCNLayer, "transform", full)
    with pytest.raises(OutOfMemory, match="for a block of rows of toy"):
        layerwise(LGCN(5, 3), random_graph(name="toy"))
