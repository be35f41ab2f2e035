"""The names that options take, where settings and the code that acts on them need one list.

Nothing here imports torch, so that a wrong name is reported at once.
"""

# The models, and where their classes are.
MODELS = {
    "lgcn": "lgcn.nn.lgcn:LGCN",
    "gcn": "lgcn.paper.baselines.gcn:GCN",
    "gcnii": "lgcn.paper.baselines.gcnii:GCNII",
    "chebyshev": "lgcn.paper.baselines.chebyshev:ChebNet",
    "gat": "lgcn.paper.baselines.gat:GAT",
    "sage": "lgcn.paper.baselines.sage:GraphSAGE",
    "mlp": "lgcn.paper.baselines.mlp:MLP",
}
# All but "none" are functions of torch.nn.functional.
ACTIVATIONS = ("none", "relu", "elu", "gelu")
# Of GraphSAGE.
AGGREGATORS = ("gcn", "mean", "pool", "lstm")
# How often a node starts a sub-graph.
START_NODES = ("uniform", "balanced", "degree")
