"""Columns of an edge table become features of edges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lgcn
from lgcn.errors import CheckpointError, DataError, UsageError
from lgcn.inference import TrainedRun
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_tables import import_tables

NODES = pd.DataFrame({"id": list("abcd"), "size": [1.0, 2.0, 3.0, 5.0]})
EDGES = pd.DataFrame(
    {
        "source": ["a", "b", "c", "a"],
        "target": ["b", "c", "d", "a"],
        "amount": [1.0, 2.0, 6.0, 1000.0],
        "kind": ["gift", "loan", "gift", "loan"],
        "w": [1.0, 2.0, 3.0, 4.0],
    }
)


def by_ends(graph: lgcn.Graph) -> dict[str, list[float]]:
    assert graph.edge_attr is not None
    assert graph.node_ids is not None
    names = graph.node_ids[graph.edge_index.numpy()]
    rows = graph.edge_attr.tolist()
    return {s + t: row for s, t, row in zip(*names, rows, strict=True)}


def test_numbers_are_scaled_and_categories_become_columns() -> None:
    found = import_tables(EDGES, NODES, edge_columns=["amount", "kind"], directed=True)
    graph = found.graph
    assert graph.edge_encoder is not None
    assert graph.edge_encoder.feature_names == ("amount", "kind=gift", "kind=loan")
    # The self-loop is left out, and its amount scales nothing.
    mean, deviation = 3.0, float(np.std([1, 2, 6]))
    expected = {
        end: pytest.approx([(amount - mean) / deviation, gift, 1 - gift])
        for end, amount, gift in (("ab", 1, 1), ("bc", 2, 0), ("cd", 6, 1))
    }
    assert by_ends(graph) == expected
    both = import_tables(EDGES, NODES, edge_columns=["amount", "kind"]).graph
    assert by_ends(both) == expected | {end[::-1]: row for end, row in expected.items()}


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    directed=st.booleans(),
    weighted=st.booleans(),
    size=st.integers(2, 8),
)
def test_it_is_the_graph_of_edge_index(
    seed: int, directed: bool, weighted: bool, size: int
) -> None:
    rng = np.random.default_rng(seed)
    count = 12
    frame = pd.DataFrame(
        {
            "source": [0, *rng.integers(0, size, count)],
            "target": [1, *rng.integers(0, size, count)],
            "one": rng.normal(size=count + 1),
            "w": rng.random(count + 1).astype(np.float32),
        }
    )
    nodes = pd.DataFrame({"id": range(size), "x": rng.normal(size=size)})
    options: dict[str, Any] = {"weight_column": "w"} if weighted else {}
    graph = import_tables(frame, nodes, edge_columns="one", directed=directed, **options).graph
    loops = frame["source"] == frame["target"]
    scaled = (frame["one"] - frame["one"][~loops].mean()) / frame["one"][~loops].std(ddof=0)
    expected = lgcn.Graph.from_edge_index(
        torch.tensor(frame[["source", "target"]].to_numpy().T),
        size,
        edge_attr=torch.tensor(scaled.to_numpy(), dtype=torch.float32),
        edge_weight=torch.tensor(frame["w"].to_numpy()) if weighted else None,
        directed=directed,
    )
    assert torch.equal(graph.rowptr.long(), expected.rowptr)
    assert torch.equal(graph.col.long(), expected.col)
    assert graph.edge_attr is not None
    torch.testing.assert_close(graph.edge_attr, expected.edge_attr, rtol=1e-4, atol=1e-5)
    if weighted:
        assert torch.equal(graph.edge_weight, expected.edge_weight)


def test_missing_cells_count_as_the_mean_and_unknown_categories_as_none() -> None:
    known = import_tables(EDGES, NODES, edge_columns=["amount", "kind"]).graph.edge_encoder
    assert known is not None
    again = FeatureEncoder.from_dict(known.to_dict())
    new = EDGES.assign(amount=[None, "7", "?", "3"], kind=["theft", None, "loan", "gift"])
    with pytest.warns(UserWarning, match=r"'kind' has categories .*'theft'"):
        graph = import_tables(new, NODES, edge_encoder=again, directed=True).graph
    found = by_ends(graph)
    assert found["ab"] == [0, 0, 0]
    assert found["bc"] == [pytest.approx(4 / np.std([1, 2, 6]), rel=1e-5), 0, 0]
    assert found["cd"] == [0, 0, 1]
    assert graph.edge_encoder is not None


def test_text_files_are_read_the_same_way(tmp_path: Path) -> None:
    EDGES.to_csv(tmp_path / "e.csv", index=False)
    NODES.to_csv(tmp_path / "n.csv", index=False)
    EDGES.to_parquet(tmp_path / "e.parquet")
    options = {"edge_columns": ["amount", "kind"], "weight_column": "w"}
    expected = import_tables(EDGES, NODES, **options).graph
    for name in ("e.csv", "e.parquet"):
        graph = import_tables(tmp_path / name, tmp_path / "n.csv", **options).graph
        assert torch.equal(graph.edge_attr, expected.edge_attr)
        assert torch.equal(graph.edge_weight, expected.edge_weight)


def test_decimal_commas_and_unknown_nodes(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source;target;v\na;b;1,5\nb;c;2,5\nx;a;9000,5\nc;d;3,5\n")
    graph = import_tables(
        tmp_path / "e.csv", NODES, edge_columns="v", unknown_nodes="drop", directed=True
    ).graph
    half = 1 / np.std([1.5, 2.5, 3.5])
    assert by_ends(graph) == {
        "ab": [pytest.approx(-half)],
        "bc": [0],
        "cd": [pytest.approx(half)],
    }


def test_features_of_duplicates_are_averaged_and_noted() -> None:
    twice = pd.concat([EDGES, EDGES.assign(source=EDGES.target, target=EDGES.source, amount=0.0)])
    found = import_tables(twice, NODES, edge_columns="amount")
    assert any("several times have the mean" in note for note in found.notes)
    rows = by_ends(found.graph)
    assert rows["ab"] == rows["ba"]
    assert rows["cd"][0] > rows["ab"][0]


@pytest.mark.parametrize(
    ("edges", "options", "error", "message"),
    [
        (EDGES, {"edge_columns": "cost"}, UsageError, "edge_columns must be one of its columns"),
        (EDGES, {"edge_columns": "source"}, UsageError, "must not name 'source'"),
        (
            EDGES,
            {"edge_columns": "w", "weight_column": "w"},
            UsageError,
            "must not name 'w', which is an end of the edges or their weight",
        ),
        (EDGES, {"edge_columns": ["w", "w"]}, UsageError, "edge_columns names 'w' twice"),
        (None, {"edge_columns": "w"}, UsageError, "edge_columns need edges, got edges=None"),
        (
            EDGES.assign(w=1.0),
            {"edge_columns": "w"},
            DataError,
            r"edge_columns say nothing about edges: .*'w'.*constant",
        ),
        (
            EDGES.drop(columns="w"),
            {"edge_encoder": "fitted"},
            DataError,
            r"lacks the column 'w', which the model reads of each edge \(edge_columns\)",
        ),
    ],
)
def test_wrong_edge_columns_are_refused(
    edges: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    if "edge_encoder" in options:
        fitted = import_tables(EDGES, NODES, edge_columns="w").graph.edge_encoder
        options = {"edge_encoder": fitted}
    with pytest.raises(error, match=message):
        import_tables(edges, NODES, **options)


def test_too_many_features_and_matrices_are_refused(tmp_path: Path) -> None:
    size = 400
    ring = pd.DataFrame(
        {
            "source": range(size),
            "target": [*range(1, size), 0],
            "kind": [f"k{i % 300}" for i in range(size)],
            "note": [f"word{i} other{i} third{i}" for i in range(size)],
        }
    )
    nodes = pd.DataFrame({"id": range(size), "x": np.arange(size) % 7})
    with pytest.raises(DataError, match=r"1200 features per edge, more than 256"):
        import_tables(ring, nodes, edge_columns="note")
    with pytest.raises(DataError, match=r"'kind' .* in 400 rows, like an id\. Omit them"):
        import_tables(ring, nodes, edge_columns="kind")
    (tmp_path / "e.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n4 4 2\n1 2 0.5\n2 3 1.5\n"
    )
    with pytest.raises(UsageError, match=r"edge_columns need a table .* is a matrix"):
        import_tables(tmp_path / "e.mtx", NODES, edge_columns="weight")


def tables(folder: Path, prefix: str, seed: int) -> dict[str, str]:
    """Labels are the sign of a sum over neighbours, with signs that the kind of the edge gives."""
    rng = np.random.default_rng(seed)
    size, degree = 300, 5
    x = rng.normal(size=size)
    target = np.repeat(np.arange(size), degree)
    source = (target + rng.integers(1, size, len(target))) % size
    edges = pd.DataFrame({"source": source, "target": target}).drop_duplicates()
    edges["trust"] = rng.choice(["friend", "enemy"], len(edges))
    edges["since"] = np.where(rng.random(len(edges)) < 0.1, np.nan, rng.normal(size=len(edges)))
    sign = np.where(edges["trust"] == "friend", 1, -1)
    total = np.bincount(edges["target"], sign * x[edges["source"]], minlength=size)
    nodes = pd.DataFrame({"id": range(size), "x": x, "label": np.where(total > 0, "up", "down")})
    for frame in (nodes, edges):
        for column in frame.columns.intersection(["id", "source", "target"]):
            frame[column] = [f"{prefix}{number}" for number in frame[column]]
    folder.mkdir()
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    return {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")}


def flags(given: dict[str, str]) -> list[str]:
    return [part for name, value in given.items() for part in (f"--{name}", value)]


SMALL = (
    *("model=residual", "aggregate=sum", "num_layers=1", "hidden_channels=16", "max_epochs=80"),
    *("dropout=0", "training=whole", "baselines=false"),
)


def test_a_run_reads_new_tables_as_those_of_its_training(
    lgcn_: Callable[..., Any], empty_folder: Path
) -> None:
    tmp_path = empty_folder
    old, new = tables(tmp_path / "old", "p", 0), tables(tmp_path / "new", "q", 1)
    common = ["--label-column", "label", "--directed"]
    sets = [part for one in SMALL for part in ("--set", one)]
    columns = ["--edge-columns", "trust", "--edge-columns", "since"]
    done = lgcn_("train", *flags(old), *common, *columns, *sets, "--out", "run", "--quiet")
    assert done.code == 0, done.err
    run = TrainedRun("run")
    assert run.spec.edge_channels == 3
    assert (tmp_path / "run/edge_features.json").exists()
    assert run.result()["test_score"] > 0.8
    assert run.evaluate(**new).splits["test"]["score"] > 0.75
    assert lgcn_("predict", "run", *flags(new), "--output", "p.csv").code == 0
    right = pd.read_csv("p.csv")
    assert (right["predicted"] == right["true"]).mean() > 0.75
    graph = run.graph(**new)
    torch.testing.assert_close(run.predict(**new), run.scores(graph, memory="1MB"))
    assert run.embed(**new).shape == (300, 16)
    assert lgcn_("evaluate", "run", "--json").code == 0
    assert lgcn_("report", "run").code == 0

    lacking = pd.read_csv(new["edges"]).drop(columns="trust")
    lacking.to_csv("lacking.csv", index=False)
    new["edges"] = "lacking.csv"
    with pytest.raises(DataError, match="lacks the column 'trust', which the model reads"):
        run.predict(**new)
    assert "edge_features=none" in lgcn_("explain", "run", "p1").message
    assert "--edge-columns" in lgcn_("data", "check", *flags(old), "--edge-columns", "x").message
    refused = lgcn_("train", *flags(old), *common, *columns, "--out", "other").message
    assert "omit --edge-columns" in refused
    assert not Path("other").exists()
    (tmp_path / "run/edge_features.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"edge_features\.json is damaged"):
        run.predict()


def test_a_model_that_does_not_read_edge_columns_is_refused_at_once(tmp_path: Path) -> None:
    from lgcn.datasets.graph_source import choose_source
    from lgcn.training.prepare import prepare_training

    given = {"label_column": "label", "directed": True, **tables(tmp_path / "old", "p", 0)}
    source = choose_source(**given, edge_columns="trust")
    both = {"model": "residual", "directions": "both"}
    for settings_, message in (
        ({}, "model=lgcn does not read .*edge_columns.*: use model=residual"),
        ({"model": "residual", "aggregate": "attention"}, "aggregate=attention does not read"),
        ({"model": "residual", "time_limit": "1m"}, "time_limit and max_trials .*edge_columns"),
        ({**both, "max_trials": 2, "edge_features": "none"}, "time_limit and max_trials"),
    ):
        with pytest.raises(UsageError, match=message):
            prepare_training(settings_, source=source, out=tmp_path / "run")
    prepare_training({**both, "edge_features": "none"}, source=source, out=tmp_path / "run")
    undirected = choose_source(**{**given, "directed": False})
    with pytest.raises(UsageError, match=r"directions=both needs a directed graph.*directed=True"):
        prepare_training(both, source=undirected, out=tmp_path / "run")
    wrong = choose_source(**given, edge_columns="trusty")
    with pytest.raises(UsageError, match="edge_columns must be one of its columns, got 'trusty'"):
        prepare_training({"model": "residual"}, source=wrong, out=tmp_path / "run")
    atoms = pd.DataFrame({"graph": ["g"], "id": [1]})
    with pytest.raises(UsageError, match=r"edge_columns"):
        lgcn.load_dataset(
            "graph_tables", edges=EDGES, graphs=atoms, nodes=atoms, edge_columns="kind"
        )
