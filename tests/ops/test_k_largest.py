"""The operator as its users see it: what it selects, its gradients, its checks, compilation."""

import math
import shutil
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from lgcn.ops import k_largest, k_largest_values, spmm
from lgcn.ops import structure as csr
from lgcn.ops.k_largest import k_largest_grid, k_largest_grid_chosen, k_largest_grid_values

from .graphs import DTYPES, Case, assert_same, cases, oracle, random_graph

MODES = ("pad", "compete")


def star(values: list[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One row whose neighbours have these values in their one feature."""
    return torch.tensor(values)[:, None], torch.tensor([0, len(values)]), torch.arange(len(values))


def distinct(*shape: int, seed: int = 0) -> torch.Tensor:
    """Float64 numbers around zero without ties, far enough apart for finite differences."""
    count = math.prod(shape)
    rng = np.random.default_rng(seed)
    return torch.from_numpy((rng.permutation(count) - 0.4 * count + 0.3).reshape(shape) / 7)


@settings(max_examples=150)
@given(case=cases())
def test_equals_the_oracle(case: Case) -> None:
    values, index = k_largest(
        case.x, case.rowptr, case.col, case.k, edge_weight=case.edge_weight, zeros=case.zeros
    )
    expected_values, _, expected_index = oracle(case)
    assert_same(values, expected_values)
    assert_same(index, expected_index)


def test_figure_2_of_the_paper() -> None:
    x, rowptr, col = star([5.0, 0.0, 9.0, 3.0, 0.0, 6.0])
    values, index = k_largest(x, rowptr, col, 4)
    assert values.flatten().tolist() == [9, 6, 5, 3]
    assert index.flatten().tolist() == [2, 5, 0, 3]


def test_pad_keeps_negative_values_and_fills_at_the_end() -> None:
    values, index = k_largest(*star([-1.0, 2.0, -3.0]), 5, zeros="pad")
    assert values.flatten().tolist() == [2, -1, -3, 0, 0]
    assert index.flatten().tolist() == [1, 0, 2, -1, -1]


def test_compete_puts_zeros_in_place_of_negative_values() -> None:
    values, index = k_largest(*star([-1.0, 2.0, 0.0, -3.0]), 3, zeros="compete")
    assert values.flatten().tolist() == [2, 0, 0]
    assert index.flatten().tolist() == [1, 2, -1]


def test_nan_ranks_above_infinity_and_ties_go_to_the_earlier_position() -> None:
    nan, inf = math.nan, math.inf
    values, index = k_largest(*star([1.0, -nan, inf, 1.0, nan, 0.0, -0.0]), 7)
    assert_same(values.flatten(), torch.tensor([nan, nan, inf, 1, 1, 0, 0]))
    assert index.flatten().tolist() == [1, 4, 2, 0, 3, 5, 6]


def test_weights_of_parallel_edges_are_ranked_apart() -> None:
    x, rowptr, col = torch.tensor([[2.0]]), torch.tensor([0, 3]), torch.tensor([0, 0, 0])
    weight = torch.tensor([1.0, -1.0, 3.0], requires_grad=True)
    values, index = k_largest(x, rowptr, col, 2, edge_weight=weight)
    assert values.flatten().tolist() == [6, 2]
    assert index.flatten().tolist() == [0, 0]
    values.backward(torch.tensor([[[1.0], [10.0]]]))
    assert weight.grad.tolist() == [20, 0, 2]


@pytest.mark.parametrize(("rows", "sources", "channels"), [(0, 0, 3), (0, 4, 3), (3, 0, 3)])
@pytest.mark.parametrize("zeros", MODES)
def test_graphs_without_edges(rows: int, sources: int, channels: int, zeros: str) -> None:
    x = torch.ones(sources, channels, requires_grad=True)
    col = torch.empty(0, dtype=torch.int64)
    values, index = k_largest(x, torch.zeros(rows + 1, dtype=torch.int64), col, 2, zeros=zeros)
    assert_same(values.detach(), torch.zeros(rows, 2, channels))
    assert_same(index, torch.full((rows, 2, channels), -1))
    values.sum().backward()
    assert_same(x.grad, torch.zeros(sources, channels))


def test_no_features() -> None:
    rowptr, col = random_graph(5, 5, 2)
    values, index = k_largest(torch.ones(5, 0), rowptr, col, 3)
    assert values.shape == index.shape == (5, 3, 0)


def test_inputs_need_not_be_contiguous() -> None:
    rowptr, col = random_graph(30, 20, 5)
    x = torch.randn(6, 20).T
    spread = col.repeat_interleave(2)[::2]
    weight = torch.randn(2 * col.numel())[::2]
    assert not any(tensor.is_contiguous() for tensor in (x, spread, weight))
    expected = k_largest(x.contiguous(), rowptr, col, 3, edge_weight=weight.contiguous())
    for actual, wanted in zip(
        k_largest(x, rowptr, spread, 3, edge_weight=weight), expected, strict=True
    ):
        assert_same(actual, wanted)


def test_a_numpy_integer_is_a_k() -> None:
    values, _ = k_largest(*star([1.0, 2.0]), np.int64(1))
    assert values.flatten().tolist() == [2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_alone_and_types_of_the_results(dtype: torch.dtype) -> None:
    rowptr, col = random_graph(30, 20, 5, index_dtype=torch.int32)
    x = torch.randn(20, 4).to(dtype)
    values, index = k_largest(x, rowptr, col, 3, zeros="compete")
    assert values.dtype == dtype
    assert index.dtype == torch.int32
    assert_same(k_largest_values(x, rowptr, col, 3, zeros="compete"), values)


def test_the_grid_is_own_features_then_the_values() -> None:
    rowptr, col = random_graph(30, 20, 5)
    x, own = torch.randn(20, 4), torch.randn(30, 4)
    weight = torch.randn(col.numel())
    values = k_largest_values(x, rowptr, col, 3, edge_weight=weight, zeros="compete")
    for first in (own, None):
        grid = k_largest_grid(x, first, rowptr, col, 3, edge_weight=weight, zeros="compete")
        assert_same(grid[:, 0], torch.zeros(30, 4) if first is None else own)
        assert_same(grid[:, 1:], values)


def test_the_grid_may_end_with_something_else() -> None:
    rowptr, col = random_graph(30, 20, 5)
    x, own, last = torch.randn(20, 4), torch.randn(30, 4), torch.randn(30, 4)
    grid = k_largest_grid(x, own, rowptr, col, 3)
    longer = k_largest_grid(x, own, rowptr, col, 3, last=last)
    assert_same(longer, torch.cat([grid, last.unsqueeze(1)], dim=1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_sum", [False, True])
def test_the_grid_where_nothing_learns(weighted: bool, with_sum: bool) -> None:
    rowptr, col = random_graph(30, 20, 5)
    x, own = torch.randn(20, 4, requires_grad=True), torch.randn(30, 4)
    weight = torch.randn(col.numel()) if weighted else None
    divisor = torch.full((30, 1), 3.0)
    expected = k_largest_grid(x.detach(), own, rowptr, col, 3, edge_weight=weight)
    if with_sum:
        ones = torch.ones(col.numel()) if weight is None else weight
        total = spmm(rowptr, col, ones, x.detach()) / 3
        expected = torch.cat([expected, total.unsqueeze(1)], dim=1)
    options: dict[str, Any] = {"edge_weight": weight, "with_sum": with_sum}
    options["divisor"] = divisor if with_sum else None
    found = k_largest_grid_values(x, own, rowptr, col, 3, **options)
    assert_same(found, expected)
    assert not found.requires_grad
    chosen, _ = k_largest_grid_chosen(x.detach(), own, rowptr, col, 3, **options)
    assert_same(chosen, expected)


def test_a_sum_needs_own_features_and_a_fitting_divisor() -> None:
    rowptr, col = random_graph(5, 4, 2)
    x, own = torch.randn(4, 3), torch.randn(5, 3)
    with pytest.raises(ValueError, match=r"divisor.*\(5, 1\).*\(4, 1\)"):
        k_largest_grid_values(x, own, rowptr, col, 2, with_sum=True, divisor=torch.ones(4, 1))
    for first, last in ((None, None), (own, own)):
        with pytest.raises(ValueError, match="with_sum"):
            torch.ops.lgcn.k_largest_values(x, rowptr, col, 2, None, False, first, last, True, None)


@pytest.mark.parametrize("with_sum", [False, True])
def test_opcheck_of_the_values(with_sum: bool) -> None:
    rowptr, col = random_graph(6, 5, 3, seed=1)
    own = torch.randn(6, 3)
    last = None if with_sum else torch.randn(6, 3)
    arguments = (torch.randn(5, 3), rowptr, col, 2, None, False, own, last, with_sum, None)
    results = torch.library.opcheck(torch.ops.lgcn.k_largest_values.default, arguments)
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    ("degree", "dtype"),
    [(128, torch.int8), (129, torch.int16), (32768, torch.int16), (32769, torch.int32)],
)
def test_the_backward_keeps_the_smallest_positions_that_fit(
    degree: int, dtype: torch.dtype
) -> None:
    x = torch.arange(float(degree))[:, None].requires_grad_()
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t)
    with hooks:
        values = k_largest_values(x, torch.tensor([0, degree]), torch.arange(degree), 1)
    assert [tensor.dtype for tensor in saved if tensor.shape == values.shape] == [dtype]
    values.sum().backward()
    assert x.grad.nonzero().tolist() == [[degree - 1, 0]]


def test_shapes_are_known_without_contents() -> None:
    x, index = torch.empty(4, 3, device="meta"), torch.empty(5, dtype=torch.int64, device="meta")
    assert k_largest_grid(x, None, index, index, 2).shape == (4, 3, 3)


# Gradients


@pytest.mark.parametrize("zeros", MODES)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradcheck(zeros: str, weighted: bool) -> None:
    rowptr, col = random_graph(6, 5, 3, seed=1)
    x = distinct(5, 3).requires_grad_()
    weight = (1 + distinct(col.numel(), seed=2) / 100).requires_grad_() if weighted else None

    def select(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        return k_largest(x, rowptr, col, 2, edge_weight=weight, zeros=zeros)[0]

    assert torch.autograd.gradcheck(select, (x, weight))


@pytest.mark.parametrize("weighted", [False, True])
def test_gradcheck_of_the_grid(weighted: bool) -> None:
    rowptr, col = random_graph(6, 5, 3, seed=1)
    x, own = distinct(5, 3).requires_grad_(), distinct(6, 3, seed=3).requires_grad_()
    weight = (1 + distinct(col.numel(), seed=2) / 100).requires_grad_() if weighted else None

    def select(
        x: torch.Tensor,
        own: torch.Tensor,
        weight: torch.Tensor | None,
        last: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return k_largest_grid(x, own, rowptr, col, 2, edge_weight=weight, last=last)

    assert torch.autograd.gradcheck(select, (x, own, weight))
    assert torch.autograd.gradcheck(
        select, (x, own, weight, distinct(6, 3, seed=4).requires_grad_())
    )


@pytest.mark.parametrize("zeros", MODES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grid", [False, True])
def test_double_backward(zeros: str, weighted: bool, grid: bool) -> None:
    rowptr, col = random_graph(6, 5, 3, seed=1)
    inputs = [distinct(5, 3), distinct(6, 3, seed=3), distinct(6, 3, seed=4)]
    inputs.append(1 + distinct(col.numel(), seed=2) / 100 if weighted else None)

    def select(
        x: torch.Tensor, own: torch.Tensor, last: torch.Tensor, weight: torch.Tensor | None
    ) -> torch.Tensor:
        if grid:
            return k_largest_grid(
                x, own, rowptr, col, 2, edge_weight=weight, zeros=zeros, last=last
            )
        return k_largest(x, rowptr, col, 2, edge_weight=weight, zeros=zeros)[0] * own.sum()

    leaves = tuple(None if t is None else t.requires_grad_() for t in inputs)
    assert torch.autograd.gradgradcheck(select, leaves)


def test_double_backward_of_a_product() -> None:
    """The gradient's own gradient: of the sum of squares it is twice the selected products."""
    x, rowptr, col = star([3.0, -1.0, 7.0])
    x.requires_grad_()
    weight = torch.tensor([2.0, 1.0, 1.0], requires_grad=True)
    values, _ = k_largest(x, rowptr, col, 2, edge_weight=weight)
    (grad,) = torch.autograd.grad(values.square().sum(), x, create_graph=True)
    assert grad.flatten().tolist() == [24, 0, 14]  # 2 w^2 x
    grad.sum().backward()
    assert x.grad.flatten().tolist() == [8, 0, 2]
    assert weight.grad.tolist() == [24, 0, 28]


def test_gradient_goes_to_the_selected_only() -> None:
    x, rowptr, col = star([3.0, -1.0, 7.0, 5.0])
    x.requires_grad_()
    values, index = k_largest(x, rowptr, col, 2)
    assert values.requires_grad
    assert not index.requires_grad
    values.backward(torch.tensor([[[1.0], [2.0]]]))
    assert x.grad.flatten().tolist() == [0, 0, 1, 2]


def test_filled_zeros_have_no_gradient() -> None:
    x, rowptr, col = star([-3.0, 4.0])
    x.requires_grad_()
    k_largest(x, rowptr, col, 3, zeros="compete")[0].sum().backward()
    assert x.grad.flatten().tolist() == [0, 1]


def test_gradient_for_weights_alone() -> None:
    x, rowptr, col = star([3.0, -1.0, 7.0])
    weight = torch.ones(3, requires_grad=True)
    k_largest_values(x, rowptr, col, 2, edge_weight=weight).sum().backward()
    assert weight.grad.tolist() == [3, 0, 7]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_gradients_are_summed_in_float32(dtype: torch.dtype) -> None:
    # 4096 rows select the one node: added up in half precision the sum would stop growing.
    x = torch.ones(1, 1, dtype=dtype, requires_grad=True)
    rowptr, col = torch.arange(4097), torch.zeros(4096, dtype=torch.int64)
    k_largest_values(x, rowptr, col, 1).sum().backward()
    assert x.grad.item() == 4096


# Compilation


@pytest.mark.parametrize(
    ("weighted", "position_bits", "others"),
    [(False, 0, 0), (False, 8, 1), (True, 16, 0), (True, 32, 2)],
)
def test_opcheck(weighted: bool, position_bits: int, others: int) -> None:
    rowptr, col = random_graph(6, 5, 3)
    x = distinct(5, 3).requires_grad_()
    weight = distinct(col.numel(), seed=1).requires_grad_() if weighted else None
    own = distinct(6, 3, seed=2).requires_grad_() if others > 0 else None
    last = distinct(6, 3, seed=3).requires_grad_() if others > 1 else None
    results = torch.library.opcheck(
        torch.ops.lgcn.k_largest.default,
        (x, rowptr, col, 2, weight, True, position_bits, own, last),
    )
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck_of_the_gradients(weighted: bool) -> None:
    rowptr, col = random_graph(6, 5, 3)
    x = distinct(5, 3).requires_grad_()
    weight = distinct(col.numel(), seed=1).requires_grad_() if weighted else None
    _, chosen = torch.ops.lgcn.k_largest(x, rowptr, col, 2, weight, True, 8, None, None)
    grad = distinct(6, 3, 3, seed=2).requires_grad_()
    calls = {
        torch.ops.lgcn.k_largest_grad_x: (grad, chosen, rowptr, col, weight, 5, False),
        torch.ops.lgcn.k_largest_grad_weight: (grad, chosen, x, rowptr, col),
        torch.ops.lgcn.neighbor_at: (chosen, rowptr, col),
    }
    for operator, arguments in calls.items():
        results = torch.library.opcheck(operator.default, arguments)
        assert set(results.values()) == {"SUCCESS"}


def compiled_equals_eager(backend: str) -> None:
    rowptr, col = random_graph(12, 10, 4)

    def loss(
        x: torch.Tensor, own: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        values, index = k_largest(x * 2, rowptr, col, 3, edge_weight=weight)
        grid = k_largest_grid(x * 3, own, rowptr, col, 2)
        return values.square().sum() + grid.square().sum(), index

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    results = []
    for function in (loss, compiled):
        leaves = [distinct(10, 4), distinct(12, 4, seed=2), distinct(col.numel(), seed=1)]
        total, index = function(*(leaf.requires_grad_() for leaf in leaves))
        total.backward()
        results.append((total.detach(), index, *(leaf.grad for leaf in leaves)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_compiles_forward_and_backward() -> None:
    compiled_equals_eager("aot_eager")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_compiles_with_inductor() -> None:
    compiled_equals_eager("inductor")


def test_compiled_code_serves_graphs_of_any_size() -> None:
    compiled = torch.compile(k_largest, fullgraph=True, backend="aot_eager", dynamic=True)
    for num_nodes in (7, 12, 30):
        rowptr, col = random_graph(num_nodes, num_nodes, 4, seed=num_nodes)
        x = distinct(num_nodes, 5)
        for actual, expected in zip(
            compiled(x, rowptr, col, 3), k_largest(x, rowptr, col, 3), strict=True
        ):
            assert_same(actual, expected)


# Checks

GOOD = {
    "x": torch.ones(3, 2),
    "rowptr": torch.tensor([0, 2, 4]),
    "col": torch.tensor([0, 1, 2, 0]),
    "k": 2,
}
WRONG = [
    ({"k": 0}, "k must be at least 1, got 0"),
    ({"k": -3}, "k must be at least 1, got -3"),
    ({"k": 2.0}, "k must be an integer of at least 1, got 2.0"),
    ({"k": True}, "k must be an integer of at least 1, got True"),
    ({"zeros": "last"}, "zeros must be 'pad' or 'compete', got 'last'"),
    ({"x": torch.ones(3)}, r"x must have shape \[nodes, features\], got \(3,\)"),
    ({"x": torch.ones(3, 2, dtype=torch.int64)}, "x must be float32.* got torch.int64"),
    ({"rowptr": torch.tensor([0, 3, 2, 4])}, r"rowptr must not decrease.*= 3 .*= 2"),
    ({"rowptr": torch.tensor([1, 2, 4])}, r"rowptr must start with 0.*= 1"),
    ({"rowptr": torch.tensor([0, 2, 5])}, r"rowptr must end with .*\(4\).*= 5"),
    ({"rowptr": torch.tensor([0, 2])}, r"rowptr must end with .*\(4\).*= 2"),
    ({"rowptr": torch.empty(0, dtype=torch.int64)}, "rowptr must have .*got no entry"),
    ({"rowptr": torch.zeros(1, 3, dtype=torch.int64)}, r"rowptr must be one-dim.*\(1, 3\)"),
    ({"rowptr": torch.tensor([0.0, 4.0])}, "rowptr must be int32 or int64, got torch.float32"),
    ({"rowptr": torch.tensor([0, 2, 4]).int()}, "rowptr and col must have one dtype.*int32"),
    ({"rowptr": torch.zeros(3, dtype=torch.int64, device="meta")}, "one device.*meta"),
    ({"col": torch.tensor([0, 1, 3, 0])}, r"col must be smaller .*\(3\).*= 3"),
    ({"col": torch.tensor([0, 1, -1, 0])}, "col must not be negative.*= -1"),
    ({"col": torch.zeros(2, 2, dtype=torch.int64)}, r"col must be one-dimensional.*\(2, 2\)"),
    ({"col": torch.zeros(4, dtype=torch.int16)}, "col must be int32 or int64, got torch.int16"),
    ({"x": torch.ones(3, 2, device="meta")}, "x and col must be on one device.*meta"),
    ({"edge_weight": torch.ones(3)}, r"edge_weight must have one entry .*\(4\).*\(3,\)"),
    ({"edge_weight": torch.ones(4).double()}, "edge_weight must have the dtype.*float64"),
    ({"edge_weight": torch.ones(4, device="meta")}, "edge_weight must be on the device.*meta"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_input_is_named(wrong: dict[str, Any], message: str) -> None:
    assert k_largest(**GOOD)[0].shape == (2, 2, 2)
    with pytest.raises(ValueError, match=message):
        k_largest(**(GOOD | wrong))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (torch.ones(3, 2), r"own must have shape \(2, 2\), got \(3, 2\)"),
        (torch.ones(2, 2).double(), "own must have the dtype of x .*float32.* got torch.float64"),
        (torch.ones(2, 2, device="meta"), r"own must .*device of x .*cpu.* got meta"),
    ],
)
def test_wrong_own_features_are_named(own: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        k_largest_grid(own=own, **GOOD)
    with pytest.raises(ValueError, match=message.replace("own", "last")):
        k_largest_grid(own=None, last=own, **GOOD)


def test_contents_are_checked_once_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    check = csr._look_at
    monkeypatch.setattr(csr, "_look_at", lambda *args: checks.append(1) or check(*args))
    rowptr, col = random_graph(5, 5, 3)
    for _ in range(3):
        x = torch.randn(5, 2, requires_grad=True)
        k_largest(x, rowptr, col, 2)[0].sum().backward()
    assert len(checks) == 1


def chosen_of(*positions: int) -> torch.Tensor:
    return torch.tensor(positions, dtype=torch.int8).view(2, 1, 2)


def test_positions_outside_of_a_row_are_skipped() -> None:
    """Nobody gets such positions from us, but torch.ops takes any."""
    rowptr, col = torch.tensor([0, 2, 4]), torch.tensor([0, 1, 2, 0])
    wrong, grad, weight = chosen_of(2, 127, 0, -128), torch.ones(2, 1, 2), torch.ones(4)
    ops = torch.ops.lgcn
    assert ops.neighbor_at(wrong, rowptr, col).flatten().tolist() == [-1, -1, 2, -1]
    expected = [[0, 0], [0, 0], [1, 0]]
    assert ops.k_largest_grad_x(grad, wrong, rowptr, col, weight, 3, False).tolist() == expected
    assert ops.k_largest_grad_x(grad, wrong, rowptr, col, None, 3, True).tolist() == [
        [1, 0],
        [0, 0],
        [1, 0],
    ]
    x = torch.full((3, 2), 5.0)
    assert ops.k_largest_grad_weight(grad, wrong, x, rowptr, col).tolist() == [0, 0, 5, 0]


def test_positions_outside_of_a_long_row_are_skipped() -> None:
    rowptr, col = torch.tensor([0, 9]), torch.arange(9)  # more than four times k
    wrong = torch.tensor([9, 8], dtype=torch.int32).view(1, 1, 2)
    grad = torch.ones(1, 1, 2)
    added = torch.ops.lgcn.k_largest_grad_x(grad, wrong, rowptr, col, None, 9, False)
    assert added.nonzero().tolist() == [[8, 1]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"chosen": torch.zeros(3, 1, 2).char()}, r"must have shape .* 2 rows, got \(3, 1, 2\)"),
        ({"chosen": torch.zeros(2, 1, 2)}, "must be int8, .*got torch.float32"),
        ({"grad": torch.ones(2, 4, 2)}, r"grad must have shape \(2, 1, 2\).* got \(2, 4, 2\)"),
        ({"grad": torch.ones(2, 1, 2).long()}, "grad must be float32.* got torch.int64"),
        ({"rowptr": torch.tensor([0, 5, 4])}, r"rowptr must not decrease.*= 5 .*= 4"),
        ({"col": torch.tensor([0, 1, 3, 0])}, r"col must be smaller .*\(3\).*= 3"),
    ],
)
def test_wrong_arguments_of_the_gradients_are_named(wrong: dict[str, Any], message: str) -> None:
    good = {"grad": torch.ones(2, 1, 2), "chosen": chosen_of(0, 1, 0, 1)}
    good |= {key: GOOD[key] for key in ("rowptr", "col")}
    grad, chosen, rowptr, col = (good | wrong).values()
    ops = torch.ops.lgcn
    with pytest.raises(ValueError, match=message):
        ops.k_largest_grad_x(grad, chosen, rowptr, col, None, 3, False)
    with pytest.raises(ValueError, match=message):
        ops.k_largest_grad_weight(grad, chosen, GOOD["x"], rowptr, col)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"position_bits": 7}, "position_bits must be 0, 8, 16 or 32, got 7"),
        ({"own": torch.ones(3, 2)}, r"own must have shape \(2, 2\), got \(3, 2\)"),
        ({"rowptr": torch.tensor([0, 5, 4])}, r"rowptr must not decrease.*= 5 .*= 4"),
        ({"edge_weight": torch.ones(4), "position_bits": 0}, "position_bits.*edge_weight"),
        (
            {"rowptr": torch.tensor([0, 130]), "col": torch.zeros(130).long()},
            "position_bits must hold positions in a row of 130 entries, got 8",
        ),
    ],
)
def test_wrong_arguments_of_the_operator_are_named(wrong: dict[str, Any], message: str) -> None:
    options = {"edge_weight": None, "compete": False, "position_bits": 8, "own": None, "last": None}
    with pytest.raises(ValueError, match=message):
        torch.ops.lgcn.k_largest(*(GOOD | options | wrong).values())


def test_a_row_with_more_entries_than_positions_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules[k_largest.__module__]  # lgcn.ops.k_largest is the function
    monkeypatch.setattr(module, "MAX_INT32", 1)  # stands for 2**31 - 1
    assert k_largest(**GOOD)[0].shape == (2, 2, 2)
    wide = {"rowptr": torch.tensor([0, 3]), "col": torch.tensor([0, 1, 2])}
    with pytest.raises(ValueError, match=r"at most 2 entries.* got 3"):
        k_largest_values(GOOD["x"], **wide, k=2)


def test_no_features_and_a_huge_k() -> None:
    x, rowptr, col = torch.ones(3, 0), torch.tensor([0, 3]), torch.arange(3)
    assert k_largest_values(x, rowptr, col, 2**40).shape == (1, 2**40, 0)
