"""Opening a partition, and single shards of it, without reading them into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from lgcn.errors import DataError
from lgcn.partition.manifest import check_partition, part_folder
from lgcn.partition.shard import Shard
from lgcn.store.checked_files import read_header
from lgcn.store.format import file_of
from lgcn.store.open_store import Store, open_store
from lgcn.utils.numbers import whole_number
from lgcn.utils.row_blocks import row_blocks

_BLOCK = 1 << 20  # nodes checked at a time


class Partition:
    """A graph in parts on disk, opened by `open_partition`.

    Attributes:
        folder: The folder.
        header: The content of `partition.json`.
        verify: Whether shards are checked when they are opened.
    """

    def __init__(self, folder: Path, header: dict[str, Any], *, verify: bool) -> None:
        self.folder = folder
        self.header = header
        self.verify = verify

    @property
    def name(self) -> str:
        """The name of the graph."""
        return str(self.header["name"])

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return int(self.header["num_parts"])

    @property
    def num_nodes(self) -> int:
        """The number of nodes of the whole graph."""
        return int(self.header["num_nodes"])

    @property
    def num_edges(self) -> int:
        """The number of entries of the adjacency of the whole graph."""
        return int(self.header["num_edges"])

    @property
    def statistics(self) -> dict[str, Any]:
        """Numbers of the whole graph by which settings are chosen."""
        return dict(self.header["statistics"])

    def has_shard(self, number: int) -> bool:
        """Whether the folder of a shard is here."""
        return part_folder(self.folder, self._checked(number)).is_dir()

    def shard(self, number: int) -> Shard:
        """Opens one shard. The folders of the others may be missing.

        Args:
            number: The number of the part, from 0.
        """
        number = self._checked(number)
        part = self.header["parts"][number]
        folder = part_folder(self.folder, number)
        if not folder.is_dir():
            raise DataError(
                f"part {number} of {self.num_parts} is missing: there is no folder {folder}. Copy "
                "it from where the partition was written, or write the partition again"
            )
        # Before the arrays are read: a shard of another partition is the more likely mistake.
        found = read_header(folder)[0]["sha256"]
        if found != part["sha256"]:
            raise DataError(
                f"{folder} is not part {number} of this partition: the checksum of its header is "
                f"{found:.12}, and partition.json has {part['sha256']:.12}. Copy the folder again"
            )
        store = open_store(folder, verify=self.verify)
        _check_shard(store, self.header, number, verify=self.verify)
        has_ids = "ids" in store.arrays or "ids_bytes" in store.arrays
        return Shard(
            number,
            self.num_parts,
            store.graph,
            part["owned"],
            torch.from_numpy(store.arrays["owner"]),
            self.num_nodes,
            store.node_ids if has_ids else None,
        )

    def _checked(self, number: int) -> int:
        return whole_number("the number of a part", number, 0, self.num_parts - 1)

    def __repr__(self) -> str:
        return (
            f"Partition({str(self.folder)!r}, {self.num_nodes} nodes in {self.num_parts} parts by "
            f"{self.header['method']})"
        )


def open_partition(folder: str | Path, *, verify: bool = True) -> Partition:
    """Opens a graph that `lgcn partition` cut into parts.

    Args:
        folder: Folder of the partition. It needs `partition.json` and the shards that are opened.
        verify: Read all files of a shard when it is opened, compare them with their checksums, and
            check every number that is used as an index. Use `False` only for a partition that you
            wrote yourself and that nobody else had access to. (default: `True`)
    """
    return Partition(Path(folder), check_partition(folder), verify=verify)


def _check_shard(store: Store, header: dict[str, Any], number: int, *, verify: bool) -> None:
    """Checks a shard's header, and with `verify` its numbers of nodes, against the partition's."""
    part, statistics = header["parts"][number], header["statistics"]
    if "n_id" not in store.arrays:
        raise DataError(f"{store.path} is no shard: it has no n_id and owner")
    for key, wanted in (
        ("num_nodes", part["owned"] + part["halo"]),
        ("num_features", statistics["num_features"]),
        ("directed", header["directed"]),
    ):
        if store.header[key] != wanted:
            raise DataError(
                f"{key} of {store.path} must be {wanted} to fit partition.json, got "
                f"{store.header[key]}"
            )
    if not verify:
        return
    n_id, owner = store.arrays["n_id"], store.arrays["owner"]
    for first, last, own in ((0, part["owned"], True), (part["owned"], len(n_id), False)):
        before = -1
        for start, stop in row_blocks(last - first, _BLOCK):
            numbers = np.array(n_id[first + start : first + stop])
            parts = np.array(owner[first + start : first + stop])
            if numbers[0] <= before or (numbers[1:] <= numbers[:-1]).any():
                _damaged(store, "n_id", "owned nodes and the halo must each ascend")
            if numbers[-1] >= header["num_nodes"]:
                _damaged(store, "n_id", f"numbers must be below {header['num_nodes']}")
            if parts.max() >= header["num_parts"]:
                _damaged(store, "owner", f"parts must be below {header['num_parts']}")
            if ((parts == number) != own).any():
                _damaged(
                    store,
                    "owner",
                    f"the first {part['owned']} nodes, and no others, must be of part {number}",
                )
            before = int(numbers[-1])


def _damaged(store: Store, array: str, what: str) -> None:
    raise DataError(f"{file_of(store.path, array)} is damaged: {what}")
