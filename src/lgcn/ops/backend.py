"""Which implementation a device uses, and whether atomics are allowed on a GPU."""

import contextlib
import functools
import warnings
from collections.abc import Iterator
from types import ModuleType

import torch
from torch import Tensor

from lgcn.ops import reference
from lgcn.ops.cpu import launch as cpu


def backend(x: Tensor) -> ModuleType:
    """The kernels for the device of x: Numba on the CPU, Triton on CUDA, else the reference.

    Types without GPU kernels use the reference, with one warning.
    """
    if x.is_cpu:
        return cpu
    return _on_cuda(x.dtype) if x.is_cuda else reference


@functools.cache
def _on_cuda(dtype: torch.dtype) -> ModuleType:
    if dtype == torch.float64:
        warnings.warn(
            f"{dtype} has no GPU kernels and uses the slow path; "
            "float32, bfloat16 and float16 have them",
            stacklevel=2,
        )
        return reference
    return _gpu()


@functools.cache
def _gpu() -> ModuleType:
    try:
        from lgcn.ops.gpu import launch as gpu
    except ImportError as error:
        warnings.warn(
            f"no GPU kernels without Triton ({error}): the slow path is used. "
            "Install it with: pip install triton",
            stacklevel=2,
        )
        return reference
    return gpu


_atomics = False  # for all threads: the backward pass on a GPU runs in its own thread


@contextlib.contextmanager
def atomics() -> Iterator[None]:
    """Within this context, the backward pass of the selection on a GPU adds with atomics.

    It then needs no memory besides the gradients and, for a large k on a dense graph, less time.
    But the summation order varies, so that two runs with one seed differ in their last bits.
    """
    global _atomics
    before, _atomics = _atomics, True
    try:
        yield
    finally:
        _atomics = before


def atomics_allowed() -> bool:
    return _atomics
