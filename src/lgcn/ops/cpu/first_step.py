"""Compiles the kernels of the first training step on a whole graph, in the order of their use.

``python -m lgcn.ops.cpu.first_step`` does it beside a command that still imports its libraries. For
all kernels, see `lgcn.training.warmup`.
"""

import torch

from lgcn.ops.cpu import launch
from lgcn.ops.dropout import dropout
from lgcn.ops.structure import transpose


def compile_first_step() -> None:
    """Calls the kernels with the types of a graph of common size: int64 ids and float32 features.

    Not through the operators, whose first call imports torch's compiler.
    """
    rowptr, col = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    x, weight = torch.ones(2, 1), torch.ones(2)
    grid, chosen = launch.k_largest(x, rowptr, col, 2, None, True, position_bits=8, own=x)
    dropout(x, 0.5, overwrite=True)
    launch.spmm(rowptr, col, weight, x)
    dropout(x, 0.5)
    transpose(rowptr, col, 2)
    launch.k_largest_grad_x(grid, chosen, rowptr, col, None, 2)


if __name__ == "__main__":
    compile_first_step()
