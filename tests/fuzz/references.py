"""The operators in plain Python: nothing here uses a kernel, or a sparse library."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
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


def oracle(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Values, positions in the row and node ids, one row and one feature at a time."""
    product_dtype = np.float64 if case.x.dtype == torch.float64 else np.float32
    rowptr, col = case.rowptr.tolist(), case.col.tolist()
    candidates = case.x.double().numpy().astype(product_dtype)[col]
    if case.edge_weight is not None:
        weight = case.edge_weight.double().numpy().astype(product_dtype)
        with np.errstate(invalid="ignore"):
            candidates = weight[:, None] * candidates
    columns = candidates.T.tolist()
    shape = (len(rowptr) - 1, case.x.size(1), case.k)
    filler = [(0.0, -1, -1)] * case.k
    chosen = []

    def rank(candidate: tuple[float, int, int]) -> tuple[bool, float]:
        value = candidate[0]
        return (False, 0.0) if math.isnan(value) else (True, -value)

    for i in range(shape[0]):
        start, stop = rowptr[i], rowptr[i + 1]
        for values in columns:
            row = [(values[e], e - start, col[e]) for e in range(start, stop)]
            if case.compete:
                ranked = sorted(row + filler, key=rank)  # a stable sort: ties keep their order
            else:
                ranked = sorted(row, key=rank) + filler
            chosen += ranked[: case.k]

    def part(number: int, dtype: torch.dtype) -> Tensor:
        flat = torch.tensor([entry[number] for entry in chosen], dtype=dtype)
        return flat.reshape(shape).transpose(1, 2)

    values = part(0, torch.float64).to(case.x.dtype)
    return values, part(1, torch.int32), part(2, case.col.dtype)


def scattered(case: Case, grad: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of ``x`` and of ``edge_weight``: every output's, added to what was chosen for it.

    Sums are exact, hence the same in any order, where the numbers are small integers and halves.
    """
    rowptr, col = case.rowptr.tolist(), case.col.tolist()
    x = case.x.double().tolist()
    weight = None if case.edge_weight is None else case.edge_weight.double().tolist()
    grad_x = [[0.0] * case.x.size(1) for _ in x]
    grad_weight = [0.0] * len(col)
    for i, (row_grad, row) in enumerate(zip(grad.tolist(), position.tolist(), strict=True)):
        for slot_grad, slot in zip(row_grad, row, strict=True):
            for c, (value, p) in enumerate(zip(slot_grad, slot, strict=True)):
                if p < 0:
                    continue
                e = rowptr[i] + p
                grad_x[col[e]][c] += value if weight is None else value * weight[e]
                grad_weight[e] += value * x[col[e]][c]
    shape = tuple(case.x.shape)
    as_x = torch.tensor(grad_x, dtype=torch.float64).reshape(shape).to(case.x.dtype)
    return as_x, torch.tensor(grad_weight, dtype=torch.float64).to(case.x.dtype)


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Equal to the last bit of the number; NaN equals NaN and -0 equals 0."""
    same = actual.shape == expected.shape and actual.dtype == expected.dtype
    if not same or not bool(
        ((actual == expected) | ((actual != actual) & (expected != expected))).all()
    ):
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


# Algorithm 1


def _mix(state: int) -> int:
    """The 64 random bits of a state of SplitMix64."""
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


class Draws:
    """Random numbers: the upper half of 64 bits, scaled to the range asked for."""

    def __init__(self, seed: int) -> None:
        self._state = seed % 2**64

    def below(self, bound: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        return ((_mix(self._state) >> 32) * bound) >> 32

    def sample(self, values: list[int], count: int) -> list[int]:
        """A uniform sample without replacement; the smaller part is the one that is drawn."""
        values = list(values)
        if count <= len(values) // 2:
            for i in range(count):
                j = i + self.below(len(values) - i)
                values[i], values[j] = values[j], values[i]
        else:
            for i in range(len(values) - 1, count - 1, -1):
                j = self.below(i + 1)
                values[i], values[j] = values[j], values[i]
        return values[:count]

    def distinct(self, count: int, bound: int) -> list[int]:
        """Distinct numbers below ``bound``, by Floyd's algorithm."""
        found: list[int] = []
        for top in range(bound - count, bound):
            number = self.below(top + 1)
            found.append(top if number in found else number)
        return found


def algorithm_1(
    neighbors: Sequence[Sequence[int]],
    roots: Iterable[int] | None,
    n_init: int | None,
    max_nodes: int | None,
    max_expand: int | Sequence[int] | None,
    max_hops: int | None,
    seed: int,
) -> list[int]:
    """Algorithm 1 of the paper, with a list for candidateNodes and one for newAddNodes."""
    draws = Draws(seed)
    if roots is None:
        assert n_init is not None
        new = draws.distinct(n_init, len(neighbors))
    else:
        start = sorted(set(roots))
        new = draws.sample(start, len(start) if n_init is None else n_init)
    nodes = list(new)
    hop = 0
    while new and (max_nodes is None or len(nodes) < max_nodes):
        if max_hops is not None and hop >= max_hops:
            break
        limit = max_expand
        if isinstance(max_expand, Sequence):
            if hop >= len(max_expand):
                break
            limit = max_expand[hop]
        met = set(nodes)
        candidates = []
        for node in new:
            for neighbor in neighbors[node]:
                if neighbor not in met:
                    met.add(neighbor)
                    candidates.append(neighbor)
        count = len(candidates)
        if limit is not None:
            count = min(count, limit)
        if max_nodes is not None:
            count = min(count, max_nodes - len(nodes))
        new = draws.sample(candidates, count) if count < len(candidates) else candidates
        nodes += new
        hop += 1
    return sorted(nodes)


def components(num_nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Sizes of the parts that edges in either direction join."""
    parent = list(range(num_nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target in edges:
        parent[root(source)] = root(target)
    sizes: dict[int, int] = {}
    for node in range(num_nodes):
        sizes[root(node)] = sizes.get(root(node), 0) + 1
    return sorted(sizes.values(), reverse=True)
