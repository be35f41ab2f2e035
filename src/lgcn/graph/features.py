"""Feature matrices: validation of sparse ones, and the two usual normalisations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import DataError, UsageError
from lgcn.utils.arrays import check_array
from lgcn.utils.limits import FEATURE_BYTES, MAX_INT32
from lgcn.utils.memory import check_memory

if TYPE_CHECKING:
    from torch import Tensor


def checked_csr(indptr: Any, indices: Any, values: Any, shape: tuple[int, int], path: Path) -> Any:
    """A SciPy CSR matrix of float64 from arrays whose contents are validated.

    SciPy and torch trust these arrays and would read outside of them.
    """
    rows, columns = shape
    check_memory(FEATURE_BYTES * columns, f"{path}: training on {columns} features", DataError)
    check_array(indices, "feature numbers", path, (None,), integer=True, low=0, high=columns - 1)
    check_array(indptr, "the row pointer of the features", path, (rows + 1,), integer=True)
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(indices):
        raise DataError(
            f"{path}: the row pointer of the features must rise from 0 to the number of entries "
            f"({len(indices)}), got {indptr[0]} to {indptr[-1]}"
        )
    check_array(values, "feature values", path, indices.shape)
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(
        (values.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)), shape=shape
    )
    matrix.sum_duplicates()
    return matrix


def checked_matrix(matrix: Any, name: str) -> Any:
    """A user's SciPy matrix as CSR with validated indices. Duplicates are summed.

    SciPy trusts the indices and would read outside of the matrix in a conversion. Rows without
    duplicates keep their order. The given matrix is not changed.
    """
    if len(matrix.shape) != 2 or max(matrix.shape) > MAX_INT32:
        raise UsageError(
            f"{name} must be a matrix of at most {MAX_INT32} rows and columns, "
            f"got shape {list(matrix.shape)}"
        )
    wrong = f"{name} has wrong indices: they must lie between 0 and"
    if matrix.format in ("csr", "csc", "bsr"):
        rows, columns = matrix.shape if matrix.format != "csc" else matrix.shape[::-1]
        if matrix.format == "bsr":
            rows, columns = rows // matrix.blocksize[0], columns // matrix.blocksize[1]
        _check_range(matrix.indices, columns, wrong)
        start, stop = matrix.indptr[:-1], matrix.indptr[1:]
        entries = min(len(matrix.indices), len(matrix.data))
        if len(start) != rows or matrix.indptr[0] != 0 or (stop < start).any():
            raise UsageError(f"{name} has wrong indices: indptr must rise from 0")
        if matrix.indptr[-1] > entries:
            raise UsageError(
                f"{name} has wrong indices: indptr must end with at most the number of entries "
                f"({entries}), got {matrix.indptr[-1]}"
            )
    elif matrix.format == "coo":
        for numbers, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
            _check_range(numbers, size, wrong)
    matrix = matrix.tocsr()
    if matrix.has_canonical_format:
        return matrix
    summed = matrix.copy()
    summed.sum_duplicates()
    return summed if summed.nnz < matrix.nnz else matrix


def _check_range(numbers: Any, size: int, wrong: str) -> None:
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < size:
        raise UsageError(f"{wrong} {size - 1}, got {numbers.min()} to {numbers.max()}")


def row_normalize(matrix: Any) -> Any:
    """Divides each row of a CSR matrix by its sum. Rows that sum to zero are unchanged."""
    from scipy.sparse import csr_matrix

    sums = np.asarray(matrix.sum(axis=1)).ravel()
    # Not as a product of matrices, which needs memory proportional to the number of columns.
    sums[sums == 0] = 1
    lengths = np.diff(matrix.indptr)
    with np.errstate(all="ignore"):  # values that are too large are refused in sparse_tensor
        factors = np.repeat(1 / sums, lengths)
        values = factors * matrix.data
        small = np.isinf(factors)
        values[small] = matrix.data[small] / np.repeat(sums, lengths)[small]
    scaled = (values, matrix.indices, matrix.indptr)
    scaled_matrix = csr_matrix(scaled, shape=matrix.shape, copy=True)
    scaled_matrix.eliminate_zeros()
    return scaled_matrix


def sparse_tensor(matrix: Any, name: str) -> Tensor:
    """A CSR matrix as torch's sparse CSR tensor of float32; `name` is used in the error."""
    import torch

    from lgcn.graph.csr import sparse_features

    matrix.sort_indices()
    with np.errstate(over="ignore"):
        values = matrix.data.astype(np.float32)
    if not np.isfinite(values).all():
        raise DataError(f"{name} must hold numbers that float32 can hold, up to 3.4e38")
    return sparse_features(
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(values),
        matrix.shape[1],
    )


def standardize(x: Any, fit_rows: Any) -> Any:
    """Scales each column to mean 0 and standard deviation 1 over `fit_rows`.

    Fit on training rows only: other rows are unknown when a model is trained. A column that is
    constant over them gets mean 0 and keeps its scale.
    """
    known = x[fit_rows].astype(np.float64)
    deviation = known.std(axis=0)
    return (x - known.mean(axis=0)) / np.where(deviation == 0, 1, deviation)
