"""Kernels in CUDA C++, compiled when they are first needed.

NVRTC, the compiler, comes with torch's CUDA builds. Where it is missing, the operators use their
Triton kernels.
"""

import ctypes
import functools
import warnings
from collections.abc import Callable
from importlib import resources
from typing import Any

import torch

Kernel = Callable[..., None]

_SUCCESS = 0


def kernel(name: str, file: str, device: torch.device, **defines: int | str) -> Kernel | None:
    """A kernel; `None`, after one warning, if it cannot be compiled.

    It is called with `grid`, `block`, `args` and `shared_mem`, on the current device; tensors are
    passed as pointers.

    Args:
        name: The kernel's name.
        file: The file in `lgcn/ops/gpu/cuda` that defines it.
        device: The device. There is no kernel for a CPU, on which Triton's interpreter runs.
        defines: Macros that are set.
    """
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    return _kernel(name, file, device, tuple(sorted(defines.items())))


@functools.cache
def _kernel(
    name: str, file: str, device: torch.device, defines: tuple[tuple[str, int | str], ...]
) -> Kernel | None:
    major, minor = torch.cuda.get_device_capability(device)
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
    options += [f"-D{macro}={value}" for macro, value in defines]
    try:
        # Private, but the only way from torch's own parts to a kernel.
        from torch.cuda._utils import _cuda_load_module

        _make_current(device)
        binary = _compile(source(file), file, options)
        loaded: Any = _cuda_load_module(binary, [name])
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        _warn(str(error))
        return None
    found: Kernel = loaded[name]

    def launch(**arguments: Any) -> None:
        _make_current(device)
        found(**arguments)

    return launch


def _make_current(device: torch.device) -> None:
    """Gives this thread the device's context, which threads of autograd do not have at first."""
    from torch.cuda._utils import _check_cuda, _get_gpu_runtime_library

    driver: Any = _get_gpu_runtime_library()
    context = ctypes.c_void_p()
    _check_cuda(driver.cuCtxGetCurrent(ctypes.byref(context)))
    if not context:
        _check_cuda(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device.index))
        _check_cuda(driver.cuCtxSetCurrent(context))


def source(file: str) -> str:
    """The text of a file in `lgcn/ops/gpu/cuda`."""
    return (resources.files("lgcn.ops.gpu") / "cuda" / file).read_text()


def _compile(text: str, file: str, options: list[str]) -> bytes:
    from torch.cuda._utils import _get_nvrtc_library

    library: Any = _get_nvrtc_library()
    program = ctypes.c_void_p()
    _check(
        library,
        library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), file.encode(), 0, None, None
        ),
    )
    try:
        encoded = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        if library.nvrtcCompileProgram(program, len(options), encoded) != _SUCCESS:
            raise RuntimeError(f"{file} does not compile: {_log(library, program)}")
        size = ctypes.c_size_t()
        _check(library, library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        binary = ctypes.create_string_buffer(size.value)
        _check(library, library.nvrtcGetCUBIN(program, binary))
        return binary.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _log(library: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return log.value.decode(errors="replace")


def _check(library: Any, result: int) -> None:
    if result != _SUCCESS:
        message = ctypes.c_char_p()
        library.nvrtcGetErrorString(result, ctypes.byref(message))
        raise RuntimeError(f"NVRTC: {(message.value or b'unknown error').decode()}")


@functools.cache
def _warn(reason: str) -> None:
    warnings.warn(
        f"CUDA C++ kernels cannot be compiled ({reason}): the Triton kernels are used, which are "
        "slower",
        stacklevel=2,
    )
