"""Functions that groups of workers run instead of a training, and tasks, to import elsewhere."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lgcn.errors import DataError
from lgcn.workers import Workers, is_restart


def count(
    settings: dict[str, Any], *, workers: Workers, post: Callable[[str, str], None]
) -> dict[str, Any]:
    """Counts steps in a file that outlives the group, with the misfortune that settings name."""
    file = Path(settings["out"]) / "steps"
    done = int(file.read_text()) if file.exists() else 0
    done = workers.share(done, "the steps that are done")
    first = done
    while done < settings["steps"]:
        total = workers.sum(torch.ones(1), "a step")
        done += 1
        if workers.is_first:
            file.write_text(str(done))
            post("line", f"step {done}: {total.item():g}, threads {os.environ['OMP_NUM_THREADS']}")
        if workers.rank == 1 and done == settings.get("kill") and not is_restart():
            os.kill(os.getpid(), signal.SIGKILL)
        if workers.rank == 1 and done == settings.get("fail"):
            raise DataError("part 7 is missing: copy part-0007 to this node")
        if workers.rank == 1 and done == settings.get("bug"):
            raise ArithmeticError("one and one is three")
        time.sleep(settings.get("pause", 0))
    return {"first": first, "steps": done, "size": workers.size, "restart": is_restart()}


def task(settings: dict[str, Any]) -> dict[str, Any]:
    """A task that counts its tries in a file."""
    tries = Path(settings["tries"])
    with tries.open("a") as file:
        file.write("x")
    if settings["ends"] == "killed" or (
        settings["ends"] == "killed once" and tries.stat().st_size == 1
    ):
        os.kill(os.getpid(), signal.SIGKILL)
    if settings["ends"] == "error":
        raise DataError("there is no such file")
    return {"threads": os.environ["NUMBA_NUM_THREADS"]}
