"""A path of four nodes, and adjacencies as dense matrices."""

from collections.abc import Callable

import torch
from torch import Tensor

from lgcn import Graph
from lgcn.graph.csr import CSR

RandomGraph = Callable[..., Graph]
PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 -> 1 -> 2 -> 3


def dense(matrix: CSR, num_cols: int | None = None) -> Tensor:
    """The matrix, filled in entry by entry; parallel entries add up."""
    num_rows = matrix.rowptr.numel() - 1
    out = torch.zeros(num_rows, num_rows if num_cols is None else num_cols)
    for i in range(num_rows):
        for e in range(int(matrix.rowptr[i]), int(matrix.rowptr[i + 1])):
            out[i, matrix.col[e]] += 1 if matrix.weight is None else matrix.weight[e]
    return out


def cliques(count: int, size: int = 10, **fields: object) -> Graph:
    """Complete graphs in a ring, each joined with the next by one edge."""
    inside = [
        (c * size + i, c * size + j) for c in range(count) for i in range(size) for j in range(i)
    ]
    between = [(c * size, (c + 1) % count * size + 1) for c in range(count)]
    edge_index = torch.tensor(inside + between).t()
    x = torch.arange(count * size).float()[:, None]
    return Graph.from_edge_index(edge_index, x=x, **fields)
