"""Graphs in parts, one for each worker: who owns which node, shards on disk, and their halo."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.partition.manifest import check_partition, is_partition
    from lgcn.partition.open import Partition, open_partition
    from lgcn.partition.shard import Shard, cut_shard
    from lgcn.partition.write import write_partition

__all__ = [
    "Partition",
    "Shard",
    "check_partition",
    "cut_shard",
    "is_partition",
    "open_partition",
    "write_partition",
]
# torch is imported with what needs it: whether a folder is a partition is known without.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("check_partition", "is_partition"), "lgcn.partition.manifest"),
        **dict.fromkeys(("Partition", "open_partition"), "lgcn.partition.open"),
        **dict.fromkeys(("Shard", "cut_shard"), "lgcn.partition.shard"),
        "write_partition": "lgcn.partition.write",
    },
)
