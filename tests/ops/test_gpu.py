"""The operators on a GPU, through the functions that users call: large graphs, compilation."""

import numpy as np
import pytest
import torch
from torch import Tensor

from lgcn import Graph, LGConv
from lgcn.ops import atomics, k_largest, k_largest_values, reference, spmm
from lgcn.ops.k_largest import k_largest_grid

from .graphs import assert_same, random_graph

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16


def normal(*shape: int, dtype: torch.dtype = F32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to("cuda", dtype)


def large_graph(hub: int) -> tuple[Tensor, Tensor]:
    """Rows of log-normal degrees, 20000 edges in all; with a hub, its row lies among them."""
    rng = np.random.default_rng(0)
    degrees = np.floor(rng.lognormal(2, 1.2, 2000)).astype(np.int64)
    degrees = degrees[np.cumsum(degrees) < 20000]
    degrees = np.append(degrees, 20000 - degrees.sum())
    if hub > 0:
        degrees = np.insert(degrees, 7, hub)
    col = torch.from_numpy(rng.integers(0, 3000, degrees.sum()))
    return torch.tensor([0, *np.cumsum(degrees)]).cuda(), col.cuda()


def leaves(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if t is None else t.detach().clone().requires_grad_() for t in tensors]


# (k, features, dtype, weighted, neighbours of the hub): few, as each k is compiled anew.
LARGE = [
    (1, 64, F32, False, 0),
    (8, 33, F32, True, 0),
    (8, 64, BF16, False, 100_000),
    (8, 64, F32, False, 100_000),
    (10, 1, F16, True, 100_000),
    (64, 33, F32, True, 100_000),
    (128, 64, F32, False, 100_000),
]


@pytest.mark.parametrize(("k", "channels", "dtype", "weighted", "hub"), LARGE)
def test_cuda_equals_the_reference(
    k: int, channels: int, dtype: torch.dtype, weighted: bool, hub: int
) -> None:
    rowptr, col = large_graph(hub)
    x = normal(3000, channels, dtype=dtype)
    weight = normal(col.numel(), dtype=dtype, seed=1) if weighted else None
    inputs = leaves(x, weight)
    values, index = k_largest(inputs[0], rowptr, col, k, edge_weight=inputs[1])
    expected, position = reference.k_largest(x, rowptr, col, k, weight, False)
    assert_same(values, expected)
    assert_same(index, reference.neighbor_at(position, rowptr, col))

    grad = normal(*values.shape, dtype=dtype, seed=2)
    wanted = [i for i in inputs if i is not None]
    gradients = torch.autograd.grad(values, wanted, grad, retain_graph=True)
    for first, second in zip(gradients, torch.autograd.grad(values, wanted, grad), strict=True):
        assert first.cpu().view(torch.uint8).equal(second.cpu().view(torch.uint8))
    # In float64, where the order of a sum does not show.
    exact = (grad.double(), position, rowptr, col)
    exact_weight = None if weight is None else weight.double()
    expected = [reference.k_largest_grad_x(*exact, exact_weight, 3000)]
    if weighted:
        exact = (grad.double(), position, x.double(), rowptr, col)
        expected.append(reference.k_largest_grad_weight(*exact))
    tolerance = 1e-4 if dtype == F32 else 2e-2
    for actual, correct in zip(gradients, expected, strict=True):
        torch.testing.assert_close(actual.double(), correct, rtol=tolerance, atol=tolerance)


def test_cuda_gradients_with_atomics() -> None:
    rowptr, col = large_graph(0)
    (x,) = leaves(normal(3000, 64))
    values = k_largest_values(x, rowptr, col, 8)
    grad = normal(*values.shape, seed=2)
    (expected,) = torch.autograd.grad(values, x, grad, retain_graph=True)
    with atomics():
        (actual,) = torch.autograd.grad(values, x, grad)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_cuda_sparse_times_dense(dtype: torch.dtype) -> None:
    rowptr, col = large_graph(100_000)
    value, dense = leaves(normal(col.numel(), dtype=dtype, seed=1), normal(3000, 33, dtype=dtype))
    out = spmm(rowptr, col, value, dense)
    grad = normal(*out.shape, dtype=dtype, seed=2)
    gradients = torch.autograd.grad(out, (value, dense), grad)
    exact = [t.detach().double() for t in (value, dense, grad)]
    expected = (
        reference.spmm(rowptr, col, exact[0], exact[1]),
        reference.spmm_grad_value(exact[2], rowptr, col, exact[1]),
        reference.spmm_grad_dense(exact[2], rowptr, col, exact[0], 3000),
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-3} if dtype == F32 else {"rtol": 2e-2, "atol": 2e-2}
    for actual, correct in zip((out, *gradients), expected, strict=True):
        torch.testing.assert_close(actual.detach().double(), correct, **tolerance)


@pytest.mark.parametrize(("weighted", "bits", "grid"), [(False, 0, False), (True, 16, True)])
def test_cuda_opcheck(weighted: bool, bits: int, grid: bool) -> None:
    rowptr, col = (index.cuda() for index in random_graph(6, 5, 3))
    x, weight, own, last = leaves(
        normal(5, 3),
        normal(col.numel(), seed=1) if weighted else None,
        normal(6, 3, seed=2) if grid else None,
        normal(6, 3, seed=3) if grid else None,
    )
    arguments = (x, rowptr, col, 2, weight, True, bits, own, last)
    results = torch.library.opcheck(torch.ops.lgcn.k_largest.default, arguments)
    assert set(results.values()) == {"SUCCESS"}


def test_cuda_compiles_a_layer_without_a_break() -> None:
    rowptr, col = large_graph(0)
    num_nodes = rowptr.numel() - 1
    edge_index = torch.stack([col % num_nodes, reference.row_of_entry(rowptr)]).unique(dim=1)
    graph = Graph.as_given(edge_index, num_nodes)
    conv, x = LGConv(33, 16, k=8).cuda(), normal(num_nodes, 33)
    results = []
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for call in (conv, torch.compile(conv, fullgraph=True)):
            conv.zero_grad()
            out = call(x, graph)
            out.square().mean().backward()
            results.append([out.detach(), *(p.grad.clone() for p in conv.parameters())])
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hub", [0, 100_000])
def test_cuda_graph_replays_forward_and_backward(hub: int) -> None:
    rowptr, col = large_graph(hub)
    x, own = leaves(normal(3000, 64), normal(rowptr.numel() - 1, 64, seed=1))
    grad = normal(rowptr.numel() - 1, 9, 64, seed=2)

    def step() -> list[Tensor]:
        values = k_largest_grid(x, own, rowptr, col, 8)
        return [values.detach(), *torch.autograd.grad(values, (x, own), grad)]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # compiles, and finds out about the graph, neither of which can be captured
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        results = step()
    with torch.no_grad():  # a replay must read what is there now
        x.copy_(normal(3000, 64, seed=3))
    recorded.replay()
    replayed = [result.clone() for result in results]
    for actual, expected in zip(replayed, step(), strict=True):
        assert_same(actual, expected)
