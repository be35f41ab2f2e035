"""Sparse matrices by rows: dropout of weights or of entries, and parts of a matrix."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lgcn import Graph
from lgcn.graph.csr import (
    CSR,
    add_self_loops,
    has_self_loop,
    one_index_dtype,
    row_sums,
    sparse_features,
    stack_offsets,
    take_rows,
)
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


# Parts of a matrix.


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_rows_with_a_self_loop(index: torch.dtype) -> None:
    rowptr, col = torch.tensor([0, 2, 2, 4, 5]), torch.tensor([3, 0, 1, 2, 0])
    assert has_self_loop(rowptr, col.to(index)).tolist() == [True, False, True, False]


def test_offsets_and_columns_get_one_dtype() -> None:
    matrix = CSR(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1], dtype=torch.int32))
    part = matrix.rows(1, 2)
    assert part.rowptr.dtype == part.col.dtype == torch.int32
    assert (part.rowptr.tolist(), part.col.tolist()) == ([0, 2], [0, 1])
    same = torch.tensor([0, 1])
    assert one_index_dtype(same, same) == (same, same)


@pytest.mark.parametrize("rows", [slice(1, 4), slice(0, 0), torch.tensor([4, 0, 4]), slice(3, 9)])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_rows_of_sparse_features(rows: slice | Tensor, index: torch.dtype) -> None:
    x = torch.arange(30.0).view(5, 6) * (torch.arange(30).view(5, 6) % 3 == 0)
    csr = x.to_sparse_csr()
    csr = sparse_features(csr.crow_indices(), csr.col_indices().to(index), csr.values(), 6)
    taken = take_rows(csr, rows)
    assert torch.equal(taken.to_dense(), x[rows])
    assert taken.crow_indices().dtype == taken.col_indices().dtype


# Numbers that narrow types cannot hold.


def test_offsets_of_2_to_the_31_entries_are_not_added_in_int32() -> None:
    part = torch.tensor([0, 2**30, 2**31 - 1], dtype=torch.int32)
    stacked = stack_offsets([part, part])
    assert stacked.tolist() == [0, 2**30, 2**31 - 1, 3 * 2**30 - 1, 2**32 - 2]
    assert stack_offsets([part[:2], part[:2] - 1]).dtype == torch.int32


def test_self_loops_that_make_more_entries_than_int32_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rowptr, col = torch.tensor([0, 2, 3]).int(), torch.tensor([0, 1, 0]).int()
    narrow = add_self_loops(CSR(rowptr, col))
    assert narrow.rowptr.dtype == narrow.col.dtype == torch.int32
    monkeypatch.setattr("lgcn.graph.csr.MAX_INT32", 3)  # stands for 2**31 - 1
    wide = add_self_loops(CSR(rowptr, col))
    assert wide.rowptr.dtype == wide.col.dtype == torch.int64
    assert [part.tolist() for part in wide[:2]] == [part.tolist() for part in narrow[:2]]


def test_node_numbers_of_64_bits_are_not_cut_off() -> None:
    rowptr, col = one_index_dtype(torch.tensor([0, 1]).int(), torch.tensor([2**31]))
    assert rowptr.dtype == torch.int64
    assert col.tolist() == [2**31]


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.bool, torch.bfloat16, torch.float16, torch.int64]
)
def test_sums_of_weights_of_any_type(dtype: torch.dtype) -> None:
    """300 ones are 44 in uint8, true in bool and 256 in bfloat16."""
    matrix = CSR(torch.tensor([0, 300]), torch.arange(300), torch.ones(300, dtype=dtype))
    assert row_sums(matrix).tolist() == [300]


@pytest.mark.parametrize(
    ("rowptr", "message"),
    [([0, 2**31 - 1, -2, 2], "must not decrease"), ([0, 1, 1, 3], r"must end with .*\(2\)")],
)
def test_self_loops_of_a_wrong_structure_are_not_looked_for(
    rowptr: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        has_self_loop(torch.tensor(rowptr).int(), torch.tensor([0, 1]).int())
