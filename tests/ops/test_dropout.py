"""Dropout: rates, gradients, seeds, and where torch's own takes over."""

from collections.abc import Callable

import pytest
import torch

from lgcn.ops.dropout import drop_rows, drop_whole, dropout, drops_whole, zeros_of


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_keeps_and_scales(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    out = dropout(torch.full((40, 50), 3.0, dtype=dtype), 0.25)
    assert (out.dtype, out.shape) == (dtype, (40, 50))
    kept = out != 0
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 4.0))
    assert 0.7 < kept.double().mean() < 0.8


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.84, 0.999])
def test_rate_is_exact(p: float) -> None:
    torch.manual_seed(0)
    count = 2_000_000
    dropped = (dropout(torch.ones(count), p) == 0).sum().item()
    assert abs(dropped - count * p) < 5 * (count * p * (1 - p)) ** 0.5


def test_entries_are_independent() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(500, 1024), 0.5) != 0).double() - 0.5
    bound = 5 * 0.25 / kept.numel() ** 0.5
    half = kept.numel() // 2
    for lag in (1, 2, 3, 4, 8, 16, 1023, 1024, 1025, half):  # neighbours, SIMD lanes, rows
        flat = kept.flatten()
        assert (flat[lag:] * flat[:-lag]).mean().abs() < bound
    other = (dropout(torch.ones(500, 1024), 0.5) != 0).double() - 0.5
    assert (kept * other).mean().abs() < bound


def test_equal_seeds_drop_the_same_entries() -> None:
    x = torch.rand(30, 40) + 1
    torch.manual_seed(3)
    first = dropout(x, 0.4)
    assert not torch.equal(dropout(x, 0.4), first)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.4), first)
    torch.manual_seed(3)
    assert torch.equal(dropout(torch.ones(1200), 0.4).view(30, 40) > 0, first > 0)


def test_rates_zero_and_one_and_evaluation() -> None:
    x = torch.randn(5, 6)
    assert dropout(x, 0.0) is x
    assert dropout(x, 0.7, training=False) is x
    assert torch.equal(dropout(x, 1.0), torch.zeros(5, 6))
    assert dropout(torch.zeros(0, 3), 0.5).shape == (0, 3)
    for count in (1, 2, 7):
        assert (dropout(torch.full((count,), 1e6), 1e-9) > 0).all()


def test_gradients() -> None:
    x = torch.randn(6, 7, dtype=torch.float64, requires_grad=True)

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return dropout(x.t(), 0.4) ** 2  # not contiguous

    assert torch.autograd.gradcheck(seeded, x)
    assert torch.autograd.gradgradcheck(seeded, x)


def test_backward_drops_what_the_forward_dropped() -> None:
    x = torch.ones(50, 20, requires_grad=True)
    out = dropout(x, 0.6)
    out.sum().backward()  # the gradient of a sum is expanded, not contiguous
    assert torch.equal(x.grad, out.detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 1001])
def test_overwriting_drops_the_same_entries(dtype: torch.dtype, count: int) -> None:
    x = torch.randn(count, dtype=dtype)
    torch.manual_seed(1)
    expected = dropout(x.clone(), 0.4)
    torch.manual_seed(1)
    assert dropout(x, 0.4, overwrite=True) is x
    assert torch.equal(x, expected)


def test_gradients_where_x_is_overwritten() -> None:
    x = torch.randn(6, 7, dtype=torch.float64, requires_grad=True)

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return dropout(2 * x, 0.4, overwrite=True) ** 2

    assert torch.autograd.gradcheck(seeded, x)
    assert torch.autograd.gradgradcheck(seeded, x)


def test_what_another_gradient_needs_is_not_overwritten_unseen() -> None:
    x = torch.ones(5, requires_grad=True)
    needed = x.exp()  # its gradient is made of its value
    dropout(needed, 0.5, overwrite=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        needed.sum().backward()


def test_parts_of_a_tensor_are_not_overwritten() -> None:
    x = torch.ones(4, 6)
    dropout(x[:, ::2], 0.5, overwrite=True)
    assert x.min() == 1


def test_compiles_without_a_break() -> None:
    compiled = torch.compile(dropout, fullgraph=True, backend="aot_eager")
    torch.manual_seed(0)
    assert set(compiled(torch.ones(100), 0.5).tolist()) == {0.0, 2.0}


def test_transforms_of_torch_func() -> None:
    torch.manual_seed(0)
    gradient = torch.func.grad(lambda x: dropout(x, 0.5).sum())(torch.ones(100))
    assert set(gradient.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_wrong_rates_are_named(p: float) -> None:
    with pytest.raises(ValueError, match=f"p must be a probability from 0 to 1, got {p}"):
        dropout(torch.ones(3), p)


def test_rows_are_dropped_as_a_whole() -> None:
    torch.manual_seed(0)
    out = drop_rows(torch.full((400, 3), 2.0), 0.5)
    rows = out.unique(dim=0)
    assert rows.tolist() == [[0, 0, 0], [4, 4, 4]]
    assert 0.4 < (out[:, 0] == 0).double().mean() < 0.6


def test_all_is_dropped_or_nothing() -> None:
    torch.manual_seed(0)
    draws = [drop_whole(torch.full((3, 4), 3.0), 0.25).unique().tolist() for _ in range(400)]
    assert sorted({value for [value] in draws}) == [0.0, 4.0]
    assert 0.18 < draws.count([0.0]) / 400 < 0.32


def test_what_is_dropped_as_a_whole_has_no_gradient() -> None:
    torch.manual_seed(0)
    for _ in range(6):
        x = torch.ones(3, requires_grad=True)
        out = drop_whole(x, 0.5)
        out.sum().backward()
        assert torch.equal(x.grad, out.detach())


@pytest.mark.parametrize("after", [0, 1, 3])
def test_whether_all_is_dropped_is_known_beforehand(after: int) -> None:
    x, seen = torch.ones(2, 3), []
    for seed in range(20):
        torch.manual_seed(seed)
        for _ in range(after):
            dropout(x, 0.5)
        dropped, following = not drop_whole(x, 0.5).any(), torch.rand(3)
        torch.manual_seed(seed)
        start = torch.get_rng_state()
        assert drops_whole(0.5, after) == dropped
        if dropped:  # nothing has to be drawn any more
            assert torch.equal(torch.rand(3), following)
        else:
            assert torch.equal(torch.get_rng_state(), start)
        seen.append(bool(dropped))
    assert 0 < sum(seen) < 20


def test_zeros_of_parameters_have_a_gradient_of_zero() -> None:
    x, weight = torch.randn(4, 3, requires_grad=True), torch.randn(2, 5, requires_grad=True)
    out = zeros_of(x, 2, [weight])
    assert torch.equal(out, torch.zeros(4, 2))
    out.sum().backward()
    assert x.grad is None
    assert torch.equal(weight.grad, torch.zeros(2, 5))


@pytest.mark.parametrize("drop", [drop_rows, drop_whole])
def test_x_stays_where_nothing_is_to_be_dropped(drop: Callable[..., torch.Tensor]) -> None:
    x = torch.ones(5, 2)
    assert drop(x, 0.5, training=False) is x
    assert drop(x, 0.0) is x
    with pytest.raises(ValueError, match="p must be a probability below 1, got 1"):
        drop(x, 1.0)


@pytest.mark.parametrize("overwrite", [False, True])
def test_gradients_of_gradients(overwrite: bool) -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def squared(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # the same entries every time
        return dropout(x * x, 0.5, overwrite=overwrite)

    assert torch.autograd.gradcheck(squared, x)
    assert torch.autograd.gradgradcheck(squared, x)
