"""The models that the training loop trains, by the name that the setting ``model`` has."""

from torch.nn import Module

from lgcn.nn.baselines import GAT, GCN, GCNII, MLP, ChebNet, GraphSAGE
from lgcn.nn.lgcn import LGCN

MODELS: dict[str, type[Module]] = {
    "lgcn": LGCN,
    "gcn": GCN,
    "gcnii": GCNII,
    "chebyshev": ChebNet,
    "gat": GAT,
    "sage": GraphSAGE,
    "mlp": MLP,
}


def model_class(name: str) -> type[Module]:
    """The class; it takes (in_channels, num_classes) and settings by keyword."""
    return MODELS[name]
