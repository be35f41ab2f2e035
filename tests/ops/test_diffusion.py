"""The sum over propagation steps against a chain of products and sums."""

import pytest
import torch
from torch import Tensor

from lgcn.ops import spmm
from lgcn.ops.diffusion import can_diffuse, diffuse

from .graphs import random_graph

CSR = tuple[Tensor, Tensor, Tensor]


def matrix(dtype: torch.dtype, seed: int = 0, index_dtype: torch.dtype = torch.int64) -> CSR:
    rowptr, col = random_graph(9, 9, 3.0, seed=seed, index_dtype=index_dtype)
    torch.manual_seed(seed)
    return rowptr, col, torch.randn(col.numel(), dtype=dtype)


def chain(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, hops: int) -> Tensor:
    total = x
    for _ in range(hops):
        total = x + spmm(rowptr, col, value, total)
    return total


@pytest.mark.parametrize("hops", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_it_has_the_bits_of_a_chain(
    hops: int, dtype: torch.dtype, index_dtype: torch.dtype
) -> None:
    factors = matrix(dtype, seed=hops, index_dtype=index_dtype)
    x, upstream = (
        torch.randn(9, 70, dtype=dtype, requires_grad=True),
        torch.randn(9, 70, dtype=dtype),
    )
    results = []
    for function in (diffuse, chain):
        out = function(*factors, 1 * x, hops)
        results.append((out, *torch.autograd.grad(out, x, upstream)))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_the_input_stays_and_the_result_is_new() -> None:
    factors = matrix(torch.float32)
    x = torch.randn(9, 4)
    before = x.clone()
    for hops in (0, 3):
        diffuse(*factors, x, hops).zero_()
        assert torch.equal(x, before)


def test_gradients_of_gradients() -> None:
    factors = matrix(torch.float64)
    x = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: diffuse(*factors, x, 3) ** 2, x)
    assert torch.autograd.gradgradcheck(lambda x: diffuse(*factors, x, 3) ** 2, x)


def test_columns_out_of_range_are_refused() -> None:
    rowptr, col, value = matrix(torch.float32)
    col[0] = 9
    with pytest.raises(ValueError, match="col"):
        diffuse(rowptr, col, value, torch.randn(9, 4), 2)


def test_what_it_leaves_to_a_chain() -> None:
    value, x = torch.ones(3), torch.ones(2, 2)
    assert can_diffuse(value, x)
    assert not can_diffuse(value.requires_grad_(), x)  # edge weights that are learnt
    assert not can_diffuse(torch.ones(3).half(), x.half())
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_diffuse(torch.ones(3), x)
