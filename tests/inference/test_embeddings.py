"""Files of embeddings hold the rows and the ids."""

import os
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from lgcn.errors import UsageError, WriteError
from lgcn.inference.embeddings import embeddings_format, write_embeddings
from lgcn.nn import layerwise

ROWS = torch.randn(11, 6, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layerwise, "READ_VALUES", 24)


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS.double(), ROWS[:, :5], ROWS[:0]], ids=lambda r: str(r.shape)
)
def test_npy_is_the_matrix(tmp_path: Path, rows: torch.Tensor) -> None:
    path, seen = tmp_path / "a.npy", []
    write_embeddings(rows, path, on_progress=lambda *step: seen.append(step))
    array = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(array, rows[:].numpy())
    assert array.dtype == rows[:].numpy().dtype
    if len(rows):
        assert seen == [("embeddings", stop, 11) for stop in (4, 8, 11)]


def test_parquet_has_the_ids(tmp_path: Path) -> None:
    path, ids = tmp_path / "a.parquet", pa.array([f"n{i}" for i in range(11)])
    write_embeddings(ROWS, path, node_ids=lambda start, stop: ids[start:stop])
    table = pyarrow.parquet.read_table(path)
    assert table["node"].to_pylist() == ids.to_pylist()
    assert torch.equal(torch.tensor(table["embedding"].to_pylist()), ROWS)


@pytest.mark.parametrize("count", [11, 0])
def test_nodes_have_numbers_where_they_have_no_ids(tmp_path: Path, count: int) -> None:
    write_embeddings(ROWS[:count], tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table["node"].to_pylist() == list(range(count))
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 6)


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def ids(start: int, stop: int) -> np.ndarray:
        if start:
            raise OSError("no space left")
        return np.arange(start, stop)

    with pytest.raises(OSError, match="no space left"):
        write_embeddings(ROWS, tmp_path / "a.parquet", node_ids=ids)
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.npy or \.parquet"):
        embeddings_format(tmp_path / "a.csv")
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(UsageError, match=r"must be a file .*folder"):
        embeddings_format(tmp_path / "b.npy")


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_full_disk_is_an_error_with_the_path(tmp_path: Path, suffix: str) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(WriteError, match=rf"{tmp_path}/e{suffix}: File too large"):
            write_embeddings(torch.randn(1000, 4), tmp_path / f"e{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_pipe_is_refused_before_the_work(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    with pytest.raises(UsageError, match=r"must be a file .*pipe"):
        embeddings_format(tmp_path / f"pipe{suffix}")
