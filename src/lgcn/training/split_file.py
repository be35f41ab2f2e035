"""``split.npz`` of a run folder: which nodes were training, validation and test nodes.

It holds the arrays ``train``, ``val`` and ``test``, one byte per node: 1 if the node is in the
split, else 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from lgcn.errors import START_AGAIN, CheckpointError, DataError, UsageError
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.files import atomic

if TYPE_CHECKING:
    from lgcn.graph import Graph

SPLITS = ("train", "val", "test")
SMALL = 2**20  # nodes; files of up to that many are read whatever the graph
HEADER = 2**12  # bytes of an array's header, at most
Split = dict[str, np.ndarray[Any, Any]]


def split_of(graph: Graph) -> Split:
    """The masks of a graph as arrays of bytes; a missing mask has no nodes."""
    found = {}
    for name in SPLITS:
        mask = graph.mask(name)
        empty = np.zeros(graph.num_nodes, dtype=np.uint8)
        found[name] = empty if mask is None else mask.cpu().numpy().view(np.uint8)
    return found


def check_split(folder: Path, graph: Graph, stored: Split | None) -> None:
    """Raises UsageError if the graph has another split than the run in the folder."""
    if stored is None:  # a run of an earlier version
        return
    now = split_of(graph)
    changed = [name for name in SPLITS if not np.array_equal(now[name], stored[name])]
    if changed:
        raise UsageError(
            f"{folder} holds a run with another split: its {changed[0]} nodes are not those of "
            f"{graph.name}, which has changed. {START_AGAIN}"
        )


def write_split(path: Path, split: Split) -> None:
    # A link in an untrusted folder could point to any file of the user.
    # np.savez would write the time, and equal runs should have equal files.
    with atomic(path, follow=False) as temporary, ZipFile(temporary, "w") as archive:
        for name in SPLITS:
            member = ZipInfo(f"{name}.npy")
            member.compress_type = ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, split[name], allow_pickle=False)


def read_split(path: Path, num_nodes: int) -> Split | None:
    """The arrays of a file, checked; ``None`` if there is no file.

    Args:
        path: The file.
        num_nodes: Number of nodes of the graph. It limits the memory that the file can take, but
            the file may be of another graph.
    """
    if not path.exists():
        return None
    try:
        limit = len(SPLITS) * (max(num_nodes, SMALL) + HEADER)
        split: Split = read_npz(path, SPLITS, limit=limit)
        size = split["train"].size
        for name in SPLITS:
            check_array(split[name], name, path, (size,), integer=True, low=0, high=1)
    except DataError as error:
        raise CheckpointError(f"{error}. {START_AGAIN}") from error
    return {name: part.astype(np.uint8) for name, part in split.items()}
