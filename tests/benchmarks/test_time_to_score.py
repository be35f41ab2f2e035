"""The large noisy tables, and the time to a score on a tiny version of them."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.noisy_tables import CLASSES, write_tables
from benchmarks.time_to_score import measure


def test_the_tables_are_as_noisy_as_they_say(tmp_path: Path) -> None:
    paths = write_tables(tmp_path, 8000, 80_000, labelled=0.5, seed=1)
    nodes, edges = (pd.read_csv(path) for path in paths)
    assert len(nodes) == 8000
    assert 60_000 < len(edges) <= 80_000
    pairs = np.sort(edges.to_numpy(dtype=str), axis=1)
    assert len(np.unique(pairs, axis=0)) == len(edges)
    assert (edges.source != edges.target).all()
    shares = nodes.label.value_counts(normalize=True)
    assert len(shares) == CLASSES
    assert shares.iloc[0] > 4 * shares.iloc[-1]
    assert 0.45 < nodes.label.notna().mean() < 0.55
    degree = edges.stack().value_counts()
    assert degree.max() > 10 * degree.median()
    # Neighbours agree more often than by chance, and far from always.
    label = nodes.set_index("id").label
    ends = [label.reindex(edges[end]).to_numpy() for end in ("source", "target")]
    known = pd.notna(ends[0]) & pd.notna(ends[1])
    assert 0.4 < (ends[0][known] == ends[1][known]).mean() < 0.8


def test_what_is_measured(tmp_path: Path) -> None:
    write_tables(tmp_path, 300, 2000)
    found = measure(tmp_path, ["max_epochs=4"], math.inf)
    assert found["finished"]
    assert [point["epoch"] for point in found["points"]] == [1, 2, 3, 4]
    assert found["final_test_score"] == found["points"][-1]["test_score"]
    reached = found["reached"]["0.9"]
    assert reached["test_score"] >= 0.9 * found["final_test_score"]
    assert 0 < reached["cpu_seconds"] <= found["points"][-1]["cpu_seconds"]
    assert not measure(tmp_path, ["max_epochs=4"], 0.0)["finished"]
