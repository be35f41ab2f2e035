"""The strong forms of GCN, GAT, GraphSAGE and MLP that `benchmarks.own_best` tunes.

PyG's layers with a linear layer before and after, and residual connections and norms by choice, as
in ["Classic GNNs are Strong Baselines"](https://arxiv.org/abs/2406.08993).
"""

from typing import Any, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, LayerNorm, Linear, Module, ModuleList
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from lgcn.graph import Graph
from lgcn.ops.dropout import torch_dropout
from lgcn.paper.baselines.inputs import SparseLinear, drop, glorot_linear, scale
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model

Kind = Literal["gcn", "gat", "sage", "mlp"]


class TunedSettings(ModelSettings):
    """The settings of `Tuned`."""

    name: str = Field("tuned", description="the model")
    kind: Kind = Field("gcn", description="the layers")
    residual: bool = Field(True, description="add a linear map of a layer's input")
    norm: Literal["batch", "layer", "none"] = Field("batch", description="norm in each layer")
    heads: Int = Field(4, ge=1, description="heads of GAT")
    input_dropout: Rate = Field(0.0, description="dropout rate of the features")


class Tuned(Module):
    """A stack of PyG's layers of constant width."""

    can_capture = False

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int,
        num_layers: int,
        kind: Kind,
        residual: bool,
        norm: str,
        heads: int,
        dropout: float,
        input_dropout: float,
        input_scale: float,
    ) -> None:
        super().__init__()
        self.input_scale, self.dropout, self.input_dropout = input_scale, dropout, input_dropout
        self.kind = kind
        self.first = SparseLinear(glorot_linear(in_channels, hidden_channels))
        self.convs, self.linears, self.norms = ModuleList(), ModuleList(), ModuleList()
        width = hidden_channels
        for _ in range(num_layers):
            self.convs.append(_conv(kind, width, heads))
            self.linears.append(Linear(width, width) if residual and kind != "mlp" else Identity())
            norms: dict[str, Any] = {"batch": BatchNorm1d, "layer": LayerNorm}
            self.norms.append(norms[norm](width) if norm in norms else Identity())
        self.residual = residual and kind != "mlp"
        self.last = Linear(width, num_classes)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        edges = () if self.kind == "mlp" else (graph.edges()[0],)
        h = F.relu(self.first(drop(scale(x, self.input_scale), self.input_dropout, self.training)))
        h = torch_dropout(h, self.dropout, self.training)
        for conv, linear, norm in zip(self.convs, self.linears, self.norms, strict=True):
            new = conv(h, *edges)
            h = F.relu(norm(new + linear(h) if self.residual else new))
            h = torch_dropout(h, self.dropout, self.training)
        scores: Tensor = self.last(h)
        return scores

    @property
    def first_layer(self) -> Module:
        return self.first


def _conv(kind: str, width: int, heads: int) -> Module:
    if kind == "gat":
        return GATConv(width, width // heads, heads=heads)  # type: ignore[no-any-return]
    if kind == "mlp":
        return Linear(width, width)
    return (GCNConv if kind == "gcn" else SAGEConv)(width, width)  # type: ignore[no-any-return]


register_model("tuned", "benchmarks.own_best_networks:Tuned", TunedSettings, preset="mlp")
