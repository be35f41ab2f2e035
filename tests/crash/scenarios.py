"""Every command that writes: its inputs, and how its result is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .trials import Command

SMALL = """
hidden_channels = 4
num_layers = 1
k = 2
max_epochs = 2
training = "whole"
baselines = false
"""
TABLES = ("--edges", "edges.csv", "--nodes", "nodes.csv", "--label-column", "kind")
GRAPH = ("--nodes", "60", "--edges", "150", "--features", "4", "--classes", "3")
TRAIN = ("train", "--quiet", "--config", "small.toml", *TABLES)
ONE_EPOCH = ("--set", "max_epochs=1")
IMPORT = ("import", "store", *TABLES)
TABLE = ("reproduce", "table4", "--datasets", "cora", "--preset", "default")
OLD = b"what was here before\n"
# Files beside the results that belong to the user, though some look like what a writer leaves.
BYSTANDERS = (
    "notes.txt",
    ".new.csv.swp",
    ".old.tsv.bak",
    "run/notes.txt",
    "run/.run.json.swp",
    "old-run/notes.txt",
    "old-run/checkpoint-plan.txt",
    "store-notes/notes.txt",
)
# Files that exist before the trial.
OLD_FILES = ("old.tsv", "old.parquet", "old-embeddings.parquet", "old-download")

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Scenario:
    """A command and its result.

    Args:
        name: Name in reports.
        command: The command that is disturbed.
        target: The file or folder it writes.
        read: Returns the complete result, or raises LGCNError or FileNotFoundError.
        keeps_old: Whether an old result stays until the new one is complete. A run that is
            replaced at the user's request goes when its replacement starts.
        separate: Whether the target is a folder of files that appear one by one.
    """

    name: str
    command: Command
    target: str
    read: Read
    keeps_old: bool = True
    separate: bool = False


def write_inputs(folder: Path) -> None:
    """Tables of 400 nodes in three classes, and settings that train in a moment."""
    rng = np.random.default_rng(0)
    edges = [f"n{a},n{b}" for a, b in rng.integers(0, 400, (1200, 2))]
    rows = [f"n{i},{rng.normal() + i % 3:.3f},{'xyz'[i % 3] if i % 8 else ''}" for i in range(400)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (folder / "nodes.csv").write_text("\n".join(["id,size,kind", *rows]) + "\n")
    (folder / "small.toml").write_text(SMALL)


def read_file(path: Path) -> bytes:
    return path.read_bytes()


def read_run(path: Path) -> Any:
    """Model and result, as ``lgcn predict`` reads them."""
    from lgcn.training import Run

    run = Run(path)
    run.load_model()
    run.temperature()
    run.encoder()
    run.metrics()
    run.split(400)
    names = (
        "run.json",
        "features.json",
        "split.npz",
        "model.safetensors",
        "metrics.json",
        "result.json",
    )
    return {name: lasting(path / name) for name in names if (path / name).exists()}


def read_saved(path: Path) -> Any:
    from lgcn import LGCNClassifier

    LGCNClassifier.load(path)
    return {**read_run(path), "estimator.json": (path / "estimator.json").read_bytes()}


def read_store(path: Path) -> Any:
    from lgcn.store.open_store import open_store

    open_store(path)
    return snapshot(path)


def read_partition(path: Path) -> Any:
    from lgcn.partition import open_partition

    if not path.is_dir():
        raise FileNotFoundError(path)
    partition = open_partition(path)
    for number in range(partition.num_parts):
        partition.shard(number)
    return snapshot(path)


def read_folder(path: Path) -> Any:
    if not path.is_dir():
        raise FileNotFoundError(path)
    return snapshot(path)


def snapshot(folder: Path) -> dict[str, Any]:
    """All folders and files below a folder with their contents, without times."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else lasting(path)
        for path in sorted(folder.rglob("*"))
    }


def lasting(path: Path) -> Any:
    """The content of a file without the times that differ from run to run."""
    content = path.read_bytes()
    if path.name not in ("result.json", "metrics.json", "checkpoint.json"):
        return content
    return _without_times(json.loads(content))


def _without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_times(part) for part in value]
    if not isinstance(value, dict):
        return value
    timed = ("seconds", "_per_second", "sha256")  # of a checkpoint, which holds times
    kept = {key: part for key, part in value.items() if not key.endswith(timed)}
    return {key: _without_times(part) for key, part in kept.items()}


def _lgcn(*arguments: str) -> Command:
    return Command(arguments)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        # One epoch: resuming from a checkpoint is the scenario below.
        Scenario("train", _lgcn(*TRAIN, *ONE_EPOCH, "--out", "run"), "run", read_run),
        Scenario(
            "train --resume",
            _lgcn("train", "--quiet", "--out", "stopped", "--resume"),
            "stopped",
            read_run,
        ),
        Scenario(
            "train --overwrite",
            _lgcn(*TRAIN, "--seed", "1", "--out", "old-run", "--overwrite"),
            "old-run",
            read_run,
            keeps_old=False,
        ),
        Scenario(
            "predict", _lgcn("predict", "trained", "--output", "new.csv"), "new.csv", read_file
        ),
        Scenario(
            "predict over .tsv",
            _lgcn("predict", "trained", "--output", "old.tsv"),
            "old.tsv",
            read_file,
        ),
        Scenario(
            "predict over .parquet",
            _lgcn("predict", "trained", "--output", "old.parquet"),
            "old.parquet",
            read_file,
        ),
        Scenario("embed", _lgcn("embed", "trained", "--output", "new.npy"), "new.npy", read_file),
        Scenario(
            "embed over .parquet",
            _lgcn("embed", "trained", "--output", "old-embeddings.parquet"),
            "old-embeddings.parquet",
            read_file,
        ),
        Scenario("import", _lgcn(*IMPORT), "store", read_store),
        Scenario(
            "import --overwrite",
            _lgcn("import", "old-store", *TABLES, "--overwrite"),
            "old-store",
            read_store,
        ),
        Scenario("generate", _lgcn("generate", "store", *GRAPH), "store", read_store),
        Scenario(
            "generate --overwrite",
            _lgcn("generate", "old-store", *GRAPH, "--overwrite"),
            "old-store",
            read_store,
        ),
        Scenario(
            "partition",
            _lgcn("partition", "old-store", "parts", "--parts", "2", "--method", "ldg"),
            "parts",
            read_partition,
        ),
        Scenario(
            "reproduce",
            _lgcn(*TABLE, "--seeds", "3", "--out", "tables", "--processes", "1"),
            "tables",
            read_folder,
            separate=True,
        ),
        Scenario("save", Command(("0", "model"), "save"), "model", read_saved),
        Scenario("save over", Command(("0", "old-model"), "save"), "old-model", read_saved),
        Scenario("write_store", Command(("store",), "write_store"), "store", read_store),
        Scenario(
            "download over", Command(("old-download",), "download"), "old-download", read_file
        ),
    )
}
