"""Vectors in Numba kernels, against NumPy."""

import hashlib
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from lgcn.ops.cpu import kernels, simd

FLOATS = (np.float32, np.float64)


@numba.njit
def _copy(source: Any, target: Any, at: int, width: int) -> None:
    simd.store(target, at, width, simd.load(source, at, width))


@numba.njit
def _compare(a: Any, b: Any, out: Any, lanes: int) -> bool:
    left, right = simd.load(a, 0, lanes), simd.load(b, 0, lanes)
    simd.store(out, 0, lanes, simd.larger(left, right))
    simd.store(out, lanes, lanes, simd.smaller(left, right))
    one = simd.filled(left, 1)
    two = simd.filled(left, 2)
    simd.store(out, 2 * lanes, lanes, simd.where_greater(left, right, one, two))
    return simd.any_greater(left, right)


@numba.njit
def _keys(x: Any, factor: Any, keys: Any, bits: Any, lanes: int) -> None:
    ranked = simd.ranking_keys(simd.load(x, 0, lanes), factor)
    simd.store(keys, 0, lanes, ranked)
    simd.store(bits, 0, lanes, simd.bits_of_keys(ranked))


@numba.njit
def _scatter(
    rows: Any, limit: int, numbers: Any, put: Any, added: Any, pitch: int, width: int
) -> None:
    vector = simd.load(numbers, 0, numbers.shape[0])
    at = simd.load_as_many(rows, 0, rows.shape[0], vector)
    simd.put_at(put, at, limit, pitch, width, vector)
    simd.add_at(added, at, limit, pitch, width, vector)
    simd.store(numbers, 0, numbers.shape[0], simd.add_product(vector, vector, 2))


def test_kernels_are_compiled_again_when_the_vectors_change() -> None:
    source = Path(simd.__file__).read_bytes()
    assert hashlib.sha256(source).hexdigest()[:16] == kernels.SIMD_DIGEST


@pytest.mark.parametrize("source", [np.int32, np.int64])
@pytest.mark.parametrize("target", [np.int8, np.int16, np.int32, np.int64])
def test_stores_the_first_numbers_and_touches_no_other(source: type, target: type) -> None:
    lanes = simd.VECTOR_BYTES // np.dtype(source).itemsize
    numbers = np.arange(-9, 2 * lanes, dtype=source)
    for width in (0, 1, 7, lanes - 1, lanes):
        out = np.full(numbers.shape, 99, target)
        _copy(numbers, out, 5, width)
        expected = np.full(numbers.shape, 99, target)
        expected[5 : 5 + width] = numbers[5 : 5 + width]
        assert (out == expected).all()


@numba.njit
def _store_sized(memory: Any, size: int, at: int, numbers: Any) -> None:
    simd.store_sized(memory, size, at, simd.load(numbers, 0, numbers.shape[0]))


@pytest.mark.parametrize("target", [np.int8, np.int16, np.int32, np.int64])
def test_stores_integers_of_any_size_in_bytes(target: type) -> None:
    numbers = np.arange(-9, 23, dtype=np.int32)
    out = np.full(40, 99, target)
    _store_sized(out.view(np.uint8), out.itemsize, 5, numbers)
    assert (out[5:37] == numbers).all()
    assert (out[[*range(5), 37, 38, 39]] == 99).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_comparisons(dtype: type) -> None:
    lanes = simd.VECTOR_BYTES // np.dtype(dtype).itemsize
    a, b = np.random.default_rng(0).integers(-3, 4, (2, lanes)).astype(dtype)
    out = np.empty(3 * lanes, dtype)
    assert _compare(a, b, out, lanes)
    expected = np.concatenate([np.maximum(a, b), np.minimum(a, b), np.where(a > b, 1, 2)])
    assert (out == expected).all()
    assert not _compare(a, a, out, lanes)
    one_larger = a.copy()
    one_larger[-1] += 1
    assert _compare(one_larger, a, out, lanes)


@pytest.mark.parametrize("dtype", FLOATS)
def test_keys_sort_as_the_products_do(dtype: type) -> None:
    lanes = simd.VECTOR_BYTES // np.dtype(dtype).itemsize
    integer = np.int32 if dtype == np.float32 else np.int64
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40]
    x = np.append(special, np.linspace(-3, 3, lanes - len(special))).astype(dtype)
    keys, bits = np.empty(lanes, integer), np.empty(lanes, integer)
    _keys(x, dtype(-0.5), keys, bits, lanes)
    product = dtype(-0.5) * x
    is_nan = np.isnan(product)
    assert (keys[is_nan] == np.iinfo(integer).max).all()
    assert (keys[~is_nan] < np.iinfo(integer).max).all()
    assert (keys > np.iinfo(integer).min).all()  # which marks an empty slot
    ordered = product[~is_nan][:, None] > product[~is_nan]
    assert (ordered == (keys[~is_nan][:, None] > keys[~is_nan])).all()
    np.testing.assert_array_equal(bits.view(dtype), product)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("limit", [3, 1 << 40])
def test_scatters_skip_rows_outside_the_limits_and_what_is_beyond_the_width(
    dtype: type, index: type, limit: int
) -> None:
    lanes = simd.VECTOR_BYTES // np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 4, lanes).astype(index)
    numbers = rng.random(lanes).astype(dtype)
    before = rng.random((4, lanes + 3)).astype(dtype)
    for width in (0, 5, lanes):
        put, added = before.copy(), before.copy()
        factors = numbers.copy()
        _scatter(rows, limit, factors, put.reshape(-1), added.reshape(-1), lanes + 3, width)
        expected_put, expected_added = before.copy(), before.copy()
        for lane in range(width):
            if 0 <= rows[lane] < limit:
                expected_put[rows[lane], lane] = numbers[lane]
                expected_added[rows[lane], lane] += numbers[lane]
        assert (put == expected_put).all()
        assert (added == expected_added).all()
        assert (factors == numbers + 2 * numbers).all()
