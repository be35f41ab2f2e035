"""Kernels that run on several threads: every task is done once, and errors reach the caller."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn.utils.jit import jit_parallel
from lgcn.utils.share import share

pytestmark = pytest.mark.filterwarnings("ignore:.*Numba's cache")


class Pair(NamedTuple):
    factor: Any
    shift: int


@jit_parallel
def add_line(pair: Pair, times: int, out: Any, part: Any) -> None:
    for i in share(out.shape[0], part):
        for _ in range(times):
            out[i] += pair.factor[i] * i + pair.shift


@jit_parallel
def allocate(size: int, done: Any, part: Any) -> None:
    for i in share(done.shape[0], part):
        done[i] = np.zeros(size, np.uint8).shape[0] if i % 2 else 1


@jit_parallel
def refuse(done: Any, part: Any) -> None:
    for i in share(done.shape[0], part):
        if i == 5:
            raise ValueError("five")
        done[i] = 1


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@given(count=st.integers(0, 300), threads=st.integers(1, numba.config.NUMBA_NUM_THREADS))
def test_every_task_is_done_once(count: int, threads: int) -> None:
    numba.set_num_threads(threads)
    factor = np.arange(count) + 2.0
    out = np.zeros(count)
    add_line(Pair(factor, 7), 3, out)
    assert (out == 3 * (factor * np.arange(count) + 7)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_that_runs_out_on_a_thread_is_a_memory_error(threads: int) -> None:
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    done = np.zeros(8, np.int64)
    with pytest.raises(MemoryError):
        allocate(1 << 60, done)
    allocate(3, done)  # the next call is a new one
    assert done.tolist() == [1, 3] * 4


def test_the_exception_of_a_task_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="five"):
        refuse(np.zeros(8))
    done = np.zeros(5)
    refuse(done)
    assert done.all()


def test_a_kernel_is_compiled_once_for_all_numbers_of_threads() -> None:
    for threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        numba.set_num_threads(threads)
        refuse(np.zeros(5, np.float32))
    signatures = [signature for signature in refuse.signatures if "float32" in str(signature)]
    assert len(signatures) == 1


def test_a_kernel_without_a_part_is_refused() -> None:
    def no_part(out: Any) -> None:
        out[:] = 1

    with pytest.raises(TypeError, match="no_part must be part"):
        jit_parallel(no_part)
