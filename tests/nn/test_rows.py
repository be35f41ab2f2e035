"""A layer computes with tensors and describes the same for blocks of rows."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lgcn import LGCN, Graph, LGConv
from lgcn.nn import Diffusion, GCNLayer
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
