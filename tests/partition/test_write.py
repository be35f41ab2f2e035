"""What is written is what `cut_shard` cuts in memory, array by array."""

import errno
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgcn import Graph, open_store
from lgcn.errors import UsageError, WriteError
from lgcn.partition import check_partition, methods, open_partition, write, write_partition
from lgcn.partition.manifest import MANIFEST, METHODS
from lgcn.store import new_folder, writer
from lgcn.store.writer import Appender

from .graphs import ROOMY, assert_cut, graphs, part_of, stored


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((writer, "sync"), (new_folder, "sync_folder"), (write, "sync")):
        monkeypatch.setattr(module, name, lambda path: None)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    made=graphs(), parts=st.integers(1, 6), method=st.sampled_from(METHODS), pieces=st.booleans()
)
def test_every_shard_is_that_of_the_plain_way(
    made: tuple[Graph, dict[str, Any]],
    parts: int,
    method: str,
    pieces: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    graph, options = made
    path = tmp_path_factory.mktemp("cut")
    store = stored(path / "store", graph, **options)
    parts = min(parts, graph.num_nodes)

    with pytest.MonkeyPatch.context() as patch:
        if pieces:  # few parts at a time, and few rows
            patch.setattr(write, "_AT_ONCE", 2)
            patch.setattr(write, "_LARGEST_BLOCK", 500)
        write_partition(path / "store", path / "out", parts, method=method, memory=ROOMY)

    partition = open_partition(path / "out")
    assert partition.num_parts == parts
    assert_cut(partition, store)


def test_the_header_adds_up(store_path: Path, path: Path) -> None:
    header = check_partition(path)
    store = open_store(store_path)

    assert header["store"] == store.header["sha256"]
    assert (header["num_nodes"], header["num_edges"]) == (40, 160)
    part = part_of(open_partition(path))
    row = torch.arange(40).repeat_interleave(4)
    assert header["cut"] == int((part[row] != part[store.graph.col.long()]).sum())
    counts = torch.bincount(part)
    assert header["balance"] == pytest.approx(float(counts.max() / counts.float().mean()))
    assert [one["owned"] for one in header["parts"]] == counts.tolist()
    assert sum(one["train"] for one in header["parts"]) == 10
    assert sum(one["entries"] for one in header["parts"]) == 160


def test_the_same_arguments_give_the_same_bytes(store_path: Path, path: Path) -> None:
    other = path.with_name("other")
    write_partition(store_path, other, 3, method="ldg", memory=ROOMY)

    files = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert all((path / file).read_bytes() == (other / file).read_bytes() for file in files)


def test_a_seed_changes_the_parts_at_random(store_path: Path, tmp_path: Path) -> None:
    parts = []
    for seed in (0, 1):
        out = tmp_path / str(seed)
        write_partition(store_path, out, 3, method="hash", seed=seed, memory=ROOMY)
        parts.append(part_of(open_partition(out)))
    assert (parts[0] != parts[1]).any()


def test_without_a_method_metis_is_used_if_it_fits(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pymetis")
    write_partition(store_path, tmp_path / "a", 2, memory=ROOMY)
    assert check_partition(tmp_path / "a")["method"] == "metis"
    monkeypatch.setattr(methods, "metis_memory", lambda *_, **__: 10**15)
    write_partition(store_path, tmp_path / "b", 2, memory=ROOMY)
    assert check_partition(tmp_path / "b")["method"] == "ldg"
    with pytest.raises(UsageError, match=r"1e\+06 GB|1000000 GB.*method=ldg"):
        write_partition(store_path, tmp_path / "c", 2, method="metis", memory=ROOMY)
    assert not (tmp_path / "c").exists()


def test_too_little_memory_is_refused(store_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"memory must be at least .* got 1 MB"):
        write_partition(store_path, tmp_path / "out", 2, memory="1MB")


def test_a_full_disk_leaves_nothing(
    store_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.parent.rglob("*"))

    def full(self: Appender, values: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Appender, "write", full)
    for overwrite in (False, True):
        out = path if overwrite else path.with_name("new")
        with pytest.raises(WriteError, match=f"not enough room.*{out.name}") as caught:
            write_partition(store_path, out, 2, memory=ROOMY, overwrite=overwrite)
        assert "partial" not in str(caught.value)
    assert sorted(path.parent.rglob("*")) == before
    open_partition(path).shard(0)


def test_only_a_partition_is_overwritten(store_path: Path, path: Path) -> None:
    with pytest.raises(UsageError, match="exists"):
        write_partition(store_path, path, 2, memory=ROOMY)
    (path / "part-0000" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"part-0000/notes\.txt"):
        write_partition(store_path, path, 2, memory=ROOMY, overwrite=True)
    (path / "part-0000" / "notes.txt").unlink()
    write_partition(store_path, path, 2, memory=ROOMY, overwrite=True)
    assert open_partition(path).num_parts == 2
    assert not (path / "part-0002").exists()


def test_what_a_killed_writer_left_is_removed_by_the_next(store_path: Path, path: Path) -> None:
    left = path.rename(path.with_name("parts.partial-0a1b2c3d"))
    (left / MANIFEST).unlink()
    (left / "part-0002").rename(left / "part-0002.partial-12345678")

    write_partition(store_path, path, 2, memory=ROOMY)

    assert [one.name for one in path.parent.iterdir()] == ["parts"]
