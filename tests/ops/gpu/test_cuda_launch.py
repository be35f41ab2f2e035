"""The CUDA C++ kernels: equal to the reference. On a CPU they are compiled by g++."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lgcn.ops import reference
from lgcn.ops.structure import long_rows, max_degree, transpose

from ..graphs import assert_same
from . import cuda_on_cpu

pytest.importorskip("triton", reason="the GPU kernels need Triton")

from lgcn.ops.gpu import cuda_launch, nvrtc  # only with Triton
from lgcn.ops.gpu import launch as gpu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    DEVICE == "cpu" and cuda_on_cpu.COMPILER is None, reason="needs a GPU or g++"
)


@pytest.fixture(scope="module", autouse=True)
def kernels_on_a_cpu() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "cpu":
            patch.setattr(nvrtc, "kernel", cuda_on_cpu.kernel)
        yield


def rows(*degrees: int, num_sources: int = 40, index: Any = torch.int64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(sum(degrees))
    rowptr = torch.tensor([0, *np.cumsum(degrees)]).to(DEVICE, index)
    col = torch.randint(num_sources, (sum(degrees),), generator=generator)
    return rowptr, col.to(DEVICE, index)


def numbers(*shape: int, seed: int = 0, special: bool = False) -> Tensor:
    """Normal numbers with ties; with `special`, also what is hard to order."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(shape, generator=generator)
    found = torch.where(torch.rand(shape, generator=generator) < 0.3, found.round(), found)
    if special:
        for value in (math.nan, math.inf, -math.inf, -0.0, 1e-40, -1e-40):
            found[torch.rand(shape, generator=generator) < 0.03] = value
    return found.to(DEVICE)


def reference_values(*arguments: Any) -> Tensor:
    return reference.k_largest_values(*arguments)


# features, k, weighted, compete, with the node's own, with something last, index type
SELECTIONS = [
    (5, 3, False, False, True, False, torch.int64),
    (40, 8, True, True, False, True, torch.int32),
    (3, 16, False, True, True, True, torch.int64),
    (33, 20, True, False, False, False, torch.int32),
]


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    ("channels", "k", "weighted", "compete", "has_own", "has_last", "index"), SELECTIONS
)
def test_values_are_those_of_the_reference(
    channels: int, k: int, weighted: bool, compete: bool, has_own: bool, has_last: bool,
    index: Any, special: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cuda_launch, "SELECT_PART", 30)  # so that some rows are shared by warps
    rowptr, col = rows(0, 1, k - 1, k, k + 1, 29, 30, 31, 100, 2, 7, 8, 9, index=index)
    num_rows = rowptr.numel() - 1
    x = numbers(40, channels, special=special)
    weight = numbers(col.numel(), seed=1) if weighted else None
    own = numbers(num_rows, channels, seed=2) if has_own else None
    last = numbers(num_rows, channels, seed=3) if has_last else None
    arguments = (x, rowptr, col, k, weight, compete, own, last)
    found = cuda_launch.select_values(*arguments, False, None)
    assert found is not None
    assert_same(found, reference_values(*arguments))
    assert_same(gpu.k_largest_values(*arguments), found)


@pytest.mark.parametrize("divides", [False, True])
def test_the_sum_of_all_neighbours_follows_the_values(
    divides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_launch, "SELECT_PART", 20)
    rowptr, col = rows(0, 3, 20, 21, 90)
    x, own = numbers(40, 6), numbers(5, 6, seed=1)
    divisor = rowptr.diff().clamp(min=1).float().unsqueeze(1) if divides else None
    arguments = (x, rowptr, col, 4, None, False, own, None, True, divisor)
    found = cuda_launch.select_values(*arguments)
    assert found is not None
    expected = reference_values(*arguments)
    assert_same(found[:, :-1], expected[:, :-1])
    torch.testing.assert_close(found[:, -1], expected[:, -1])


def test_what_has_no_kernel_is_left_to_triton() -> None:
    rowptr, col = rows(3, 4)
    x = numbers(40, 5)
    for features, k in ((x.half(), 3), (x, cuda_launch.MAX_SLOTS + 1)):
        arguments = (features, rowptr, col, k, None, False, None, None, False, None)
        assert cuda_launch.select_values(*arguments) is None


def test_nothing_to_select() -> None:
    for num_rows, channels in ((0, 3), (3, 0)):
        rowptr = torch.zeros(num_rows + 1, dtype=torch.int64, device=DEVICE)
        x, col = numbers(4, channels), rowptr[:0]
        arguments = (x, rowptr, col, 2, None, False, None, None, False, None)
        found = cuda_launch.select_values(*arguments)
        assert found is not None
        assert found.shape == (num_rows, 2, channels)


def sum_by_columns(
    grad: Tensor, chosen: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None,
    num_sources: int, every: Tensor | None = None, columns: Tensor | None = None,
    total: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The gradients as `gpu.add_grad_x` sums them."""
    total = grad.new_zeros(num_sources, grad.size(2)) if total is None else total
    gpu.add_grad_x(total, columns, grad, chosen, rowptr, col, weight, every)
    return total


# features, k, weighted, every, entries whose masks are known at a time
GRADIENTS = [
    (5, 3, False, False, 64),
    (70, 4, True, True, 2),
    (130, 8, False, True, 64),
    (129, 8, True, False, 64),  # too many values for one warp
]


@pytest.mark.parametrize(("channels", "k", "weighted", "has_every", "known"), GRADIENTS)
def test_gradients_are_those_of_the_reference(
    channels: int, k: int, weighted: bool, has_every: bool, known: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cuda_launch, "MAX_KNOWN", known)
    monkeypatch.setattr(gpu, "SUM_PART", 40)  # the hub's column is summed in parts
    monkeypatch.setattr(gpu, "_sum_messages", None)  # what is used where there is no kernel
    rowptr, col = rows(0, 1, k, k + 5, 60, 3, 90, 2, 33, 12)
    col[rowptr[6] : rowptr[6] + 70] = 7
    weight = numbers(col.numel(), seed=1) if weighted else None
    x = numbers(40, channels)
    values, position = reference.k_largest(x, rowptr, col, k, weight, True, 8)
    slots = torch.zeros(values.size(0), 1, channels, device=DEVICE)
    grad = torch.cat([slots, numbers(*values.shape, seed=2), slots], 1)  # own, selected, last
    every = numbers(values.size(0), channels, seed=3) if has_every else None
    found = sum_by_columns(grad, position, rowptr, col, weight, 40, every)
    exact_weight = None if weight is None else weight.double()
    expected = torch.zeros(40, channels, dtype=torch.float64, device=DEVICE)
    reference.add_grad_x(
        expected, None, grad.double(), position, rowptr, col, exact_weight,
        None if every is None else every.double(),
    )  # fmt: skip
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    again = sum_by_columns(grad, position, rowptr, col, weight, 40, every)
    assert_same(found, again)


def test_gradients_are_added_to_the_rows_that_are_named() -> None:
    rowptr, col = rows(4, 7, 12, num_sources=6)
    x = numbers(6, 9)
    values, position = reference.k_largest(x, rowptr, col, 3, None, False, 16)
    grad = numbers(*values.shape, seed=1)
    start = numbers(20, 9, seed=2)
    places = torch.tensor([19, 0, 4, 11, 7, 3], device=DEVICE)
    found = sum_by_columns(grad, position, rowptr, col, None, 6, None, places, start.clone())
    alone = sum_by_columns(grad, position, rowptr, col, None, 6)
    expected = start.clone()
    expected[places] += alone
    torch.testing.assert_close(found, expected)


def test_a_zero_that_was_filled_in_sends_its_gradient_nowhere() -> None:
    rowptr, col = rows(2, 1, num_sources=3)
    position = torch.tensor([[[0], [1], [-1]], [[0], [-1], [-1]]], dtype=torch.int8, device=DEVICE)
    grad = torch.full((2, 3, 1), 2.0, device=DEVICE)
    found = sum_by_columns(grad, position, rowptr, col, None, 3)
    assert found.sum() == 2 * 3


def test_rows_with_too_many_values_are_left_to_triton() -> None:
    rowptr, col = rows(3, 4, num_sources=5)
    channels = max(cuda_launch.ROW_THREADS)
    grad = torch.zeros(2, 2, channels, device=DEVICE)
    chosen = torch.zeros(2, 2, channels, dtype=torch.int8, device=DEVICE)
    columns = transpose(rowptr, col, 5)
    total = torch.zeros(5, channels, device=DEVICE)
    parts = long_rows(columns.colptr, 10)
    assert max_degree(rowptr, col) == 4
    arguments = (rowptr, col, None, columns, parts, 10, False)
    assert cuda_launch.sum_runs(total, None, grad, None, chosen, *arguments) is None
