"""NumPy files as tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lgcn.errors import DataError
from lgcn.store import numpy_files
from lgcn.store.numpy_files import ArrayTable

PAIRS = np.arange(14).reshape(7, 2)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_files, "ROWS", 3)


@pytest.mark.parametrize("packed", [np.savez, np.savez_compressed, None])
@pytest.mark.parametrize(
    "pairs",
    [PAIRS, PAIRS.T, np.asfortranarray(PAIRS), np.asfortranarray(PAIRS.T), PAIRS.astype(">i4")],
)
def test_pairs_in_any_layout(tmp_path: Path, pairs: Any, packed: Any) -> None:
    path = tmp_path / ("edges.npz" if packed else "edges.npy")
    if packed:
        packed(path, edges=pairs, weight=np.arange(7) / 2)
    else:
        np.save(path, pairs)
    table = ArrayTable(path, "edges")
    assert table.columns == (["source", "target", "weight"] if packed else ["source", "target"])
    batches = list(table.batches(["target", "source"], {}))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    found = pa.Table.from_batches(batches)
    assert found.column("source").to_pylist() == PAIRS[:, 0].tolist()
    assert found.column("target").to_pylist() == PAIRS[:, 1].tolist()


def test_columns_of_numbers_texts_and_vectors(tmp_path: Path) -> None:
    columns = {
        "id": np.array(["a", "bc", "é", "d"]),
        "age": np.array([1.5, 2, 3, 4]),
        "vector": np.arange(8.0).reshape(4, 2),
    }
    np.savez(tmp_path / "nodes.npz", **columns)
    table = ArrayTable(tmp_path / "nodes.npz", "nodes").read()
    assert table.to_pydict() == {name: values.tolist() for name, values in columns.items()}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edges": np.zeros((3, 3))}, r"shape \[E, 2\] or \[2, E\], got \[3, 3\]"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, "one length, got 'a' with 3, 'b' with 4"),
        ({"a": np.array([{}], dtype=object)}, "a must hold numbers or strings, got object"),
        ({"a": np.zeros((2, 2, 2))}, "one dimension, or two"),
        ({"a": np.asfortranarray(np.zeros((3, 2)))}, "in Fortran order"),
        ({}, "holds no arrays"),
    ],
)
def test_arrays_that_are_no_table(tmp_path: Path, arrays: Any, message: str) -> None:
    path = tmp_path / "edges.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        ArrayTable(path, "edges")


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "edges.npy"
    np.save(path, PAIRS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(DataError, match=r"edges\.npy is cut short"):
        ArrayTable(path, "edges").read()
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"not a readable \.npy file"):
        ArrayTable(path, "edges")
    path = tmp_path / "edges.npz"
    np.savez_compressed(path, edges=PAIRS)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"not a readable \.npz file"):
        ArrayTable(path, "edges")
