"""What a partition on disk looks like.

A partition is a folder of shards, `part-0000` and on, and `partition.json`, which says what the
whole graph is and which shards belong to it. A shard is a graph store (`lgcn.store.format`) with
two more arrays, `n_id` and `owner`. As a store, a partition may come from a stranger, and nothing
in it is trusted. Nothing here imports torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from lgcn.errors import DataError
from lgcn.store.format import HEADER, header_digest
from lgcn.store.new_store_checks import FolderKind, foreign_files
from lgcn.utils.choices import Task
from lgcn.utils.files import read_json
from lgcn.utils.limits import MAX_CLASSES, MAX_NODES, MAX_SHARDS
from lgcn.utils.stored_json import fields, truth

FORMAT = 1
MANIFEST = "partition.json"
METHODS = ("metis", "ldg", "hash")
FIELDS = (
    "format",
    "name",
    "num_nodes",
    "num_edges",
    "num_parts",
    "directed",
    "method",
    "seed",
    "store",  # the digest of its header
    "parts",
    "cut",
    "halo",
    "balance",
    "train_balance",
    "statistics",
    "sha256",
)
# Of each part: nodes, entries of the rows of its nodes, those of them that lead to the halo,
# training nodes, and the digest of the shard's header.
PART_FIELDS = ("owned", "halo", "entries", "cut", "train", "sha256")
STATISTICS = (
    "num_nodes",
    "num_edges",
    "num_features",
    "num_classes",
    "num_train",
    "num_val",
    "num_test",
    "task",
    "inductive",
    "labels_per_class",
    "class_counts",
    "neighbour_agreement",
    "feature_length",
    "suggested_k",
    "target",
)
_PART = re.compile(r"part-\d{4,5}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def part_folder(folder: Path, number: int) -> Path:
    """The folder of a shard."""
    return folder / f"part-{number:04d}"


def is_partition(path: str | Path) -> bool:
    """Whether `path` looks like a partition; `check_partition` checks whether it is valid."""
    return (Path(path) / MANIFEST).is_file()


def _foreign(folder: Path) -> list[str]:
    """Files that do not belong to a partition, not even to one that is being written."""
    found = []
    for path in folder.iterdir():
        named = _PART.fullmatch(path.name.split(".partial-")[0])
        if named and path.is_dir() and not path.is_symlink():
            found += [f"{path.name}/{name}" for name in foreign_files(path)]
        elif path.name != MANIFEST:
            found.append(path.name)
    return sorted(found)


PARTITION = FolderKind("partition", is_partition, _foreign)


def check_partition(path: str | Path) -> dict[str, Any]:
    """The content of `partition.json`, its fields checked, also against each other.

    Shards are not looked at: a worker may have its own only.

    Args:
        path: Folder of the partition.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(f"there is no partition at {folder}: no such folder")
    file = folder / MANIFEST
    if file.is_symlink():
        raise DataError(f"{file} must be a plain file, not a link")
    try:
        header: dict[str, Any] = read_json(file)
    except FileNotFoundError:
        kind = "a graph store, not a partition" if (folder / HEADER).is_file() else "no partition"
        raise DataError(
            f"{folder} is {kind}: it has no {MANIFEST}. lgcn partition STORE OUT writes one"
        ) from None
    got = header.get("format") if isinstance(header, dict) else type(header).__name__
    if type(got) is not int or got != FORMAT:
        raise DataError(
            f"{file} must describe a partition of format {FORMAT}, got {got!r:.80}; this version "
            "of lgcn reads no other"
        )
    where = str(file)
    fields(header, where, *FIELDS)
    if header["sha256"] != header_digest(header):
        raise DataError(f"{file} was altered: its checksum does not fit")
    if not isinstance(header["name"], str) or not header["name"].isprintable():
        raise DataError(f"name of {where} must be a printable string")
    if header["method"] not in METHODS:
        raise DataError(f"method of {where} must be one of {', '.join(METHODS)}")
    truth(header["directed"], f"directed of {where}")
    _digest(header["store"], f"store of {where}")
    nodes = _count(header["num_nodes"], f"num_nodes of {where}", 1, MAX_NODES)
    for key in ("num_edges", "seed", "cut", "halo"):
        _count(header[key], f"{key} of {where}")
    _number(header["balance"], f"balance of {where}", 1)
    if header["train_balance"] is not None:
        _number(header["train_balance"], f"train_balance of {where}", 1)
    parts = _count(header["num_parts"], f"num_parts of {where}", 1, min(nodes, MAX_SHARDS))
    _check_parts(header, parts, where)
    _check_statistics(header, where)
    return header


def _check_parts(header: Mapping[str, Any], count: int, where: str) -> None:
    parts = header["parts"]
    if not isinstance(parts, list) or len(parts) != count:
        raise DataError(f"parts of {where} must be a list of num_parts={count} objects")
    for number, part in enumerate(parts):
        what = f"part {number} of {where}"
        fields(part, what, *PART_FIELDS)
        owned = _count(part["owned"], f"owned of {what}", 1, header["num_nodes"])
        _count(part["halo"], f"halo of {what}", 0, header["num_nodes"] - owned)
        entries = _count(part["entries"], f"entries of {what}")
        _count(part["cut"], f"cut of {what}", 0, entries)
        _count(part["train"], f"train of {what}", 0, owned)
        _digest(part["sha256"], f"sha256 of {what}")
    sums = {"owned": "num_nodes", "entries": "num_edges", "cut": "cut", "halo": "halo"}
    for key, total in sums.items():
        found = sum(part[key] for part in parts)
        if found != header[total]:
            raise DataError(
                f"{key} of the parts of {where} must add up to {total}={header[total]}, got {found}"
            )


def _check_statistics(header: Mapping[str, Any], where: str) -> None:
    found, where = header["statistics"], f"statistics of {where}"
    fields(found, where, *STATISTICS)
    for key in ("num_nodes", "num_edges"):
        if found[key] != header[key]:
            raise DataError(f"{key} in {where} must be {header[key]}, got {found[key]!r:.80}")
    for split in ("train", "val", "test"):
        _count(found[f"num_{split}"], f"num_{split} in {where}", 0, header["num_nodes"])
    trained = sum(part["train"] for part in header["parts"])
    if found["num_train"] != trained:
        raise DataError(
            f"num_train in {where} must be that of the parts, {trained}, got {found['num_train']}"
        )
    _count(found["num_features"], f"num_features in {where}")
    classes = _count(found["num_classes"], f"num_classes in {where}", 0, MAX_CLASSES)
    _count(found["suggested_k"], f"suggested_k in {where}", 1, 1000)
    truth(found["inductive"], f"inductive in {where}")
    if found["task"] not in get_args(Task):
        raise DataError(f"task in {where} must be one of {', '.join(get_args(Task))}")
    for key in ("labels_per_class", "feature_length"):
        _number(found[key], f"{key} in {where}", 0)
    counts = found["class_counts"]
    if counts is not None:
        if not isinstance(counts, list) or len(counts) != classes:
            raise DataError(f"class_counts in {where} must be a list of {classes} counts, or null")
        for count in counts:
            _count(count, f"class_counts in {where}", 0, header["num_nodes"])
    agreement = found["neighbour_agreement"]
    if agreement is not None:
        fields(agreement, f"neighbour_agreement in {where}", "entries", "alike", "by_chance")
        _count(agreement["entries"], f"entries of neighbour_agreement in {where}", 1)
        for key in ("alike", "by_chance"):
            _number(agreement[key], f"{key} of neighbour_agreement in {where}", -1.001)
    target = found["target"]
    if target is not None:
        fields(target, f"target in {where}", "mean", "deviation")
        _number(target["mean"], f"mean of target in {where}", -math.inf)
        _number(target["deviation"], f"deviation of target in {where}", 0)


def _count(value: Any, what: str, low: int = 0, high: int = 2**62) -> int:
    if type(value) is not int or not low <= value <= high:
        raise DataError(f"{what} must be a whole number from {low} to {high}, got {value!r:.80}")
    return value


def _number(value: Any, what: str, low: float) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < low
    ):
        raise DataError(f"{what} must be a finite number of at least {low:g}, got {value!r:.80}")


def _digest(value: Any, what: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise DataError(f"{what} must be a checksum, 64 hexadecimal digits, got {value!r:.80}")
