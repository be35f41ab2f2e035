"""The systems that LGCN is compared with, each with its own paper's architecture.

Those here are trained by :func:`lgcn.training.train`, as ``model="gcn"`` and so on; their settings
are recipes of the same names. Systems that train in ways of their own, DeepWalk among them, are in
:mod:`lgcn.training.baselines`.
"""

from lgcn.nn.baselines.chebyshev import ChebNet
from lgcn.nn.baselines.gat import GAT
from lgcn.nn.baselines.gcn import GCN
from lgcn.nn.baselines.gcnii import GCNII
from lgcn.nn.baselines.mlp import MLP
from lgcn.nn.baselines.sage import GraphSAGE

__all__ = ["GAT", "GCN", "GCNII", "MLP", "ChebNet", "GraphSAGE"]
