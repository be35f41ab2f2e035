"""Index arrays of any numbers: valid ones are used, all others refused."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from lgcn import Graph, select_subgraph
from lgcn.ops import k_largest, spmm

from ..references import Case, assert_same, oracle
from ..rules import Refused, wrong
from ..source import Source


def is_sound(rowptr: list[int], col: list[int], num_cols: int) -> bool:
    """Compares Python integers, which cannot overflow."""
    return (
        rowptr[:1] == [0]
        and rowptr == sorted(rowptr)
        and rowptr[-1] == len(col)
        and all(0 <= node < num_cols for node in col)
    )


def fitting(values: list[int], dtype: torch.dtype) -> Tensor:
    """The values; those outside the type wrap around."""
    return torch.tensor(values, dtype=torch.int64).to(dtype)


def some_rowptr(source: Source, num_rows: int, num_edges: int) -> list[int]:
    """Mostly a row pointer with at most one wrong number."""
    if source.below(8) == 7:
        return [source.integer() for _ in range(source.below(8))]
    inner = sorted(source.between(0, num_edges) for _ in range(max(0, num_rows - 1)))
    rowptr = [0, *inner, num_edges] if num_rows else [0]
    for _ in range(source.choice((0, 0, 1, 1, 2))):
        rowptr[source.below(len(rowptr))] = source.integer()
    return rowptr


def some_col(source: Source, num_edges: int, num_cols: int) -> list[int]:
    col = [source.below(max(1, num_cols)) for _ in range(num_edges)]
    if col and source.below(4) == 3:
        col[source.below(len(col))] = source.integer()
    return col


def index_arrays_target(source: Source) -> None:
    """The operators and :class:`Graph` on index arrays that may be replaced between two calls."""
    dtype = source.choice((torch.int32, torch.int64))
    num_rows, num_edges, num_cols = source.below(6), source.below(7), source.below(6)
    kind = source.below(4)
    if kind >= 2:
        num_cols = num_rows
    rowptr = fitting(some_rowptr(source, num_rows, num_edges), dtype)
    col = fitting(some_col(source, num_edges, num_cols), dtype)
    if kind >= 2:
        as_graph(source, rowptr, col)
        return
    x = torch.arange(float(2 * num_cols)).reshape(num_cols, 2)
    refused: Refused | None = None
    for turn in range(2):
        if turn == 1:
            if not source.flag():
                break
            replace_contents(source, rowptr, col, num_cols)
        try:
            use(kind, x, rowptr, col)
        except Refused as error:
            refused = error
    if refused is not None:
        raise refused


def replace_contents(source: Source, rowptr: Tensor, col: Tensor, num_cols: int) -> None:
    """Other numbers in the same two tensors, by an assignment or in place."""
    new_col = fitting(some_col(source, col.numel(), num_cols), col.dtype)
    new_rowptr = some_rowptr(source, max(0, rowptr.numel() - 1), col.numel())
    fitted = fitting(new_rowptr, rowptr.dtype)
    way = source.below(4)
    if way == 0:
        rowptr.data = fitted
    elif way == 1:
        col.data = new_col
    elif way == 2 and fitted.shape == rowptr.shape:
        rowptr.copy_(fitted)
    else:
        col.copy_(new_col)


def use(kind: int, x: Tensor, rowptr: Tensor, col: Tensor) -> None:
    def call() -> Any:
        if kind == 0:
            return k_largest(x, rowptr, col, 2)
        return spmm(rowptr, col, torch.ones(col.numel()), x)

    if not is_sound(rowptr.tolist(), col.tolist(), x.size(0)):
        wrong(call)
    result = call()
    if kind == 0:
        values, _, index = oracle(Case(x, rowptr, col, 2, None, "pad"))
        assert_same(result[0], values)
        assert_same(result[1], index)
    else:
        bounds = rowptr.tolist()
        rows = [x[col[a:b].long()].sum(0) for a, b in pairwise(bounds)]
        assert_same(result, torch.stack(rows) if rows else x.new_zeros(0, 2))


def as_graph(source: Source, rowptr: Tensor, col: Tensor) -> None:
    num_nodes = rowptr.numel() - 1
    if not is_sound(rowptr.tolist(), col.tolist(), num_nodes):
        wrong(lambda: Graph(rowptr, col))
    graph = Graph(rowptr, col)
    if num_nodes == 0:
        return
    nodes = select_subgraph(graph, n_init=1, max_nodes=3, seed=source.below(100))
    part = graph.subgraph(nodes)
    assert part.num_nodes == len(nodes) <= 3
    graph.adjacency(normalize=True, self_loops=True)
