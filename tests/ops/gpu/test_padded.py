"""The Triton kernels on structures of which they know the bounds alone, as in a CUDA graph."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from lgcn.ops import reference, structure
from lgcn.ops.structure import Transpose, transpose, trust_within

pytest.importorskip("triton", reason="the GPU kernels need Triton")

from lgcn.ops.gpu import launch as gpu  # only with Triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, ENTRIES = 6, 80  # of the arrays
DEGREES = (40, 0, 17, 2)
Structure = tuple[Tensor, Tensor, Tensor]  # with a weight per entry


@pytest.fixture(autouse=True)
def small_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 16 entries, so that two rows are long, and few features for the interpreter."""
    tuning = gpu._tuning
    monkeypatch.setattr(gpu, "_tuning", lambda *a: tuning(*a)._replace(width=4, part=16))
    monkeypatch.setattr(gpu, "SUM_PART", 16)


@pytest.fixture
def given() -> Iterator[Structure]:
    """A padded structure with weights; reading what is in it fails."""
    made = padded()

    def read(rowptr: Tensor, *_: object) -> None:
        assert rowptr.numel() != ROWS + 1, "the contents of the structure were read"

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_look_at", "_cut", "_sort", "_count"):
            before = getattr(structure, name)
            patch.setattr(structure, name, lambda *a, before=before: (read(*a), before(*a))[1])
        yield made


def exact() -> Structure:
    generator = torch.Generator().manual_seed(0)
    rowptr = torch.tensor([0, *DEGREES]).cumsum(0)
    col = torch.randint(4, (int(rowptr[-1]),), generator=generator)
    return rowptr, col, torch.randn(col.numel(), generator=generator)


def filled(tensor: Tensor, length: int, value: float) -> Tensor:
    return torch.cat([tensor, tensor.new_full((length - tensor.numel(),), value)]).to(DEVICE)


def padded() -> Structure:
    rowptr, col, weight = exact()
    count = col.numel()
    turned = transpose(rowptr, col, 4)
    ptrs = [filled(ptr, ROWS + 1, count) for ptr in (rowptr, turned.colptr)]
    col, row, entry = (filled(t, ENTRIES, 0) for t in (col, turned.row, turned.entry))
    trust_within(ptrs[0], col, ROWS, 64, Transpose(ptrs[1], row, entry), 64, spare_column=True)
    return ptrs[0], col, filled(weight, ENTRIES, float("nan"))


def features(count: int, seed: int, *more: int) -> Tensor:
    return torch.randn(count, *more, 3, generator=torch.Generator().manual_seed(seed))


def with_rows(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(ROWS - x.size(0), *x.shape[1:])]).to(DEVICE)


@pytest.mark.parametrize("compete", [False, True])
def test_long_rows_are_selected_from(given: Structure, compete: bool) -> None:
    x, own = features(4, 0), features(4, 1)
    expected = reference.k_largest(x, *exact()[:2], 3, exact()[2], compete, 16, own)
    rowptr, col, weight = given
    found = gpu.k_largest(with_rows(x), rowptr, col, 3, weight, compete, 16, with_rows(own))
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one[:4].cpu(), other)
    values, chosen = found
    assert bool((values[4:, 1:] == 0).all())
    assert bool((chosen[4:] == -1).all())


def test_gradients_of_long_rows_are_summed(given: Structure) -> None:
    rowptr, col, weight = exact()
    x, grad = features(4, 0), features(4, 1, 3)
    _, chosen = reference.k_largest(x, rowptr, col, 3, weight, False, 16)
    expected = reference.k_largest_grad_x(grad, chosen, rowptr, col, weight, 4)
    _, chosen = gpu.k_largest(with_rows(x), given[0], given[1], 3, given[2], False, 16)
    found = gpu.k_largest_grad_x(with_rows(grad), chosen, given[0], given[1], given[2], ROWS)
    torch.testing.assert_close(found[:4].cpu(), expected)
    assert bool((found[4:] == 0).all())


def test_long_rows_are_summed(given: Structure) -> None:
    rowptr, col, weight = exact()
    dense, grad = features(4, 0), features(4, 1)
    found = gpu.spmm(*given, with_rows(dense))
    torch.testing.assert_close(found[:4].cpu(), reference.spmm(rowptr, col, weight, dense))
    assert bool((found[4:] == 0).all())
    expected = reference.spmm_grad_dense(grad, rowptr, col, weight, 4)
    found = gpu.spmm_grad_dense(with_rows(grad), *given, ROWS)
    torch.testing.assert_close(found[:4].cpu(), expected)
    assert bool((found[4:] == 0).all())
