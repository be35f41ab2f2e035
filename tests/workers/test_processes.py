"""The harness itself: workers that return, fail, hang and die."""

import os
import signal
import time

import pytest
import torch

from lgcn.workers import Workers

from .processes import run_processes, run_workers


def total(workers: Workers, first: int) -> float:
    return float(workers.sum(torch.tensor([first + workers.rank]), "numbers"))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_results_come_in_the_order_of_ranks(size: int):
    assert run_workers(total, size, 10) == [sum(10 + rank for rank in range(size))] * size


def rank_of(workers: Workers) -> int:
    assert os.environ["LOCAL_RANK"] == str(workers.rank)
    print("hello")
    if workers.rank == 1:
        raise ValueError("a reason")
    return workers.rank


def test_a_failure_shows_the_output_of_all_ranks():
    with pytest.raises(AssertionError, match=r"(?s)rank 0.*hello.*rank 1.*hello.*a reason"):
        run_workers(rank_of, 2)


def own_end() -> int:
    if os.environ["RANK"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def test_a_process_that_is_killed_has_the_signal_as_status():
    killed, other = run_processes(own_end, 2)
    assert (killed.status, killed.result) == (-signal.SIGKILL, None)
    assert (other.status, other.result) == (0, 7)


def sleep() -> None:
    print("tired", flush=True)
    time.sleep(60)


def test_processes_that_hang_are_killed_with_their_output():
    started = time.monotonic()
    with pytest.raises(AssertionError, match=r"(?s)1 s.*\[0, 1\].*tired"):
        run_processes(sleep, 2, timeout=1)
    assert time.monotonic() - started < 10
