"""Algorithm 1, and mini-batches of the sub-graphs that it selects."""

from lgcn.sampling.loader import GraphLoader, SubgraphLoader, separate
from lgcn.sampling.subgraph import select_subgraph

__all__ = ["GraphLoader", "SubgraphLoader", "select_subgraph", "separate"]
