"""Mini-batches: sub-graphs by Algorithm 1 or other methods, and whole graphs."""

from lgcn.sampling.algorithm1 import select_subgraph
from lgcn.sampling.alternatives.clusters import ClusterLoader
from lgcn.sampling.alternatives.neighbors import NeighborLoader
from lgcn.sampling.alternatives.walks import RandomWalkLoader
from lgcn.sampling.graph_batches import GraphSetLoader
from lgcn.sampling.loader import GraphLoader, SubgraphLoader

__all__ = [
    "ClusterLoader",
    "GraphLoader",
    "GraphSetLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "SubgraphLoader",
    "select_subgraph",
]
