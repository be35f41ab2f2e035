"""A layer block by block of rows: in memory that is used again, with weights prepared once."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Conv1d, Module, ReLU

from lgcn import Graph, LGConv
from lgcn.nn import lg_conv
from lgcn.nn.grid_cnn import GridCNN

RandomGraph = Callable[..., Graph]
BLOCK = 60  # three or four rows of the grids below


class Remembering(Module):
    """A CNN of a user who keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = Conv1d(5, 5, 4)
        self.seen: list[Tensor] = []

    def forward(self, grid: Tensor) -> Tensor:
        self.seen.append(grid)
        out: Tensor = self.conv(grid)
        return out


def without_gradients(conv: LGConv, graph: Graph) -> Tensor:
    conv.eval()
    with torch.no_grad():
        out: Tensor = conv(graph.x, graph)
    return out


def grids(conv: LGConv, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses of the grids that a call convolves."""
    found = []
    convolve = conv.convolve

    def seen(grid: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        found.append(grid.data_ptr())
        return convolve(grid, *args, **kwargs)

    monkeypatch.setattr(conv, "convolve", seen)
    without_gradients(conv, graph)
    return found


@pytest.mark.parametrize("cnn", ["double", "single", "shared", "depthwise"])
@pytest.mark.parametrize("options", [{}, {"mean": True}, {"rank": "normalized", "sum": True}])
@pytest.mark.parametrize("autocast", [False, True])
def test_the_output_is_that_of_all_rows_at_once(
    cnn: str,
    options: dict[str, Any],
    autocast: bool,
    random_graph: RandomGraph,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = random_graph(30)
    conv = LGConv(5, 5, 3, cnn, **options)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        at_once = without_gradients(conv, graph)
        monkeypatch.setattr(lg_conv, "MAX_GRID", BLOCK)
        in_blocks = without_gradients(conv, graph)
    assert in_blocks.dtype == at_once.dtype
    tolerance = {"rtol": 0.02, "atol": 0.02} if autocast else {}
    torch.testing.assert_close(in_blocks, at_once, **tolerance)


@pytest.mark.parametrize("recompute", [False, True])
def test_weights_are_folded_once_for_all_blocks(
    recompute: bool, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", BLOCK)
    calls = []
    folded = GridCNN.folded
    monkeypatch.setattr(GridCNN, "folded", lambda cnn: calls.append(cnn) or folded(cnn))
    graph = random_graph(30)
    conv = LGConv(5, 3, 3, recompute=recompute)
    if recompute:
        conv.train()(graph.x, graph)
    else:
        without_gradients(conv, graph)
    assert len(calls) == 1


@pytest.mark.parametrize("cnn", ["double", "single", "shared"])
def test_blocks_share_the_memory_of_their_grids(
    cnn: str, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lg_conv, "MAX_GRID", BLOCK)
    found = grids(LGConv(5, 5, 3, cnn), random_graph(30), monkeypatch)
    assert len(found) == 10
    assert len(set(found)) == 1


@pytest.mark.parametrize("by_hook", [False, True])
def test_what_a_user_keeps_is_not_overwritten(
    by_hook: bool, random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(30)
    own = Remembering()
    conv = LGConv(5, 5, 3, None if by_hook else own)
    if by_hook:
        conv.cnn.register_forward_pre_hook(lambda cnn, given: own.seen.append(given[0]))
    assert graph.x is not None
    with torch.no_grad():
        expected = conv.select(graph.x, graph.x, graph.adjacency()).transpose(1, 2)
    monkeypatch.setattr(lg_conv, "MAX_GRID", BLOCK)
    without_gradients(conv, graph)
    assert len(own.seen) == 10
    assert torch.equal(torch.cat(own.seen), expected)


def test_a_function_between_the_convolutions_is_not_folded_away(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(30)
    conv = LGConv(5, 3, 3, activation=ReLU())
    at_once = without_gradients(conv, graph)
    monkeypatch.setattr(lg_conv, "MAX_GRID", BLOCK)
    torch.testing.assert_close(without_gradients(conv, graph), at_once)
