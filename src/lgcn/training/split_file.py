"""``split.npz`` of a run folder: which nodes were training, validation and test nodes.

It holds the arrays ``train``, ``val`` and ``test``, one byte per node: 1 if the node is in the
split, else 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import START_AGAIN, CheckpointError, DataError
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.files import atomic

if TYPE_CHECKING:
    from lgcn.graph import Graph

SPLITS = ("train", "val", "test")
Split = dict[str, np.ndarray[Any, Any]]


def split_of(graph: Graph) -> Split:
    """The masks of a graph as arrays of bytes; a missing mask has no nodes."""
    found = {}
    for name in SPLITS:
        mask = graph.mask(name)
        empty = np.zeros(graph.num_nodes, dtype=np.uint8)
        found[name] = empty if mask is None else mask.cpu().numpy().view(np.uint8)
    return found


def write_split(path: Path, split: Split) -> None:
    # A link in an untrusted folder could point to any file of the user.
    with atomic(path, follow=False) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **split)  # type: ignore[arg-type]


def read_split(path: Path) -> Split | None:
    """The arrays of a file, checked; ``None`` if there is no file."""
    if not path.exists():
        return None
    try:
        split: Split = read_npz(path, SPLITS)
        num_nodes = split["train"].size
        for name in SPLITS:
            check_array(split[name], name, path, (num_nodes,), integer=True, low=0, high=1)
    except DataError as error:
        raise CheckpointError(f"{error}. {START_AGAIN}") from error
    return {name: part.astype(np.uint8) for name, part in split.items()}
