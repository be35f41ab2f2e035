"""Sorting networks, step by step and as vectors."""

import itertools
from typing import Any

import numba
import numpy as np
import pytest

from lgcn.ops.cpu import networks, simd
from lgcn.ops.cpu.networks import GROUP, LANES, TILE, WORDS

FLOATS = (np.float32, np.float64)
INTEGERS = {np.float32: np.int32, np.float64: np.int64}


@numba.njit
def _put(x: Any, work: Any, at: int, keys: Any, lows: Any) -> None:
    for t in range(TILE):
        line = t * simd.per_line(keys)
        networks.put(
            x,
            work,
            at + t * WORDS,
            simd.load_as_many(keys, line, simd.per_line(keys), simd.line_of_zeros(keys)),
            simd.load_as_many(lows, line, simd.per_line(keys), simd.line_of_zeros(keys)),
        )


@numba.njit
def _get(x: Any, work: Any, at: int, keys: Any, lows: Any) -> None:
    for t in range(TILE):
        line = t * simd.per_line(keys)
        found = networks.get(x, work, at + t * WORDS, simd.line_of_zeros(keys))
        simd.store(keys, line, simd.per_line(keys), found[0])
        simd.store(lows, line, simd.per_line(keys), found[1])


@numba.njit
def _run(x: Any, work: Any, step: int) -> bool:
    for part in range(0, WORDS, 128 // simd.per_line(x)):
        if step == 0:
            networks.sort(x, work, part, part)
        elif step == 1:
            networks.keep(x, work, part, GROUP + part)
        elif step == 2:
            networks.split(x, work, part, GROUP + part, 2 * GROUP + part)
        elif step == 3:
            networks.largest(x, work, part, GROUP + part)
        elif step == 4:
            networks.larger(x, work, part, GROUP + part)
    return networks.any_larger(x, work, 0, GROUP)


def _work() -> Any:
    buffer = np.zeros(3 * GROUP + LANES, np.int64)
    start = -buffer.ctypes.data % simd.CACHE_LINE // buffer.itemsize
    return buffer[start : start + 3 * GROUP]


def _lot(dtype: type, rng: np.random.Generator) -> tuple[Any, Any]:
    """Keys with many ties; no two candidates are equal."""
    shape = (TILE, simd.CACHE_LINE // np.dtype(dtype).itemsize)
    keys = rng.integers(-2, 3, shape).astype(INTEGERS[dtype])
    lows = ~rng.permuted(np.arange(3, 3 + TILE)[:, None].repeat(shape[1], 1), axis=0)
    return keys, lows.astype(keys.dtype)


def _ranked(*lots: tuple[Any, Any]) -> tuple[Any, Any]:
    """All candidates of the lots, the largest first, by NumPy."""
    keys, lows = (np.concatenate(words) for words in zip(*lots, strict=True))
    order = np.lexsort((lows, keys), axis=0)[::-1]
    return np.take_along_axis(keys, order, 0), np.take_along_axis(lows, order, 0)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_steps_sort_all_zeros_and_ones_and_so_everything(count: int) -> None:
    steps = list(networks.sorting_steps(count))
    for bits in itertools.product((0, 1), repeat=count):
        numbers = list(bits)
        for i, j in steps:
            assert i < j
            numbers[i], numbers[j] = max(numbers[i], numbers[j]), min(numbers[i], numbers[j])
        assert numbers == sorted(bits, reverse=True)


@pytest.mark.parametrize("count", [2, 8, 16])
def test_the_steps_merge_what_falls_and_then_rises(count: int) -> None:
    steps = list(networks.merging_steps(count))
    for falling, zeros in itertools.product(range(count + 1), repeat=2):
        bits = ([1] * falling + [0] * zeros + [1] * count)[:count]
        numbers = list(bits)
        for i, j in steps:
            numbers[i], numbers[j] = max(numbers[i], numbers[j]), min(numbers[i], numbers[j])
        assert numbers == sorted(bits, reverse=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_candidates_are_found_as_they_were_put(dtype: type) -> None:
    work, x = _work(), np.empty(0, dtype)
    keys, lows = _lot(dtype, np.random.default_rng(0))
    _put(x, work, GROUP, keys.reshape(-1), lows.reshape(-1))
    found = np.zeros_like(keys), np.zeros_like(lows)
    _get(x, work, GROUP, found[0].reshape(-1), found[1].reshape(-1))
    assert (found[0] == keys).all()
    assert (found[1] == lows).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("step", ["sort", "keep", "split", "largest", "larger"])
def test_networks_rank_as_numpy_does(dtype: type, step: str) -> None:
    rng, x = np.random.default_rng(0), np.empty(0, dtype)
    for _ in range(5):
        work, first, second = _work(), _lot(dtype, rng), _lot(dtype, rng)
        second = second[0], (second[1] - TILE).astype(second[1].dtype)  # later positions
        if step in ("keep", "split"):
            first, second = _ranked(first), _ranked(second)
        for at, lot in ((0, first), (GROUP, second)):
            _put(x, work, at, lot[0].reshape(-1), lot[1].reshape(-1))
        _run(x, work, ["sort", "keep", "split", "largest", "larger"].index(step))
        ranked = _ranked(first) if step in ("sort", "largest") else _ranked(first, second)
        expected = {
            "sort": [(0, slice(TILE), ranked, slice(TILE))],
            "keep": [(0, slice(TILE), ranked, slice(TILE))],
            "split": [
                (0, slice(TILE), ranked, slice(TILE)),
                (2 * GROUP, slice(TILE), ranked, slice(TILE, 2 * TILE)),
            ],
            "largest": [(GROUP, slice(1), ranked, slice(1))],
            "larger": [
                (0, slice(1), _ranked(*[(k[:1], low[:1]) for k, low in (first, second)]), slice(1))
            ],
        }[step]
        for at, rows, (keys, lows), wanted in expected:
            found = np.zeros_like(first[0]), np.zeros_like(first[1])
            _get(x, work, at, found[0].reshape(-1), found[1].reshape(-1))
            assert (found[0][rows] == keys[wanted]).all()
            assert (found[1][rows] == lows[wanted]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_larger_candidate_in_one_lane_is_noticed(dtype: type) -> None:
    work, x = _work(), np.empty(0, dtype)
    for at in (0, GROUP):
        _put(x, work, at, *(np.zeros(TILE * 16, INTEGERS[dtype]) for _ in range(2)))
    assert not _run(x, work, 5)
    keys = np.zeros(TILE * 16, INTEGERS[dtype])
    keys[1] = 1
    _put(x, work, 0, keys, np.zeros_like(keys))
    assert _run(x, work, 5)
