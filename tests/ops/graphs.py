"""What the operator tests share: random CSR inputs; the plain Python of ``fuzz.references``."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from tests.fuzz.references import DTYPES, INDEX_DTYPES, PALETTE, TYPES, Case, assert_same, oracle

__all__ = [
    "DTYPES",
    "INDEX_DTYPES",
    "PALETTE",
    "TYPES",
    "Case",
    "assert_same",
    "cases",
    "oracle",
    "random_graph",
]


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
