"""Records of runs: what they contain, where they are stored, and when they are outdated."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lgcn.errors import DataError, LGCNError
from lgcn.paper.jobs import Job, canonical, command, full_settings, run_job
from lgcn.paper.json_lines import put_lines, read_lines
from lgcn.paper.systems import SYSTEMS

FORMAT = 1
SUFFIX = ".jsonl"
# The parts of a run's result that its record keeps.
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
# What runs had before a setting existed.
BEFORE: Mapping[str, Any] = {
    "structural_features": "auto",
    "positions": "auto",
    "class_weight": "none",
    "metric": "auto",
    "threshold": "auto",
    "baselines": True,
    "labels": "auto",
    "mean": False,
    "hops": 8,
    "input_dropout": None,
    "input_scale": 1.0,
    "node_dropout": 0.0,
    "layer_dropout": 0.0,
    "input_hops": 5,
    "input_norm": "batch",
    "lgcl_dropout": None,
    "agreement_epochs": 100,
    "lr_schedule": "constant",
    "views_from": 1,
    "early_stop": "patience",
    "edge_features": "auto",
    "directions": "in",
    "alpha": 0.5,
    "theta": 1.0,
    "views": 1,
    "agreement": 0.0,
    "sharpen": 0.5,
    "scored_nodes": "all",
    "graphs_per_batch": 32,
    "nodes_per_batch": None,
    "clusters": 4,
    "halo": 0,
}
NEEDED_KEYS = ("metric", "val_score", "test_score", "test_score_released_rule", "epochs", "seconds")


def run_and_record(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    """Trains and scores a system; returns the record of the run."""
    result = run_job(job, root, device)
    used = device if SYSTEMS[job.system].function is None else "cpu"
    return make_record(job, result, machine(used))


def make_record(job: Job, result: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run, checked for the scores that tables need."""
    _check(result)
    return {
        "format": FORMAT,
        "job": job.to_dict(),
        "command": command(job),
        "settings": full_settings(job),
        "result": {key: result[key] for key in RESULT_KEYS if key in result},
        "machine": dict(machine),
    }


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """The records of one table, or of all tables of a folder.

    One record per run: ``job`` (system, data set, seed, settings that were chosen), ``command``
    that repeats the run, all ``settings``, ``result`` and ``machine``. With pandas, one row per
    run::

        import pandas as pd
        from lgcn.paper.records import read_records

        runs = pd.json_normalize(read_records("benchmarks/paper/records/table2.jsonl"))
        runs.groupby(["job.dataset", "job.system"])["result.test_score"].agg(["mean", "std"])

    ``pd.read_json(path, lines=True)`` reads a file as well, with a column of dicts per part.

    Args:
        path: A file of JSON lines, or a folder of such files.

    Raises:
        DataError: A file is missing, or a line of it is damaged.
    """
    path = Path(path)
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files or not path.exists():
        raise DataError(f"there are no records in {path}")
    records: list[dict[str, Any]] = []
    for file in files:
        found = read_lines(file, job_key)
        if found.damaged:
            raise DataError(f"{file} is damaged in line {found.damaged[0]}")
        records += found.records.values()
    return records


def job_key(record: Any) -> tuple[str, str, str, int, int]:
    """What identifies the run of a record, in the order of the lines of a file."""
    job = record["job"]
    dataset, system, seed, fold = job["dataset"], job["system"], job["seed"], job.get("fold", -1)
    if not (isinstance(dataset, str) and isinstance(system, str)):
        raise ValueError("the names of a job must be strings")
    if not (type(seed) is int and type(fold) is int):
        raise ValueError("the seed and the fold of a job must be integers")
    return dataset, system, canonical(job["settings"]), fold, seed


class Records:
    """All records in the output folder of ``lgcn reproduce``, in ``records/TABLE.jsonl``.

    A run that several tables need has one record, in the file of the table that ran it first.

    Args:
        folder: The output folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "records"
        self.damaged: list[str] = []  # lines that cannot be read
        self._files: dict[tuple[Any, ...], Path] = {}
        self._records: dict[tuple[Any, ...], dict[str, Any]] = {}
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            found = read_lines(path, job_key)
            self.damaged += [f"line {number} of {path} is damaged" for number in found.damaged]
            for key, record in found.records.items():
                self._files.setdefault(key, path)
                self._records.setdefault(key, record)

    def find(self, job: Job) -> tuple[dict[str, Any] | None, str | None]:
        """The record of a job; or none and, if there is one that cannot be used, the reason."""
        key = job_key({"job": job.to_dict()})
        record = self._records.get(key)
        if record is None:
            return None, None
        name = f"the record of {job.id} in {self._files[key]}"
        try:
            if record["format"] != FORMAT:
                return None, f"{name} is from another version of lgcn"
            changed = changed_setting(record["settings"], job)
            if changed:
                return None, f"{name} is outdated: the preset now has another {changed}"
            _check(record["result"])
        except (KeyError, TypeError, AttributeError, LGCNError):
            return None, f"{name} is damaged"
        return record, None

    def add(self, table: str, *records: dict[str, Any]) -> None:
        """Writes records of runs; those of jobs that a file has already are replaced there."""
        files: dict[Path, list[dict[str, Any]]] = {}
        for record in records:
            key = job_key(record)
            path = self._files.setdefault(key, self.folder / f"{table}{SUFFIX}")
            self._records[key] = record
            files.setdefault(path, []).append(record)
        for path, own in files.items():
            put_lines(path, own, job_key)


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
    """A setting that has another value now than it had in the run; none if all are equal.

    A setting that did not exist yet had its default value.
    """
    before, now = {**BEFORE, **recorded}, full_settings(job)
    if canonical({key: before.get(key) for key in now}) == canonical(now):
        return None
    differ = (key for key in now if canonical(before.get(key)) != canonical(now[key]))
    return next(differ, None)


def _check(result: Mapping[str, Any]) -> None:
    for key in NEEDED_KEYS:
        value = result.get(key)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise LGCNError(f"the run has no {key.replace('_', ' ')}, got {value!r}")
