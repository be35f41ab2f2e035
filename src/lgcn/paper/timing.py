"""Table 5's training times of 100 epochs.

All variants of a data set take turns in one process, so that other load on the machine slows all
of them down alike.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lgcn.paper.jobs import Job, full_settings
from lgcn.paper.json_lines import UNKEYED, put_lines, read_lines
from lgcn.paper.records import FORMAT, SUFFIX, changed_setting, machine

EPOCHS, REPEATS = 100, 5
QUICK_EPOCHS, QUICK_REPEATS = 3, 1
WARM_UP_EPOCHS = 2  # untimed, for compilation
BUDGET = 120.0  # seconds for all turns of a variant, which has at least one


@dataclass(frozen=True)
class Timing:
    """What to measure: variants by name, each with the job whose training is timed."""

    dataset: str
    device: str
    variants: Mapping[str, Job]
    epochs: int = EPOCHS
    repeats: int = REPEATS

    @property
    def name(self) -> str:
        quick = "-quick" if self.epochs == QUICK_EPOCHS else ""
        return f"{self.dataset}-{self.device}{quick}"


class Times(NamedTuple):
    """Median seconds of each variant, and the machine that they were measured on."""

    seconds: dict[str, float]
    machine: str


def measure(timing: Timing, root: str | None = None) -> dict[str, Any]:
    """The seconds of training each variant from new weights, without evaluation."""
    from lgcn.datasets import load_dataset
    from lgcn.training import Settings
    from lgcn.training.loop import train_epochs

    graph = load_dataset(timing.dataset, root)
    variants = {
        name: Settings.create(dataset=timing.dataset, device=timing.device, **dict(job.settings))
        for name, job in timing.variants.items()
    }
    for settings in variants.values():
        train_epochs(graph, settings, WARM_UP_EPOCHS)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(timing.repeats):
        for name, settings in variants.items():
            spent = seconds[name]
            if spent and sum(spent) + spent[-1] > BUDGET:
                continue
            started = time.perf_counter()
            train_epochs(graph, settings, timing.epochs)
            spent.append(time.perf_counter() - started)
    return {
        "format": FORMAT,
        "dataset": timing.dataset,
        "device": timing.device,
        "epochs": timing.epochs,
        "variants": {
            name: {
                "settings": full_settings(timing.variants[name]),
                "median_seconds": statistics.median(spent),
                "seconds": spent,
            }
            for name, spent in seconds.items()
        },
        "machine": machine(timing.device),
    }


def times_path(folder: Path) -> Path:
    """The file of all times: one line per data set, device and number of epochs."""
    return folder / f"times{SUFFIX}"


def times_key(record: Any) -> tuple[str, str, int]:
    """What identifies a record of times."""
    return str(record["dataset"]), str(record["device"]), int(record["epochs"])


def write_times(folder: Path, record: Mapping[str, Any]) -> None:
    put_lines(times_path(folder), [record], times_key)


def read_times(folder: Path, timing: Timing) -> Times | None:
    """The times, if there is a record that has all variants with their present settings."""
    records = read_lines(times_path(folder), times_key).records
    record = records.get((timing.dataset, timing.device, timing.epochs))
    try:
        if record is None or record["format"] != FORMAT:
            return None
        found = {}
        for name, job in timing.variants.items():
            variant = record["variants"][name]
            if changed_setting(variant["settings"], job) is not None:
                return None
            found[name] = float(variant["median_seconds"])
        return Times(found, _machine(record["machine"]))
    except UNKEYED:  # it lacks a variant, or is damaged
        return None


def _machine(record: Mapping[str, Any]) -> str:
    if "gpu" in record:
        return f"GPU {record['gpu']}"
    return f"CPU {record['cpu']}, {record['threads']} threads"
