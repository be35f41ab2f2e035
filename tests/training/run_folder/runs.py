"""Ways to end a run and to go on with it, and changes to its files."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lgcn.graph import Graph
from lgcn.tables.encoder import FeatureEncoder
from lgcn.training import Result, Settings, State, train

from ..graphs import settings, small_graph


class Killed(Exception):
    """Stands for whatever ends a process."""


def at_epoch(number: int, act: Callable[[], Any]) -> Callable[[State], None]:
    def on_epoch(state: State) -> None:
        if state.epoch == number:
            act()

    return on_epoch


def die() -> None:
    raise Killed


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


# The files of a run that has ended, and those of one that has a checkpoint, with its tensors.
FINISHED = {"run.json", "split.npz", "model.safetensors", "metrics.json", "result.json"}
STOPPED = {"run.json", "split.npz", "checkpoint.json"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def go_on(folder: Path, config: Settings | None = None) -> Result:
    return train(small_graph(), config or settings(), out=folder, resume=True)


def change(path: Path, table: str, **values: Any) -> None:
    """Changes values in a table of a JSON file, which may be in another, as in "settings.model"."""
    record = json.loads(path.read_text())
    inside = record
    for name in table.split(".") if table else ():
        inside = inside[name]
    inside.update(values)
    path.write_text(json.dumps(record))


def encoded_graph() -> Graph:
    table = pa.table({"size": [float(i) for i in range(200)], "kind": ["a", "b"] * 100})
    encoder = FeatureEncoder.fit(table, np.ones(200, dtype=bool))
    return replace(small_graph(), x=encoder.transform(table).float(), encoder=encoder)
