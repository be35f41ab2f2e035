"""The record of a run: what it says, where it lies, and whether it is still worth something."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lgcn.errors import DataError, LGCNError
from lgcn.paper.jobs import Job, canonical, command, full_settings, run_job
from lgcn.paper.systems import SYSTEMS
from lgcn.utils.files import atomic, read_json

FORMAT = 1
# What a record keeps of the result of a run.
RESULT_KEYS = (
    "metric",
    "val_score",
    "test_score",
    "test_score_released_rule",
    "test_label_accuracy",
    "best_epoch",
    "epochs",
    "steps",
    "seconds",
    "parameters",
    "nodes_per_batch",
)
NEEDED_KEYS = ("metric", "val_score", "test_score", "test_score_released_rule", "epochs", "seconds")


def run_and_record(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    """Trains and scores; gives the record of it."""
    result = run_job(job, root, device)
    used = device if SYSTEMS[job.system].function is None else "cpu"
    return make_record(job, result, machine(used))


def make_record(job: Job, result: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run, checked for the scores that tables need."""
    _check(result)
    return {
        "format": FORMAT,
        "job": job.to_dict(),
        "command": command(job),
        "settings": full_settings(job),
        "result": {key: result[key] for key in RESULT_KEYS if key in result},
        "machine": dict(machine),
    }


def record_path(folder: Path, job: Job) -> Path:
    return folder / "runs" / f"{job.id}.json"


def read_record(folder: Path, job: Job) -> tuple[dict[str, Any] | None, str | None]:
    """The record of a job, or none and, where there is a file, why it is not used."""
    path = record_path(folder, job)
    try:
        record = read_json(path)
    except FileNotFoundError:
        return None, None
    except DataError:
        return None, f"{path} is damaged"
    try:
        if record["format"] != FORMAT:
            return None, f"{path} is of another version of lgcn"
        if canonical(record["job"]) != canonical(job.to_dict()):
            return None, f"{path} is the record of another run"
        changed = changed_setting(record["settings"], job)
        if changed:
            return None, f"{path} is older than the recipe, which now has another {changed}"
        _check(record["result"])
    except (KeyError, TypeError, AttributeError, LGCNError):
        return None, f"{path} is damaged"
    return record, None


def write_record(folder: Path, job: Job, record: Mapping[str, Any]) -> None:
    """A line for each part: a thousand records stay small, and differences can be read."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    with atomic(record_path(folder, job)) as temporary:
        temporary.write_text("{" + ",\n ".join(lines) + "}\n", encoding="utf-8")


def machine(device: str) -> dict[str, Any]:
    """The machine and the versions that a record belongs to."""
    import torch

    import lgcn
    from lgcn.training.setup import pick_device
    from lgcn.utils.machine import hardware_and_versions

    device = pick_device(device).type
    found = {**hardware_and_versions(device), "lgcn": lgcn.__version__}
    if device == "cuda":
        # "highest" is float32 itself; "high" lets matrix products use TensorFloat-32.
        found["float32_products"] = torch.get_float32_matmul_precision()
    return found


def changed_setting(recorded: Mapping[str, Any], job: Job) -> str | None:
    """A setting that the run had otherwise than it would have now.

    A setting that is newer than the record had no other value than its default.
    """
    before, now = dict(recorded), full_settings(job)
    if SYSTEMS[job.system].function is None:
        from lgcn.training import Config

        before = Config().to_dict() | before
    differ = (key for key in now if canonical(before.get(key)) != canonical(now[key]))
    return next(differ, None)


def _check(result: Mapping[str, Any]) -> None:
    for key in NEEDED_KEYS:
        value = result.get(key)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise LGCNError(f"the run gave no {key.replace('_', ' ')}, got {value!r}")
