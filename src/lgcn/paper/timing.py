"""Table 5's times of 100 epochs: all variants of a data set in one process, taking turns.

Turns, because what else the machine does then falls on all of them.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lgcn.errors import DataError
from lgcn.paper.jobs import Job, full_settings
from lgcn.paper.records import FORMAT, changed_setting, machine
from lgcn.utils.files import read_json, write_json

EPOCHS, REPEATS = 100, 5
QUICK_EPOCHS, QUICK_REPEATS = 3, 1
WARM_UP_EPOCHS = 2  # for compilation, untimed
BUDGET = 120.0  # seconds that the turns of a variant may take; it has one at least


@dataclass(frozen=True)
class Timing:
    """What to measure: variants by name, each with the run that it is the training of."""

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
    """Median seconds of each variant, and what they were measured on."""

    seconds: dict[str, float]
    machine: str


def measure(timing: Timing, root: str | None = None) -> dict[str, Any]:
    """The seconds of training, from new weights and without evaluation."""
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


def times_path(folder: Path, timing: Timing) -> Path:
    return folder / "times" / f"{timing.name}.json"


def write_times(folder: Path, timing: Timing, record: Mapping[str, Any]) -> None:
    write_json(times_path(folder, timing), record)


def read_times(folder: Path, timing: Timing) -> Times | None:
    """The times, where a record has all of the variants with these settings."""
    try:
        record = read_json(times_path(folder, timing))
        if record["format"] != FORMAT or record["epochs"] != timing.epochs:
            return None
        found = {}
        for name, job in timing.variants.items():
            variant = record["variants"][name]
            if changed_setting(variant["settings"], job) is not None:
                return None
            found[name] = float(variant["median_seconds"])
        return Times(found, _machine(record["machine"]))
    except (
        OSError,
        DataError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # none, or damaged
        return None


def _machine(record: Mapping[str, Any]) -> str:
    if "gpu" in record:
        return f"GPU {record['gpu']}"
    return f"CPU {record['cpu']}, {record['threads']} threads"
