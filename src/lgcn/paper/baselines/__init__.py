"""The systems that LGCN is compared with, each with its own paper's architecture.

Those here are trained by :func:`lgcn.training.train`, as ``model="gcn"`` and so on; their settings
are recipes of the same names. Systems that train in ways of their own, DeepWalk among them, are in
:mod:`lgcn.paper.baselines`.
"""

from lgcn.paper.baselines.chebyshev import ChebNet
from lgcn.paper.baselines.gat import GAT
from lgcn.paper.baselines.gcn import GCN
from lgcn.paper.baselines.gcnii import GCNII
from lgcn.paper.baselines.mlp import MLP
from lgcn.paper.baselines.sage import GraphSAGE

__all__ = ["GAT", "GCN", "GCNII", "MLP", "ChebNet", "GraphSAGE"]
