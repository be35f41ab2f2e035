"""The Triton kernels: equal to the reference.

Without a GPU, Triton's interpreter runs them on the CPU, and slowly, so graphs are tiny. It cuts
off the lower bits where a GPU rounds to bfloat16, hence weights that are powers of two.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lgcn.ops import atomics, reference
from lgcn.utils.out_of_memory import OutOfMemory

from ..graphs import Case, assert_same, cases

pytest.importorskip("triton", reason="the GPU kernels need Triton")

from lgcn.ops.gpu import launch as gpu  # only with Triton

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = (torch.bfloat16, torch.float16)
F32, BF16, F16 = torch.float32, *HALF


@pytest.fixture(scope="module", autouse=True)
def narrow_programs() -> Iterator[None]:
    """Programs of 4 features, as the interpreter takes its time for each, wanted or not."""
    tuning = gpu._tuning
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "cpu":
            patch.setattr(gpu, "_tuning", lambda *a: tuning(*a)._replace(width=4))
        yield


def rows(
    *degrees: int, num_sources: int = 9, index_dtype: torch.dtype = torch.int64
) -> tuple[Tensor, Tensor]:
    """Rows of random neighbours, with parallel edges where there are fewer sources."""
    generator = torch.Generator().manual_seed(sum(degrees))
    rowptr = torch.tensor([0, *np.cumsum(degrees)]).to(index_dtype)
    col = torch.randint(max(num_sources, 1), (sum(degrees),), generator=generator)
    return rowptr, col.to(index_dtype)


def normal(*shape: int, dtype: torch.dtype = F32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def powers(count: int, dtype: torch.dtype = F32) -> Tensor:
    """Weights of both signs whose products round nowhere."""
    choices = torch.tensor([0.5, 1.0, 2.0, -1.0, -0.5, 0.0])
    generator = torch.Generator().manual_seed(count)
    return choices[torch.randint(6, (count,), generator=generator)].to(dtype)


def there(*arguments: Any) -> list[Any]:
    return [a.to(DEVICE) if isinstance(a, Tensor) else a for a in arguments]


def assert_selects(*arguments: Any) -> None:
    """Exactly what the reference selects; the arguments are those of ``k_largest``."""
    actual = gpu.k_largest(*there(*arguments))
    for tensor, expected in zip(actual, reference.k_largest(*arguments), strict=True):
        assert_same(tensor.cpu(), expected)


# Selection


@pytest.mark.parametrize(
    ("k", "dtype", "index_dtype", "weighted", "compete", "position_bits"),
    [
        (1, F32, torch.int64, False, False, 8),
        (3, F32, torch.int32, True, True, 0),
        (8, F32, torch.int64, True, False, 16),
        (10, F32, torch.int32, False, True, 32),
        (30, F32, torch.int64, True, False, 8),
        (3, BF16, torch.int64, False, True, 0),
        (8, BF16, torch.int32, True, False, 8),
        (3, F16, torch.int32, False, False, 16),
        (10, F16, torch.int64, True, True, 32),
    ],
)
def test_selects_what_the_reference_selects(
    k: int,
    dtype: torch.dtype,
    index_dtype: torch.dtype,
    weighted: bool,
    compete: bool,
    position_bits: int,
) -> None:
    rowptr, col = rows(13, 0, 4, index_dtype=index_dtype)
    weight = powers(col.numel(), dtype) if weighted else None
    assert_selects(normal(9, 3, dtype=dtype), rowptr, col, k, weight, compete, position_bits)


def small(case: Case) -> Case:
    """With no more of anything than the interpreter can do in a second."""
    num_rows = min(3, case.rowptr.numel() - 1)
    num_edges = int(case.rowptr[num_rows])
    return replace(
        case,
        rowptr=case.rowptr[: num_rows + 1],
        col=case.col[:num_edges],
        k=(case.k - 1) % 9 + 1,
        edge_weight=None if case.edge_weight is None else powers(num_edges, case.x.dtype),
    )


def fits(case: Case) -> bool:
    few = case.rowptr.numel() == 1 or case.rowptr.diff().max() <= 12
    return bool(few) and case.x.dtype != torch.float64


@settings(max_examples=15)
@given(case=cases().filter(fits).map(small), position_bits=st.sampled_from((0, 8, 16, 32)))
def test_selects_what_the_reference_selects_of_anything(case: Case, position_bits: int) -> None:
    assert_selects(
        case.x, case.rowptr, case.col, case.k, case.edge_weight, case.compete, position_bits
    )


@pytest.mark.parametrize(("dtype", "weighted"), [(F32, False), (F16, True)])
def test_own_features_come_first(dtype: torch.dtype, weighted: bool) -> None:
    rowptr, col = rows(0, 9)
    weight = powers(9, dtype) if weighted else None
    own = normal(2, 3, dtype=dtype, seed=1)
    assert_selects(normal(9, 3, dtype=dtype), rowptr, col, 3, weight, False, 8, own)
    assert_selects(normal(9, 3, dtype=dtype), rowptr, col, 3, weight, False, 8, own, 2 * own)


def test_inputs_need_not_be_contiguous() -> None:
    rowptr, col = rows(9, 2)
    x, own, weight = normal(3, 9).T, normal(3, 2).T, normal(22)[::2]
    assert not any(tensor.is_contiguous() for tensor in (x, own, weight))
    assert_selects(x, rowptr, col, 3, weight, False, 8, own)


@pytest.mark.parametrize(
    ("degrees", "num_sources", "channels"),
    [((), 3, 2), ((0, 0), 3, 2), ((2, 1), 3, 0), ((0,), 0, 2)],
)
def test_nothing_to_select_from(degrees: tuple[int, ...], num_sources: int, channels: int) -> None:
    rowptr, col = rows(*degrees, num_sources=num_sources)
    x, own = torch.ones(num_sources, channels), torch.ones(len(degrees), channels)
    assert_selects(x, rowptr, col, 3, None, False, 8)
    assert_selects(x, rowptr, col, 3, torch.ones(col.numel()), True, 0, own)
    grad = torch.ones(len(degrees), 3, channels)
    _, position = reference.k_largest(x, rowptr, col, 3, None, False, 8)
    selected = (grad, position, rowptr, col, None, num_sources)
    assert_same(gpu.k_largest_grad_x(*there(*selected)).cpu(), torch.zeros(num_sources, channels))
    factors = there(grad, position, x, rowptr, col)
    assert_same(gpu.k_largest_grad_weight(*factors).cpu(), torch.zeros(col.numel()))


def test_more_features_than_one_program_has() -> None:
    rowptr, col = rows(9)
    assert_selects(normal(9, 10), rowptr, col, 3, None, False, 8)


MINUS_NAN = torch.tensor(-1, dtype=torch.int32).view(F32).item()
SPECIAL = {
    "ties": (1.0, 2.0, -1.0),
    "all equal": (3.0,),
    "zeros of both signs": (0.0, -0.0),
    "zeros and denormal numbers": (0.0, 0.0, 0.0, 1e-44, 5e-44, -1e-44),
    "NaN": (math.nan, MINUS_NAN, math.inf, 1.0),
    "infinities": (math.inf, -math.inf, 1.0, -1.0),
    "negative": (-1.0, -2.0, -math.inf),
}


@pytest.mark.parametrize("compete", [False, True])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, compete: bool) -> None:
    choice = np.random.default_rng(0).integers(0, len(SPECIAL[name]), (20, 6))
    x = torch.tensor(SPECIAL[name])[torch.from_numpy(choice)]
    assert_selects(x, torch.tensor([0, 20]), torch.randperm(20), 3, None, compete, 8)


def test_a_denormal_number_after_many_zeros_is_selected() -> None:
    # They share their upper bits, and of equal ones the first are kept.
    x = torch.tensor([0.0] * 12 + [5e-44, 1e-44]).unsqueeze(1)
    values, position = gpu.k_largest(
        *there(x, torch.tensor([0, 14]), torch.arange(14), 3, None, False)
    )
    assert values.flatten().tolist() == x[[12, 13, 0], 0].tolist()
    assert position.flatten().tolist() == [12, 13, 0]


def close_together(degree: int, channels: int, *, distinct: int) -> Tensor:
    """Values that differ in the last bits only, in an order of its own for every feature."""
    rng = np.random.default_rng(degree)
    steps = np.stack([rng.permutation(degree) % distinct for _ in range(channels)], axis=1)
    return torch.from_numpy(1 + steps * 2.0**-23).float()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("k", [3, 8, 10])
def test_values_that_differ_in_the_last_bits_and_are_all_selected(k: int, sign: int) -> None:
    x = sign * close_together(k, 5, distinct=k)
    assert_selects(x, torch.tensor([0, k]), torch.arange(k), k, None, False, 8)


@pytest.mark.parametrize(
    ("k", "distinct", "weighted", "compete"),
    [(3, 20, False, False), (8, 20, True, False), (10, 4, False, True), (1, 5, True, True)],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_values_that_differ_in_the_last_bits_and_are_left_out(
    k: int, distinct: int, weighted: bool, compete: bool, sign: int
) -> None:
    x = sign * close_together(20, 5, distinct=distinct)
    weight = torch.full((20,), 0.5) if weighted else None
    x[3], x[11] = 5, -5  # far from the others, above and below
    assert_selects(x, torch.tensor([0, 20]), torch.arange(20), k, weight, compete, 8)


@pytest.mark.parametrize("values", ["normal", "close"])
def test_k_of_64(values: str) -> None:
    x = normal(70, 2) if values == "normal" else close_together(70, 2, distinct=60)
    assert_selects(x, torch.tensor([0, 70]), torch.arange(70), 64, None, False, 8)


# Long rows


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts rows of more than 16 entries, where real parts have a thousand and more."""
    tuning = gpu._tuning
    monkeypatch.setattr(gpu, "_tuning", lambda *a: tuning(*a)._replace(log_t=3, part=16))
    monkeypatch.setattr(gpu, "SUM_PART", 16)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize(
    ("k", "dtype", "weighted", "compete", "position_bits", "own"),
    [
        (3, F32, False, False, 8, False),
        (10, F32, True, True, 0, True),
        (3, BF16, False, True, 16, True),
        (10, F16, True, False, 32, False),
    ],
)
def test_long_rows(
    k: int, dtype: torch.dtype, weighted: bool, compete: bool, position_bits: int, own: bool
) -> None:
    # Two, none and four parts; the last of the first row has one neighbour.
    rowptr, col = rows(17, 5, 50, num_sources=40, index_dtype=torch.int32)
    weight = powers(col.numel(), dtype) if weighted else None
    first = normal(3, 3, dtype=dtype, seed=1) if own else None
    x = normal(40, 3, dtype=dtype)
    assert_selects(x, rowptr, col, k, weight, compete, position_bits, first)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize(("dtype", "compete"), [(F32, False), (F32, True), (F16, False)])
def test_special_values_in_long_rows(dtype: torch.dtype, compete: bool) -> None:
    # A feature for each kind of values, so that one pass does for all.
    rng = np.random.default_rng(1)
    kinds = [
        torch.tensor(SPECIAL[name])[rng.integers(0, len(SPECIAL[name]), 40)] for name in SPECIAL
    ]
    x = torch.cat([torch.stack(kinds, dim=1), close_together(40, 1, distinct=40)], dim=1).to(dtype)
    assert_selects(x, torch.tensor([0, 40]), torch.arange(40), 3, None, compete, 8)


# Gradients


def selected(
    x: Tensor,
    graph: tuple[Tensor, Tensor],
    k: int,
    weight: Tensor | None,
    other_slots: int,
    bits: int,
) -> tuple[Any, ...]:
    """Arguments of ``k_largest_grad_x``."""
    _, chosen = reference.k_largest(x, *graph, k, weight, True, bits)
    num_rows, _, channels = chosen.shape
    grad = normal(num_rows, k + other_slots, channels, dtype=x.dtype, seed=2)
    return grad, chosen, *graph, weight, x.size(0), bits == 0


@pytest.mark.parametrize(
    ("k", "dtype", "weighted", "other_slots", "bits"),
    [
        (3, F32, True, 0, 8),
        (10, F32, False, 1, 16),
        (3, F32, False, 2, 0),
        (3, BF16, True, 2, 32),
        (10, F16, True, 0, 8),
        (3, F16, False, 0, 0),
    ],
)
@pytest.mark.parametrize("chance", [False, True])
def test_gradient_of_features(
    k: int, dtype: torch.dtype, weighted: bool, other_slots: int, bits: int, chance: bool
) -> None:
    graph = rows(13, 0, 4, 6, index_dtype=torch.int32)
    weight = powers(23, dtype) if weighted else None
    arguments = selected(normal(9, 3, dtype=dtype), graph, k, weight, other_slots, bits)
    expected = reference.k_largest_grad_x(*arguments)
    if chance:
        with atomics():
            actual = gpu.k_largest_grad_x(*there(*arguments))
    else:
        actual = gpu.k_largest_grad_x(*there(*arguments))
    torch.testing.assert_close(actual.cpu(), expected)


@pytest.mark.parametrize("other_slots", [0, 1, 2])
@pytest.mark.parametrize("dtype", [F32, BF16, F16])
def test_gradient_of_weights(dtype: torch.dtype, other_slots: int) -> None:
    x, graph = normal(9, 3, dtype=dtype), rows(13, 0, 4)
    grad, position, *_ = selected(x, graph, 3, powers(17, dtype), other_slots, 8)
    arguments = (grad, position, x, *graph)
    expected = reference.k_largest_grad_weight(*arguments)
    torch.testing.assert_close(gpu.k_largest_grad_weight(*there(*arguments)).cpu(), expected)


def test_atomics_only_where_they_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_atomics = []
    add = gpu._add
    monkeypatch.setattr(gpu, "_add", lambda *a: with_atomics.append(1) or add(*a))
    arguments = there(*selected(normal(9, 2), rows(6, 4), 3, None, False, 8))
    first, second = (gpu.k_largest_grad_x(*arguments) for _ in range(2))
    assert first.cpu().numpy().tobytes() == second.cpu().numpy().tobytes()
    assert with_atomics == []
    with atomics():
        torch.testing.assert_close(gpu.k_largest_grad_x(*arguments), first)
    assert with_atomics == [1]


def test_gradients_of_many_edges_are_spread_a_block_of_features_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    widths = []
    spread = gpu._spread
    monkeypatch.setattr(gpu, "_spread", lambda *a: widths.append(a[5]) or spread(*a))
    arguments = selected(normal(9, 40), rows(30, 30), 1, powers(60), True, 8)
    actual = gpu.k_largest_grad_x(*there(*arguments))
    torch.testing.assert_close(actual.cpu(), reference.k_largest_grad_x(*arguments))
    assert widths == [16, 16, 8]


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_gradient_of_a_node_with_many_neighbours(dtype: torch.dtype) -> None:
    # Each of two nodes is chosen by about twenty rows, so its sum is cut.
    graph = rows(*[2] * 40, num_sources=2)
    arguments = selected(normal(2, 3, dtype=dtype), graph, 1, powers(80, dtype), False, 8)
    actual = gpu.k_largest_grad_x(*there(*arguments))
    torch.testing.assert_close(actual.cpu(), reference.k_largest_grad_x(*arguments))


def test_what_was_not_selected_has_no_part_in_gradients_even_if_infinite() -> None:
    rowptr, col, grad = torch.tensor([0, 2]), torch.arange(2), torch.ones(1, 1, 3)
    position = torch.zeros(1, 1, 3, dtype=torch.int8)
    weight = torch.tensor([2.0, -torch.inf])
    grad_x = gpu.k_largest_grad_x(*there(grad, position, rowptr, col, weight, 2))
    assert grad_x.tolist() == [[2, 2, 2], [0, 0, 0]]
    x = torch.tensor([[1.0], [-torch.inf]]).expand(2, 3)
    assert gpu.k_largest_grad_weight(*there(grad, position, x, rowptr, col)).tolist() == [3, 0]


# Sparse times dense


def assert_multiplies(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> None:
    grad = normal(rowptr.numel() - 1, dense.size(1), dtype=dense.dtype, seed=3)
    for function, arguments in (
        ("spmm", (rowptr, col, value, dense)),
        ("spmm_grad_value", (grad, rowptr, col, dense)),
        ("spmm_grad_dense", (grad, rowptr, col, value, dense.size(0))),
    ):
        actual = getattr(gpu, function)(*there(*arguments))
        expected = getattr(reference, function)(*arguments)
        tolerance = {"rtol": 2e-2, "atol": 1e-2} if dense.dtype in HALF else {}
        torch.testing.assert_close(actual.cpu(), expected, **tolerance)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [F32, BF16, F16])
@pytest.mark.parametrize("channels", [1, 20])
def test_sparse_times_dense(dtype: torch.dtype, index_dtype: torch.dtype, channels: int) -> None:
    rowptr, col = rows(13, 0, 4, 1, index_dtype=index_dtype)
    assert_multiplies(rowptr, col, normal(18, dtype=dtype), normal(9, channels, dtype=dtype))


@pytest.mark.parametrize(("degrees", "channels"), [((), 2), ((0, 0), 2), ((2, 1), 0)])
def test_sparse_times_dense_of_nothing(degrees: tuple[int, ...], channels: int) -> None:
    rowptr, col = rows(*degrees)
    assert_multiplies(rowptr, col, torch.ones(col.numel()), torch.ones(9, channels))


def test_sparse_times_dense_keeps_what_is_no_number() -> None:
    value, dense = torch.tensor([torch.inf, 1.0]), torch.tensor([[0.0], [2.0]])
    out = gpu.spmm(*there(torch.tensor([0, 1, 2]), torch.arange(2), value, dense))
    assert_same(out.cpu(), torch.tensor([[math.nan], [2.0]]))


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", [F32, F16])
def test_sums_of_long_rows(dtype: torch.dtype) -> None:
    # The longest row has 19 parts, too many for one sum of parts as well.
    rowptr, col = rows(20, 300, 3)
    assert_multiplies(rowptr, col, normal(323, dtype=dtype), normal(9, 3, dtype=dtype))


# What the kernels do not take, and what does not fit


def test_a_large_k_takes_the_reference_and_warns_once() -> None:
    rowptr, col = rows(9, 0, 2)
    x = normal(9, 2)
    gpu._warn_of_large_k.cache_clear()
    with pytest.warns(UserWarning, match="a k above 128 has no GPU kernel"):
        assert_selects(x, rowptr, col, 129, None, False, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_selects(x, rowptr, col, 129, None, False, 8)


def test_the_tensor_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    arguments = there(normal(9, 2), *rows(9, 0, 2), 3, None, False)
    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(OutOfMemory, match=r"the selected values .* = \[3, 3, 2\]"):
        gpu.k_largest(*arguments)


# Blocks of rows, where no autograd graph is kept


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.usefixtures("short_parts")
def test_what_follows_the_values_is_in_its_slot(last: bool) -> None:
    x, graph = normal(9, 5), rows(20, 0, 4)
    own, end = normal(3, 5, seed=1), normal(3, 5, seed=2) if last else None
    assert_selects(x, *graph, 3, None, False, 8, own, end)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize(
    ("k", "dtype", "weighted", "divided"),
    [(3, F32, True, True), (10, F32, False, False), (3, BF16, False, True)],
)
def test_neighbours_are_summed_while_they_are_selected(
    k: int, dtype: torch.dtype, weighted: bool, divided: bool
) -> None:
    x, (rowptr, col) = normal(9, 5, dtype=dtype), rows(20, 0, 4)
    weight = powers(24, dtype) if weighted else None
    divisor = torch.tensor([[20], [1], [4]]).to(dtype) if divided else None
    arguments = (x, rowptr, col, k, weight, False, 8, normal(3, 5, dtype=dtype, seed=1), divisor)
    values, chosen = (tensor.cpu() for tensor in gpu.k_largest_and_sum(*there(*arguments)))
    expected, position = reference.k_largest_and_sum(*arguments)
    assert_same(values[:, :-1], expected[:, :-1])
    assert_same(chosen, position)
    tolerance = {"rtol": 0.02, "atol": 0.02} if dtype in HALF else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(values[:, -1], expected[:, -1], **tolerance)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("allows_atomics", [False, True])
@pytest.mark.parametrize("at_once", [0, 4])
@pytest.mark.parametrize(
    ("k", "dtype", "weighted", "other_slots", "every", "numbered"),
    [
        (3, F32, True, 2, True, True),
        (10, F32, False, 1, False, True),
        (3, F32, False, 2, True, False),
        (3, BF16, True, 2, True, True),
        (3, F16, False, 0, False, False),
    ],
)
def test_gradients_add_up_in_the_rows_that_are_named(
    k: int, dtype: torch.dtype, weighted: bool, other_slots: int, every: bool, numbered: bool,
    at_once: int, allows_atomics: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(gpu, "MESSAGES_PER_VALUE", at_once)
    graph = rows(*[3] * 15, 0, 2, num_sources=2)  # each source has many entries: sums are cut
    weight = powers(47, dtype) if weighted else None
    grad, chosen, rowptr, col, *_ = selected(
        normal(2, 20, dtype=dtype), graph, k, weight, other_slots, 8
    )
    total = normal(7, 20, seed=4) if numbered else normal(2, 20, seed=4)
    columns = torch.tensor([5, 2]) if numbered else None
    sums = normal(17, 20, dtype=dtype, seed=5) if every else None
    rest = (columns, grad, chosen, rowptr, col, weight, sums)
    found, again, expected = total.clone().to(DEVICE), total.clone().to(DEVICE), total.clone()
    with contextlib.ExitStack() as stack:
        if allows_atomics:
            stack.enter_context(atomics())
        gpu.add_grad_x(found, *there(*rest))
        gpu.add_grad_x(again, *there(*rest))
    reference.add_grad_x(expected, *rest)
    if not allows_atomics:
        assert found.equal(again)
    tolerance = {"rtol": 0.05, "atol": 0.1} if dtype in HALF else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(found.cpu(), expected, **tolerance)
