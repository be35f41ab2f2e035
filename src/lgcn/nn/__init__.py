"""Layers and networks, for use on their own, in PyG models, or in the training loop."""

from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.graph_lgcn import GraphLGCN
from lgcn.nn.k_largest_aggregation import KLargestAggregation
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.lgcn import LGCN
from lgcn.nn.propagated_embedding import PropagatedEmbedding
from lgcn.nn.readout import KLargestReadout

__all__ = [
    "LGCN",
    "Diffusion",
    "GCNLayer",
    "GraphLGCN",
    "KLargestAggregation",
    "KLargestReadout",
    "LGConv",
    "PropagatedEmbedding",
]
