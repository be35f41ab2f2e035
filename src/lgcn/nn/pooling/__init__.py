"""Pooling: from graphs to smaller graphs."""

from lgcn.nn.pooling.cluster_pooling import Clustered, ClusterPooling
from lgcn.nn.pooling.kept import Kept
from lgcn.nn.pooling.sag_pooling import SAGPooling
from lgcn.nn.pooling.topk_pooling import TopKPooling

__all__ = ["ClusterPooling", "Clustered", "Kept", "SAGPooling", "TopKPooling"]
