"""A CSR structure cut into blocks of rows, once: each block is known to be valid from then on.

Operators on a structure that is new read it to check it, and on a GPU wait for the result. Blocks
are therefore cut and described together, with one wait, and kept with the structure that they are
of. A later pass over the same blocks waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.ops.structure import check_range, is_replaced, max_degree, structure, trust
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.row_blocks import row_blocks_within


class Near(NamedTuple):
    """The entries of a block with columns numbered anew: those that appear in it, in rising order.

    Sums over columns then cost what the block has, not what the graph has.
    """

    columns: Tensor | None  # their numbers in the graph; None if all have kept their own
    rowptr: Tensor
    col: Tensor


class RowBlock:
    """Rows `start` to `stop` of a structure, which are its entries `first` to `last`.

    `rowptr` counts from the first of them, and `col` shares the structure's memory.
    """

    def __init__(
        self,
        rows: tuple[int, int],
        entries: tuple[int, int],
        rowptr: Tensor,
        col: Tensor,
        num_cols: int,
    ) -> None:
        self.start, self.stop = rows
        self.first, self.last = entries
        self.rowptr, self.col = rowptr, col
        self.num_cols = num_cols
        self._near: Near | None = None

    def rows(self, matrix: Tensor) -> Tensor:
        """The rows of the block, as a view."""
        return matrix[self.start : self.stop]

    def entries(self, values: Tensor | None) -> Tensor | None:
        """The values of the block's entries, as a view."""
        return None if values is None else values[self.first : self.last]

    @property
    def near(self) -> Near:
        """The entries by the columns that appear in the block. Looked up once."""
        if self._near is None:
            self._near = self._renumbered()
        return self._near

    def _renumbered(self) -> Near:
        with torch.inference_mode(False):
            columns, col = torch.unique(self.col, return_inverse=True)
            rowptr = self.rowptr
            largest = max(col.numel(), rowptr.numel(), self.num_cols)
            if col.is_cuda and largest <= MAX_INT32:  # half the memory, for the transpose too
                rowptr, columns = rowptr.int(), columns.int()
            col = col.to(rowptr.dtype)
            trust(rowptr, col, columns.numel(), max_degree(self.rowptr, self.col))
        return Near(columns, rowptr, col)


class _Whole(RowBlock):
    """All rows: nothing is copied, and what is known of the structure is used."""

    def __init__(self, rowptr: Tensor, col: Tensor, num_cols: int) -> None:
        super().__init__((0, rowptr.numel() - 1), (0, col.numel()), rowptr, col, num_cols)
        self._near = Near(None, rowptr, col)


def row_blocks_of(
    rowptr: Tensor, col: Tensor, num_cols: int, limit: int, row_cost: int, entry_cost: int = 0
) -> Sequence[RowBlock]:
    """Cuts a structure into blocks of rows that cost at most `limit`, if a row is not above it.

    They are kept until one of the tensors is changed or given back, and so is what operators
    compute about them. A structure whose contents are replaced (`trust_within`) is one block.

    Args:
        rowptr: Row offsets.
        col: Columns of the entries.
        num_cols: Number of columns.
        limit: What a block may cost.
        row_cost: What a row costs.
        entry_cost: What an entry costs. (default: 0)
    """
    num_rows = rowptr.numel() - 1
    if num_rows * row_cost + col.numel() * entry_cost <= limit or is_replaced(rowptr):
        return [_Whole(rowptr, col, num_cols)]
    check_range(rowptr, col, num_cols)
    kept = structure(rowptr, col).blocks
    key = (num_cols, limit, row_cost, entry_cost)
    if key not in kept:
        kept[key] = _cut(rowptr, col, num_cols, limit, row_cost, entry_cost)
    blocks: Sequence[RowBlock] = kept[key]
    return blocks


def _cut(
    rowptr: Tensor, col: Tensor, num_cols: int, limit: int, row_cost: int, entry_cost: int
) -> Sequence[RowBlock]:
    offsets = rowptr.detach().cpu().numpy()  # all at once: the only time that a GPU is waited for
    cuts = list(
        row_blocks_within(
            limit, len(offsets) - 1, row_cost, offsets if entry_cost else None, entry_cost
        )
    )
    longest = np.maximum.reduceat(np.diff(offsets), [start for start, _ in cuts])
    blocks = []
    # Tensors made in inference mode have no version, so nothing could be kept about them.
    with torch.inference_mode(False):
        for (start, stop), degree in zip(cuts, longest.tolist(), strict=True):
            first, last = int(offsets[start]), int(offsets[stop])
            own_rowptr = rowptr[start : stop + 1] - first
            # Not a view: that would keep `col` alive, with which all this is dropped.
            own_col = col.new_empty(0).set_(
                col.untyped_storage(),
                col.storage_offset() + first * col.stride(0),
                (last - first,),
                col.stride(),
            )
            trust(own_rowptr, own_col, num_cols, degree)
            blocks.append(RowBlock((start, stop), (first, last), own_rowptr, own_col, num_cols))
    return blocks
