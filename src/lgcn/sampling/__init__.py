"""Mini-batches of sub-graphs: those of Algorithm 1, and others to compare them with."""

from lgcn.sampling.clusters import ClusterLoader
from lgcn.sampling.loader import GraphLoader, SubgraphLoader, separate
from lgcn.sampling.neighbors import NeighborLoader
from lgcn.sampling.subgraph import select_subgraph
from lgcn.sampling.walks import RandomWalkLoader

__all__ = [
    "ClusterLoader",
    "GraphLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "SubgraphLoader",
    "select_subgraph",
    "separate",
]
