"""Small trained runs for tests of reports: tables on disk with names that try to break a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from lgcn.datasets.graph_source import choose_source
from lgcn.training.prepare import prepare_training, read_settings

# They would end a script, open an element, run as a formula, or reverse the text around them.
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    'it\'s "quoted" & \\back',
    "\u202eright to left\u2066",
    "emoji 🦑, 中文, עברית",
]
CLASSES = ["red", "<b>blue</b>", "g\u202ereen"]
SIZE = 150
ISOLATED = 3  # the last nodes have no neighbours


def write_tables(folder: Path, *, seed: int = 0) -> dict[str, Any]:
    """Writes edges.csv and nodes.csv of a graph with three classes; gives its columns."""
    rng = np.random.default_rng(seed)
    group = np.arange(SIZE) % 3
    ends = rng.integers(0, SIZE - ISOLATED, (1200, 2))
    same = group[ends[:, 0]] == group[ends[:, 1]]
    ends = ends[(same | (rng.random(len(ends)) < 0.15)) & (ends[:, 0] != ends[:, 1])]
    ids = np.array([f"n{place}" for place in range(SIZE)], dtype=object)
    ids[: len(HOSTILE)] = HOSTILE
    columns = {
        "id": pa.array(ids.tolist()),
        "height </title>": (group + rng.normal(size=SIZE)).round(3),
        "noise": rng.normal(size=SIZE).round(3),
        "colour": pa.array(np.array(CLASSES)[group].tolist(), mask=rng.random(SIZE) < 0.1),
        "tags": [";".join(t for t, on in zip("ab<", row, strict=True) if on) or "a"
                 for row in np.column_stack([group != 0, group != 1, rng.random(SIZE) < 0.3])],
        "weight": (group * 2.0 + rng.normal(size=SIZE) * 0.3).round(3),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    csv.write_csv(pa.table(columns), folder / "nodes.csv")
    edges = pa.table({"source": ids[ends[:, 0]].tolist(), "target": ids[ends[:, 1]].tolist()})
    csv.write_csv(edges, folder / "edges.csv")
    return columns


KINDS: dict[str, dict[str, Any]] = {
    "classes": {"label_column": "colour", "ignore_columns": ["tags", "weight"]},
    "labels": {
        "label_column": "tags", "label_separator": ";", "ignore_columns": ["colour", "weight"],
    },
    "numbers": {
        "label_column": "weight", "task": "regression", "ignore_columns": ["colour", "tags"],
    },
}  # fmt: skip


GRAPHS = 60
GRAPH_KINDS: dict[str, dict[str, Any]] = {
    "graphs": {"label_column": "kind"},
    "graph_numbers": {"label_column": "size", "task": "regression"},
}


def write_graph_tables(folder: Path, count: int = GRAPHS, seed: int = 0) -> None:
    """Writes graphs.csv, edges.csv and nodes.csv of rings, some with chords.

    Graph 5 has two nodes and no edge, graph 6 no nodes, and graph 7 has 200 nodes.
    """
    rng = np.random.default_rng(seed)
    ids = [*HOSTILE, *(f"g{number}" for number in range(len(HOSTILE), count))]
    sizes = rng.integers(5, 12, count)
    sizes[5:8] = [2, 0, 200]
    chords = np.where(sizes > 4, rng.integers(0, 3, count), 0)
    graphs = {
        "graph": ids,
        "kind": pa.array(np.array(CLASSES)[chords].tolist(), mask=rng.random(count) < 0.1),
        "size": sizes + chords,
    }
    of_node = np.repeat(np.arange(count), sizes)
    numbers = np.concatenate([np.arange(size) for size in sizes])
    nodes = {
        "graph": np.array(ids, dtype=object)[of_node].tolist(),
        "id": numbers,
        "letter": [["C", "<i>N</i>", "O"][number % 3] for number in numbers],
        "x": (rng.normal(size=len(numbers)) + chords[of_node]).round(3),
    }
    ends = [
        (ids[number], a, b)
        for number, size in enumerate(sizes.tolist())
        if size > 2
        for a, b in [
            *((i, (i + 1) % size) for i in range(size)),
            *((i, i + 2) for i in range(int(chords[number]))),
        ]
    ]
    edges = dict(
        zip(("graph", "source", "target"), map(list, zip(*ends, strict=True)), strict=True)
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in (("graphs", graphs), ("nodes", nodes), ("edges", edges)):
        csv.write_csv(pa.table(columns), folder / f"{name}.csv")


def train_graph_run(folder: Path, kind: str = "graphs", *settings: str) -> Path:
    """The same as `train_run` for the whole graphs of `write_graph_tables`.

    Args:
        folder: Where the tables go, and the run.
        kind: What is predicted, a key of `GRAPH_KINDS`.
        *settings: More settings.
    """
    write_graph_tables(folder)
    tables = {name: folder / f"{name}.csv" for name in ("graphs", "edges", "nodes")}
    shares = {"val": 0.25, "test": 0.35}
    source = choose_source(None, graph_column="graph", **tables, **shares, **GRAPH_KINDS[kind])
    given = ["max_epochs=6", "hidden_channels=8", "num_layers=1", *settings]
    run = folder / "run"
    prepare_training(read_settings(None, given), source=source, out=run).train()
    return run


def train_run(folder: Path, kind: str = "classes", *settings: str, **options: Any) -> Path:
    """Trains for a few epochs on the tables of `write_tables`; gives the run folder.

    Args:
        folder: Where the tables go, and the run.
        kind: What is predicted, a key of `KINDS`.
        *settings: More settings, as `--set` takes them.
        **options: More options of the tables.
    """
    write_tables(folder)
    tables = {"edges": folder / "edges.csv", "nodes": folder / "nodes.csv"}
    source = choose_source(None, **tables, **(KINDS[kind] | options))
    given = ["max_epochs=6", "labels=many", "hidden_channels=8", *settings]
    run = folder / "run"
    prepare_training(read_settings(None, given), source=source, out=run).train()
    return run
