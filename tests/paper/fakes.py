"""Runs that train nothing, for worker processes to import."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgcn.errors import LGCNError
from lgcn.paper.jobs import Job, full_settings
from lgcn.paper.plan import Plan
from lgcn.paper.records import Records, make_record
from lgcn.paper.tables import timings
from lgcn.paper.timing import Timing, write_times

MACHINE = {"cpu": "a fake", "threads": 2}


def wait_for(condition: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def fake_job(seed: int = 0, dataset: str = "cora", **settings: Any) -> Job:
    """A run of a system with a function of its own: its settings are free."""
    return Job("planetoid", dataset, seed, settings)


def fake_result(score: float = 0.5, **values: Any) -> dict[str, Any]:
    return {
        "metric": "accuracy",
        "val_score": score,
        "test_score": score,
        "test_score_released_rule": score + 0.01,
        "best_epoch": 3,
        "epochs": 4,
        "seconds": 1.5,
        "parameters": 10,
        **values,
    }


def fake_record(job: Job, score: float | None = None) -> dict[str, Any]:
    value = 0.5 + job.seed / 100 if score is None else score
    return make_record(job, fake_result(value), MACHINE)


def run_fake(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    """A record, or the misfortune that the settings name."""
    ends = job.settings.get("ends")
    if "log" in job.settings:
        with Path(job.settings["log"]).open("a") as file:
            file.write(f"{job.id}\n")
    if ends == "error":
        raise LGCNError("the loss became nan in epoch 3")
    if ends == "bug":
        raise KeyError("no such thing")
    if ends == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if ends == "exit":
        raise SystemExit(3)
    time.sleep(job.settings.get("sleep", 0))
    return fake_record(job)


def run_without_citeseer(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    if job.dataset == "citeseer":
        raise LGCNError("the loss became nan in epoch 3")
    return run_fake(job)


def threads(task: int) -> dict[str, Any]:
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {"pid": os.getpid(), "task": task, **{name: os.environ.get(name) for name in names}}


def wait_long(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)


def write_fake(folder: Path, *records: dict[str, Any], table: str = "table2") -> None:
    Records(folder).add(table, *records)


def fill(plans: list[Plan], folder: Path, seeds: int | None = None) -> None:
    """Writes records of all runs of the plans, or of the first seeds, and of the times."""
    stored = Records(folder)
    for plan in plans:
        records = [
            filled_record(job, number)
            for dataset in plan.datasets
            for number, row in enumerate(plan.on(dataset))
            for job in plan.jobs(row, dataset)[:seeds]
        ]
        stored.add(plan.target, *records)
        systems = [row.system for row in plan.rows]
        more = plan.more_jobs(stored)
        stored.add(plan.target, *(filled_record(job, systems.index(job.system)) for job in more))
        if plan.target == "table5":
            for dataset in plan.datasets:
                write_times(folder, fake_times(timings(plan, dataset, "cpu")))


def fake_times(timing: Timing, first: float = 2.0, **values: Any) -> dict[str, Any]:
    """A record of times: so many seconds for the first variant, one more for each other."""
    variants = {
        name: {"settings": full_settings(job), "median_seconds": first + number}
        for number, (name, job) in enumerate(timing.variants.items())
    }
    what = {"dataset": timing.dataset, "device": timing.device, "epochs": timing.epochs}
    return {"format": 1, **what, "variants": variants, "machine": MACHINE, **values}


def filled_record(job: Job, number: int) -> dict[str, Any]:
    """Scores that differ between rows and seeds."""
    spread = random.Random(job.id).uniform(-0.01, 0.01)
    nodes = [644] if job.dataset == "cora" else [500 + job.seed, 600]
    score = 0.6 + 0.01 * number + spread
    more = {"test_score_released_rule": score + 0.012, "val_score": score - 0.02}
    result = fake_result(score, nodes_per_batch=nodes, test_label_accuracy=score + 0.2, **more)
    return make_record(job, result, MACHINE)
