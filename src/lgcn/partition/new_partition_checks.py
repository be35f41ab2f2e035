"""Checks of a user's arguments about partitions, before anything is imported that takes long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lgcn.errors import DataError, UsageError, did_you_mean
from lgcn.graph.metis import has_metis
from lgcn.partition.manifest import METHODS, PARTITION, is_partition
from lgcn.store.checked_files import read_header
from lgcn.store.format import is_store
from lgcn.store.new_store_checks import check_target
from lgcn.utils.limits import MAX_SHARDS
from lgcn.utils.numbers import whole_number
from lgcn.utils.sizes import parse_memory


def check_new_partition(
    store: str | Path,
    out: str | Path,
    num_parts: Any,
    *,
    method: Any = None,
    seed: Any = 0,
    memory: str | int = "2GB",
    overwrite: bool = False,
) -> tuple[int, int, int]:
    """Refuses what can be known to be wrong before a store is read.

    Args:
        store, out, num_parts, method, seed, memory, overwrite: See
            `lgcn.partition.write_partition`.

    Returns:
        The number of parts, the seed and the memory in bytes.
    """
    num_parts = whole_number("parts", num_parts, 1, MAX_SHARDS)
    seed = whole_number("seed", seed, 0, 2**62)
    size = parse_memory(memory)
    if method is not None and method not in METHODS:
        raise UsageError(
            f"method must be one of {', '.join(METHODS)}, got {method!r}; "
            f"{did_you_mean(method, METHODS)}"
        )
    if method == "metis" and not has_metis():
        raise UsageError(
            "method=metis needs METIS, which is not installed: pip install 'lgcn[metis]', or use "
            "method=ldg"
        )
    folder = Path(store)
    if is_partition(folder):
        raise DataError(f"{folder} is a partition already. Give the graph store it was cut from")
    if not is_store(folder):
        raise DataError(
            f"there is no graph store at {folder}. lgcn import or lgcn generate writes one"
        )
    nodes = read_header(folder)[0]["num_nodes"]
    if num_parts > nodes:
        raise UsageError(f"parts must be at most the number of nodes, {nodes}, got {num_parts}")
    target = Path(out).absolute()
    check_target(target, overwrite, PARTITION)
    if target == folder.absolute() or folder.absolute() in target.parents:
        raise UsageError(f"the partition must not be inside of the store, got {out}")
    return num_parts, seed, size
