"""Settings that train in a moment, small graphs and tables, and what of a record lasts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.datasets import synthetic
from lgcn.graph import Graph
from lgcn.training import Run, loop

SETTINGS: dict[str, Any] = {
    "dataset": "synthetic",
    "dataset_options": {
        "num_nodes": 200,
        "num_classes": 3,
        "num_features": 8,
        "noise": 1.0,
        "labels_per_class": 10,
        "num_val": 60,
    },
    "hidden_channels": 8,
    "lgcl_channels": 4,
    "cnn": "double",
    "num_layers": 1,
    "k": 4,
    "dropout": 0.2,
    "lr": 0.05,
    "max_epochs": 5,
    "training": "whole",
}
# Of a graph store, and of a training on it.
SIZE = ("--nodes", "400", "--edges", "1500", "--features", "6", "--classes", "3")
SHORT = ("--max-steps", "20", "--set", "k=4", "--set", "hidden_channels=8")


def write_toml(path: Path, settings: dict[str, Any]) -> None:
    lines = [f"{key} = {json.dumps(v)}" for key, v in settings.items() if not isinstance(v, dict)]
    for key, table in settings.items():
        if isinstance(table, dict):
            lines += [f"[{key}]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
    path.write_text("\n".join(lines))


def write_npz(path: Path) -> None:
    """A ring of 60 nodes in three classes, with names for nodes and classes."""
    labels = np.repeat([0, 1, 2], 20)
    np.savez(
        path,
        edges=np.stack([np.arange(60), (np.arange(60) + 1) % 60], axis=1),
        labels=labels,
        feat_indptr=np.arange(61),
        feat_indices=labels,
        feat_shape=np.array([60, 3]),
        classes=np.array(["red", "green", "blue"]),
        names=np.array([f"node-{i}" for i in range(60)]),
    )


def write_tables(folder: Path) -> None:
    """40 nodes, and their edges in one file and in two."""
    rng = np.random.default_rng(0)
    lines = [f"n{a},n{b}" for a, b in rng.integers(0, 40, (150, 2))]
    (folder / "a.csv").write_text("\n".join(["source,target", *lines[:70]]))
    (folder / "b.csv").write_text("\n".join(["source,target", *lines[70:]]))
    (folder / "all.csv").write_text("\n".join(["source,target", *lines]))
    rows = [f"n{i},{rng.normal():.3f},{'xyz'[i % 3] if i % 4 else ''}" for i in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,kind", *rows]))


def several_labels() -> Graph:
    graph = synthetic(**SETTINGS["dataset_options"])
    return replace(graph, y=(graph.x[:, :4] > 0).long(), name="several")


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what differs from run to run, also in its parts."""
    timed = ("seconds", "_per_second")
    kept = {key: value for key, value in record.items() if not key.endswith(timed) and key != "out"}
    return {key: lasting(part) if isinstance(part, dict) else part for key, part in kept.items()}


def interrupt_after_a_checkpoint(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """The next training in the folder is interrupted once it has a checkpoint."""
    train_epoch = loop._train_epoch

    def interrupted(*args: Any, **more: Any) -> Any:
        if Run(folder).load_checkpoint() is not None:
            raise KeyboardInterrupt
        return train_epoch(*args, **more)

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(loop, "_train_epoch", interrupted)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
