"""Checks of a CSR structure: cheap ones on every call, those that cost O(E) once per structure."""

# mypy: disable-error-code="untyped-decorator"

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from lgcn.utils.jit import jit
from lgcn.utils.limits import MAX_INT32

INDEX_DTYPES = (torch.int32, torch.int64)
FLOAT_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Transpose(NamedTuple):
    """The same entries by columns: column j holds `entry` from colptr[j] to colptr[j + 1].

    `entry` are places in the original `col`, in rising order, and `row` are their rows.
    """

    colptr: Tensor
    row: Tensor
    entry: Tensor


@dataclass
class Structure:
    """What is known about a pair (rowptr, col) that passed the checks."""

    rowptr: Any  # a weak reference
    states: tuple[Any, ...]  # of both tensors, see state_of
    storages: tuple[Any, Any]  # kept alive, so that no other tensor gets their addresses
    max_col: int
    max_degree: int | None  # None until it is needed
    transpose: Transpose | None = None
    # What `lgcn.ops.blocks` cuts it into, by the rules of the cut.
    blocks: dict[Any, Any] = field(default_factory=dict)


# By the identity of col, so an entry is dropped with its tensor. A change in place or of the
# storage changes the states, and the structure is checked again.
_known: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def state_of(tensor: Tensor) -> tuple[int, ...]:
    """Changes with a change in place (`col[0] = 5`) or of the storage (`col.data = other`).

    The address tells storages apart as long as the old one is not freed. Changes in place of
    inference tensors are not seen.
    """
    version = 0 if tensor.is_inference() else tensor._version
    bytes_there = tensor.untyped_storage().nbytes()
    return version, tensor.data_ptr(), tensor.numel(), *tensor.stride(), bytes_there


def check_layout(rowptr: Tensor, col: Tensor) -> None:
    """Checks shapes, types and devices of a CSR structure. O(1), works under `torch.compile`."""
    for name, index in (("rowptr", rowptr), ("col", col)):
        if not isinstance(index, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(index).__name__}")
        if index.dim() != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {tuple(index.shape)}")
        if index.dtype not in INDEX_DTYPES:
            raise ValueError(f"{name} must be int32 or int64, got {index.dtype}")
    if rowptr.numel() == 0:
        raise ValueError("rowptr must have one entry more than there are rows, got no entry")
    if rowptr.dtype != col.dtype:
        raise ValueError(
            f"rowptr and col must have one dtype, got rowptr {rowptr.dtype} and col {col.dtype}"
        )
    if rowptr.device != col.device:
        raise ValueError(
            f"rowptr and col must be on one device, got rowptr on {rowptr.device} "
            f"and col on {col.device}"
        )
    if rowptr.dtype == torch.int32 and rowptr.numel() - 1 > MAX_INT32:
        raise ValueError(
            f"rowptr and col must be int64 for more than {MAX_INT32} rows, got int32 for "
            f"{rowptr.numel() - 1}"
        )


def check_shape(
    name: str, tensor: Tensor, shape: tuple[int, ...], other: str, like: Tensor
) -> None:
    """Checks that a tensor has a shape, and the dtype and device of another one."""
    if tensor.shape != shape:
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(tensor.shape)}")
    if tensor.dtype != like.dtype:
        raise ValueError(
            f"{name} must have the dtype of {other} ({like.dtype}), got {tensor.dtype}"
        )
    if tensor.device != like.device:
        raise ValueError(
            f"{name} must be on the device of {other} ({like.device}), got {tensor.device}"
        )


def check_range(rowptr: Tensor, col: Tensor, num_cols: int) -> None:
    """Checks that `rowptr` rises from 0 to `col.numel()` and `col` lies in range(num_cols).

    The O(E) part runs once per pair of tensors, and again after one of them was changed in place or
    got another storage. Changes that torch does not know of are not seen: those through a NumPy
    array or through `col.data[0]`.
    """
    largest = structure(rowptr, col).max_col
    if largest >= num_cols:
        raise ValueError(
            f"col must be smaller than the number of rows of x ({num_cols}), "
            f"got col.max() = {largest}"
        )


def max_degree(rowptr: Tensor, col: Tensor) -> int:
    """The number of entries of the longest row."""
    known = structure(rowptr, col)
    if known.max_degree is None:
        known.max_degree = int(rowptr.diff().max()) if rowptr.numel() > 1 else 0
    return known.max_degree


def transpose(rowptr: Tensor, col: Tensor, num_cols: int) -> Transpose:
    """The transposed structure, sorted once per pair of tensors.

    On the CPU that costs O(E), about what a product with ten columns saves by it; elsewhere
    O(E log E).
    """
    known = structure(rowptr, col)
    found = known.transpose  # read once: another thread may replace it by one for another num_cols
    if found is None or found.colptr.numel() != num_cols + 1:
        found = known.transpose = (_count if col.is_cpu else _sort)(rowptr, col, num_cols)
    return found


def _sort(rowptr: Tensor, col: Tensor, num_cols: int) -> Transpose:
    sorted_col, entry = col.sort(stable=True)
    if num_cols > MAX_INT32:  # the last column's number plus one would not fit
        sorted_col = sorted_col.long()
    columns = torch.arange(num_cols + 1, device=col.device, dtype=sorted_col.dtype)
    colptr = torch.searchsorted(sorted_col, columns, out_int32=col.dtype == torch.int32)
    row = torch.searchsorted(rowptr[1:], entry.to(rowptr.dtype), right=True)
    return Transpose(colptr, row.to(col.dtype), entry.to(col.dtype))


def _count(rowptr: Tensor, col: Tensor, num_cols: int) -> Transpose:
    found = Transpose(col.new_zeros(num_cols + 1), torch.empty_like(col), torch.empty_like(col))
    _place_by_column(*(t.detach().contiguous().numpy() for t in (rowptr, col, *found)))
    return found


@jit
def _place_by_column(rowptr: Any, col: Any, colptr: Any, row: Any, entry: Any) -> None:
    for e in range(col.shape[0]):
        colptr[col[e] + 1] += 1
    for j in range(1, colptr.shape[0]):
        colptr[j] += colptr[j - 1]
    free = colptr.copy()
    for i in range(rowptr.shape[0] - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            place = free[col[e]]
            row[place], entry[place] = i, e
            free[col[e]] = place + 1


class Parts(NamedTuple):
    """The rows with more than some number of entries, split into parts of that many.

    Part n belongs to row `row[n]` and starts at its entry `first[n]`; the parts of
    `long_row[m]` are those from ptr[m] to ptr[m + 1].
    """

    row: Tensor
    first: Tensor
    long_row: Tensor
    ptr: Tensor


# rowptr -> (most entries of a row, most entries of all, whether the last row is always empty), for
# a structure whose contents are replaced, see `trust_within`
_bounds: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)

# rowptr -> (its state, its storage, parts by size)
_parts_of_rows: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def long_rows(rowptr: Tensor, size: int) -> Parts:
    """Splits the rows of more than `size` entries, once per `rowptr` and size."""
    if rowptr in _bounds:  # the entries are replaced, so the parts are not kept
        return _cut_within(rowptr, size, *_bounds[rowptr])
    if rowptr.is_inference():  # it has no version counter, so a change would not be seen
        return _cut(rowptr, size)
    state = state_of(rowptr)
    known = _parts_of_rows.get(rowptr)
    if known is None or known[0] != state:
        known = _parts_of_rows[rowptr] = (state, rowptr.untyped_storage(), {})
    if size not in known[2]:
        known[2][size] = _cut(rowptr, size)
    parts: Parts = known[2][size]
    return parts


def _cut_within(rowptr: Tensor, size: int, longest: int, entries: int, spare: bool) -> Parts:
    """As `_cut`, in shapes that follow from the bounds alone, without waiting for a device.

    What is too much repeats the last row. It is empty: no entries are read for it.
    """
    numbers: dict[str, Any] = {"dtype": torch.long, "device": rowptr.device}
    if longest <= size:
        none = torch.empty(0, **numbers)
        return Parts(none, none, none, rowptr[:1])
    if not spare:
        raise ValueError(
            f"rows whose entries are replaced must end with an empty one to be split, got up to "
            f"{longest} entries in a row and parts of {size}"
        )
    most_rows = entries // (size + 1) + 1  # one is empty, as the parts may be split again
    most_parts = 2 * (entries // size)
    last = rowptr.numel() - 2
    degrees = rowptr.diff().long()
    is_long = degrees > size
    counts = torch.where(is_long, (degrees + size - 1) // size, 0)
    ends = counts.cumsum(0)
    starts = ends - counts
    part = torch.arange(most_parts, **numbers)
    row = torch.searchsorted(ends, part, right=True).clamp(max=last)
    first = torch.where(part < ends[-1], (part - starts[row]) * size, 0)
    nth = torch.arange(1, most_rows + 1, **numbers)
    long_row = torch.searchsorted(is_long.long().cumsum(0), nth).clamp(max=last)
    ptr = torch.cat([starts[long_row], ends[-1:]])
    _bounds[ptr] = -(-longest // size), most_parts, True
    return Parts(row, first, long_row, ptr)


def _cut(rowptr: Tensor, size: int) -> Parts:
    degrees = rowptr.diff().long()  # a degree plus the size may not fit into 32 bits
    long_row = torch.nonzero(degrees > size).squeeze(1)
    counts = (degrees[long_row] + size - 1) // size
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    part = torch.arange(int(ptr[-1]), device=ptr.device)
    first = (part - ptr[:-1].repeat_interleave(counts)) * size
    return Parts(long_row.repeat_interleave(counts), first, long_row, ptr)


def structure(rowptr: Tensor, col: Tensor) -> Structure:
    """Checks a structure that is new or has changed, and remembers the result."""
    if rowptr.is_inference() or col.is_inference():  # these have no version counter
        return _look_at(rowptr, col, ())
    states = (*state_of(rowptr), *state_of(col))
    known: Structure | None = _known.get(col)
    if known is None or known.rowptr() is not rowptr or known.states != states:
        known = _known[col] = _look_at(rowptr, col, states)
    return known


def trust(rowptr: Tensor, col: Tensor, num_cols: int, max_degree: int | None = None) -> None:
    """Marks a structure as valid that was checked elsewhere. A later change is noticed.

    Args:
        rowptr, col: The structure.
        num_cols: What all of `col` is below.
        max_degree: The number of entries of the longest row, if it is known. (default: `None`)
    """
    if not (rowptr.is_inference() or col.is_inference()):
        states = (*state_of(rowptr), *state_of(col))
        known: Structure | None = _known.get(col)
        if known is None or known.rowptr() is not rowptr or known.states != states:
            _known[col] = _structure(rowptr, col, states, num_cols - 1, max_degree)


def trust_within(
    rowptr: Tensor,
    col: Tensor,
    num_cols: int,
    max_degree: int,
    transposed: Transpose,
    max_column: int,
    *,
    spare_column: bool,
) -> None:
    """Marks a structure as valid whose contents are replaced in a way that torch does not see.

    That is how one CUDA graph works on many structures: Python reads the bounds once, and all that
    depends on the contents is in tensors. Nothing about the structure is read from a device.
    Entries of `col` behind rowptr[-1] belong to no row, and only kernels that go by rows may read
    such a structure. The last row must always be empty.

    Args:
        rowptr, col: The structure.
        num_cols: What all of `col` is below.
        max_degree: The most entries that a row will have.
        transposed: The transposed structure, replaced together with this one.
        max_column: The most entries that a column will have.
        spare_column: Whether the last column is always empty.
    """
    trust(rowptr, col, num_cols, max_degree)
    known: Structure = _known[col]
    known.transpose = transposed
    entries = col.numel()
    _bounds[rowptr] = min(max_degree, entries), entries, True
    _bounds[transposed.colptr] = min(max_column, entries), entries, spare_column


def is_replaced(rowptr: Tensor) -> bool:
    """Whether the bounds of a structure are known, but not its contents, see `trust_within`."""
    return rowptr in _bounds


def _structure(
    rowptr: Tensor, col: Tensor, states: tuple[Any, ...], max_col: int, max_degree: int | None
) -> Structure:
    storages = (rowptr.untyped_storage(), col.untyped_storage())
    return Structure(WeakIdRef(rowptr), states, storages, max_col, max_degree)


def _look_at(rowptr: Tensor, col: Tensor, states: tuple[Any, ...]) -> Structure:
    # By comparison: a difference of invalid numbers may overflow and look valid.
    falls = rowptr[1:] < rowptr[:-1]
    found = [rowptr[0], rowptr[-1]]
    if falls.numel() > 0:
        found += [falls.any(), rowptr.diff().max()]
    if col.numel() > 0:
        found += torch.aminmax(col)
    # All at once: on a GPU, each number that is read is a synchronisation.
    numbers = torch.stack([number.long() for number in found]).tolist()
    first, last = numbers[:2]
    some_fall, max_degree = numbers[2:4] if falls.numel() > 0 else (0, 0)
    min_col, max_col = numbers[-2:] if col.numel() > 0 else (0, -1)
    if first != 0:
        raise ValueError(f"rowptr must start with 0, got rowptr[0] = {first}")
    if some_fall:
        i = int(falls.int().argmax())
        raise ValueError(
            f"rowptr must not decrease, got rowptr[{i}] = {int(rowptr[i])} "
            f"before rowptr[{i + 1}] = {int(rowptr[i + 1])}"
        )
    if last != col.numel():
        raise ValueError(
            f"rowptr must end with the number of entries in col ({col.numel()}), "
            f"got rowptr[-1] = {last}"
        )
    if min_col < 0:
        raise ValueError(f"col must not be negative, got col.min() = {min_col}")
    return _structure(rowptr, col, states, max_col, max_degree)


# Sparse tensor -> (rowptr, col). `crow_indices()` makes a new object on every call, for which the
# check of the range would run each time. Its values, which would keep it alive, are not stored.
_parts: Any = WeakIdKeyDictionary(ref_type=WeakIdRef)


def csr_parts(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(rowptr, col, values) of a sparse CSR tensor, rowptr and col the same objects every time."""
    # Detached, since torch.compile does not take a dense view of a sparse tensor.
    if matrix not in _parts:
        _parts[matrix] = (matrix.crow_indices().detach(), matrix.col_indices().detach())
    rowptr, col = _parts[matrix]
    values = matrix.values()
    return rowptr, col, values if values.requires_grad else values.detach()


def with_values(matrix: Tensor, values: Tensor) -> Tensor:
    """A sparse CSR tensor of the same structure, which is not checked again."""
    rowptr, col, _ = csr_parts(matrix)
    size = tuple(matrix.shape)
    changed = torch.sparse_csr_tensor(rowptr, col, values, size, check_invariants=False)
    _parts[changed] = (rowptr, col)
    return changed
