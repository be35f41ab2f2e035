"""Which kernels serve which device, and when atomics are allowed."""

import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import lgcn.ops.gpu
from lgcn.ops import atomics, reference
from lgcn.ops import backend as module
from lgcn.ops.backend import atomics_allowed, backend
from lgcn.ops.cpu import launch as cpu


@pytest.fixture
def on_cuda() -> Tensor:
    """A tensor that says it is on a GPU, also where there is none."""
    with FakeTensorMode():
        return torch.empty(1, device="cuda")


@pytest.fixture
def looked_for_anew() -> Iterator[None]:
    """Forgets before and after whether there are GPU kernels."""
    found = (module._gpu, module._on_cuda)
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


def test_the_cpu_has_the_numba_kernels() -> None:
    assert backend(torch.empty(1)) is cpu


def test_other_devices_have_the_reference() -> None:
    assert backend(torch.empty(1, device="meta")) is reference


@pytest.mark.usefixtures("looked_for_anew")
def test_a_gpu_has_the_triton_kernels(on_cuda: Tensor) -> None:
    pytest.importorskip("triton", reason="the GPU kernels need Triton")
    from lgcn.ops.gpu import launch as gpu

    assert backend(on_cuda) is gpu


@pytest.mark.usefixtures("looked_for_anew")
def test_float64_on_a_gpu_has_the_reference_and_one_warning() -> None:
    with FakeTensorMode():
        double = torch.empty(1, device="cuda", dtype=torch.float64)
    with pytest.warns(UserWarning, match=r"float64 has no GPU kernels .* float32, bfloat16"):
        assert backend(double) is reference
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend(double) is reference


@pytest.mark.usefixtures("looked_for_anew")
def test_without_triton_a_gpu_has_the_reference_and_one_warning(
    on_cuda: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("launch", "triton_select", "triton_sum"):
        monkeypatch.delattr(lgcn.ops.gpu, name, raising=False)
        monkeypatch.delitem(sys.modules, f"lgcn.ops.gpu.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.warns(UserWarning, match=r"no GPU kernels without Triton .*pip install triton"):
        assert backend(on_cuda) is reference
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend(on_cuda) is reference


def test_atomics_are_allowed_within_their_context_only() -> None:
    assert not atomics_allowed()
    with atomics():
        with atomics():
            assert atomics_allowed()
        assert atomics_allowed()
    assert not atomics_allowed()


def test_atomics_end_with_an_error() -> None:
    with pytest.raises(KeyError), atomics():
        raise KeyError
    assert not atomics_allowed()


def test_atomics_are_allowed_to_the_thread_of_the_backward() -> None:
    seen = []
    with atomics():
        thread = threading.Thread(target=lambda: seen.append(atomics_allowed()))
        thread.start()
        thread.join()
    assert seen == [True]
