"""Random CSR structures of any size, made on the device that uses them, and PyG's form of them."""

from typing import NamedTuple

import torch
from torch import Tensor

from lgcn import Graph


class Structure(NamedTuple):
    """Row i has the neighbours ``col`` from rowptr[i] to rowptr[i + 1]."""

    rowptr: Tensor
    col: Tensor

    @property
    def num_nodes(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def num_edges(self) -> int:
        return self.col.numel()

    @property
    def max_degree(self) -> int:
        return int(self.rowptr.diff().max())

    def row(self) -> Tensor:
        """The row of every entry."""
        nodes = torch.arange(self.num_nodes, device=self.col.device, dtype=self.col.dtype)
        return nodes.repeat_interleave(self.rowptr.diff(), output_size=self.num_edges)


def random_graph(
    num_nodes: int,
    mean_degree: float,
    *,
    degrees: str = "poisson",
    distinct: bool = False,
    device: str = "cpu",
    dtype: torch.dtype = torch.int64,
) -> Structure:
    """A graph whose rows have random neighbours.

    Args:
        degrees: "poisson"; or "skewed", log-normal with sigma 1, so that there are hubs.
        distinct: Every neighbour at most once per row, for code without parallel edges.
    """
    generator = torch.Generator(device).manual_seed(0)
    if degrees == "poisson":
        rates = torch.full((num_nodes,), float(mean_degree), device=device)
        counts = torch.poisson(rates, generator=generator)
    elif degrees == "skewed":
        weights = torch.randn(num_nodes, device=device, generator=generator).exp()
        counts = (weights * (mean_degree / weights.mean())).round()
    else:
        raise ValueError(f"degrees must be poisson or skewed, got {degrees!r}")
    rowptr = _rowptr(counts, dtype)
    col = torch.randint(
        num_nodes, (int(rowptr[-1]),), device=device, dtype=dtype, generator=generator
    )
    graph = Structure(rowptr, col)
    if not distinct:
        return graph
    entry = torch.unique(graph.row().long() * num_nodes + col)
    counts = torch.bincount(entry // num_nodes, minlength=num_nodes)
    return Structure(_rowptr(counts, dtype), (entry % num_nodes).to(dtype))


def csr_matrix(graph: Graph | Structure) -> Tensor:
    """The graph as PyG's layers take it fastest: a CSR matrix of ones."""
    ones = torch.ones(graph.col.numel(), device=graph.col.device)
    size = (graph.num_nodes, graph.num_nodes)
    return torch.sparse_csr_tensor(graph.rowptr, graph.col, ones, size, check_invariants=False)


def star(num_leaves: int, device: str, dtype: torch.dtype) -> Structure:
    """Node 0 has all others as neighbours, and each of them has node 0."""
    leaves = torch.arange(1, num_leaves + 1, device=device, dtype=dtype)
    counts = torch.ones(num_leaves + 1, device=device)
    counts[0] = num_leaves
    return Structure(_rowptr(counts, dtype), torch.cat([leaves, torch.zeros_like(leaves)]))


def _rowptr(counts: Tensor, dtype: torch.dtype) -> Tensor:
    ends = counts.long().cumsum(0)
    return torch.cat([ends.new_zeros(1), ends]).to(dtype)
