"""Matrices that are computed by blocks of rows, so that a graph of any size fits in memory.

A block of rows of one layer needs the whole output of the layer before it and nothing else. A
network therefore describes its computation once, in terms of its layers. Called with tensors, the
layers compute. Called with `Rows` in place of the features, they only describe how a block of rows
is computed and what memory that takes; `lgcn.nn.layerwise` then computes block after block.

A layer takes part by deriving from `RowLayer` and describing itself in `rows`. A model takes part
by having the methods of `RowModel`: its `rows` calls the layers as its `forward` does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol, TypedDict, TypeVar, runtime_checkable

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.graph.csr import CSR

Matrix = TypeVar("Matrix", Tensor, "Rows")


class AdjacencyOptions(TypedDict):
    """The arguments of `lgcn.Graph.adjacency`."""

    normalize: bool
    self_loops: bool


class Workspace(Protocol):
    """Where blocks are computed and whole matrices are kept."""

    graph: Graph
    device: torch.device
    step: str  # the name of the layer that is being described, else ""
    total_rows: int  # of the whole matrix, of which other processes may compute a part

    def inside(self, layer: Module) -> AbstractContextManager[None]:
        """Names the layer that is being described."""
        ...

    @property
    def reverse(self) -> bool:
        """Whether the layer that is being described reads the reversed graph."""
        ...

    def reversed(self) -> AbstractContextManager[None]:
        """Lets the layers that are being described read the reversed graph."""
        ...

    @property
    def rowptr(self) -> Any:
        """The row offsets of the adjacency, for `Rows`."""
        ...

    def store(self, name: str, rows: Rows) -> Tensor:
        """Computes all rows and keeps them, on the CPU."""
        ...

    def complete(self, name: str, matrix: Tensor) -> None:
        """Fills in the rows of a kept matrix that other processes have computed."""
        ...

    def column_sums(self, matrix: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The sum over all rows of a function of them, in double precision, by blocks.

        Args:
            matrix: A kept matrix.
            function: Treats each row on its own, and keeps the number of columns.
        """
        ...

    def source(self, matrix: Tensor) -> Tensor:
        """A whole matrix from which blocks read the rows of neighbours."""
        ...

    def neighbours(
        self, source: Tensor, start: int, stop: int, adjacency: AdjacencyOptions, reverse: bool
    ) -> tuple[Tensor, CSR]:
        """What a block reads: features of neighbours, and the rows of the adjacency to them."""
        ...

    def factors(
        self,
        of_features: Callable[[Tensor | None], Tensor],
        start: int,
        stop: int,
        adjacency: AdjacencyOptions,
        reverse: bool,
    ) -> Tensor:
        """The factors of these rows' entries by their edge features; 1 for added self-loops."""
        ...


class Rows:
    """A matrix with one row per node, described by how a block of its rows is computed.

    Args:
        work: Where the blocks are computed.
        compute: Returns the rows from `start` up to `stop`.
        width: Columns of the matrix.
        values: Values held per row while a block is computed, without the result.
        rowptr: Row offsets of the sparse matrix that a block reads, whose entries take memory too,
            in a form that the workspace knows. (default: none)
        at_hand: Whether rows are read rather than computed, so that they need not be stored.
            (default: `False`)
    """

    def __init__(
        self,
        work: Workspace,
        compute: Callable[[int, int], Tensor],
        width: int,
        values: int,
        rowptr: Any = None,
        *,
        at_hand: bool = False,
        name: str = "",
    ) -> None:
        self.work = work
        self.compute = compute
        self.width = width
        self.values = values
        self.rowptr = rowptr
        self.at_hand = at_hand
        self.name = work.step or name  # that of the layer, for reports of progress
        self._matrix: Tensor | None = None
        self._is_complete = False

    def check_width(self, in_channels: int) -> None:
        """Raises UsageError if a layer takes another number of columns."""
        if self.width != in_channels:
            raise UsageError(
                f"{self.name} of {self.work.graph.name} must have in_channels = {in_channels} "
                f"columns, got {self.width}"
            )

    def then(
        self, function: Callable[[Tensor], Tensor], *, width: int | None = None, values: int = 0
    ) -> Rows:
        """These rows after a function that treats each row on its own.

        Args:
            function: Maps a block of rows to a block of as many rows.
            width: Columns that it returns. (default: as many as it gets)
            values: Values per row that it needs in addition. (default: 0)
        """
        compute = self.compute
        return Rows(
            self.work,
            lambda start, stop: function(compute(start, stop)),
            self.width if width is None else width,
            self.values + values,
            self.rowptr,
            name=self.name,
        )

    def from_neighbours(
        self,
        function: Callable[..., Tensor],
        adjacency: AdjacencyOptions,
        *,
        width: int,
        values: int,
        own: Rows | None = None,
        factor: Callable[[Tensor | None], Tensor] | None = None,
    ) -> Rows:
        """What a function makes of the rows of each node's neighbours. Stores these rows first.

        Args:
            function: Takes features of neighbours, the block's own rows, and the block's rows of
                the adjacency, whose columns number the neighbours; with `factor`, also the factors
                of their entries; returns the block.
            adjacency: Which adjacency that is.
            width: Columns that it returns.
            values: Values per row that it needs.
            own: The matrix of the block's own rows. (default: this one)
            factor: Makes the factors of entries from their edge features. (default: all are one)
        """
        work, matrix = self.work, self.matrix()
        if not self._is_complete:
            work.complete(self.name, matrix)
            self._is_complete = True
        before = self if own is None else own
        source = cache(lambda: work.source(matrix))
        reverse = work.reverse

        def compute(start: int, stop: int) -> Tensor:
            near, rows = work.neighbours(source(), start, stop, adjacency, reverse)
            own_rows = before.compute(start, stop)
            if factor is None:
                return function(near, own_rows, rows)
            mask = work.factors(factor, start, stop, adjacency, reverse)
            return function(near, own_rows, rows, mask)

        return Rows(work, compute, width, values, work.rowptr, name=self.name)

    def beside(self, right: Rows) -> Rows:
        """The columns of this matrix, followed by those of another."""
        left, width = self, self.width + right.width

        def compute(start: int, stop: int) -> Tensor:
            return torch.cat([left.compute(start, stop), right.compute(start, stop)], dim=1)

        values = left.values + right.values + width
        return Rows(self.work, compute, width, values, right.rowptr, name=right.name)

    def plus(self, other: Rows) -> Rows:
        """The sum of this matrix and another of the same width."""
        left = self

        def compute(start: int, stop: int) -> Tensor:
            return left.compute(start, stop) + other.compute(start, stop)

        values = left.values + other.values + 2 * left.width
        return Rows(self.work, compute, left.width, values, left.rowptr, name=left.name)

    def stored(self, part: str = "") -> Rows:
        """This matrix, with all its rows computed and kept, unless that is done already.

        Args:
            part: What this part of a layer's work is called in reports of progress.
                (default: the layer's name alone)
        """
        if not self.at_hand:
            self._store(f"{self.name}, {part}" if part else self.name)
        return self

    def matrix(self) -> Tensor:
        """All rows as one tensor on the CPU."""
        if self._matrix is None:
            self._store(self.name)
        assert self._matrix is not None
        return self._matrix

    def _store(self, name: str) -> None:
        matrix, device = self.work.store(name, self), self.work.device
        self._matrix, self.at_hand = matrix, True
        # What they were computed from is let go.
        self.compute = lambda start, stop: matrix[start:stop].to(device)
        self.values, self.rowptr = self.width, None


class RowLayer(Module):
    """A layer that computes with tensors in `forward`, and describes that for blocks in `rows`."""

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """`forward`, or `rows` if the features are `Rows`."""
        if isinstance(x, Rows):
            self.check_blocks()
            with x.work.inside(self):
                return self.rows(x)
        return super().__call__(x, *args, **kwargs)

    def check_blocks(self) -> None:
        """Raises UsageError if the layer is in a state that `rows` does not describe."""

    @abstractmethod
    def rows(self, x: Rows) -> Rows:
        """Describes how a block of the output is computed, in evaluation mode."""

    def working_values(self, num_rows: int) -> int:
        """Values that `forward` holds beside input and output, without gradients."""
        return 0


@runtime_checkable
class RowModel(Protocol):
    """A model that `lgcn.nn.layerwise.layerwise` can compute."""

    def rows(self, x: Rows, *, layer: int | None = None) -> Rows:
        """The scores of the nodes, or their embeddings after a layer, from the features `x`."""
        ...

    def forward_values(self, num_rows: int) -> tuple[int, int]:
        """Values that `forward` holds without gradients: after the first layer, and at most."""
        ...


def concat(left: Matrix, right: Matrix) -> Matrix:
    """Puts two matrices side by side."""
    if isinstance(left, Rows):
        return left.beside(right)
    return torch.cat([left, right], dim=1)


def row_wise(function: Callable[[Tensor], Tensor], x: Matrix) -> Matrix:
    """Applies a function that treats each row on its own, such as an activation."""
    return x.then(function) if isinstance(x, Rows) else function(x)
