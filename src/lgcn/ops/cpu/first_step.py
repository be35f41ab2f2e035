"""Compiles the kernels of the first training step on a whole graph, in the order of their use.

``python -m lgcn.ops.cpu.first_step int64`` does it beside a command that still imports its
libraries. For all kernels, see `lgcn.training.warmup`.
"""

import sys

import torch

from lgcn.ops.cpu import launch
from lgcn.ops.dropout import dropout
from lgcn.ops.structure import transpose


def compile_first_step(index_dtype: str) -> None:
    """Calls the kernels with float32 features and rows of common length.

    Not through the operators, whose first call imports torch's compiler.

    Args:
        index_dtype: Type of ``rowptr`` and ``col``: ``"int32"`` or ``"int64"``.
    """
    dtype = {"int32": torch.int32, "int64": torch.int64}[index_dtype]
    rowptr, col = torch.tensor([0, 1, 2], dtype=dtype), torch.tensor([1, 0], dtype=dtype)
    x, weight = torch.ones(2, 32), torch.ones(2)  # fewer features have a kernel of their own
    grid, chosen = launch.k_largest(x, rowptr, col, 2, None, True, position_bits=8, own=x)
    dropout(x, 0.5, overwrite=True)
    launch.spmm(rowptr, col, weight, x)
    dropout(x, 0.5)
    transpose(rowptr, col, 2)
    launch.k_largest_grad_x(grid, chosen, rowptr, col, None, 2)


if __name__ == "__main__":
    compile_first_step(*sys.argv[1:])
