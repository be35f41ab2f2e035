"""Operators on CSR graphs: what they compute (`reference`) and the kernels for each device."""

from lgcn.ops.backend import atomics
from lgcn.ops.k_largest import k_largest, k_largest_values
from lgcn.ops.spmm import spmm

__all__ = ["atomics", "k_largest", "k_largest_values", "spmm"]
