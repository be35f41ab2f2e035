"""The Numba kernels: equal to the reference, whatever the number of threads."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lgcn.ops import k_largest, reference
from lgcn.ops.cpu import kernels, select
from lgcn.ops.cpu import launch as cpu

from ..graphs import Case, assert_same, cases, oracle, random_graph


@pytest.fixture
def two_threads() -> Iterator[Callable[[int], None]]:
    """A function that sets the number of Numba threads."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("needs two cores")
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


@settings(max_examples=100)
@given(case=cases(), position_bits=st.sampled_from((0, 8, 16, 32)))
def test_selects_what_the_reference_selects(case: Case, position_bits: int) -> None:
    arguments = (case.x, case.rowptr, case.col, case.k, case.edge_weight, case.compete)
    expected_values, expected_position, expected_index = oracle(case)
    for backend in (cpu, reference):
        values, chosen = backend.k_largest(*arguments, position_bits)
        assert_same(values, expected_values)
        if position_bits == 0:
            assert_same(chosen, expected_index)
        else:
            assert_same(chosen, expected_position.to(reference.POSITION_DTYPES[position_bits]))
            assert_same(backend.neighbor_at(chosen, case.rowptr, case.col), expected_index)


@settings(max_examples=50)
@given(case=cases())
def test_own_features_come_first(case: Case) -> None:
    arguments = (case.x, case.rowptr, case.col, case.k, case.edge_weight, case.compete, 8)
    generator = torch.Generator().manual_seed(0)
    own = torch.randn(case.rowptr.numel() - 1, case.x.size(1), generator=generator)
    own = own.to(case.x.dtype)
    values, position = cpu.k_largest(*arguments)
    for backend in (cpu, reference):
        grid, chosen = backend.k_largest(*arguments, own)
        assert_same(grid, torch.cat([own.unsqueeze(1), values], dim=1))
        assert_same(chosen, position)
        longer, chosen = backend.k_largest(*arguments, own, 2 * own)
        assert_same(longer, torch.cat([grid, 2 * own.unsqueeze(1)], dim=1))
        assert_same(chosen, position)


@settings(max_examples=60)
@given(
    case=cases(),
    position_bits=st.sampled_from((0, 8, 16, 32)),
    other_slots=st.sampled_from((0, 1, 2)),
)
def test_gradients_equal_those_of_the_reference(
    case: Case, position_bits: int, other_slots: int
) -> None:
    x = case.x.nan_to_num(3, 4, -4)
    weight = None if position_bits == 0 else case.edge_weight
    arguments = (x, case.rowptr, case.col, case.k, weight, case.compete)
    _, chosen = cpu.k_largest(*arguments, position_bits)
    num_rows, k, channels = chosen.shape
    generator = torch.Generator().manual_seed(0)
    grad = torch.randn(num_rows, k + other_slots, channels, generator=generator).to(x.dtype)
    selected = (grad, chosen, case.rowptr, case.col, weight, x.size(0), position_bits == 0)
    torch.testing.assert_close(
        cpu.k_largest_grad_x(*selected), reference.k_largest_grad_x(*selected)
    )
    if position_bits > 0:
        factors = (grad, chosen, x, case.rowptr, case.col)
        torch.testing.assert_close(
            cpu.k_largest_grad_weight(*factors), reference.k_largest_grad_weight(*factors)
        )


@pytest.mark.parametrize("channels", [1, 15, 16, 17, 64, 129])
@pytest.mark.parametrize("k", [1, 4, 33])
def test_hubs_and_wide_features(channels: int, k: int) -> None:
    # Degrees from 0 to 300 with a hub of 5000, so that every branch on degree and k is taken.
    rng = np.random.default_rng(channels)
    degrees = np.append(rng.integers(0, 300, 12), [5000, 0, k, k - 1, k + 1])
    rowptr = torch.tensor([0, *np.cumsum(degrees)])
    col = torch.from_numpy(rng.integers(0, 500, rowptr[-1].item()))
    generator = torch.Generator().manual_seed(k)
    x = torch.randn(500, channels, generator=generator)
    grad = torch.randn(len(degrees), k, channels, generator=generator)
    weight = torch.randn(col.numel(), generator=generator)
    for bits, factors in ((0, None), (16, None), (16, weight)):
        values, chosen = cpu.k_largest(x, rowptr, col, k, factors, False, bits)
        expected = reference.k_largest(x, rowptr, col, k, factors, False, bits)
        assert_same(values, expected[0])
        assert_same(chosen, expected[1])
        selected = (grad, chosen, rowptr, col, factors, 500, bits == 0)
        torch.testing.assert_close(
            cpu.k_largest_grad_x(*selected),
            reference.k_largest_grad_x(*selected),
            rtol=1e-4,
            atol=1e-4,
        )


def test_an_infinite_weight_that_was_not_selected_has_no_part_in_the_gradient() -> None:
    x = torch.ones(2, 3)
    rowptr, col, weight = torch.tensor([0, 2]), torch.arange(2), torch.tensor([2.0, -torch.inf])
    _, position = cpu.k_largest(x, rowptr, col, 1, weight, False, 16)
    grad_x = cpu.k_largest_grad_x(torch.ones(1, 1, 3), position, rowptr, col, weight, 2)
    assert grad_x.tolist() == [[2, 2, 2], [0, 0, 0]]


@pytest.mark.parametrize("channels", [1, 5, 40])
@pytest.mark.parametrize("bits", [1, 6, 8])
def test_ids_that_do_not_fit_beside_positions_are_looked_up(
    channels: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rowptr, col = random_graph(40, 30, 6)
    x, own = torch.randn(30, channels), torch.randn(40, channels)
    arguments = (x, rowptr, col, 3, None, True, 0, own)
    monkeypatch.setattr(cpu, "POSITION_BITS", bits)  # of which an id takes 5
    limit = (1 << bits) >> 5
    assert limit < rowptr.diff().max()
    for actual, wanted in zip(
        cpu.k_largest(*arguments), reference.k_largest(*arguments), strict=True
    ):
        assert_same(actual, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("compete", [False, True])
def test_float64_with_int32_indices(compete: bool) -> None:
    rowptr, col = random_graph(40, 30, 6, index_dtype=torch.int32)
    x = torch.randn(30, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weight = torch.linspace(-1, 2, col.numel(), dtype=torch.float64)
    values, position = cpu.k_largest(x, rowptr, col, 5, weight, compete)
    expected_values, expected_position, _ = oracle(
        Case(x, rowptr, col, 5, weight, "compete" if compete else "pad")
    )
    assert_same(values, expected_values)
    assert_same(position, expected_position)
    selected = (values, position, rowptr, col, weight, 30)
    torch.testing.assert_close(
        cpu.k_largest_grad_x(*selected), reference.k_largest_grad_x(*selected)
    )
    torch.testing.assert_close(
        cpu.spmm(rowptr, col, weight, x), reference.spmm(rowptr, col, weight, x)
    )


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("channels", [1, 31, 32, 33, 100])
def test_sparse_products_add_one_entry_after_the_other(
    channels: int, index_dtype: torch.dtype
) -> None:
    rowptr, col = random_graph(60, 50, 8, index_dtype=index_dtype)
    generator = torch.Generator().manual_seed(channels)
    value = torch.randn(col.numel(), generator=generator)
    dense = torch.randn(50, channels, generator=generator)
    grad = torch.randn(60, channels, generator=generator)
    out, grad_dense = np.zeros((60, channels), np.float32), np.zeros((50, channels), np.float32)
    rows = reference.row_of_entry(rowptr).tolist()
    for i, j, v in zip(rows, col.tolist(), value.numpy(), strict=True):
        out[i] += v * dense[j].numpy()
        grad_dense[j] += v * grad[i].numpy()
    assert cpu.spmm(rowptr, col, value, dense).numpy().tobytes() == out.tobytes()
    for _ in range(2):  # without and with a transpose that is known
        actual = cpu.spmm_grad_dense(grad, rowptr, col, value, 50)
        assert actual.numpy().tobytes() == grad_dense.tobytes()


def test_infinity_times_zero_is_not_left_out_of_a_product() -> None:
    rowptr, col, value = torch.tensor([0, 1, 2]), torch.arange(2), torch.tensor([torch.inf, 1.0])
    product = cpu.spmm(rowptr, col, value, torch.zeros(2, 3))
    assert product.isnan().tolist() == [[True] * 3, [False] * 3]


def test_results_do_not_depend_on_the_number_of_threads(
    two_threads: Callable[[int], None],
) -> None:
    rowptr, col = random_graph(400, 300, 12)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 40, generator=generator)
    weight = torch.randn(col.numel(), generator=generator)
    grad = torch.randn(400, 5, 40, generator=generator)
    assert col.numel() // 300 > 2  # edges enough for sums by parts of the rows

    def everything() -> list[Tensor]:
        values, position = cpu.k_largest(x, rowptr, col, 5, weight, False)
        dense = cpu.spmm(rowptr, col, weight, x)
        return [
            values,
            position,
            cpu.neighbor_at(position, rowptr, col),
            cpu.k_largest_grad_x(grad, position, rowptr, col, weight, 300),
            cpu.k_largest_grad_weight(grad, position, x, rowptr, col),
            dense,
            cpu.spmm_grad_value(dense, rowptr, col, x),
            cpu.spmm_grad_dense(dense, rowptr, col, weight, 300),
        ]

    two_threads(1)
    alone = everything()
    two_threads(2)
    for actual, expected in zip(everything(), alone, strict=True):
        assert actual.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_chunks_cover_all_rows_in_order(count: int) -> None:
    rowptr, _ = random_graph(50, 50, 4)
    chunks = kernels.row_chunks(rowptr.numpy(), count)
    assert chunks[0] == 0
    assert chunks[-1] == 50
    assert (np.diff(chunks) >= 0).all()
    work = np.diff(chunks + rowptr.numpy()[chunks])
    longest_row = int(rowptr.diff().max()) + 1
    assert work.max() <= work.sum() / count + longest_row


def test_kernels_leave_the_number_of_torch_threads_alone() -> None:
    """In a fresh process, since only Numba's first parallel call changes OpenMP's number."""
    code = (
        "import torch; torch.set_num_threads(1)\n"
        "from lgcn.ops import k_largest\n"
        "k_largest(torch.ones(3, 2), torch.tensor([0, 1, 2, 2]), torch.tensor([1, 2]), 1)\n"
        "print(torch.get_num_threads())"
    )
    env = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120
    )
    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.parametrize(
    ("module", "kernel"),
    [(select, "k_largest_narrow"), (select, "k_largest"), (kernels, "k_largest_grad_x")],
)
def test_memory_that_runs_out_in_a_kernel_is_named(
    module: ModuleType, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("Allocation failed (probably too large).")

    x = torch.ones(2, 1 if kernel == "k_largest_narrow" else 20, requires_grad=True)
    monkeypatch.setattr(module, kernel, fail)
    with pytest.raises(MemoryError, match="k = 7"):
        k_largest(x, torch.tensor([0, 2]), torch.tensor([0, 1]), 7)[0].sum().backward()
