"""The store's import takes tables in the forms that `from_tables` takes."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from lgcn.errors import DataError, UsageError
from lgcn.store.import_store import import_store
from lgcn.store.open_store import open_store
from lgcn.tables.from_tables import import_tables

PAIRS = [(3, 1), (1, 2), (4, 0), (0, 1), (2, 3)]
NODES = {"id": [4, 3, 2, 1, 0], "x": [1.0, 2.0, 4.0, 8.0, 5.0]}


def same(store: Path, graph: Any) -> None:
    found = open_store(store).graph
    np.testing.assert_array_equal(found.rowptr, graph.rowptr)
    np.testing.assert_array_equal(found.col, graph.col)
    if graph.x is not None:
        dense = [
            x.to_dense() if hasattr(x, "to_dense") else np.asarray(x) for x in (found.x, graph.x)
        ]
        np.testing.assert_array_equal(*dense)


def forms(folder: Path) -> list[Any]:
    lines = "".join(f"{a}   {b}\n" for a, b in PAIRS)
    (folder / "snap.txt").write_text(f"# from  to\n{lines}")
    (folder / "bare.txt.gz").write_bytes(gzip.compress(lines.encode()))
    rows = [json.dumps({"source": a, "target": b}) for a, b in PAIRS]
    (folder / "e.jsonl").write_text("\n".join(rows))
    for i in range(2):
        part = "".join(f"{a};{b}\n" for a, b in PAIRS[3 * i : 3 * i + 3])
        (folder / f"p-{i}.csv").write_text(f"source;target\n{part}")
    names = ("snap.txt", "bare.txt.gz", "e.jsonl", "p-*.csv")
    return [*(folder / name for name in names), [folder / "p-0.csv", folder / "p-1.csv"]]


def test_edges_in_many_forms(tmp_path: Path):
    ends = {"source": [a for a, _ in PAIRS], "target": [b for _, b in PAIRS]}
    expected = import_tables(ends, NODES).graph
    for edges in forms(tmp_path):
        counts = import_store(tmp_path / "s", edges, NODES, overwrite=True)
        same(tmp_path / "s", expected)
        assert any("no line of column names" in note for note in counts["notes"]) == (
            edges == tmp_path / "bare.txt.gz"
        )
        assert import_store(tmp_path / "s", edges, overwrite=True)["nodes"] == 5


def test_bad_rows_of_these_forms_have_their_line(tmp_path: Path):
    (tmp_path / "e.txt").write_text("# a\n1  2\n3  4 5\n6  7\n")
    with pytest.raises(DataError, match=r"e\.txt, line 3: must have 2 cells as the first row has"):
        import_store(tmp_path / "s", tmp_path / "e.txt", delimiter="whitespace")
    counts = import_store(
        tmp_path / "s", tmp_path / "e.txt", delimiter="whitespace", skip_bad_rows=1
    )
    assert counts["edges"] == 2
    (tmp_path / "e.jsonl").write_text('{"a": 1, "b": 2}\n\n{"a": 3}\n')
    with pytest.raises(DataError, match=r"e\.jsonl, line 3: column 'b': the id is missing"):
        import_store(tmp_path / "t", tmp_path / "e.jsonl")
    (tmp_path / "e.csv").write_text("a,b\nb,c\na,c\n")
    with pytest.raises(DataError, match="header=False"):
        import_store(tmp_path / "t", tmp_path / "e.csv")
    assert import_store(tmp_path / "t", tmp_path / "e.csv", header=False)["edges"] == 3


def test_a_matrix_names_nodes_by_position(tmp_path: Path):
    matrix = sp.coo_matrix(([1.0, 2.0], ([0, 1], [1, 2])), shape=(6, 6))
    sp.save_npz(tmp_path / "m.npz", matrix)
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
    ids = {"id": list("fedcba"), "x": [1.0, 2, 4, 8, 16, 3]}
    for name in ("m.npz", "m.mtx"):
        expected = import_tables(tmp_path / name, ids).graph
        import_store(tmp_path / "s", tmp_path / name, ids, overwrite=True)
        same(tmp_path / "s", expected)
        assert open_store(tmp_path / "s").graph.edge_weight.tolist() == [1, 1, 2, 2]
        # Without a node table, too, there are as many nodes as rows.
        assert import_store(tmp_path / "s", tmp_path / name, overwrite=True)["nodes"] == 6
    with pytest.raises(UsageError, match="only file"):
        import_store(tmp_path / "t", [tmp_path / "m.npz", tmp_path / "m.mtx"])
    sp.save_npz(tmp_path / "wide.npz", sp.eye(10**6, format="csr"), compressed=False)
    with pytest.raises(DataError, match=r"wide\.npz: a matrix is read as a whole.*Raise memory"):
        import_store(tmp_path / "t", tmp_path / "wide.npz", memory="60MB")


def test_features_beside_the_nodes(tmp_path: Path):
    rng = np.random.default_rng(0)
    matrix = sp.random(5, 400, 0.1, random_state=0, format="coo")
    long = {"id": [NODES["id"][i] for i in matrix.row], "f": matrix.col, "v": matrix.data}
    sp.save_npz(tmp_path / "f.npz", matrix.tocsr())
    order = rng.permutation(matrix.nnz)
    long = {name: np.asarray(cells)[order] for name, cells in long.items()}
    for i in range(2):
        rows = "".join(
            f"{NODES['id'][j]},{NODES['x'][j]}\n" for j in range(3 * i, min(5, 3 * i + 3))
        )
        (tmp_path / f"n-{i}.csv").write_text(f"id,x\n{rows}")
    for nodes in (NODES, tmp_path / "n-*.csv"):
        for features in (long, tmp_path / "f.npz"):
            expected = import_tables(None, NODES, features=features).graph
            import_store(tmp_path / "s", None, nodes, node_features=features, overwrite=True)
            same(tmp_path / "s", expected)
    with pytest.raises(UsageError, match="Give nodes"):
        import_store(tmp_path / "t", {"a": [1], "b": [2]}, node_features=long)
