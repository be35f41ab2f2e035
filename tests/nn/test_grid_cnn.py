"""The CNN of an LGCL against torch's convolutions, and its folding at inference."""

from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Conv1d, ReLU, Sequential

from lgcn import LGConv
from lgcn.nn import grid_cnn
from lgcn.nn.grid_cnn import (
    DepthwiseKernel,
    GridCNN,
    GridConv,
    SharedKernel,
    convolution_matrix,
    double_cnn,
    grid_convolution,
    single_cnn,
)


def grid(num_nodes: int, positions: int, channels: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(num_nodes, positions, channels, generator=generator, dtype=torch.float64)


def double(cnn: GridCNN) -> GridCNN:
    """In double precision, with a bias that is not zero."""
    torch.nn.init.normal_(cnn[0].bias)
    return cnn.double()


def as_torch(cnn: GridCNN) -> Sequential:
    """The same weights in torch's own modules, without dropout."""
    modules = []
    for module in cnn:
        if isinstance(module, Conv1d):
            bias = module.bias is not None
            copy = Conv1d(module.in_channels, module.out_channels, module.kernel_size, bias=bias)
            modules.append(copy.double())
            copy.load_state_dict(module.state_dict())
    return Sequential(*modules)


def test_matrix_of_a_convolution_by_hand() -> None:
    matrix = convolution_matrix(torch.tensor([[[1.0, 2.0]]]), positions=4)
    assert matrix.tolist() == [[1, 0, 0], [2, 1, 0], [0, 2, 1], [0, 0, 2]]


def test_matrix_of_a_convolution_is_differentiable() -> None:
    weight = grid(4, 3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: convolution_matrix(w, 4) ** 2, weight)
    assert torch.autograd.gradgradcheck(lambda w: convolution_matrix(w, 4) ** 2, weight)


@pytest.mark.parametrize("largest", [0, 2**18])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("positions", "taps"), [(9, 5), (8, 5), (4, 4), (2, 1), (1, 1), (5, 2)])
def test_equals_conv1d_with_gradients(
    monkeypatch: pytest.MonkeyPatch, positions: int, taps: int, has_bias: bool, largest: int
) -> None:
    monkeypatch.setattr(grid_cnn, "MAX_MATRIX", largest)
    x = grid(7, positions, 3)
    weight, bias = grid(4, taps, 3).transpose(1, 2), torch.rand(4, dtype=torch.float64)
    results = []
    for convolution in (grid_convolution, F.conv1d):
        inputs = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
        out = convolution(inputs[0].transpose(1, 2), inputs[1], inputs[2] if has_bias else None)
        (out**2).sum().backward()
        results.append([out, *(tensor.grad for tensor in inputs[: 2 + has_bias])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("largest", [0, 2**18])
def test_no_copy_between_the_modules(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(grid_cnn, "MAX_MATRIX", largest)
    first, activation, dropout, _ = double_cnn(6, 4, 9, 0.5, F.relu)
    x = grid(7, 9, 6).float()
    for module in (first, activation, dropout):
        out = module(x.transpose(1, 2))
        x = out.transpose(1, 2)
        assert x.is_contiguous()


@pytest.mark.parametrize("num_nodes", [0, 1, 6])
@pytest.mark.parametrize("as_it_lies", [True, False])
def test_a_shared_kernel_by_its_formula(num_nodes: int, as_it_lies: bool) -> None:
    kernel = SharedKernel(4).double()
    torch.nn.init.normal_(kernel.weight)
    x = grid(num_nodes, 4, 3).transpose(1, 2)
    x = x if as_it_lies else x.contiguous()
    expected = sum((1 + kernel.weight[p]) * x[:, :, p] for p in range(4))
    torch.testing.assert_close(kernel(x), expected)
    if num_nodes:
        values = x.detach().requires_grad_()
        torch.autograd.gradcheck(
            lambda values, weight: torch.func.functional_call(kernel, {"weight": weight}, values),
            (values, kernel.weight),
        )


def test_the_gradient_of_a_shared_kernel_lies_as_the_grid_does() -> None:
    kernel, values = SharedKernel(4), torch.randn(6, 4, 3, requires_grad=True)
    seen: list[bool] = []
    hook = values.register_hook(lambda gradient: seen.append(gradient.is_contiguous()))
    kernel(values.transpose(1, 2)).sum().backward()
    hook.remove()
    assert seen == [True]


@pytest.mark.parametrize("num_nodes", [0, 1, 6])
@pytest.mark.parametrize("last", [True, False])
def test_a_depthwise_kernel_by_its_formula(num_nodes: int, last: bool) -> None:
    kernel = DepthwiseKernel(4, 3, last).double()
    x = grid(num_nodes, 4, 3)
    start = x[:, -1] if last else x.mean(1)
    torch.testing.assert_close(kernel(x.transpose(1, 2)), start)
    torch.nn.init.normal_(kernel.weight)
    expected = torch.einsum("npc,pc->nc", x, kernel.weight) + start
    torch.testing.assert_close(kernel(x.transpose(1, 2)), expected)
    torch.testing.assert_close(kernel(x.transpose(1, 2).contiguous()), expected)
    if num_nodes:
        parts = x.transpose(1, 2).detach().requires_grad_(), kernel.weight

        def run(values: Tensor, weight: Tensor) -> Tensor:
            called: Tensor = torch.func.functional_call(kernel, {"weight": weight}, values)
            return called

        assert torch.autograd.gradcheck(run, parts)
        assert torch.autograd.gradgradcheck(run, parts)


def test_a_depthwise_kernel_keeps_the_precision_and_only_its_deviation_is_stored() -> None:
    kernel = DepthwiseKernel(4, 3, last=True)
    assert {name: tuple(value.shape) for name, value in kernel.state_dict().items()} == {
        "weight": (4, 3)
    }
    x = grid(6, 4, 3).transpose(1, 2)
    assert kernel(x.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert kernel(x.bfloat16()).dtype == torch.bfloat16


def test_weights_have_the_names_and_shapes_of_torch() -> None:
    shapes = {name: tuple(p.shape) for name, p in double_cnn(6, 4, 9, 0.5, None).named_parameters()}
    assert shapes == {"0.weight": (5, 6, 5), "0.bias": (5,), "3.weight": (4, 5, 5)}
    shapes = {name: tuple(p.shape) for name, p in single_cnn(6, 4, 9).named_parameters()}
    assert shapes == {"0.weight": (4, 6, 9), "0.bias": (4,)}


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("kind", ["double", "single"])
def test_folded_equals_unfolded(k: int, kind: str) -> None:
    cnn = single_cnn(6, 4, k + 1) if kind == "single" else double_cnn(6, 4, k + 1, 0.5, None)
    cnn = double(cnn).eval()
    x = grid(7, k + 1, 6)
    weight, bias = cnn.folded()
    assert (weight.shape, bias.shape) == ((4, 6, k + 1), (4,))
    expected = as_torch(cnn)(x.transpose(1, 2))
    torch.testing.assert_close(cnn(x.transpose(1, 2)), expected, rtol=1e-12, atol=1e-12)


def test_folded_with_three_convolutions_and_biases() -> None:
    cnn = double(GridCNN(GridConv(6, 5, 4), GridConv(5, 3, 2), GridConv(3, 4, 3))).eval()
    x = grid(7, 7, 6).transpose(1, 2)
    torch.testing.assert_close(cnn(x), as_torch(cnn)(x))


def test_folded_is_close_in_single_precision() -> None:
    torch.manual_seed(0)
    cnn = double_cnn(32, 8, 9, 0.84, None).eval()
    x = torch.randn(500, 9, 32).transpose(1, 2)
    unfolded = cnn[3](cnn[0](x))
    assert (cnn(x) - unfolded).norm() < 1e-6 * unfolded.norm()


def test_gradients_go_through_the_folded_map() -> None:
    cnn = double(double_cnn(6, 4, 9, 0.0, None))
    x = grid(7, 9, 6).transpose(1, 2)
    gradients = []
    for training in (True, False):
        cnn.train(training).zero_grad()
        (cnn(x) ** 2).sum().backward()
        gradients.append([p.grad.clone() for p in cnn.parameters()])
    for unfolded, folded in zip(*gradients, strict=True):
        torch.testing.assert_close(folded, unfolded)


def folds(cnn: GridCNN) -> bool:
    with patch.object(GridCNN, "folded", autospec=True, side_effect=GridCNN.folded) as folded:
        cnn(torch.randn(3, 6, 9))
    return bool(folded.called)


def test_folds_only_at_inference_with_the_identity() -> None:
    assert folds(double_cnn(6, 4, 9, 0.5, None).eval())
    assert not folds(double_cnn(6, 4, 9, 0.5, None).train())
    assert not folds(double_cnn(6, 4, 9, 0.5, F.relu).eval())
    changed = double_cnn(6, 4, 9, 0.5, None).eval()
    changed[1] = ReLU()
    assert not folds(changed)


def test_the_folded_map_follows_the_weights() -> None:
    cnn = double_cnn(6, 4, 9, 0.5, None).eval()
    x = torch.randn(3, 6, 9)
    before = cnn(x)
    with torch.no_grad():
        cnn[3].weight.mul_(2)
    torch.testing.assert_close(cnn(x), 2 * before)


def test_activation_between_the_convolutions() -> None:
    cnn = double(double_cnn(6, 4, 9, 0.5, F.relu)).eval()
    first, second = as_torch(cnn)
    x = grid(7, 9, 6).transpose(1, 2)
    torch.testing.assert_close(cnn(x), second(first(x).relu()))


def test_own_modules_are_called_as_they_are() -> None:
    cnn = Sequential(Conv1d(6, 5, 5), Conv1d(5, 4, 5))
    conv = LGConv(6, 4, k=8, cnn=cnn).eval()
    x = torch.randn(3, 9, 6)
    with patch.object(Conv1d, "forward", autospec=True, side_effect=Conv1d.forward) as called:
        torch.testing.assert_close(conv.convolve(x), cnn(x.transpose(1, 2)).squeeze(2))
    assert called.call_count == 4


@pytest.mark.gpu
@pytest.mark.parametrize("smallest", [1, 2**16])
@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 2e-3), (torch.bfloat16, 3e-2)])
def test_cuda_equals_the_cpu(
    dtype: torch.dtype, error: float, taps: int, smallest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_cnn, "MIN_NODES_GPU", smallest)  # so that all forms are run
    x, weight = grid(500, 5, 16), grid(8, 16, taps) / 8
    exact_x, exact_weight = (tensor.detach().requires_grad_() for tensor in (x, weight))
    exact = grid_convolution(exact_x.transpose(1, 2), exact_weight, None)
    exact_grads = torch.autograd.grad(exact.pow(2).sum(), [exact_x, exact_weight])
    cuda_x, cuda_weight = (t.to("cuda", dtype).requires_grad_() for t in (x, weight))
    found = grid_convolution(cuda_x.transpose(1, 2), cuda_weight, None)
    grads = torch.autograd.grad(found.pow(2).sum(), [cuda_x, cuda_weight])
    for got, want in zip((found, *grads), (exact, *exact_grads), strict=True):
        difference = (got.double().cpu() - want).abs().max()
        assert float(difference) < error * float(want.abs().max())
