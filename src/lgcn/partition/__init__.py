"""Graphs in parts, one for each worker: who owns which node, shards on disk, and their halo."""

from lgcn.partition.shard import Shard, cut_shard

__all__ = ["Shard", "cut_shard"]
