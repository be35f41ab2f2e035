"""Sparse matrices in CSR form: adjacencies and sparse features."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lgcn.ops.dropout import dropout
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import check_range, structure
from lgcn.utils.jit import jit
from lgcn.utils.limits import MAX_GRAPH_NODES, MAX_INT32

INTEGER_DTYPES = (
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)

with warnings.catch_warnings():  # torch says once per process that CSR tensors are in beta
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


class CSR(NamedTuple):
    """A sparse matrix: row i has the entries rowptr[i] to rowptr[i + 1] of `col` and `weight`.

    `weight` is `None` if all entries are one.
    """

    rowptr: Tensor
    col: Tensor
    weight: Tensor | None = None

    def values(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The weights of the entries, ones if there are none."""
        if self.weight is None:
            return torch.ones(self.col.numel(), dtype=dtype, device=self.col.device)
        return self.weight.to(dtype)

    def rows(self, start: int, end: int) -> CSR:
        """The rows `start` to `end` (exclusive). The entries are views."""
        first, last = int(self.rowptr[start]), int(self.rowptr[end])
        weight = None if self.weight is None else self.weight[first:last]
        rowptr, col = one_index_dtype(self.rowptr[start : end + 1] - first, self.col[first:last])
        return CSR(rowptr, col, weight)

    def drop_weights(self, p: float) -> CSR:
        """Sets every weight to zero with probability p and scales up the rest, as dropout does.

        The structure stays the same, so it is not checked again. For row sums, and for a selection
        with `zeros="compete"`, the result is that of `drop_edges`.
        """
        if p == 0:
            return self
        # Not _replace: torch 2.11 cannot compile it.
        return CSR(self.rowptr, self.col, dropout(self._weights(), p))

    def drop_edges(self, p: float) -> CSR:
        """Removes every entry with probability p and scales up the rest, as dropout does.

        With the same seed, it removes the entries that `drop_weights` sets to zero.
        """
        if p == 0:
            return self
        return self.drop_edges_with(p, None)[0]

    def drop_edges_with(self, p: float, values: Tensor | None) -> tuple[CSR, Tensor | None]:
        """The same, and the rest of other values of the entries, which are not scaled.

        Args:
            p: Above 0.
            values: One per entry; `None` for nothing.
        """
        factor = dropout(torch.ones_like(self._weights()), p)
        kept = factor > 0
        before = torch.cat([kept.new_zeros(1, dtype=torch.long), kept.cumsum(0)])
        rowptr = before[self.rowptr.long()].to(self.rowptr.dtype)
        rest = CSR(rowptr, self.col[kept], (self._weights() * factor)[kept])
        return rest, None if values is None else values[kept]

    def _weights(self) -> Tensor:
        return self.values() if self.weight is None else self.weight


def to_csr(
    adjacency: Tensor, num_rows: int, num_cols: int, edge_weight: Tensor | None = None
) -> CSR:
    """Converts PyG's forms of an adjacency to CSR. Rows are targets, columns are sources.

    Args:
        adjacency: Either `edge_index` of shape [2, E] (sources, targets), or a sparse tensor of
            shape [num_rows, num_cols], which PyG calls `adj_t`. A sparse CSR tensor is used as it
            is. Anything else is sorted, which costs O(E log E).
        num_rows: Number of target nodes.
        num_cols: Number of source nodes.
        edge_weight: One weight per edge of `edge_index`. (default: none)
    """
    if adjacency.layout != torch.strided:
        if edge_weight is not None:
            raise ValueError("edge_weight must be None with a sparse adjacency, which has values")
        if tuple(adjacency.shape) != (num_rows, num_cols):
            raise ValueError(
                f"a sparse adjacency must have shape [targets, sources] = [{num_rows}, {num_cols}],"
                f" got {list(adjacency.shape)}"
            )
        if adjacency.layout != torch.sparse_csr:
            check_sparse(adjacency)
            adjacency = adjacency.to_sparse_csr()
        return CSR(adjacency.crow_indices(), adjacency.col_indices(), adjacency.values())

    source, target = edge_index = as_edge_index(adjacency)
    check_edge_index(edge_index, num_rows, num_cols, edge_weight)
    target, order = target.sort(stable=True)
    rowptr = torch.searchsorted(target, torch.arange(num_rows + 1, device=target.device))
    return CSR(rowptr, source[order], None if edge_weight is None else edge_weight[order])


def as_edge_index(edge_index: Tensor) -> Tensor:
    """The node numbers of a [2, E] tensor as int64.

    Products and sums of node numbers would overflow in narrower types. Numbers of uint64 that do
    not fit in int64 are refused.
    """
    if (
        not isinstance(edge_index, Tensor)
        or edge_index.dim() != 2
        or edge_index.size(0) != 2
        or edge_index.dtype not in INTEGER_DTYPES
    ):
        got = type(edge_index).__name__
        if isinstance(edge_index, Tensor):
            got = f"{edge_index.dtype} in shape {list(edge_index.shape)}"
        raise ValueError(f"edge_index must hold integers in shape [2, edges], got {got}")
    if not torch.compiler.is_compiling():  # while tracing, tensors are of classes of their own
        edge_index = edge_index.as_subclass(Tensor)  # from PyG's EdgeIndex, for example
    numbers = edge_index.long()
    if edge_index.dtype == torch.uint64 and numbers.numel() and int(numbers.min()) < 0:
        raise ValueError(
            f"edge_index must name nodes below 2**63, got {int(numbers[numbers < 0].max()) + 2**64}"
        )
    return numbers


def check_edge_index(
    edge_index: Tensor, num_rows: int, num_cols: int, edge_weight: Tensor | None = None
) -> None:
    """Checks that an int64 `edge_index` names existing nodes."""
    if max(num_rows, num_cols) > MAX_GRAPH_NODES:
        raise ValueError(f"the graph must have at most 2**40 nodes, got {max(num_rows, num_cols)}")
    if min(num_rows, num_cols) < 0:
        raise ValueError(f"num_nodes must not be negative, got {min(num_rows, num_cols)}")
    source, target = edge_index
    for name, nodes, count in (("sources", source, num_cols), ("targets", target, num_rows)):
        if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < count:
            raise ValueError(
                f"edge_index must name {name} from 0 to {count - 1}, "
                f"got {int(nodes.min())} to {int(nodes.max())}"
            )
    if edge_weight is not None and edge_weight.shape != source.shape:
        raise ValueError(
            f"edge_weight must have one entry per edge ({source.numel()}), "
            f"got shape {list(edge_weight.shape)}"
        )


def check_sparse(adjacency: Tensor) -> None:
    """Checks the indices of a sparse tensor that is not CSR, which torch trusts in conversions.

    Duplicate entries are allowed.
    """
    rows, columns = adjacency.shape[-2:]
    if adjacency.layout == torch.sparse_coo:
        target, source = adjacency._indices()
        check_edge_index(torch.stack([source, target]), rows, columns)
    elif adjacency.layout == torch.sparse_csc:
        colptr, row = adjacency.ccol_indices(), adjacency.row_indices()
        if colptr.numel() != columns + 1:
            raise ValueError(
                f"a sparse adjacency must have an offset per column and one more ({columns + 1}), "
                f"got {colptr.numel()}"
            )
        check_range(colptr, row, rows)
    else:
        raise ValueError(
            "a sparse adjacency must have the layout sparse_csr, sparse_csc or sparse_coo, "
            f"got {adjacency.layout}"
        )


def checked_nodes(nodes: Tensor, num_nodes: int, name: str = "nodes") -> Tensor:
    """Node numbers, or a boolean mask of all nodes, as valid int64 numbers.

    In narrow types, a number plus one can overflow, and torch takes uint8 for a mask.
    """
    if nodes.dtype == torch.bool:
        if nodes.shape != (num_nodes,):
            raise ValueError(
                f"{name} as a mask must have {num_nodes} entries, got {nodes.numel()} in shape "
                f"{list(nodes.shape)}"
            )
        return nodes.nonzero().squeeze(1)
    if nodes.dim() != 1 or (nodes.dtype not in INTEGER_DTYPES and nodes.numel()):
        raise ValueError(
            f"{name} must be a list of node numbers, got {nodes.dtype} in shape {list(nodes.shape)}"
        )
    nodes = nodes.long()
    if nodes.numel():
        low, high = (int(number) for number in torch.aminmax(nodes))
        if not 0 <= low <= high < num_nodes:
            raise ValueError(f"{name} must lie between 0 and {num_nodes - 1}, got {low} to {high}")
    return nodes


def one_index_dtype(rowptr: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    """Converts both to one dtype, which the operators need.

    A store has 64-bit offsets and 32-bit node numbers. If there are few entries, as in a block of
    rows, the offsets become 32-bit.
    """
    if rowptr.dtype == col.dtype:
        return rowptr, col
    if col.dtype == torch.int32 and max(col.numel(), rowptr.numel() - 1) <= MAX_INT32:
        return rowptr.int(), col
    return rowptr.long(), col.long()


def add_self_loops(matrix: CSR, first_row: int = 0) -> CSR:
    """Adds an entry of weight one at the start of every row without an entry on the diagonal.

    Row i of `matrix` is row `first_row` + i of the adjacency.
    """
    rowptr, col, weight = matrix
    row = row_of_entry(rowptr)
    missing = torch.ones(rowptr.numel() - 1, dtype=torch.bool, device=col.device)
    missing[row[row + first_row == col]] = False
    added = torch.cat([missing.new_zeros(1, dtype=torch.long), missing.cumsum(0)])
    num_entries = col.numel() + int(added[-1])
    if num_entries > MAX_INT32:  # 32 bits may have been enough before
        rowptr, col = rowptr.long(), col.long()
    new_rowptr = (rowptr + added).to(rowptr.dtype)
    loop_at = new_rowptr[:-1][missing].long()
    moved_to = torch.arange(col.numel(), device=col.device) + added[row + 1]
    new_col = col.new_empty(num_entries)
    new_col[loop_at] = (torch.nonzero(missing).squeeze(1) + first_row).to(col.dtype)
    new_col[moved_to] = col
    if weight is None:
        return CSR(new_rowptr, new_col)
    new_weight = weight.new_ones(new_col.numel())
    new_weight[moved_to] = weight
    return CSR(new_rowptr, new_col, new_weight)


def has_self_loop(rowptr: Tensor, col: Tensor) -> Tensor:
    """A mask of the rows that have an entry on the diagonal. Reads `col` once."""
    structure(rowptr, col)  # raises if the kernel would read outside of col
    looped = torch.zeros(rowptr.numel() - 1, dtype=torch.bool)
    _mark_self_loops(rowptr.cpu().numpy(), col.cpu().numpy(), looped.numpy())
    return looped.to(col.device)


@jit
def _mark_self_loops(rowptr: Any, col: Any, looped: Any) -> None:
    for i in range(looped.shape[0]):
        found = False
        for e in range(rowptr[i], rowptr[i + 1]):
            found |= col[e] == i
        looped[i] = found


def row_sums(matrix: CSR) -> Tensor:
    """The sum of each row, at least in float32: integers overflow, half precision saturates."""
    if matrix.weight is None:
        return matrix.rowptr.diff().to(torch.get_default_dtype())
    weight = matrix.weight
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.to(torch.float32)
    sums = weight.new_zeros(matrix.rowptr.numel() - 1)
    return sums.index_add(0, row_of_entry(matrix.rowptr), weight)


def take_rows(x: Tensor, rows: Tensor | slice) -> Tensor:
    """Rows of a dense or sparse CSR matrix. Only these rows are read.

    `rows` are non-negative numbers or a slice without a step.
    """
    if x.layout != torch.sparse_csr:
        return x[rows] if isinstance(rows, slice) else x.index_select(0, rows)
    all_rowptr, all_col, all_values = x.crow_indices(), x.col_indices(), x.values()
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(x.size(0))
        part = CSR(all_rowptr, all_col, all_values).rows(start, max(start, stop))
        return sparse_features(part.rowptr, part.col, part.values(x.dtype), x.size(1))
    rows = checked_nodes(rows, x.size(0), "rows")
    starts = all_rowptr[rows].long()
    counts = all_rowptr[rows + 1] - starts
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entry = torch.arange(int(rowptr[-1]), device=x.device)
    moved = (starts - rowptr[:-1]).repeat_interleave(counts, output_size=entry.numel())
    entry += moved
    if entry.numel() <= MAX_INT32:  # with repeated rows there may be more entries than in x
        rowptr = rowptr.to(all_rowptr.dtype)
    # A third of the time of all_col[entry].
    rowptr, col = one_index_dtype(rowptr, all_col.index_select(0, entry))
    return sparse_features(rowptr, col, all_values.index_select(0, entry), x.size(1))


def stack_rows(parts: Sequence[Tensor]) -> Tensor:
    """Stacks dense or sparse CSR matrices."""
    if parts[0].layout != torch.sparse_csr:
        return torch.cat(list(parts))
    rowptr = stack_offsets([part.crow_indices() for part in parts])
    col = torch.cat([part.col_indices() for part in parts])
    values = torch.cat([part.values() for part in parts])
    return sparse_features(*one_index_dtype(rowptr, col), values, parts[0].size(1))


def stack_offsets(parts: Sequence[Tensor]) -> Tensor:
    """The row offsets of stacked matrices, in int64 if the last one does not fit in int32.

    A tensor of int32 plus an offset is int32 and would overflow.
    """
    dtype = functools.reduce(torch.promote_types, (part.dtype for part in parts))
    if sum(int(part[-1]) for part in parts) > MAX_INT32:
        dtype = torch.int64
    first, moved = 0, []
    for part in parts:
        moved.append(part[:-1].to(dtype) + first)
        first += int(part[-1])
    return torch.cat([*moved, moved[0].new_tensor([first])])


def sparse_features(rowptr: Tensor, col: Tensor, values: Tensor, num_features: int) -> Tensor:
    """A sparse CSR feature matrix."""
    return torch.sparse_csr_tensor(
        rowptr, col, values, (rowptr.numel() - 1, num_features), check_invariants=False
    )
