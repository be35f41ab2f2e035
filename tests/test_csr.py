"""Dropout of a sparse matrix's entries: of their weights, or of the entries themselves."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lgcn import Graph
from lgcn.csr import CSR
from lgcn.ops import k_largest_values, spmm

RandomGraph = Callable[..., Graph]
SEEDS = range(5)


def both(matrix: CSR, p: float, seed: int) -> tuple[CSR, CSR]:
    torch.manual_seed(seed)
    zeroed = matrix.drop_weights(p)
    torch.manual_seed(seed)
    return zeroed, matrix.drop_edges(p)


def select(matrix: CSR, x: Tensor, zeros: str) -> Tensor:
    return k_largest_values(
        x, matrix.rowptr, matrix.col, 3, edge_weight=matrix.values(), zeros=zeros
    )


def test_drop_weights_keeps_the_structure(random_graph: RandomGraph) -> None:
    matrix = random_graph().adjacency(normalize=True)
    torch.manual_seed(0)
    dropped = matrix.drop_weights(0.5)
    assert dropped.rowptr is matrix.rowptr
    assert dropped.col is matrix.col
    kept = dropped.weight != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(dropped.weight[kept], 2 * matrix.weight[kept])
    assert matrix.drop_weights(0.0) is matrix


def test_drop_weights_without_weights_are_ones_before(random_graph: RandomGraph) -> None:
    torch.manual_seed(0)
    dropped = random_graph().adjacency().drop_weights(0.5)
    assert set(dropped.weight.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("weighted", [False, True])
def test_both_drop_the_same_entries(random_graph: RandomGraph, weighted: bool) -> None:
    matrix = random_graph(40, 0.3, weighted=weighted).adjacency()
    zeroed, removed = both(matrix, 0.4, seed=0)
    kept = zeroed.weight != 0
    assert torch.equal(removed.col, matrix.col[kept])
    torch.testing.assert_close(removed.weight, zeroed.weight[kept])


@pytest.mark.parametrize("seed", SEEDS)
def test_both_agree_in_sums_with_gradients(random_graph: RandomGraph, seed: int) -> None:
    matrix = random_graph(20, 0.3, weighted=True).adjacency()
    results = []
    for dropped in both(matrix, 0.4, seed):
        x = torch.arange(60.0).view(20, 3).requires_grad_()
        out = spmm(dropped.rowptr, dropped.col, dropped.values(), x)
        out.square().sum().backward()
        results.append((out, x.grad))
    for zeroed, removed in zip(*results, strict=True):
        torch.testing.assert_close(zeroed, removed)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_agree_in_selection_among_competing_zeros(
    random_graph: RandomGraph, seed: int
) -> None:
    graph = random_graph(20, 0.3, weighted=True)
    results = []
    for dropped in both(graph.adjacency(), 0.4, seed):
        x = graph.x.clone().requires_grad_()
        out = select(dropped, x, "compete")
        out.square().sum().backward()
        results.append((out, x.grad))
    for zeroed, removed in zip(*results, strict=True):
        torch.testing.assert_close(zeroed, removed)


def test_they_differ_in_selection_with_padding(random_graph: RandomGraph) -> None:
    graph = random_graph(20, 0.3)
    below = -graph.x.abs()  # a weight of zero would win over all neighbours that are left
    zeroed, removed = both(graph.adjacency(), 0.4, seed=0)
    assert not torch.allclose(select(zeroed, below, "pad"), select(removed, below, "pad"))


def test_an_entry_of_weight_zero_is_an_entry_until_it_is_removed() -> None:
    matrix = CSR(torch.tensor([0, 1000]), torch.zeros(1000, dtype=torch.long), torch.zeros(1000))
    torch.manual_seed(0)
    assert 400 < matrix.drop_edges(0.5).col.numel() < 600
