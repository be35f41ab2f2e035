"""The definition itself, against plain Python."""

import pytest
import torch
from hypothesis import given, settings

from lgcn.ops import reference

from .graphs import DTYPES, Case, assert_same, cases, oracle, random_graph


@settings(max_examples=100)
@given(case=cases())
def test_k_largest_and_neighbor_at_equal_the_oracle(case: Case) -> None:
    values, position = reference.k_largest(
        case.x, case.rowptr, case.col, case.k, case.edge_weight, case.compete
    )
    expected_values, expected_position, expected_index = oracle(case)
    assert_same(values, expected_values)
    assert_same(position, expected_position)
    assert_same(reference.neighbor_at(position, case.rowptr, case.col), expected_index)


def test_features_are_taken_in_blocks_when_edges_outnumber_the_result() -> None:
    # N k C = 2 * 1 * 9 is far below E: one feature at a time.
    rowptr, col = random_graph(2, 20, 40)
    x = torch.randn(20, 9)
    case = Case(x, rowptr, col, 1, None, "pad")
    values, position = reference.k_largest(x, rowptr, col, 1, None, False)
    assert_same(values, oracle(case)[0])
    assert_same(position, oracle(case)[1])


@pytest.mark.parametrize("num_edges", [0, 2])
def test_own_features_go_in_front_of_the_values(num_edges: int) -> None:
    x, own = torch.tensor([[1.0], [2.0]]), torch.tensor([[-7.0]])
    rowptr, col = torch.tensor([0, num_edges]), torch.arange(num_edges)
    grid, position = reference.k_largest(x, rowptr, col, 2, None, False, 8, own)
    assert grid.flatten().tolist() == [-7, 2, 1] if num_edges else [-7, 0, 0]
    assert position.dtype == torch.int8
    assert position.flatten().tolist() == [1, 0] if num_edges else [-1, -1]
    longer, _ = reference.k_largest(x, rowptr, col, 2, None, False, 8, own, 3 * own)
    assert longer.flatten().tolist() == [*grid.flatten().tolist(), -21]


@pytest.mark.parametrize("slots", [slice(1, 2), slice(0, 2), slice(0, 3)])
def test_gradients_skip_the_slots_of_other_features(slots: slice) -> None:
    x, weight = torch.tensor([[1.0], [2.0]]), torch.tensor([10.0, 20.0])
    rowptr, col = torch.tensor([0, 2]), torch.arange(2)
    position = torch.tensor([[[1]]], dtype=torch.int8)
    grad = torch.tensor([100.0, 3.0, 50.0])[slots].view(1, -1, 1)
    grad_x = reference.k_largest_grad_x(grad, position, rowptr, col, weight, 2)
    assert grad_x.flatten().tolist() == [0, 60]
    assert reference.k_largest_grad_weight(grad, position, x, rowptr, col).tolist() == [0, 6]


def test_row_of_entry() -> None:
    assert reference.row_of_entry(torch.tensor([0, 2, 2, 3])).tolist() == [0, 0, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_compute_dtype(dtype: torch.dtype) -> None:
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert reference.compute_dtype(dtype) == wide


def test_gradients_equal_autograd() -> None:
    rowptr, col = random_graph(8, 6, 4)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(col.numel(), dtype=torch.float64, generator=generator, requires_grad=True)
    _, position = reference.k_largest(x.detach(), rowptr, col, 2, weight.detach(), False)
    # The same selection by indexing, which torch differentiates itself.
    entry = (rowptr[:-1].view(-1, 1, 1) + position.clamp(min=0)).clamp(max=col.numel() - 1)
    selected = weight[entry] * x[col[entry], torch.arange(3)] * (position >= 0)
    grad = torch.randn(selected.shape, dtype=torch.float64, generator=generator)
    grad_x, grad_weight = torch.autograd.grad(selected, (x, weight), grad)
    torch.testing.assert_close(
        reference.k_largest_grad_x(grad, position, rowptr, col, weight.detach(), 6), grad_x
    )
    torch.testing.assert_close(
        reference.k_largest_grad_weight(grad, position, x.detach(), rowptr, col), grad_weight
    )


def test_neighbor_at_never_returns_its_input() -> None:
    """A torch operator must not; without edges and with int32 nothing has to be computed."""
    position = torch.full((2, 1, 1), -1, dtype=torch.int32)
    no_edges = torch.zeros(3, dtype=torch.int32), torch.zeros(0, dtype=torch.int32)
    index = reference.neighbor_at(position, *no_edges)
    assert index.data_ptr() != position.data_ptr()
    assert torch.equal(index, position)
