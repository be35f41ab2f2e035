"""Trainings of a second on several workers, and what can happen to them.

`train` runs in a worker. It is `lgcn train`, with a checkpoint after every epoch, with a log of its
steps, and with a fault that is put into the process before it starts.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lgcn.training import loop
from lgcn.training.shared_step import SharedStep
from lgcn.workers import Workers, connect

from .data import SETTINGS, Data
from .launch import launch
from .processes import Ended


@dataclass(frozen=True)
class Fault:
    """What happens to one rank.

    Attributes:
        action: `"kill"`, `"sleep"`, `"full"` (a full disk), or `"lose"` (a shard vanishes).
        rank: The rank that it happens to.
        place: `"wait"`, when the rank begins to wait for others, or `"write"`, when it changes a
            file of the run.
        what: Only waits and files with this in their name count. (default: all)
        number: It happens at this one of them, from 1.
        seconds: How long it sleeps.
        first, last: On which attempts it happens. (default: only on the first one, 0)
    """

    action: str
    rank: int = 0
    place: str = "wait"
    what: str = ""
    number: int = 1
    seconds: float = 0.0
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Conditions:
    """How a training runs, besides its data.

    Attributes:
        faults: What happens.
        limit: Seconds that a wait may take.
        settings: Further settings.
        flags: Further flags of a rank. (default: none)
    """

    faults: tuple[Fault, ...] = ()
    limit: float = 30.0
    settings: tuple[str, ...] = ()
    flags: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def train(data: Data, out: str, conditions: Conditions) -> None:
    """Runs in a worker: `lgcn train`, with faults, and with a log of its steps beside the run."""
    from lgcn.__main__ import main

    rank, attempt = int(os.environ["RANK"]), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    loop.CHECKPOINT_SECONDS = -1.0
    connected: Any = connect.connected
    connected.__wrapped__.__defaults__ = (conditions.limit, conditions.limit)
    events = Path(out).with_suffix(f".log{rank}")
    step: Any = SharedStep
    step.__call__ = _logged(SharedStep.__call__, events, attempt)
    part = Path(data.path) / f"part-{rank:04}"
    away = part.with_name(f"{part.name}-lost")
    if away.exists():  # lost on an earlier attempt
        away.rename(part)
    for fault in conditions.faults:
        if fault.rank != rank or not fault.first <= attempt <= fault.last:
            continue
        if fault.action == "lose":
            part.rename(away)
            _write_event(events, {"attempt": attempt, "fault": fault.action})
        else:
            _inject(fault, attempt, Path(out), events)
    values = [f"{name}={value}" for name, value in SETTINGS.items()]
    every = (*values, *data.settings, *conditions.settings)
    flags = [flag for value in every for flag in ("--set", value)]
    given = ["--graph", data.path, "--out", out, "--no-baselines", "--quiet", *flags]
    sys.argv = ["lgcn", "train", *given, *conditions.flags.get(rank, ())]
    main()


def _logged(step: Callable[..., Any], events: Path, attempt: int) -> Callable[..., Any]:
    @functools.wraps(step)
    def logged(self: Any, source: Any) -> Any:
        loss = step(self, source)
        value = 0.0 if loss is None else float(loss)
        _write_event(events, {"attempt": attempt, "epoch": self.epoch, "loss": value})
        return loss

    return logged


def _write_event(events: Path, event: dict[str, Any]) -> None:
    with events.open("a") as file:
        file.write(json.dumps(event) + "\n")


def _inject(fault: Fault, attempt: int, out: Path, events: Path) -> None:
    """Puts a fault into this process."""
    count = 0

    def met(name: str) -> None:
        nonlocal count
        if fault.what not in name:
            return
        count += 1
        if count == fault.number:
            _write_event(events, {"attempt": attempt, "fault": fault.action, "at": name})
        if count == fault.number or (count > fault.number and fault.action == "full"):
            _act(fault)

    if fault.place == "write" or fault.action == "full":
        _on_writes(out, met)
        return
    workers: Any = Workers
    waiting = workers.waiting

    @contextmanager
    def watched(self: Workers, what: str) -> Iterator[None]:
        with waiting(self, what):
            met(what)
            yield

    workers.waiting = watched


def _act(fault: Fault) -> None:
    if fault.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault.action == "sleep":
        time.sleep(fault.seconds)
    elif fault.action == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _on_writes(folder: Path, met: Callable[[str], None]) -> None:
    """Calls a function before each change of a file below a folder, with the file's name."""
    inside = str(folder) + os.sep

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        elif event in ("os.rename", "os.mkdir", "os.remove"):
            path, writes = arguments[0], True
        else:
            return
        if writes and isinstance(path, str | os.PathLike):
            name = str(Path(os.fsdecode(path)).absolute())
            if name.startswith(inside):
                met(f"{event} {name.removeprefix(inside)}")

    sys.addaudithook(hook)


@dataclass(frozen=True)
class Outcome:
    """What is left of a training.

    Attributes:
        attempts: How the processes of each attempt ended.
        weights: The bytes of the weights, `None` if it did not finish.
        history: Losses and scores of the epochs.
        steps: For each rank, its log.
    """

    attempts: list[list[Ended]]
    weights: bytes | None
    history: list[dict[str, Any]]
    steps: list[list[dict[str, Any]]]

    @property
    def finished(self) -> bool:
        return self.weights is not None and all(one.status == 0 for one in self.attempts[-1])

    @property
    def text(self) -> str:
        """All output of all ranks."""
        return "\n".join(one.output for ended in self.attempts for one in ended)

    def losses(self) -> list[float]:
        """The loss of every step of the last attempt at it: the ranks' parts together."""
        logs = [[event for event in log if "loss" in event] for log in self.steps]
        return [sum(event["loss"] for event in events) for events in zip(*logs, strict=True)]

    def epochs(self, attempt: int) -> list[int]:
        """The epochs of which an attempt did a step, with repetitions."""
        return [e["epoch"] for e in self.steps[0] if "epoch" in e and e["attempt"] == attempt]

    def met(self) -> list[dict[str, Any]]:
        """The faults that happened."""
        return [event for log in self.steps for event in log if "fault" in event]


def run_training(
    data: Data,
    out: Path,
    size: int = 2,
    *faults: Fault,
    max_restarts: int = 1,
    timeout: float = 90,
    **conditions: Any,
) -> Outcome:
    """Trains on several workers, started again as torchrun does it; see `Conditions`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    attempts = launch(
        train,
        size,
        data,
        str(out),
        Conditions(faults, **conditions),
        max_restarts=max_restarts,
        timeout=timeout,
    )
    logs = []
    for rank in range(size):
        log = out.with_suffix(f".log{rank}")
        lines = log.read_text().splitlines() if log.exists() else []
        logs.append([json.loads(line) for line in lines])
    model, result = out / "model.safetensors", out / "result.json"
    done = model.exists() and result.exists()
    history = json.loads(result.read_text())["history"] if done else []
    return Outcome(attempts, model.read_bytes() if done else None, history, logs)
