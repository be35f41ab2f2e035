"""Runs the CUDA C++ kernels on a CPU: compiled by g++, with the threads of a block as fibers."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lgcn.ops.gpu import nvrtc

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
COMPILER = shutil.which("g++")


def kernel(name: str, file: str, device: torch.device, **defines: int | str) -> Callable[..., None]:
    """In place of `lgcn.ops.gpu.nvrtc.kernel`."""
    assert device.type == "cpu"
    entry = getattr(_library(file, tuple(sorted(defines.items()))), f"launch_{name}")

    def launch(
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: list[Any],
        shared_mem: int = 0,
    ) -> None:
        assert shared_mem <= 48 * 1024, "more than a GPU gives without being asked"
        assert all(0 < size < 2**31 for size in grid)
        assert block[0] % 32 == 0
        assert block[0] <= 1024
        values = [
            ctypes.c_void_p(a.data_ptr()) if isinstance(a, Tensor) else ctypes.c_int(a)
            for a in args
        ]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        entry(grid[0], grid[1], block[0], pointers)

    return launch


@functools.cache
def _library(file: str, defines: tuple[tuple[str, int | str], ...]) -> ctypes.CDLL:
    assert COMPILER is not None
    text = nvrtc.source(file)
    names = [
        line.rsplit(" ", 1)[1].split("(")[0]
        for line in text.splitlines()
        if line.startswith('extern "C" __global__')
    ]
    text = text.replace("extern __shared__ unsigned shared[]", "unsigned* shared = shared_memory")
    text = text.replace("__shared__", "static")
    entries = "\n".join(
        f'extern "C" void launch_{name}(int x, int y, int block, void** arguments) '
        f"{{ launch({name}, x, y, block, arguments); }}"
        for name in names
    )
    folder = Path(tempfile.mkdtemp(prefix="lgcn-cuda-on-cpu-"))
    source = folder / "kernel.cpp"
    source.write_text(f'#include "{HEADER}"\n{text}\n{entries}\n')
    library = folder / "kernel.so"
    options = [f"-D{name}={value}" for name, value in defines]
    subprocess.run(
        [COMPILER, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *options, source, "-o", library],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))
    shutil.rmtree(folder)
    return loaded
