"""The operators in standard operations, which ONNX export uses, against the definitions."""

import pytest
import torch

from lgcn.ops import plain, reference
from tests.conftest import make_graph


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("compete", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_selection_is_that_of_the_definition(
    density: float, compete: bool, weighted: bool
) -> None:
    graph = make_graph(density=density, weighted=weighted, seed=3)
    x, weight = graph.x.round(decimals=1), graph.edge_weight  # with ties
    own, last = torch.randn(2, 12, 5)
    for first, end in ((None, None), (own, None), (own, last)):
        expected, _ = reference.k_largest(
            x, graph.rowptr, graph.col, 3, weight, compete, own=first, last=end
        )
        found = plain.k_largest(x, graph.rowptr, graph.col, 3, weight, compete, first, end)
        assert torch.equal(found, expected)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6])
def test_the_product_is_that_of_the_definition(density: float) -> None:
    graph = make_graph(density=density, seed=3)
    value = torch.randn(graph.num_edges)
    expected = reference.spmm(graph.rowptr, graph.col, value, graph.x)
    torch.testing.assert_close(plain.spmm(graph.rowptr, graph.col, value, graph.x), expected)
    rows = plain.row_of_entry(graph.rowptr, graph.col)
    assert torch.equal(rows, reference.row_of_entry(graph.rowptr))
