"""Joins the group of processes that torchrun, Ray or another launcher started."""

from __future__ import annotations

import atexit
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from lgcn.errors import UsageError, one_line
from lgcn.workers.board import Board
from lgcn.workers.group import TIMEOUT, WorkerError, Workers, reason
from lgcn.workers.limited import within

c10d: Any = dist  # whose types are not complete

# If DDP is the last owner of a group, it destroys it with Python's lock held, while a thread of the
# group may wait for that lock: for ever. So groups live until the interpreter ends.
_groups: list[Any] = []
atexit.register(_groups.clear)


@contextmanager
def connected(timeout: float = TIMEOUT) -> Iterator[Workers]:
    """The group that torchrun, or another launcher with its environment variables, started.

    A process without these variables is alone. A group that exists already, such as Ray Train's,
    is used as it is. An error that ends the block is told to the other ranks.

    Args:
        timeout: Seconds that a wait may take, and that joining may take. (default: 300)
    """
    exists = dist.is_available() and dist.is_initialized()
    if exists:
        workers = _existing(timeout)
    else:
        size = _number("WORLD_SIZE", 1, default=1)
        if size == 1:
            yield Workers(timeout=timeout)
            return
        workers = _joined(_number("RANK", 0, size), size, timeout)
    why = "finished"
    try:
        yield workers
    except BaseException as error:
        why = f"stopped: {one_line(error)}"
        # What another rank caused explains nothing.
        why = "" if isinstance(error, WorkerError) else why
        raise
    finally:
        if why and workers.board is not None:
            workers.board.stopped(why)
        if not exists and dist.is_initialized():
            dist.destroy_process_group()


def _existing(timeout: float) -> Workers:
    """The group that another program made, with our time limit."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        return Workers(timeout=timeout)
    c10d.distributed_c10d._set_pg_timeout(timedelta(seconds=timeout))
    _groups.append(dist.group.WORLD)
    # One prefix per use of the group; all ranks count alike.
    store = c10d.PrefixStore(f"lgcn {len(_groups)}", c10d.distributed_c10d._get_default_store())
    return Workers(rank, size, timeout, Board(store, rank, size))


def _joined(rank: int, size: int, timeout: float) -> Workers:
    host, port = os.environ.get("MASTER_ADDR", ""), _number("MASTER_PORT", 0, 2**16)
    if not host:
        raise UsageError("MASTER_ADDR must be set: the host of rank 0. Start with torchrun")
    started = time.monotonic()
    try:
        join = partial(_join, host, port, rank, size, started + timeout)
        store = within(timeout + 0.5, join)  # half a second for a better message
        left = max(1.0, started + timeout - time.monotonic())
        dist.init_process_group(
            _backend(rank, size),
            store=store,
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=left),
        )
    except (RuntimeError, OSError) as error:
        raise WorkerError(
            f"rank {rank} of {size} could not join the others at {host}:{port} within "
            f"{timeout:g} s: {reason(error)}. Check the address, the port, and that all ranks "
            "started"
        ) from error
    c10d.distributed_c10d._set_pg_timeout(timedelta(seconds=timeout))
    _groups.append(dist.group.WORLD)
    return Workers(rank, size, timeout, Board(c10d.PrefixStore("lgcn", store), rank, size))


def _join(host: str, port: int, rank: int, size: int, stop: float) -> Any:
    """The store of this group, when all ranks are there."""
    of_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    serves = rank == 0 and not of_launcher
    if not serves:
        _reach(host, port, stop)  # torch would print pages while it tries
    store = c10d.TCPStore(
        host,
        port,
        size,
        is_master=serves,
        timeout=timedelta(seconds=max(1.0, stop - time.monotonic())),
        wait_for_workers=False,
        multi_tenant=True,
    )
    return c10d.PrefixStore(_meet(store, rank, size, stop), store)


def _reach(host: str, port: int, stop: float) -> None:
    """Waits until somebody listens at an address."""
    while True:
        try:
            socket.create_connection((host, port), max(0.1, stop - time.monotonic())).close()
        except OSError:
            if time.monotonic() + 0.1 > stop:
                raise
            time.sleep(0.1)
        else:
            return


def _meet(store: Any, rank: int, size: int, stop: float) -> str:
    """Waits for all ranks. Returns a name for this group that no earlier one had.

    torchrun keeps its store when it starts the processes again, with the addresses of those that
    are dead, so ranks make sure that they speak with each other: each signs in with a random word,
    rank 0 lists the words it found, and who finds its own word there follows rank 0's.
    """
    word = uuid.uuid4().hex
    store.set(f"lgcn word {rank}", word)
    pause = 0.001
    listed: dict[int, str] = {}
    name = word if rank == 0 else None
    while True:
        if rank == 0:
            if (words := _present(store, {r: f"lgcn word {r}" for r in range(size)})) != listed:
                store.set("lgcn words", json.dumps(list(words.items())))
                listed = words
        elif name is None and store.check(["lgcn words"]):
            listed = dict(json.loads(store.get("lgcn words")))
            if listed.get(rank) == word:
                name = listed[0]
        missing = [0] if rank else []
        if name is not None:
            store.set(f"{name} here {rank}", "")
            here = _present(store, {r: f"{name} here {r}" for r in range(size)})
            missing = [r for r in range(size) if r not in here]
            if not missing:
                return name
        if time.monotonic() > stop:
            raise TimeoutError(f"no sign of rank {', '.join(map(str, missing))}")
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)


def _present(store: Any, keys: dict[int, str]) -> dict[int, str]:
    return {rank: store.get(key).decode() for rank, key in keys.items() if store.check([key])}


def _backend(rank: int, size: int) -> str:
    """nccl for tensors on GPUs, if each rank of this machine has its own; gloo for the others."""
    local, here = (
        _number("LOCAL_RANK", 0, default=rank),
        _number("LOCAL_WORLD_SIZE", 1, default=size),
    )
    if torch.cuda.is_available() and here <= torch.cuda.device_count():
        torch.cuda.set_device(local)
        return "cpu:gloo,cuda:nccl"
    return "gloo"


def _number(name: str, least: int, end: int | None = None, *, default: int | None = None) -> int:
    """An environment variable that launchers set."""
    text = os.environ.get(name, "")
    if not text and default is not None:
        return default
    wanted = f"a whole number of at least {least}" + ("" if end is None else f" and below {end}")
    got = f"it is {text!r:.80}" if text else "it is not set"
    if not text.isascii() or not text.isdigit() or int(text) < least or (end and int(text) >= end):
        raise UsageError(f"the environment variable {name} must be {wanted}; {got}. Use torchrun")
    return int(text)
