"""Sparse matrices by rows, of the adjacency and of sparse features."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lgcn.dropout import dropout
from lgcn.jit import jit
from lgcn.ops.reference import row_of_entry

with warnings.catch_warnings():  # torch says once per process that CSR tensors are in beta
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


class CSR(NamedTuple):
    """A sparse matrix by rows: row i has ``col`` and ``weight`` from rowptr[i] to rowptr[i + 1].

    ``weight`` is ``None`` where all entries are one.
    """

    rowptr: Tensor
    col: Tensor
    weight: Tensor | None = None

    def values(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The entries' weights, ones where there are none."""
        if self.weight is None:
            return torch.ones(self.col.numel(), dtype=dtype, device=self.col.device)
        return self.weight.to(dtype)

    def rows(self, start: int, end: int) -> CSR:
        """The rows from ``start`` up to ``end``; the entries are views."""
        first, last = int(self.rowptr[start]), int(self.rowptr[end])
        weight = None if self.weight is None else self.weight[first:last]
        rowptr, col = one_index_dtype(self.rowptr[start : end + 1] - first, self.col[first:last])
        return CSR(rowptr, col, weight)

    def drop_weights(self, p: float) -> CSR:
        """Sets every weight to zero with probability p and scales up the rest, as dropout does.

        The structure stays, and with it what is known of it. For sums over rows, and for a
        selection among competing zeros, this is the same as :meth:`drop_edges`.
        """
        if p == 0:
            return self
        # Not _replace: torch 2.11 cannot compile it.
        return CSR(self.rowptr, self.col, dropout(self._weights(), p))

    def drop_edges(self, p: float) -> CSR:
        """Removes every entry with probability p and scales up the rest, as dropout does.

        From the same seed it removes the entries whose weights :meth:`drop_weights` sets to zero.
        """
        if p == 0:
            return self
        factor = dropout(torch.ones_like(self._weights()), p)
        kept = factor > 0
        before = torch.cat([kept.new_zeros(1, dtype=torch.long), kept.cumsum(0)])
        rowptr = before[self.rowptr.long()].to(self.rowptr.dtype)
        return CSR(rowptr, self.col[kept], (self._weights() * factor)[kept])

    def _weights(self) -> Tensor:
        return self.values() if self.weight is None else self.weight


def to_csr(
    adjacency: Tensor, num_rows: int, num_cols: int, edge_weight: Tensor | None = None
) -> CSR:
    """Converts what PyG users have to CSR; rows are targets, columns are sources.

    Args:
        adjacency: Either ``edge_index`` of shape [2, E] (sources, targets), or a sparse tensor of
            shape [num_rows, num_cols], which PyG calls ``adj_t``. A sparse CSR tensor is used as it
            is; anything else is sorted, which costs O(E log E).
        num_rows: Number of target nodes.
        num_cols: Number of source nodes.
        edge_weight: One weight an edge of ``edge_index``. (default: none)
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
            adjacency = adjacency.to_sparse_csr()
        return CSR(adjacency.crow_indices(), adjacency.col_indices(), adjacency.values())

    if adjacency.dim() != 2 or adjacency.size(0) != 2 or adjacency.is_floating_point():
        raise ValueError(
            f"edge_index must hold integers in shape [2, edges], got {adjacency.dtype} "
            f"in shape {list(adjacency.shape)}"
        )
    source, target = adjacency.as_subclass(Tensor).long()
    for name, nodes, count in (("sources", source, num_cols), ("targets", target, num_rows)):
        if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < count:
            raise ValueError(
                f"edge_index must name {name} from 0 to {count - 1}, "
                f"got {int(nodes.min())} to {int(nodes.max())}"
            )
    if edge_weight is not None and edge_weight.shape != source.shape:
        raise ValueError(
            f"edge_weight must have one entry an edge ({source.numel()}), "
            f"got shape {list(edge_weight.shape)}"
        )
    target, order = target.sort(stable=True)
    rowptr = torch.searchsorted(target, torch.arange(num_rows + 1, device=target.device))
    return CSR(rowptr, source[order], None if edge_weight is None else edge_weight[order])


def one_index_dtype(rowptr: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one dtype, as the operators take them.

    A store counts entries in 64 bits and numbers nodes in 32. The few rows that are worked on at
    a time have few entries, so it is the offsets that change.
    """
    if rowptr.dtype == col.dtype:
        return rowptr, col
    if col.numel() <= torch.iinfo(torch.int32).max:
        return rowptr.int(), col.int()
    return rowptr.long(), col.long()


def add_self_loops(matrix: CSR, first_row: int = 0) -> CSR:
    """Puts an entry of weight one first in every row that has no entry on the diagonal.

    Row i of ``matrix`` is row ``first_row`` + i of the adjacency.
    """
    rowptr, col, weight = matrix
    row = row_of_entry(rowptr)
    missing = torch.ones(rowptr.numel() - 1, dtype=torch.bool, device=col.device)
    missing[row[row + first_row == col]] = False
    added = torch.cat([missing.new_zeros(1, dtype=torch.long), missing.cumsum(0)])
    new_rowptr = (rowptr + added).to(rowptr.dtype)
    loop_at = new_rowptr[:-1][missing].long()
    moved_to = torch.arange(col.numel(), device=col.device) + added[row + 1]
    new_col = col.new_empty(col.numel() + loop_at.numel())
    new_col[loop_at] = (torch.nonzero(missing).squeeze(1) + first_row).to(col.dtype)
    new_col[moved_to] = col
    if weight is None:
        return CSR(new_rowptr, new_col)
    new_weight = weight.new_ones(new_col.numel())
    new_weight[moved_to] = weight
    return CSR(new_rowptr, new_col, new_weight)


def has_self_loop(rowptr: Tensor, col: Tensor) -> Tensor:
    """A mask of the rows that have an entry on the diagonal, found in one reading of ``col``."""
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
    if matrix.weight is None:
        return matrix.rowptr.diff().to(torch.get_default_dtype())
    sums = matrix.weight.new_zeros(matrix.rowptr.numel() - 1)
    return sums.index_add_(0, row_of_entry(matrix.rowptr), matrix.weight)


def row_blocks(rowptr: Tensor, entries: int = 1 << 22) -> Iterator[tuple[int, int]]:
    """Cuts the rows into runs [start, stop) of at most so many entries, or of one longer row."""
    start, num_rows = 0, rowptr.numel() - 1
    while start < num_rows:
        # By bisection: reading all of rowptr would bring a mapped one into memory.
        last = min(int(rowptr[start]) + entries, int(rowptr[-1]))
        stop = int(torch.searchsorted(rowptr, last, right=True)) - 1
        stop = min(max(stop, start + 1), start + entries, num_rows)
        yield start, stop
        start = stop


def take_rows(x: Tensor, rows: Tensor | slice) -> Tensor:
    """Rows of a dense or sparse CSR matrix, at the cost of these rows.

    Rows are numbers, not counted from the end, or a slice without a step.
    """
    if x.layout != torch.sparse_csr:
        return x[rows] if isinstance(rows, slice) else x.index_select(0, rows)
    all_rowptr, all_col, all_values = x.crow_indices(), x.col_indices(), x.values()
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(x.size(0))
        part = CSR(all_rowptr, all_col, all_values).rows(start, max(start, stop))
        return sparse_features(part.rowptr, part.col, part.values(x.dtype), x.size(1))
    starts = all_rowptr[rows]
    counts = all_rowptr[rows + 1] - starts
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entry = torch.arange(int(rowptr[-1]), device=x.device)
    entry = entry + (starts - rowptr[:-1]).repeat_interleave(counts)
    rowptr, col = one_index_dtype(rowptr.to(all_rowptr.dtype), all_col[entry])
    return sparse_features(rowptr, col, all_values[entry], x.size(1))


def stack_rows(parts: Sequence[Tensor]) -> Tensor:
    """Stacks dense or sparse CSR matrices."""
    if parts[0].layout != torch.sparse_csr:
        return torch.cat(list(parts))
    offsets = torch.tensor([0] + [part.values().numel() for part in parts]).cumsum(0)
    rowptr = [p.crow_indices()[:-1] + o for p, o in zip(parts, offsets, strict=False)]
    return sparse_features(
        torch.cat([*rowptr, offsets[-1:].to(rowptr[0])]),
        torch.cat([part.col_indices() for part in parts]),
        torch.cat([part.values() for part in parts]),
        parts[0].size(1),
    )


def sparse_features(rowptr: Tensor, col: Tensor, values: Tensor, num_features: int) -> Tensor:
    """A sparse CSR feature matrix."""
    return torch.sparse_csr_tensor(
        rowptr, col, values, (rowptr.numel() - 1, num_features), check_invariants=False
    )
