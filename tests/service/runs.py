"""Small graphs of every kind, and runs that were trained on them."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lgcn.datasets.graph_source import choose_source
from lgcn.training.prepare import prepare_training

LGCN: dict[str, Any] = {"hidden_channels": 8, "k": 3}
NODES = 60


@dataclass
class Case:
    """A graph as two tables, and how a model is trained on it.

    Args:
        label: The label columns.
        tables: Options of tables.
        settings: Settings of the training.
        columns: Columns of the node table to keep. (default: all)
        weighted: Whether edges have weights.
        numbers: Whether ids are whole numbers.
    """

    label: str | list[str] = "kind"
    tables: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None
    weighted: bool = False
    numbers: bool = False


CASES = {
    "classes": Case(),
    "two layers": Case(
        settings={"classifier": "normalized", "embedding": "gcn", "num_layers": 2, "cnn": "double"}
    ),
    "several labels": Case(label=["one", "two"]),
    "regression": Case(label="price", tables={"task": "regression"}),
    "directed with weights": Case(
        tables={"directed": True, "weight_column": "weight"}, weighted=True, numbers=True
    ),
    "no features": Case(columns=["id", "kind"], settings={"positions": "none"}),
    "batch norm": Case(settings={"batch_norm": "batch"}),
    "residual": Case(settings={"model": "residual", "num_layers": 2, "hidden_channels": 8}),
    "trees": Case(settings={"model": "boosting", "trees": 4}),
    "ensemble": Case(settings={"max_trials": 2}),
}


def node_table(count: int = NODES, *, numbers: bool = False, first: int = 0) -> pd.DataFrame:
    """Nodes with a cell of every kind, some of them empty."""
    rng = np.random.default_rng(3)
    size = rng.normal(size=count + first)
    every = np.arange(count + first)
    kind = np.where(size + 0.3 * rng.normal(size=len(every)) > 0, "art", "law")
    words = np.array(["a red house", "the blue sea", "red and blue", ""])
    frame = pd.DataFrame({
        "id": every + 1000 if numbers else [f"p{i}" for i in every],
        "size": [f"{1000 * s:.1f}".replace(".", ",") for s in size],
        "width": np.where(every % 7 == 0, np.nan, size.round(3)),
        "color": np.array(["red", "blue", "green"])[every % 3],
        "says": words[rng.integers(0, 4, len(every))],
        "since": [f"{2000 + i % 20}-{1 + i % 12:02d}-05" for i in every],
        "tags": [";".join(sorted({"xyzuvw"[j] for j in rng.integers(0, 6, 3)})) for _ in every],
        "kind": np.where(every % 5 == 0, "", kind),
        "one": (size > 0).astype(int),
        "two": (every % 2),
        "price": np.where(every % 6 == 0, np.nan, (100 * size + 500).round(2)),
    })  # fmt: skip
    return frame.iloc[first:]


def edge_table(*, numbers: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    ends = rng.integers(0, NODES, (150, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    names = ends + 1000 if numbers else np.array([f"p{i}" for i in range(NODES)])[ends]
    frame = pd.DataFrame(names, columns=["source", "target"])
    frame["weight"] = rng.uniform(0.2, 3, len(frame)).round(3)
    return frame


def write(folder: Path, nodes: pd.DataFrame, edges: pd.DataFrame) -> dict[str, str]:
    folder.mkdir(exist_ok=True, parents=True)
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    return {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}


def tables_of(case: Case) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of a case; labels of other cases are left out."""
    nodes, edges = node_table(numbers=case.numbers), edge_table(numbers=case.numbers)
    labels = [case.label] if isinstance(case.label, str) else case.label
    others = [name for name in ("kind", "one", "two", "price") if name not in labels]
    return nodes.drop(columns=others)[case.columns or slice(None)], edges


def train(name: str, folder: Path) -> Path:
    """Trains the case of that name; gives the run folder."""
    case = CASES[name]
    nodes, edges = tables_of(case)
    edges = edges if case.weighted else edges.drop(columns="weight")
    paths = write(folder / "data", nodes, edges)
    kinds = {"list_columns": "tags"} if "tags" in nodes else {}
    source = choose_source(**paths, label_column=case.label, **kinds, **case.tables)
    own = {} if "model" in case.settings or "max_trials" in case.settings else LGCN
    settings = {"max_epochs": 3, "device": "cpu", "baselines": False, **own, **case.settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tables are messy on purpose
        prepare_training(settings, source=source, out=folder / "run").train()
    return folder / "run"
