"""Joining a group: what launchers say, and what is wrong with it."""

import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from lgcn.errors import UsageError
from lgcn.workers import WorkerError, Workers, connect, connected

from .processes import Group, free_port, in_group, new_store, run_processes

LAUNCHED = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
LIMIT = 2.0
OWN_STORE = {"TORCHELASTIC_USE_AGENT_STORE": None}  # as with launchers other than torchrun


@pytest.fixture(autouse=True)
def _launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, value)


def test_a_process_without_a_launcher_is_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WORLD_SIZE")
    with connected() as workers:
        assert (workers.rank, workers.size) == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.delenv("MASTER_ADDR")
    with connected() as workers:
        assert (workers.rank, workers.size) == (0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORLD_SIZE", "two"),
        ("WORLD_SIZE", "0"),
        ("WORLD_SIZE", "-1"),
        ("RANK", None),
        ("RANK", "1.5"),
        ("RANK", "2"),
        ("MASTER_PORT", "seven"),
        ("MASTER_PORT", "70000"),
        ("MASTER_ADDR", None),
    ],
)
def test_variables_that_are_wrong_are_named(
    name: str, value: str | None, monkeypatch: pytest.MonkeyPatch
):
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=rf"{name}.*{value or ''}"), connected():
        pass


def failing(rank: int) -> str:
    """The error of a group that cannot be joined, in this process."""
    started = time.monotonic()
    with (
        pytest.raises(WorkerError, match=f"rank {rank} of 2.*{LIMIT:g} s") as found,
        connected(LIMIT),
    ):
        pass
    assert time.monotonic() - started < LIMIT + 10
    assert "\n" not in str(found.value)
    return str(found.value)


def test_a_port_at_which_nobody_listens(monkeypatch: pytest.MonkeyPatch):
    port = str(free_port())
    monkeypatch.setenv("MASTER_PORT", port)
    assert f"127.0.0.1:{port}" in failing(1)


def test_a_host_that_does_not_exist(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MASTER_ADDR", "nobody.invalid")
    assert "nobody.invalid:29500" in failing(1)


@pytest.fixture
def silent() -> Iterator[str]:
    """The port of another program, which never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield str(listener.getsockname()[1])


def test_a_port_of_another_program(silent: str, monkeypatch: pytest.MonkeyPatch):
    # torch itself waits for an answer for ever.
    monkeypatch.setenv("MASTER_PORT", silent)
    assert f"127.0.0.1:{silent}" in failing(1)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    assert "address already in use" in failing(0)


def join(limit: float = 60.0) -> Any:
    try:
        with connected(limit) as workers:
            return workers.collect(workers.rank, "ranks")
    except WorkerError as error:
        return error


def late() -> Any:
    return None if os.environ["RANK"] == "1" else join(LIMIT)


def test_a_rank_that_does_not_come_is_named():
    first, _, last = run_processes(late, 3)
    assert "no sign of rank 1 " in str(first.result).replace(".", " ")
    assert isinstance(last.result, WorkerError)
    assert "rank 2 of 3" in str(last.result)


@pytest.mark.parametrize("environment", [{}, OWN_STORE])
def test_the_store_is_the_launchers_or_that_of_rank_0(environment: dict[str, str | None]):
    environment = {**environment, "MASTER_PORT": str(free_port())} if environment else {}
    ended = run_processes(join, 2, environment=environment)
    assert [one.result for one in ended] == [[0, 1]] * 2


def test_a_group_that_starts_again_does_not_meet_the_dead():
    # torchrun keeps its store, with the addresses of the processes that ended.
    store = new_store()
    for _ in range(2):
        with Group(join, 2, (), {}, store) as group:
            running = {0, 1}
            while running:
                running -= group.wait(running, 60)
            assert [group.ended(rank).result for rank in range(2)] == [[0, 1]] * 2


def within_a_group() -> Any:
    dist.init_process_group("gloo")
    found: list[Any] = []
    for _ in range(2):
        with connected(60.0) as workers:
            found.append(workers.collect(workers.rank, "ranks"))
    try:
        with connected(LIMIT) as workers:
            if workers.rank == 0:
                workers.barrier("rank 1")
            time.sleep(4)
    except WorkerError as error:
        found.append(str(error))
    return found


def test_a_group_that_exists_is_used_with_our_limit():
    first, second = run_processes(within_a_group, 2)
    assert second.result == [[0, 1], [0, 1]]
    assert first.result[:2] == [[0, 1], [0, 1]]
    assert "rank 1 is missing" in first.result[2]  # the blocks before are forgotten


def train_and_fail(workers: Workers) -> float:
    model = DistributedDataParallel(torch.nn.Linear(3, 3))
    for step in range(5):
        if workers.rank == 1 and step == 3:
            raise ValueError("a reason")
        with workers.waiting(f"the gradients of step {step}"):
            model(torch.ones(2, 3)).sum().backward()
    return 0.0


def test_a_wait_for_gradients_is_explained_and_the_group_can_be_left():
    # Without care the end of a group that DDP used can wait for ever.
    first, second, third = run_processes(in_group, 3, train_and_fail, 20.0)
    assert str(second.error) == "a reason"
    for one in (first, third):
        assert isinstance(one.error, WorkerError)
        assert "the gradients of step 3" in str(one.error)
        assert "rank 1 stopped: a reason" in str(one.error)


class GPUs:
    def __init__(self, count: int) -> None:
        self.count = count
        self.chosen: list[int] = []

    def is_available(self) -> bool:
        return self.count > 0

    def device_count(self) -> int:
        return self.count

    def set_device(self, number: int) -> None:
        self.chosen.append(number)


@pytest.mark.parametrize(
    ("count", "backend", "chosen"),
    [(0, "gloo", []), (1, "gloo", []), (2, "cpu:gloo,cuda:nccl", [1])],
)
def test_each_rank_has_its_own_gpu_or_none(
    count: int, backend: str, chosen: list[int], monkeypatch: pytest.MonkeyPatch
):
    gpus = GPUs(count)
    monkeypatch.setattr(torch, "cuda", gpus)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert connect._backend(5, 8) == backend
    assert gpus.chosen == chosen
