"""Operators on CSR graphs: what they compute (``reference``) and one file per backend (``cpu``)."""

from lgcn.ops.k_largest import k_largest, k_largest_values
from lgcn.ops.spmm import spmm

__all__ = ["k_largest", "k_largest_values", "spmm"]
