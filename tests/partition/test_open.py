"""A worker opens its own shard, and no shard that does not fit or was altered."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import open_store
from lgcn.errors import DataError, UsageError
from lgcn.partition import Shard, open_partition
from lgcn.partition.manifest import MANIFEST
from lgcn.store.checked_files import digests, read_header
from lgcn.store.format import header_digest


def sign(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes `partition.json`, with a checksum that fits."""
    header = json.loads((path / MANIFEST).read_text())
    change(header)
    header["sha256"] = header_digest(header)
    (path / MANIFEST).write_text(json.dumps(header))


def altered(path: Path, number: int, name: str, change: Callable[[Any], None]) -> Shard:
    """A shard with a changed array, and checksums that fit; some changes are refused for those."""
    folder = path / f"part-{number:04d}"
    header, arrays = read_header(folder)
    file = folder / f"{name}.bin"
    values = np.fromfile(file, "<i8" if name == "n_id" else "<i4")
    change(values)
    values.tofile(file)
    header["arrays"][name]["sha256"] = digests(folder, header, arrays)[name]
    header["sha256"] = header_digest(header)
    (folder / "header.json").write_text(json.dumps(header))
    sign(path, lambda all_: all_["parts"][number].update(sha256=header["sha256"]))
    return open_partition(path).shard(number)


def test_its_attributes(path: Path) -> None:
    partition = open_partition(path)

    assert (partition.num_parts, partition.num_nodes, partition.num_edges) == (3, 40, 160)
    assert partition.name == "ring"
    assert partition.folder == path
    assert repr(partition) == f"Partition({str(path)!r}, 40 nodes in 3 parts by ldg)"
    shard = partition.shard(1)
    assert (shard.number, shard.num_parts, shard.num_nodes) == (1, 3, 40)
    assert shard.node_ids is None
    assert shard.graph.n_id is not None
    assert torch.equal(open_store(path / "part-0001").graph.n_id, shard.graph.n_id)


def test_a_worker_needs_its_own_shard_only(path: Path) -> None:
    shutil.rmtree(path / "part-0000")
    shutil.rmtree(path / "part-0002")

    partition = open_partition(path)

    assert [partition.has_shard(number) for number in range(3)] == [False, True, False]
    assert partition.shard(1).num_owned > 0
    with pytest.raises(DataError, match=r"part 2 of 3 is missing.*part-0002"):
        partition.shard(2)
    with pytest.raises(UsageError, match="from 0 to 2, got 3"):
        partition.shard(3)


def test_a_shard_of_another_partition_is_refused(path: Path) -> None:
    (path / "part-0000").rename(path / "x")
    (path / "part-0001").rename(path / "part-0000")
    with pytest.raises(DataError, match="not part 0 of this partition"):
        open_partition(path).shard(0)


def test_what_is_no_partition(path: Path, store_path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        open_partition(tmp_path / "nowhere")
    with pytest.raises(DataError, match="graph store, not a partition"):
        open_partition(store_path)
    with pytest.raises(DataError, match="no partition"):
        open_partition(tmp_path)
    (path / MANIFEST).write_text("[1]")
    with pytest.raises(DataError, match="format 1, got 'list'"):
        open_partition(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h.update(format=2), "format 1, got 2"),
        (lambda h: h.update(more=1), "nothing else"),
        (lambda h: h.update(num_nodes=-1), "num_nodes"),
        (lambda h: h.update(num_nodes=41), "add up to num_nodes=41, got 40"),
        (lambda h: h.update(num_edges=161), "num_edges=161"),
        (lambda h: h.update(num_parts=2), "num_parts=2"),
        (lambda h: h.update(num_parts=10**9), "num_parts"),
        (lambda h: h.update(method="magic"), "method"),
        (lambda h: h.update(store="0" * 63), "store .* 64"),
        (lambda h: h.update(balance=float("nan")), "balance"),
        (lambda h: h.update(name="a\x1b[0m"), "name"),
        (lambda h: h.update(directed=1), "directed"),
        (lambda h: h["parts"].pop(), "num_parts=3"),
        (lambda h: h["parts"][0].update(owned=0), "owned of part 0"),
        (lambda h: h["parts"][0].update(halo=41), "halo of part 0"),
        (lambda h: h["parts"][1].update(sha256="../../etc"), "sha256 of part 1"),
        (lambda h: h["parts"][1].update(train=True), "train of part 1"),
        (lambda h: h["statistics"].update(num_train=11), "num_train"),
        (lambda h: h["statistics"].update(task="magic"), "task"),
        (lambda h: h["statistics"].update(class_counts=[1]), "class_counts"),
        (lambda h: h["statistics"].update(class_counts=[1, 2, 99]), "class_counts"),
        (lambda h: h["statistics"].update(feature_length=float("inf")), "feature_length"),
        (lambda h: h["statistics"].update(suggested_k=0), "suggested_k"),
        (lambda h: h["statistics"].update(target={"mean": 0}), "target"),
        (lambda h: h["statistics"].update(neighbour_agreement=[0, 0, 0]), "neighbour_agreement"),
        (lambda h: h["statistics"].pop("num_classes"), "num_classes"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(
    path: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    sign(path, change)
    with pytest.raises(DataError, match=said):
        open_partition(path)


def test_an_altered_header_is_refused(path: Path) -> None:
    text = (path / MANIFEST).read_text()
    (path / MANIFEST).write_text(text.replace('"ring"', '"rung"'))
    with pytest.raises(DataError, match="checksum"):
        open_partition(path)


def swap(values: Any) -> None:
    values[[0, 1]] = values[[1, 0]]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("n_id", swap, "ascend"),
        ("n_id", lambda v: v.__setitem__(1, v[0]), "ascend"),
        ("n_id", lambda v: v.__setitem__(slice(-2, None), v[-2:][::-1].copy()), "ascend"),
        ("n_id", lambda v: v.__setitem__(-1, 40), "below 40"),
        ("n_id", lambda v: v.__setitem__(0, -1), "-1"),
        ("owner", lambda v: v.__setitem__(0, 0), "part 1"),
        ("owner", lambda v: v.__setitem__(-1, 1), "part 1"),
        ("owner", lambda v: v.__setitem__(-1, 3), "below 3"),
        ("owner", lambda v: v.__setitem__(-1, -1), "-1"),
    ],
)
def test_numbers_that_point_elsewhere_are_refused(
    path: Path, name: str, change: Callable[[Any], None], said: str
) -> None:
    shard = open_partition(path).shard(1)
    assert shard.num_halo > 1
    with pytest.raises(DataError, match=rf"{name}\.bin is damaged.*{said}"):
        altered(path, 1, name, change)


def test_damage_is_found_unless_it_is_not_looked_for(path: Path) -> None:
    file = path / "part-0001" / "x.bin"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError, match=r"x\.bin was altered"):
        open_partition(path).shard(1)
    assert open_partition(path, verify=False).shard(1).num_owned > 0


def test_a_store_without_the_two_arrays_is_no_shard(path: Path, store_path: Path) -> None:
    shutil.rmtree(path / "part-0000")
    shutil.copytree(store_path, path / "part-0000")
    header = read_header(store_path)[0]
    sign(path, lambda all_: all_["parts"][0].update(sha256=header["sha256"]))
    with pytest.raises(DataError, match="no n_id and owner"):
        open_partition(path).shard(0)
