"""Small sets of whole graphs, and a small network for them."""

from typing import Any

import torch
from torch import Tensor, nn

from lgcn.graph import Graph, GraphSet
from lgcn.ops.dropout import dropout
from lgcn.training.groups import ModelSettings
from lgcn.training.models import _models, register_model
from lgcn.training.settings import Settings


class SumNetwork(nn.Module):
    """A linear layer of the sums of a layer's outputs over the nodes of each graph."""

    can_capture = False

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 16,
        num_layers: int = 1,
        dropout: float = 0.0,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.first_layer = nn.Linear(in_channels, hidden_channels)
        self.classifier = nn.Linear(hidden_channels, num_classes)
        self.dropout = dropout

    def embed(self, x: Tensor, graph: Graph) -> Tensor:
        assert graph.ptr is not None
        h = torch.relu(self.first_layer(x))
        h = dropout(h, self.dropout, self.training)
        sizes = graph.ptr.diff()
        number = torch.repeat_interleave(sizes)
        return h.new_zeros(len(sizes), h.size(1)).index_add(0, number, h)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        out: Tensor = self.classifier(self.embed(x, graph))
        return out


def register() -> None:
    """Adds the network as the model ``sums``."""
    place = f"{__name__}:SumNetwork"
    register_model("sums", place, ModelSettings, preset="default", for_graphs=True)


def forget() -> None:
    _models.pop("sums", None)


def some_graphs(count: int = 60, seed: int = 0, features: int = 4) -> GraphSet:
    """Graphs of two classes, whose nodes differ in the mean of their features."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        nodes = int(torch.randint(3, 9, (1,), generator=generator))
        edges = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
        x = torch.randn(nodes, features, generator=generator) + (number % 2)
        graphs.append(Graph.from_edge_index(edges, nodes, x=x))
    place = torch.arange(count)
    return GraphSet.create(
        Graph.concat(graphs),
        y=place % 2,
        train_mask=place < count // 2,
        val_mask=(place >= count // 2) & (place < 3 * count // 4),
        test_mask=place >= 3 * count // 4,
        ids=[f"g{number}" for number in range(count)],
        label_names=("no", "yes"),
    )


def settings(**more: Any) -> Settings:
    given: dict[str, Any] = {"model": "sums", "training": "whole", "evaluate_on": "graph"}
    given |= {"views": 1, "agreement": 0.0, "max_epochs": 15, "dropout": 0.0, "device": "cpu"}
    return Settings.create(**{**given, **more})
