"""Sparse times dense against torch's dense product."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.ops import k_largest, reference, spmm
from lgcn.ops import structure as csr

from .graphs import TYPES, random_graph


def to_dense(
    rowptr: torch.Tensor, col: torch.Tensor, value: torch.Tensor, num_cols: int
) -> torch.Tensor:
    dense = torch.zeros(rowptr.numel() - 1, num_cols, dtype=value.dtype)
    for i in range(rowptr.numel() - 1):
        for e in range(int(rowptr[i]), int(rowptr[i + 1])):
            dense[i, col[e]] += value[e]
    return dense


@settings(max_examples=60)
@given(
    types=st.sampled_from(TYPES),
    # The CPU kernel takes 64 features of float32 at a time while there are as many.
    shape=st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 140)),
    mean_degree=st.sampled_from((0.0, 1.0, 6.0)),
    seed=st.integers(0, 2**16),
)
def test_equals_the_dense_product(
    types: tuple[torch.dtype, torch.dtype],
    shape: tuple[int, int, int],
    mean_degree: float,
    seed: int,
) -> None:
    dtype, index_dtype = types
    rows, sources, channels = shape
    rowptr, col = random_graph(rows, sources, mean_degree, seed=seed, index_dtype=index_dtype)
    rng = np.random.default_rng(seed)
    value = torch.from_numpy(rng.standard_normal(col.numel())).to(dtype)
    dense = torch.from_numpy(rng.standard_normal((sources, channels))).to(dtype)
    wide = torch.float64
    expected = (to_dense(rowptr, col, value.to(wide), sources) @ dense.to(wide)).to(dtype)
    torch.testing.assert_close(spmm(rowptr, col, value, dense), expected)
    torch.testing.assert_close(reference.spmm(rowptr, col, value, dense), expected)


def test_gradients_equal_those_of_the_dense_product() -> None:
    rowptr, col = random_graph(30, 20, 5)
    generator = torch.Generator().manual_seed(0)
    value = torch.randn(col.numel(), dtype=torch.float64, generator=generator, requires_grad=True)
    dense = torch.randn(20, 33, dtype=torch.float64, generator=generator, requires_grad=True)
    grad = torch.randn(30, 33, dtype=torch.float64, generator=generator)
    actual = torch.autograd.grad(spmm(rowptr, col, value, dense), (value, dense), grad)
    row = reference.row_of_entry(rowptr)
    matrix = torch.zeros(30, 20, dtype=torch.float64).index_put((row, col), value, accumulate=True)
    expected = torch.autograd.grad(matrix @ dense, (value, dense), grad)
    torch.testing.assert_close(actual, expected)
    of_reference = (
        reference.spmm_grad_value(grad, rowptr, col, dense.detach()),
        reference.spmm_grad_dense(grad, rowptr, col, value.detach(), 20),
    )
    torch.testing.assert_close(of_reference, expected)


def double_inputs() -> tuple[torch.Tensor, ...]:
    rowptr, col = random_graph(6, 5, 3)
    generator = torch.Generator().manual_seed(0)
    value = torch.randn(col.numel(), dtype=torch.float64, generator=generator, requires_grad=True)
    dense = torch.randn(5, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    return rowptr, col, value, dense


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(spmm, double_inputs())


def test_double_backward() -> None:
    assert torch.autograd.gradgradcheck(spmm, double_inputs())


def test_opcheck() -> None:
    results = torch.library.opcheck(torch.ops.lgcn.spmm.default, double_inputs())
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("gradient", ["spmm_grad_value", "spmm_grad_dense"])
def test_opcheck_of_the_gradients(gradient: str) -> None:
    rowptr, col, value, dense = double_inputs()
    grad = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    inputs = (grad, rowptr, col, dense)
    if gradient == "spmm_grad_dense":
        inputs = (grad, rowptr, col, value, 5)
    results = torch.library.opcheck(getattr(torch.ops.lgcn, gradient).default, inputs)
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grad": torch.ones(3, 2)}, r"grad must have shape \(2, 2\), got \(3, 2\)"),
        ({"grad": torch.ones(2, 2).double()}, "grad must have the dtype.*float64"),
        ({"rowptr": torch.tensor([0, 9, 4])}, r"rowptr must not decrease.*= 9 .*= 4"),
        ({"col": torch.tensor([0, 1, 3, 0])}, r"col must be smaller .*\(3\).*= 3"),
    ],
)
def test_wrong_arguments_of_the_gradients_are_named(wrong: dict[str, Any], message: str) -> None:
    good = {"grad": torch.ones(2, 2), "rowptr": GOOD["rowptr"], "col": GOOD["col"]}
    ops = torch.ops.lgcn
    with pytest.raises(ValueError, match=message):
        ops.spmm_grad_value(*(good | wrong).values(), GOOD["dense"])
    with pytest.raises(ValueError, match=message):
        ops.spmm_grad_dense(*(good | wrong).values(), GOOD["value"], 3)


def test_compiles_forward_and_backward() -> None:
    compiled = torch.compile(spmm, fullgraph=True, backend="aot_eager")
    rowptr, col, value, dense = double_inputs()
    grads = [
        torch.autograd.grad(function(rowptr, col, value, dense).square().sum(), (value, dense))
        for function in (spmm, compiled)
    ]
    torch.testing.assert_close(grads[1], grads[0])


def test_inputs_need_not_be_contiguous() -> None:
    rowptr, col = random_graph(9, 7, 3)
    dense = torch.randn(4, 7).T
    value = torch.randn(2 * col.numel())[::2]
    expected = spmm(rowptr, col, value.contiguous(), dense.contiguous())
    torch.testing.assert_close(spmm(rowptr, col, value, dense), expected)


GOOD = {
    "rowptr": torch.tensor([0, 2, 4]),
    "col": torch.tensor([0, 1, 2, 0]),
    "value": torch.ones(4),
    "dense": torch.ones(3, 2),
}
WRONG = [
    ({"dense": torch.ones(3)}, r"dense must have two dimensions, got shape \(3,\)"),
    ({"dense": torch.ones(3, 2).long()}, "dense must be float32.* got torch.int64"),
    ({"dense": torch.ones(2, 2)}, r"col must be smaller .*\(2\).*= 2"),
    ({"value": torch.ones(3)}, r"value must have one entry .*\(4\).*\(3,\)"),
    ({"value": torch.ones(4).double()}, "value must have the dtype of dense.*float64"),
    ({"dense": torch.ones(3, 2, device="meta")}, "one device.*dense on meta"),
    ({"rowptr": torch.tensor([0, 5, 4])}, r"rowptr must not decrease.*= 5 .*= 4"),
    ({"col": torch.tensor([0, 1, -2, 0])}, "col must not be negative.*= -2"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_input_is_named(wrong: dict[str, Any], message: str) -> None:
    assert spmm(**GOOD).tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match=message):
        spmm(**(GOOD | wrong))


def test_shares_the_check_of_contents_with_k_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    rowptr, col, value, dense = double_inputs()
    k_largest(dense, rowptr, col, 2)
    monkeypatch.setattr(csr, "_look_at", lambda *_: pytest.fail("checked again"))
    assert spmm(rowptr, col, value, dense).shape == (6, 3)


def test_backward_transposes_a_structure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    count = csr._count
    monkeypatch.setattr(csr, "_count", lambda *a: counted.append(a[1]) or count(*a))
    for graphs in (1, 2):
        rowptr, col, value, dense = double_inputs()
        grads = [
            torch.autograd.grad(spmm(rowptr, col, value, dense).sum(), dense)[0] for _ in range(3)
        ]
        assert len(counted) == graphs
        assert counted[-1] is col
        assert grads[0].equal(grads[1])
        assert grads[0].equal(grads[2])


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_the_transposes_of_both_devices_are_equal(index_dtype: torch.dtype) -> None:
    rowptr, col = random_graph(40, 30, 4, index_dtype=index_dtype)
    for of_gpu, of_cpu in zip(csr._sort(rowptr, col, 33), csr._count(rowptr, col, 33), strict=True):
        assert of_gpu.equal(of_cpu)
        assert of_gpu.dtype == of_cpu.dtype == index_dtype


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_equals_the_cpu() -> None:
    rowptr, col, value, dense = double_inputs()
    results = []
    for device in ("cpu", "cuda"):
        inputs = [t.detach().to(device) for t in (rowptr, col, value.float(), dense.float())]
        inputs[2].requires_grad_()
        inputs[3].requires_grad_()
        out = spmm(*inputs)
        out.square().sum().backward()
        results.append([out.detach().cpu(), inputs[2].grad.cpu(), inputs[3].grad.cpu()])
    torch.testing.assert_close(results[1], results[0])
