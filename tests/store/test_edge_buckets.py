"""Edges sorted by way of the disk, against the sort in memory and SciPy."""

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.graph.csr import CSR
from lgcn.store import edge_buckets
from lgcn.store.edge_buckets import sorted_rows
from lgcn.store.edge_spool import EdgeSpool
from lgcn.tables.edges import to_adjacency

MB = 10**6


def spooled(
    folder: Path, source: Any, target: Any, weight: Any = None, parts: int = 3
) -> EdgeSpool:
    spool = EdgeSpool(folder, weighted=weight is not None)
    weights = [None] * parts if weight is None else np.array_split(weight, parts)
    ends = (np.array_split(end, parts) for end in (source, target))
    for part in zip(*ends, weights, strict=True):
        spool.add(*part)
    return spool


def joined(runs: list[CSR]) -> CSR:
    offsets = np.cumsum([0, *(run.col.numel() for run in runs)]).tolist()
    rowptr = [run.rowptr[:-1].long() + o for run, o in zip(runs, offsets, strict=False)]
    weights = [run.weight for run in runs if run.weight is not None]
    return CSR(
        torch.cat([*rowptr, torch.tensor(offsets[-1:])]),
        torch.cat([run.col for run in runs]),
        torch.cat(weights) if weights else None,
    )


def random_edges(num_nodes: int, num_edges: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, num_nodes, (2, num_edges)).astype(np.int32)
    return *ends, rng.integers(0, 5, num_edges).astype(np.float32) / 4


@settings(max_examples=150)
@given(
    st.integers(1, 40),
    st.integers(0, 300),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1500, 40_000),
)
def test_rows_are_those_of_the_sort_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    num_nodes: int,
    num_edges: int,
    seed: int,
    weighted: bool,
    directed: bool,
    keep: bool,
    memory: int,
) -> None:
    folder = tmp_path_factory.mktemp("sort")
    source, target, weight = random_edges(num_nodes, num_edges, seed)
    spool = spooled(folder, source, target, weight if weighted else None)
    source, target, weight = (part[source != target] for part in (source, target, weight))
    options: dict[str, Any] = {"directed": directed, "keep_duplicates": keep}
    if keep:  # a row of duplicates must fit
        memory += 80 * num_edges
    rows = joined(list(sorted_rows(spool, num_nodes, folder=folder, memory=memory, **options)))
    expected, _ = to_adjacency(
        [source],
        [target],
        [weight] if weighted else None,
        num_nodes,
        directed=directed,
        keep_duplicates=keep,
    )
    assert torch.equal(rows.rowptr, expected.rowptr.long())
    assert rows.col.dtype == torch.int32
    assert torch.equal(rows.col, expected.col)
    if weighted:
        assert torch.equal(rows.weight, expected.weight)  # type: ignore[arg-type]
    else:
        assert rows.weight is None
    spool.remove()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("directed", [False, True])
def test_many_buckets_and_threads(tmp_path: Path, directed: bool) -> None:
    source, target, _ = random_edges(5000, 60_000, 0)
    source[:20_000] = 7  # more than is sorted at a time
    shape = (5000, 5000)
    matrix = scipy.sparse.coo_matrix((np.ones(60_000), (target, source)), shape).tocsr()
    expected = matrix if directed else (matrix + matrix.T).tocsr()
    expected.setdiag(0)
    expected.eliminate_zeros()
    expected.sort_indices()
    spool = spooled(tmp_path, source, target)
    for threads in (1, 2):
        numba.set_num_threads(threads)
        try:
            runs = list(
                sorted_rows(spool, 5000, folder=tmp_path, memory=200_000, directed=directed)
            )
        finally:
            numba.set_num_threads(1)
        assert len(runs) > 10
        rows = joined(runs)
        assert rows.rowptr.tolist() == expected.indptr.tolist()
        assert rows.col.tolist() == expected.indices.tolist()


def test_a_self_loop_is_one_entry(tmp_path: Path) -> None:
    ends = np.array([0, 2, 2, 1]), np.array([1, 2, 2, 0])
    spool = spooled(tmp_path, *ends)
    options: dict[str, Any] = {"folder": tmp_path, "memory": MB, "directed": False}
    (rows,) = sorted_rows(spool, 3, **options)
    assert (rows.rowptr.tolist(), rows.col.tolist()) == ([0, 1, 2, 2], [1, 0])
    options["keep_self_loops"] = True
    (rows,) = sorted_rows(spool, 3, **options)
    assert (rows.rowptr.tolist(), rows.col.tolist()) == ([0, 1, 2, 3], [1, 0, 2])
    (rows,) = sorted_rows(spool, 3, keep_duplicates=True, **options)
    assert (rows.rowptr.tolist(), rows.col.tolist()) == ([0, 2, 4, 6], [1, 1, 0, 0, 2, 2])


def test_no_edges_and_no_nodes(tmp_path: Path) -> None:
    spool = EdgeSpool(tmp_path, weighted=False)
    options: dict[str, Any] = {"folder": tmp_path, "memory": MB, "directed": False}
    (rows,) = sorted_rows(spool, 3, **options)
    assert (rows.rowptr.tolist(), rows.col.tolist()) == ([0, 0, 0, 0], [])
    assert list(sorted_rows(spool, 0, **options)) == []


def test_progress_ends_at_its_total(tmp_path: Path) -> None:
    spool = spooled(tmp_path, *random_edges(50, 400, 1)[:2])
    seen: list[tuple[str, int, int]] = []
    options: dict[str, Any] = {"folder": tmp_path, "memory": 8000, "directed": False}
    list(sorted_rows(spool, 50, on_progress=lambda *step: seen.append(step), **options))
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1][1] >= 0.95 * seen[-1][2]


def test_scratch_files_go_when_the_rows_are_not_wanted_any_more(tmp_path: Path) -> None:
    spool = spooled(tmp_path, *random_edges(50, 400, 1)[:2])
    rows = sorted_rows(spool, 50, folder=tmp_path, memory=8000, directed=False)
    next(rows)
    assert any("bucket" in path.name for path in tmp_path.iterdir())
    rows.close()  # type: ignore[attr-defined]
    assert not any("bucket" in path.name for path in tmp_path.iterdir())


def test_too_little_memory_or_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = spooled(tmp_path, *random_edges(1000, 4000, 1)[:2])
    options: dict[str, Any] = {"folder": tmp_path, "directed": False}
    with pytest.raises(DataError, match=r"1000 nodes into rows: 3 kB more.*Raise memory"):
        next(sorted_rows(spool, 1000, memory=5000, **options))
    monkeypatch.setattr(edge_buckets, "MAX_BUCKETS", 2)
    with pytest.raises(DataError, match=r"entries into rows: .* kB more"):
        next(sorted_rows(spool, 1000, memory=10_000, **options))
    monkeypatch.setattr(edge_buckets.shutil, "disk_usage", lambda _: type("", (), {"free": 10})())
    with pytest.raises(DataError, match=r"disk of .*are needed, 10 bytes are free"):
        next(sorted_rows(spool, 1000, memory=MB, **options))
