"""Sparse matrices in files, against SciPy."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import lgcn
from lgcn.errors import DataError, LGCNError
from lgcn.tables.matrix_files import read_matrix


def dense(path: Path) -> Any:
    row, col, values, shape = read_matrix(path)
    return sp.coo_matrix((values, (row, col)), shape=shape).toarray()


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_npz(kind: str, tmp_path: Path):
    matrix = sp.random(7, 5, 0.4, format=kind, random_state=0)
    for made in (matrix, sp.coo_array(matrix).asformat(kind)):
        sp.save_npz(tmp_path / "m.npz", made)
        assert (dense(tmp_path / "m.npz") == matrix.toarray()).all()


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market(field: str, tmp_path: Path):
    matrix = sp.random(6, 6, 0.4, random_state=1)
    matrix.data = np.arange(1, matrix.nnz + 1).astype(float)
    both = (matrix + matrix.T).tocoo()
    for name, made in (("m", matrix), ("s", both), ("d", matrix.toarray())):
        if field == "pattern" and name == "d":
            continue
        path = tmp_path / f"{name}.mtx"
        scipy.io.mmwrite(path, made, field=field)
        wanted = made if name == "d" else made.toarray()
        wanted = wanted != 0 if field == "pattern" else wanted
        assert (dense(path) == wanted).all()
        packed = tmp_path / f"{name}.mtx.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        assert (dense(packed) == wanted).all()


def _npz(path: Path, **arrays: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asanyarray(array))
            archive.writestr(f"{name}.npy", file.getvalue())
    return path


CSR = {
    "format": b"csr",
    "shape": [2, 2],
    "data": [1.0, 2.0],
    "indices": [0, 1],
    "indptr": [0, 1, 2],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": b"bsr"}, "formats coo, csr, csc"),
        ({"format": 3}, "formats"),
        ({"shape": [2, 2**40]}, "shape must be from 0"),
        ({"shape": [2]}, "shape"),
        ({"shape": [-1, 2]}, "shape"),
        ({"indices": [0, 5]}, "indices must be from 0 to 1"),
        ({"indices": [0, -1]}, "indices"),
        ({"indices": [0.0, 1.0]}, "indices must hold integers"),
        ({"indptr": [0, 2, 1]}, "indptr must rise"),
        ({"indptr": [0, 1]}, "indptr"),
        ({"indptr": [0, 2**60, 2]}, "indptr must rise"),
        ({"data": [1.0, np.nan]}, "finite"),
        ({"data": [1.0, 1e300]}, "finite"),
        ({"data": [1.0 + 2j, 1]}, "data must hold numbers"),
        ({"data": [1.0]}, "indptr must rise"),
    ],
)
def test_hostile_npz(changed: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(DataError, match=message):
        read_matrix(_npz(tmp_path / "m.npz", **{**CSR, **changed}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a readable Matrix Market"),
        ("%%MatrixMarket matrix coordinate real general\n", "not a readable"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 900000000000\n1 1 1\n", "claims"),
        ("%%MatrixMarket matrix array real general\n2000000 2000000\n1\n", "claims"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "real numbers"),
        ("%%MatrixMarket matrix coordinate real general\n9000000000 2 1\n1 1 1\n", "at most"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n5 1 1\n", "(?i)line 3"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "not a readable"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n", "finite"),
    ],
)
def test_hostile_matrix_market(text: str, message: str, tmp_path: Path):
    path = tmp_path / "m.mtx"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_matrix(path)
    assert "\n" not in str(error.value)


def test_edges_by_position(tmp_path: Path):
    """Ids are of no matter: row i of the matrix is row i of the node table."""
    matrix = sp.coo_matrix(([1, 2, 3], ([0, 1, 3], [1, 2, 3])), shape=(4, 4))
    nodes = pd.DataFrame({"id": list("dcba"), "x": [1.0, 2, 3, 5]})
    sp.save_npz(tmp_path / "m.npz", matrix)
    with pytest.warns(UserWarning, match="1 self-loop is left out"):
        graph = lgcn.from_tables(tmp_path / "m.npz", nodes)
    assert graph.rowptr.tolist() == [0, 1, 3, 4, 4]
    assert graph.col.tolist() == [1, 0, 2, 1]
    assert graph.edge_weight.tolist() == [1, 1, 2, 2]
    ones = sp.coo_matrix((np.ones(2), ([0, 1], [1, 2])), shape=(4, 4))
    scipy.io.mmwrite(tmp_path / "m.mtx", ones)
    assert lgcn.from_tables(tmp_path / "m.mtx", nodes).edge_weight is None
    for made, message in (
        (sp.coo_matrix(([1.0], ([0], [1])), shape=(4, 5)), "as many rows as columns"),
        (sp.coo_matrix(([1.0], ([0], [1])), shape=(5, 5)), r"per row of nodes \(4\).*got 5"),
        (sp.coo_matrix(([-1.0], ([0], [1])), shape=(4, 4)), r"entry \(0, 1\).*weight"),
    ):
        sp.save_npz(tmp_path / "m.npz", made)
        with pytest.raises(LGCNError, match=message):
            lgcn.from_tables(tmp_path / "m.npz", nodes)
    with pytest.raises(LGCNError, match="only file"):
        lgcn.from_tables([tmp_path / "m.npz", tmp_path / "m.mtx"], nodes)
    with pytest.raises(LGCNError, match=r"nodes: .*\.mtx must end in"):
        lgcn.from_tables(None, tmp_path / "m.mtx")
