"""Large-Scale Learnable Graph Convolutional Networks for PyTorch and PyTorch Geometric."""

from lgcn.data import load_dataset
from lgcn.graph import Graph
from lgcn.nn import LGCN, KLargestAggregation, LGConv
from lgcn.ops import k_largest
from lgcn.sampling import SubgraphLoader, select_subgraph

__version__ = "0.1.0"

__all__ = [
    "LGCN",
    "Graph",
    "KLargestAggregation",
    "LGConv",
    "SubgraphLoader",
    "k_largest",
    "load_dataset",
    "select_subgraph",
]
