"""Runs scored on validation nodes alone, to choose settings."""

import argparse
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lgcn import Graph, load_dataset
from lgcn.errors import LGCNError
from lgcn.paper.jobs import split_options
from lgcn.training import Settings, train
from lgcn.training.setup import pick_device
from lgcn.utils.memory import release_memory

KEPT = ("val_score", "best_epoch", "epochs", "seconds")


def validate(graph: Graph, settings: Settings) -> dict[str, Any]:
    """One run. Test nodes are not even scored, since they must not influence a choice."""
    record = train(replace(graph, test_mask=None), settings).record
    release_memory()  # others run beside this one
    run = {key: record[key] for key in KEPT}
    return run | {"seconds": round(run["seconds"], 1)}


def validate_on(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One run on the data set of the settings. The seed draws the split if there is none."""
    graph = _load(settings["dataset"], **split_options(settings["dataset"], seed))
    return validate(graph, Settings.create(**settings, seed=seed))


@lru_cache(2)  # settings are tried on the splits of those before
def _load(dataset: str, **options: Any) -> Graph:
    return load_dataset(dataset, **options)


def has(settings: Mapping[str, Any], some: Mapping[str, Any]) -> bool:
    """Whether the settings contain these values, up to rounding (Optuna's 0.1 steps)."""
    return all(
        math.isclose(settings[name], value)
        if isinstance(value, float) and isinstance(settings.get(name), float)
        else name in settings and settings[name] == value
        for name, value in some.items()
    )


def check(parser: argparse.ArgumentParser, datasets: Iterable[str], device: str) -> None:
    """Ends with one line before the first run if the data or the device is missing."""
    try:
        pick_device(device)
        for dataset in datasets:
            load_dataset(dataset)
    except LGCNError as error:
        parser.error(str(error))


def at_least_one(text: str) -> int:
    """An argument type: an integer of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, got {text!r}")
    return int(text)
