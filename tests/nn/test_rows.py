"""A layer computes with tensors and describes the same for blocks of rows."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lgcn import LGCN, Graph, LGConv
from lgcn.datasets import synthetic
from lgcn.nn import Diffusion, GCNLayer, lg_conv
from lgcn.nn.lg_conv import Rank
from lgcn.nn.rows import RowLayer, RowModel, concat, row_wise

RandomGraph = Callable[..., Graph]


def test_tensors_are_computed_at_once() -> None:
    left, right = torch.randn(3, 2), torch.randn(3, 4)
    assert torch.equal(concat(left, right), torch.cat([left, right], dim=1))
    assert torch.equal(row_wise(torch.tanh, left), left.tanh())


@pytest.mark.parametrize("layer", [LGConv(5, 3), GCNLayer(5, 3), Diffusion(5, 3)])
def test_with_tensors_a_layer_is_a_module_with_hooks(
    random_graph: RandomGraph, layer: RowLayer
) -> None:
    seen: list[Tensor] = []
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    graph = random_graph()
    assert layer(graph.x, graph) is seen[0]
    handle.remove()


def test_models_that_describe_their_rows() -> None:
    assert isinstance(LGCN(5, 3), RowModel)
    assert not isinstance(torch.nn.Linear(5, 3), RowModel)


def test_the_memory_of_a_forward_grows_with_rows_and_grid() -> None:
    first, most = LGCN(5, 3, hidden_channels=6).forward_values(100)
    assert first == 600
    assert most < LGCN(5, 3, hidden_channels=6, k=20).forward_values(100)[1]
    assert most < LGCN(5, 3, hidden_channels=6).forward_values(200)[1]
    layer = LGConv(6, 4, k=8, mean=True)
    assert layer.grid_values(100) == 100 * 10 * 6
    assert GCNLayer(5, 3).working_values(100) == 0 < layer.working_values(100)


@pytest.mark.parametrize("largest", [1, 100, 333])
@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize(("k", "mean"), [(4, False), (3, True)])
def test_blocks_of_rows_give_the_same(
    largest: int, rank: Rank, k: int, mean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = synthetic(num_nodes=50, num_features=6, seed=0)
    conv = LGConv(6, 5, k, rank=rank, self_loops=rank == "normalized", mean=mean).eval()
    with torch.no_grad():
        whole = conv(graph.x, graph)
        monkeypatch.setattr(lg_conv, "MAX_GRID", largest)
        heights = []
        select = LGConv.select
        monkeypatch.setattr(
            LGConv,
            "select",
            lambda *given, **named: heights.append(len(given[2])) or select(*given, **named),
        )
        blocks = conv(graph.x, graph)
    assert sum(heights) == 50
    assert max(heights) <= max(1, largest // (5 * 6))
    torch.testing.assert_close(blocks, whole)
    assert conv(graph.x, graph).requires_grad  # with gradients there are no blocks
    assert len(heights) == 50 // max(1, largest // 30) + (50 % max(1, largest // 30) > 0) + 1
