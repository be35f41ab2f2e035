"""Features in a table of their own, against pandas."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import lgcn
from lgcn.errors import LGCNError
from lgcn.tables.from_tables import import_tables

NODES = pd.DataFrame({"id": ["p3", "p1", "p2", "p0"], "y": ["a", "b", "a", "b"]})
LONG = pd.DataFrame(
    {
        "node": ["p0", "p1", "p1", "p3", "p3", "p1"],
        "feature": ["graph", "tree", "graph", "tree", "leaf", "tree"],
        "value": [2.0, 1.0, 4.0, 3.0, -1.0, 1.0],
    }
)
EDGES = {"source": ["p0", "p1"], "target": ["p1", "p2"]}


def dense(graph: Any) -> Any:
    return graph.x.to_dense().numpy()


def wanted(frame: pd.DataFrame) -> Any:
    wide = frame.pivot_table(index="node", columns="feature", values="value", aggfunc="sum")
    wide = wide.reindex(NODES["id"]).fillna(0)
    return (wide / wide.abs().max()).to_numpy()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "memory"])
def test_rows_of_node_feature_value(suffix: str, tmp_path: Path):
    features: Any = tmp_path / f"f.{suffix}"
    if suffix == "csv":
        LONG.to_csv(features, index=False)
    elif suffix == "jsonl":
        LONG.to_json(features, orient="records", lines=True)
    elif suffix == "parquet":
        LONG.to_parquet(features, index=False)
    else:
        features = LONG
    graph = lgcn.from_tables(EDGES, NODES, features=features, ignore_columns=["y"])
    np.testing.assert_allclose(dense(graph), wanted(LONG), rtol=1e-6)
    assert graph.encoder.feature_names == ("features:graph", "features:leaf", "features:tree")
    new = pd.DataFrame({"id": ["q"], "y": ["a"]})
    more = {"node": ["q", "q"], "feature": ["leaf", "new"], "value": [2.0, 1.0]}
    later = lgcn.from_tables(None, new, features=more, encoder=graph.encoder)
    assert dense(later).tolist() == [[0, 2, 0]]
    with pytest.raises(LGCNError, match="features must be given"):
        lgcn.from_tables(None, new, encoder=graph.encoder)


def test_columns_in_any_order_and_no_values(tmp_path: Path):
    features = {"word": ["a", "b"], "n": [1, 2], "id": ["p0", "p1"]}
    graph = lgcn.from_tables(EDGES, NODES, features=features, ignore_columns="y")
    assert dense(graph).tolist() == [[0, 0], [0, 1], [0, 0], [1, 0]]
    pairs = {"a": ["p0", "p1"], "b": ["x", "y"]}
    graph = lgcn.from_tables(EDGES, NODES, features=pairs, ignore_columns="y")
    assert dense(graph).tolist() == [[0, 0], [0, 1], [0, 0], [1, 0]]
    path = tmp_path / "f.txt"  # numbers without names, as bags of words are
    path.write_text("0 5 1\n0 7 2\n2 5 3\n")
    nodes = {"id": [0, 1, 2], "x": [1.0, 2.0, 4.0]}
    found = import_tables(None, nodes, features=path)
    assert "no line of column names" in found.notes[0]
    assert found.graph.encoder.feature_names == ("x", "features:5", "features:7")


def test_a_matrix_in_the_order_of_the_nodes(tmp_path: Path):
    matrix = sp.coo_matrix(([2.0, 4.0, 1.0], ([0, 1, 3], [5, 5, 1])), shape=(4, 900))
    sp.save_npz(tmp_path / "f.npz", matrix.tocsr())
    scipy.io.mmwrite(tmp_path / "f.mtx", matrix)
    for name in ("f.npz", "f.mtx"):
        graph = lgcn.from_tables(EDGES, NODES, features=tmp_path / name, ignore_columns="y")
        assert dense(graph).tolist() == [[0, 0.5], [0, 1], [0, 0], [1, 0]]
        assert graph.encoder.feature_names == ("features:1", "features:5")
    sp.save_npz(tmp_path / "f.npz", sp.eye(3).tocsr())
    with pytest.raises(LGCNError, match=r"one row per row of nodes \(4\).*got 3"):
        lgcn.from_tables(EDGES, NODES, features=tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"node": ["p0", "zz"], "feature": ["a", "b"]}, "'zz' is no node of nodes.*drop"),
        ({"node": ["p0"]}, "must have the columns node, feature and perhaps value, got 'node'"),
        ({"node": ["p0"], "feature": ["a"], "value": ["x"]}, "'value' must hold the values"),
        ({"node": ["p0"], "feature": ["a"], "value": [float("inf")]}, "row 0.*finite"),
        ({"node": [], "feature": []}, "no feature of any node"),
        ({"node": ["p0"], "feature": [None]}, "no feature of any node"),
    ],
)
def test_bad_features(features: Any, message: str):
    with pytest.raises(LGCNError, match=message):
        lgcn.from_tables(EDGES, NODES, features=features)


def test_bad_cells_have_their_line(tmp_path: Path):
    path = tmp_path / "f.csv"
    path.write_text("node,feature,value\np0,a,1\np1,b,x\n")
    with pytest.raises(LGCNError, match=r"f\.csv, line 3, column 'value': must be a number"):
        lgcn.from_tables(EDGES, NODES, features=path)
    path.write_text("node,feature\np0,a\nzz,b\n")
    with pytest.raises(LGCNError, match=r"f\.csv, line 3, column 'node': 'zz'"):
        lgcn.from_tables(EDGES, NODES, features=path)
    with pytest.warns(UserWarning, match="1 rows that name unknown nodes are left out"):
        graph = lgcn.from_tables(
            EDGES, NODES, features=path, unknown_nodes="drop", ignore_columns="y"
        )
    assert graph.num_features == 1
    nodes = NODES.assign(features=1.0)
    with pytest.raises(LGCNError, match="no column 'features'"):
        lgcn.from_tables(EDGES, nodes, features=path)
