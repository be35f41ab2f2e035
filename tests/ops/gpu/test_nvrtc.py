"""Compiling CUDA C++: what happens where it is not possible."""

import warnings
from collections.abc import Iterator

import pytest
import torch

from lgcn.ops.gpu import nvrtc

GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    nvrtc._kernel.cache_clear()
    nvrtc._warn.cache_clear()
    yield
    nvrtc._kernel.cache_clear()
    nvrtc._warn.cache_clear()


def test_a_cpu_has_no_kernels() -> None:
    assert nvrtc.kernel("select_values", "select_values.cu", torch.device("cpu")) is None


def test_a_kernel_that_cannot_be_compiled_is_one_warning_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object) -> bytes:
        raise OSError("libnvrtc.so is missing")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(nvrtc, "_make_current", lambda device: None)
    monkeypatch.setattr(nvrtc, "_compile", fail)
    with pytest.warns(UserWarning, match=r"Triton kernels.*|libnvrtc.so is missing") as told:
        assert nvrtc.kernel("select_values", "select_values.cu", GPU, K=8) is None
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nvrtc.kernel("select_values", "select_values.cu", GPU, K=16) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_mistake_in_a_kernel_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"wrong\.cu.*undefined"):
        nvrtc._compile("__global__ void f() { nothing(); }", "wrong.cu", [])


def test_the_sources_are_part_of_the_package() -> None:
    assert 'extern "C" __global__' in nvrtc.source("select_values.cu")
    assert 'extern "C" __global__' in nvrtc.source("grad_by_columns.cu")
