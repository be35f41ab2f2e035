"""What the operator tests share: random CSR inputs and the k-largest selection in plain Python."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INDEX_DTYPES = (torch.int32, torch.int64)
# All pairs but one, for which Numba would compile everything once more: it has a slow test.
TYPES = [
    (dtype, index_dtype)
    for dtype in DTYPES
    for index_dtype in INDEX_DTYPES
    if (dtype, index_dtype) != (torch.float64, torch.int32)
]
# Few distinct numbers make ties; the rest are the numbers that rankings get wrong.
PALETTE = (-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 0.1, -0.3, math.inf, -math.inf, math.nan)


@dataclass
class Case:
    """Arguments of ``k_largest``."""

    x: Tensor
    rowptr: Tensor
    col: Tensor
    k: int
    edge_weight: Tensor | None
    zeros: str

    @property
    def compete(self) -> bool:
        return self.zeros == "compete"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Bipartite graphs with isolated rows and parallel edges, features and weights with ties."""
    dtype, index_dtype = draw(st.sampled_from(TYPES))
    num_sources = draw(st.integers(0, 9))
    longest = 0 if num_sources == 0 else draw(st.sampled_from((3, 12, 90)))
    degrees = draw(st.lists(st.integers(0, longest), max_size=6))
    channels = draw(st.sampled_from((0, 1, 2, 7, 35)))
    palette = draw(st.lists(st.sampled_from(PALETTE), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    num_edges = sum(degrees)
    x = torch.from_numpy(rng.choice(palette, (num_sources, channels))).to(dtype)
    col = rng.integers(0, max(num_sources, 1), num_edges)
    weight = torch.from_numpy(rng.choice(PALETTE[:8], num_edges)).to(dtype)
    return Case(
        x=x,
        rowptr=torch.tensor([0, *np.cumsum(degrees, dtype=np.int64)], dtype=index_dtype),
        col=torch.from_numpy(col).to(index_dtype),
        k=draw(st.integers(1, 70)),
        edge_weight=weight if draw(st.booleans()) else None,
        zeros=draw(st.sampled_from(("pad", "compete"))),
    )


def oracle(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Values, positions in the row and node ids, one row and one feature at a time."""
    product_dtype = np.float64 if case.x.dtype == torch.float64 else np.float32
    x = case.x.double().tolist()
    rowptr, col = case.rowptr.tolist(), case.col.tolist()
    weight = None if case.edge_weight is None else case.edge_weight.double().tolist()
    shape = (len(rowptr) - 1, case.k, case.x.size(1))
    values = torch.zeros(shape, dtype=torch.float64)
    position = torch.full(shape, -1, dtype=torch.int32)
    index = torch.full(shape, -1, dtype=case.col.dtype)

    def rank(candidate: tuple[float, int, int]) -> tuple[bool, float]:
        value = candidate[0]
        return (False, 0.0) if math.isnan(value) else (True, -value)

    for i in range(shape[0]):
        for c in range(shape[2]):
            candidates = []
            for p, e in enumerate(range(rowptr[i], rowptr[i + 1])):
                value = x[col[e]][c]
                if weight is not None:
                    with np.errstate(invalid="ignore"):
                        value = float(product_dtype(weight[e]) * product_dtype(value))
                candidates.append((value, p, col[e]))
            filler = [(0.0, -1, -1)] * case.k
            if case.zeros == "compete":
                ranked = sorted(candidates + filler, key=rank)  # a stable sort: ties keep order
            else:
                ranked = sorted(candidates, key=rank) + filler
            for s, (value, p, j) in enumerate(ranked[: case.k]):
                values[i, s, c], position[i, s, c], index[i, s, c] = value, p, j
    return values.to(case.x.dtype), position, index


def random_graph(
    num_rows: int,
    num_sources: int,
    mean_degree: float,
    *,
    seed: int = 0,
    index_dtype: torch.dtype = torch.int64,
) -> tuple[Tensor, Tensor]:
    """The CSR structure of a random graph; degrees are Poisson, so some rows are empty."""
    rng = np.random.default_rng(seed)
    degrees = rng.poisson(mean_degree, num_rows)
    col = torch.from_numpy(rng.integers(0, num_sources, degrees.sum())).to(index_dtype)
    return torch.tensor([0, *np.cumsum(degrees)], dtype=index_dtype), col


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Equal to the last bit of the number; NaN equals NaN and -0 equals 0."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
