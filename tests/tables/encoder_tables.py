"""Tables for the tests of the features, and the encoder of all their rows."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from lgcn.tables.encoder import FeatureEncoder

WORDS = [
    "graph",
    "node",
    "edge",
    "large",
    "small",
    "learn",
    "tree",
    "água",
    "naïve",
    "数据",
    "data",
]


def table(**columns: Any) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def all_rows(data: pa.Table) -> np.ndarray[Any, Any]:
    return np.ones(data.num_rows, dtype=bool)


def fit_all(data: pa.Table, **options: Any) -> FeatureEncoder:
    return FeatureEncoder.fit(data, all_rows(data), **options)


def dense(x: torch.Tensor) -> np.ndarray[Any, Any]:
    return (x.to_dense() if x.layout != torch.strided else x).numpy()


def people(size: int = 60, seed: int = 0) -> pa.Table:
    """An ordinary table: every kind of column, with cells missing."""
    rng = np.random.default_rng(seed)

    def holes(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    day = dt.date(2020, 1, 1)
    return pa.table(
        {
            "age": pa.array(holes(rng.integers(18, 80, size).tolist()), pa.int64()),
            "price": pa.array(holes(rng.lognormal(3, 1, size).tolist()), pa.float64()),
            "member": pa.array(holes((rng.random(size) < 0.5).tolist()), pa.bool_()),
            "joined": pa.array(
                holes([day + dt.timedelta(int(d)) for d in rng.integers(0, 900, size)])
            ),
            "city": pa.array(holes(rng.choice(["Oslo", "Zürich", "東京", "Lima"], size).tolist())),
            "about": pa.array(
                holes([" ".join(rng.choice(WORDS, 6)) + f" w{i}" for i in range(size)])
            ),
            "embedding": pa.array(holes(rng.normal(size=(size, 3)).tolist())),
        }
    )
