"""A selection in memory that the next one overwrites."""

import pytest
import torch

from lgcn.ops.cpu.launch import Overwritten
from lgcn.ops.k_largest import Zeros, k_largest_grid, k_largest_grid_within
from tests.conftest import make_graph


@pytest.mark.parametrize("zeros", ["pad", "compete"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("parts", ["own", "last", "weight", "neither"])
def test_the_grid_is_the_same_whatever_was_there(
    zeros: Zeros, dtype: torch.dtype, parts: str
) -> None:
    memory = Overwritten()
    for num_nodes, k in ((20, 3), (40, 5), (7, 2)):  # larger, then smaller than before
        graph = make_graph(num_nodes, 0.2, num_features=5)
        assert graph.x is not None
        x = graph.x.to(dtype)
        own, last = x if parts == "own" else None, 2 * x if parts == "last" else None
        weight = torch.linspace(-1, 1, graph.num_edges).to(dtype) if parts == "weight" else None
        given = {"edge_weight": weight, "zeros": zeros, "last": last}
        found = k_largest_grid_within(memory, x, own, graph.rowptr, graph.col, k, **given)
        assert torch.equal(found, k_largest_grid(x, own, graph.rowptr, graph.col, k, **given))


def test_memory_is_used_again_and_grows_when_it_must() -> None:
    graph = make_graph(30, 0.2, num_features=5)
    assert graph.x is not None
    memory = Overwritten()
    grids = [
        k_largest_grid_within(memory, graph.x, graph.x, graph.rowptr, graph.col, k)
        for k in (4, 2, 4, 6)
    ]
    addresses = [grid.data_ptr() for grid in grids]
    assert addresses[:3] == [addresses[0]] * 3
    assert addresses[3] != addresses[0]


def test_what_is_wrong_is_noticed() -> None:
    graph = make_graph(10, 0.2, num_features=5)
    assert graph.x is not None
    with pytest.raises(ValueError, match="own must have shape"):
        k_largest_grid_within(Overwritten(), graph.x, graph.x[:3], graph.rowptr, graph.col, 2)
    with pytest.raises(ValueError, match="smaller than the number of rows of x"):
        k_largest_grid_within(Overwritten(), graph.x[:3], None, graph.rowptr, graph.col, 2)
