"""The forms of a graph's adjacency: normalised, with self-loops, by rows, as edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lgcn.graph.csr import CSR, add_self_loops, has_self_loop, one_index_dtype, row_sums
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import check_range, state_of


class Adjacency:
    """Four tensors of a graph, and a cache of what was computed from them.

    The cache belongs to these tensors. Graphs with the same four tensors share it, and a graph in
    which one of them differs has its own (`of`). If a tensor is changed in place, everything
    is computed again. If `edge_weight` or `degree` requires a gradient, nothing that depends on
    them is kept, since each backward pass needs its own autograd graph. Several threads may use one
    object; at worst, two of them compute the same thing.

    Args:
        rowptr, col, edge_weight, degree: See `lgcn.Graph`.
        trusted: Whether `rowptr` and `col` are known to be valid, so that they are not read to
            check them. (default: `False`)
    """

    def __init__(
        self,
        rowptr: Tensor,
        col: Tensor,
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        self.rowptr, self.col = rowptr, col
        self.edge_weight, self.degree = edge_weight, degree
        self.trusted = trusted
        # One tuple: no thread sees the states of one moment with the results of another.
        self._kept: tuple[tuple[Any, ...], dict[Any, Any]] = ((), {})

    def of(
        self, rowptr: Tensor, col: Tensor, edge_weight: Tensor | None, degree: Tensor | None
    ) -> Adjacency:
        """Returns this object if it has these very tensors, else a new one."""
        same = self.rowptr is rowptr and self.col is col
        if same and self.edge_weight is edge_weight and self.degree is degree:
            return self
        return Adjacency(rowptr, col, edge_weight, degree, trusted=same and self.trusted)

    def matrix(self, *, normalize: bool, self_loops: bool) -> CSR:
        """See `lgcn.Graph.adjacency`."""
        if self._is_learned:
            return self._matrix(normalize, self_loops)
        key = ("matrix", normalize, self_loops)
        found: CSR = self.once(key, lambda: self._matrix(normalize, self_loops))
        return found

    def edges(self, *, normalize: bool, self_loops: bool) -> tuple[Tensor, Tensor | None]:
        """See `lgcn.Graph.edges`."""

        def make() -> tuple[Tensor, Tensor | None]:
            matrix = self.matrix(normalize=normalize, self_loops=self_loops)
            source, target = matrix.col.long(), row_of_entry(matrix.rowptr).long()
            return torch.stack([source, target]), matrix.weight

        if self._is_learned:
            return make()
        found: tuple[Tensor, Tensor | None] = self.once(("edges", normalize, self_loops), make)
        return found

    def rows(self, start: int, stop: int, *, normalize: bool, self_loops: bool) -> CSR:
        """See `lgcn.Graph.adjacency_rows`."""
        num_nodes = self.rowptr.numel() - 1
        if not 0 <= start <= stop <= num_nodes:
            raise ValueError(
                f"rows must lie between 0 and {num_nodes}, got start {start} and stop {stop}"
            )
        check_range(self.rowptr, self.col, num_nodes)  # cheap unless they changed
        matrix = CSR(self.rowptr, self.col, self.edge_weight).rows(start, stop)
        if self_loops:
            matrix = add_self_loops(matrix, start)
        if normalize:
            degree = self.row_degree()
            own, other = degree[start:stop], degree[matrix.col]
            if self_loops:
                looped = self._self_loops()
                if looped is None:
                    own, other = own + 1, other + 1
                else:
                    own, other = own + ~looped[start:stop], other + ~looped[matrix.col]
            weight = inverse_root(own)[row_of_entry(matrix.rowptr)] * inverse_root(other)
            matrix = matrix._replace(weight=weight * matrix.values(weight.dtype))
        return matrix

    def row_degree(self) -> Tensor:
        """`degree` if it is given, else the sum of each row."""
        if self.degree is not None:
            return self.degree
        if self._is_learned:
            return self._row_sums()
        found: Tensor = self.once("row_degree", self._row_sums)  # many sub-graphs need it
        return found

    def _matrix(self, normalize: bool, self_loops: bool) -> CSR:
        check_range(self.rowptr, self.col, self.rowptr.numel() - 1)  # cheap unless they changed
        matrix = CSR(*one_index_dtype(self.rowptr, self.col), self.edge_weight)
        degree = self.degree if self.degree is not None else row_sums(matrix)
        if self_loops:
            looped = add_self_loops(matrix)
            degree = degree + (looped.rowptr.diff() - matrix.rowptr.diff())
            matrix = looped
        if normalize:
            scale = inverse_root(degree)
            weight = scale[row_of_entry(matrix.rowptr)] * scale[matrix.col]
            matrix = matrix._replace(weight=weight * matrix.values(weight.dtype))
        return matrix

    def _row_sums(self) -> Tensor:
        return row_sums(CSR(self.rowptr, self.col, self.edge_weight))

    def _self_loops(self) -> Tensor | None:
        """A mask of the nodes that have a self-loop, or `None` if no node has one."""

        def make() -> Tensor | None:
            looped = has_self_loop(self.rowptr, self.col)
            return looped if bool(looped.any()) else None

        found: Tensor | None = self.once("self_loops", make)
        return found

    @property
    def _is_learned(self) -> bool:
        return any(t is not None and t.requires_grad for t in (self.edge_weight, self.degree))

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Returns `make()`, computed again only if a tensor has changed."""
        kept = self._kept
        if not torch.compiler.is_compiling():  # a compiled model does not see addresses
            tensors = (self.rowptr, self.col, self.edge_weight, self.degree)
            states = tuple(None if tensor is None else state_of(tensor) for tensor in tensors)
            if kept[0] != states:
                kept = self._kept = (states, {})
        if key not in kept[1]:
            kept[1][key] = make()
        return kept[1][key]


def inverse_root(degree: Tensor) -> Tensor:
    """One over the square root of each degree, 0 if the degree is zero or less."""
    none = degree <= 0
    # Not in place, and no infinite slope at zero: the weights may be learned.
    return torch.where(none, 0, torch.where(none, 1, degree).rsqrt())
