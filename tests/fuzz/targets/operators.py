"""``k_largest`` and its gradients against sorting in plain Python."""

import numpy as np
import torch

from lgcn.ops import k_largest, k_largest_values
from lgcn.ops.k_largest import k_largest_grid

from ..references import PALETTE, TYPES, Case, assert_same, oracle, scattered
from ..source import Source

FINITE = PALETTE[:8]
EXACT = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)  # sums of their products have no rounding errors


def case_of(source: Source, palette: tuple[float, ...], weights: tuple[float, ...]) -> Case:
    """A bipartite graph with isolated rows and parallel edges, values and weights with ties."""
    dtype, index_dtype = source.choice(TYPES)
    num_sources = source.below(10)
    longest = 0 if num_sources == 0 else source.choice((3, 3, 3, 12, 12, 90))
    degrees = [source.below(longest + 1) for _ in range(source.below(7))]
    channels = source.choice((1, 1, 2, 2, 3, 7, 0, 35))
    few = source.several(palette, 6, least=1)
    k = source.choice((1, 2, 3, 4, 5, 8)) if source.below(4) else source.between(1, 70)
    rng = source.rng()
    num_edges = sum(degrees)
    x = torch.from_numpy(rng.choice(few, (num_sources, channels))).to(dtype)
    col = torch.from_numpy(rng.integers(0, max(num_sources, 1), num_edges)).to(index_dtype)
    weight = None
    if source.flag():
        weight = torch.from_numpy(rng.choice(weights, num_edges)).to(dtype)
    return Case(
        x=x,
        rowptr=torch.tensor([0, *np.cumsum(degrees, dtype=np.int64)], dtype=index_dtype),
        col=col,
        k=k,
        edge_weight=weight,
        zeros=source.choice(("pad", "compete")),
    )


def k_largest_target(source: Source) -> None:
    """Values, node ids and the grid; what is not contiguous gives the same."""
    case = case_of(source, PALETTE, FINITE)
    expected, _, expected_index = oracle(case)
    x, weight = case.x, case.edge_weight
    if source.rarely():
        x = x.t().contiguous().t()
    if source.rarely() and weight is not None:
        weight = weight.repeat_interleave(2)[::2]
    options = {"edge_weight": weight, "zeros": case.zeros}
    kind = source.below(4)
    if kind < 2:
        values, index = k_largest(x, case.rowptr, case.col, case.k, **options)
        assert_same(index, expected_index)
    elif kind == 2:
        values = k_largest_values(x, case.rowptr, case.col, case.k, **options)
    else:
        rows = case.rowptr.numel() - 1
        own = torch.arange(float(rows * x.size(1))).reshape(rows, x.size(1)).to(x.dtype)
        last = -own if source.flag() else None
        grid = k_largest_grid(x, own, case.rowptr, case.col, case.k, last=last, **options)
        assert_same(grid[:, 0], own)
        values = grid[:, 1:]
        if last is not None:
            assert_same(values[:, -1], last)
            values = values[:, :-1]
    assert_same(values, expected)


def gradients_target(source: Source) -> None:
    """Gradients of features and weights against a plain scatter of what the reference chose."""
    case = case_of(source, (*EXACT, float("nan")), EXACT)
    expected, position, _ = oracle(case)
    x = case.x.clone().requires_grad_()
    weight = None
    if case.edge_weight is not None:
        weight = case.edge_weight.clone().requires_grad_(source.flag())
    arguments = (x, case.rowptr, case.col, case.k)
    if source.flag():
        values, _ = k_largest(*arguments, edge_weight=weight, zeros=case.zeros)
    else:
        values = k_largest_values(*arguments, edge_weight=weight, zeros=case.zeros)
    assert_same(values.detach(), expected)
    sign = torch.from_numpy(source.rng().choice((-2.0, -1.0, 1.0, 2.0), tuple(expected.shape)))
    grad = sign.to(case.x.dtype)
    values.backward(grad.transpose(0, 2).contiguous().transpose(0, 2) if source.rarely() else grad)
    grad_x, grad_weight = scattered(case, grad, position)
    assert_same(x.grad, grad_x)
    if weight is not None and weight.requires_grad:
        assert_same(weight.grad, grad_weight)
