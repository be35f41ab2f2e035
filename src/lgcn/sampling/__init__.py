"""Mini-batches of sub-graphs: by Algorithm 1, and by other methods for comparison."""

from lgcn.sampling.algorithm1 import select_subgraph
from lgcn.sampling.alternatives.clusters import ClusterLoader
from lgcn.sampling.alternatives.neighbors import NeighborLoader
from lgcn.sampling.alternatives.walks import RandomWalkLoader
from lgcn.sampling.loader import GraphLoader, SubgraphLoader

__all__ = [
    "ClusterLoader",
    "GraphLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "SubgraphLoader",
    "select_subgraph",
]
