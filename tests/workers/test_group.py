"""What processes tell each other, with one, two and three of them."""

import json
import os
import signal
import time
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.workers import WorkerError, Workers, connected

from .processes import in_group, run_processes, run_workers

SIZES = (1, 2, 3)
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)


def everything(workers: Workers, messages: list[Any]) -> dict[str, Any]:
    """Every method once; a group costs more than its messages."""
    rank, size = workers.rank, workers.size
    given = torch.full((2, 3), float(rank + 1), dtype=torch.float64)
    total = workers.sum(given, "numbers")
    workers.barrier("all")
    workers.agree({"seed": 3, "folder": "run"})
    return {
        "who": (rank, size, workers.is_first),
        "sum": total.tolist(),
        "given": given.tolist(),
        "shared": [workers.share(messages[rank], "a message", source) for source in range(size)],
        "collected": workers.collect(messages[rank], "messages"),
    }


@pytest.mark.parametrize("size", SIZES)
def test_all_ranks_get_sums_and_messages(size: int):
    messages = [{"rank": 0, "name": "é" * 1000}, [], None][:size]
    for rank, found in enumerate(run_workers(everything, size, messages)):
        assert found["who"] == (rank, size, rank == 0)
        assert found["sum"] == [[sum(range(1, size + 1))] * 3] * 2
        assert found["given"] == [[rank + 1] * 3] * 2  # not changed
        assert found["shared"] == found["collected"] == messages


def part(source: int, target: int, dtype: torch.dtype, rows: int) -> Tensor:
    generator = torch.Generator().manual_seed(100 * source + 10 * target + rows)
    return torch.randint(0, 2, (rows, 2, 3), generator=generator).to(dtype)


def exchange_all(workers: Workers, cases: list[tuple[str, list[list[int]]]]) -> None:
    for name, rows in cases:
        dtype = getattr(torch, name)
        parts = [
            part(workers.rank, other, dtype, rows[workers.rank][other])
            for other in range(workers.size)
        ]
        found = workers.exchange(parts, "parts")
        for other, got in enumerate(found):
            wanted = part(other, workers.rank, dtype, rows[other][workers.rank])
            assert got.dtype == dtype
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("size", SIZES)
def test_parts_are_exchanged_uneven_empty_and_of_any_type(size: int):
    # All examples in one group of processes.
    counts = st.lists(
        st.lists(st.sampled_from([0, 1, 2, 7, 1000]), min_size=size, max_size=size),
        min_size=size,
        max_size=size,
    )
    cases = [
        (str(dtype).removeprefix("torch."), [[rows] * size] * size)
        for dtype, rows in product(DTYPES, (0, 3))
    ]

    @settings(max_examples=20)
    @given(counts, st.sampled_from(DTYPES))
    def collect(rows: list[list[int]], dtype: torch.dtype) -> None:
        cases.append((str(dtype).removeprefix("torch."), rows))

    collect()
    run_workers(exchange_all, size, cases)


def exchange_odd(workers: Workers) -> list[Any]:
    columns = torch.arange(12.0).reshape(3, 4).t()  # not contiguous
    flat = workers.exchange([torch.arange(workers.rank)] * workers.size, "flat parts")
    wide = workers.exchange([torch.empty(5, 0)] * workers.size, "parts without columns")
    turned = workers.exchange([columns] * workers.size, "turned parts")
    assert all(torch.equal(one, columns) for one in turned)
    return [[one.tolist() for one in flat], [list(one.shape) for one in wide]]


def test_parts_of_any_shape_are_exchanged():
    for found in run_workers(exchange_odd, 2):
        assert found == [[[], [0]], [[5, 0], [5, 0]]]


def test_exchange_wants_a_part_for_each_rank():
    with pytest.raises(ValueError, match=r"\(1\), got 2"):
        Workers().exchange([torch.zeros(1), torch.zeros(1)], "parts")


def disagree(workers: Workers) -> None:
    workers.agree({"seed": workers.rank // 2, "name": "same"})


def test_values_that_differ_are_an_error_on_all_ranks():
    ended = run_processes(in_group, 3, disagree, 10.0)
    for one in ended:
        assert isinstance(one.error, UsageError)
        assert "rank 2" in str(one.error)
        assert "seed 1" in str(one.error)
        assert "rank 0 has 0" in str(one.error)


def test_one_process_alone_needs_no_network():
    workers = Workers()
    numbers = torch.arange(3)
    workers.agree({"seed": 1})
    workers.barrier("nobody")
    assert workers.sum(numbers, "numbers").tolist() == [0, 1, 2]
    assert workers.share({"a": 1}, "a message") == {"a": 1}
    assert workers.collect(2, "messages") == [2]
    assert workers.exchange([numbers], "parts")[0].tolist() == [0, 1, 2]


def own_error(workers: Workers) -> None:
    with workers.waiting("gradients"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")


def test_other_errors_within_a_wait_stay_what_they_are():
    with pytest.raises(RuntimeError, match="2x3"):
        own_error(Workers())


# What ranks do instead of waiting with the others.


def sleeps(workers: Workers) -> None:
    workers.barrier("the first step")
    if workers.rank == 1:
        time.sleep(4)
    workers.sum(torch.zeros(3), "the second step")


def dies(workers: Workers) -> None:
    workers.barrier("the first step")
    if workers.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    workers.exchange([torch.zeros(3)] * workers.size, "the second step")


def fails(workers: Workers) -> None:
    workers.barrier("the first step")
    if workers.rank == 1:
        raise OSError(28, "No space left on device", "run/checkpoint")
    workers.share(None, "the second step", 1)


def leaves(workers: Workers) -> None:
    if workers.rank != 1:
        workers.collect(json.dumps("x"), "the second step")


@pytest.mark.parametrize(
    ("function", "words", "limit"),
    [
        (sleeps, ["rank 1 is missing", "last waited for the first step", "2 s"], 2.0),
        (dies, ["rank 1 is missing", "last waited for the first step"], 30.0),
        (fails, ["rank 1 stopped", "No space left", "run/checkpoint"], 30.0),
        (leaves, ["rank 1 finished"], 30.0),
    ],
)
def test_a_wait_in_vain_names_ranks_and_reasons(function: Any, words: list[str], limit: float):
    ended = run_processes(watched, 3, function, limit)
    for one in (ended[0], ended[2]):
        error, seconds = one.result
        assert isinstance(error, WorkerError)
        for word in [f"rank {one.rank} of 3", "the second step", *words]:
            assert word in str(error)
        assert seconds < 20  # 2 s, or no wait at all, and a second for the others, at leisure


def watched(function: Any, limit: float) -> tuple[Exception, float] | None:
    """What a worker raised, and after how many seconds in the group."""
    started = time.monotonic()
    try:
        with connected(limit) as workers:
            started = time.monotonic()
            function(workers)
    except Exception as error:
        return error, time.monotonic() - started
    return None
