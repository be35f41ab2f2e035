"""What the tests of padded sub-graphs share: networks that read a graph in different ways."""

from typing import Any

import torch
from torch import Tensor

import lgcn.paper  # noqa: F401 (registers GCN)
from lgcn import Graph
from lgcn.training import Settings, loop
from lgcn.training.data import TrainingData
from lgcn.training.step import Step

CPU = torch.device("cpu")
# Settings whose networks read the adjacency in different ways.
NETWORKS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "raw": {"rank": "raw", "self_loops": False, "mean": True, "cnn": "double"},
    "batch norm": {"batch_norm": "running", "classifier": "sum"},
    "batch statistics": {"batch_norm": "batch", "classifier": "normalized", "zeros": "compete"},
    "residual": {"model": "residual", "num_layers": 2, "hidden_channels": 8},
    "residual mean": {"model": "residual", "num_layers": 2, "aggregate": "mean", "norm": "layer"},
    "residual max": {"model": "residual", "num_layers": 2, "aggregate": "max", "norm": "none"},
    "recomputed": {"model": "residual", "num_layers": 2, "recompute": True, "norm": "layer"},
    "gcn": {"preset": "gcn"},
    "mlp": {"preset": "mlp"},
}
NO_DROPOUT = ("dropout", "input_dropout", "lgcl_dropout", "node_dropout", "layer_dropout")


def without_dropout(**given: Any) -> Settings:
    known = type(Settings.create(**given).model).model_fields
    chosen = {name: 0.0 for name in NO_DROPOUT if name in known}
    small = {"training": "subgraph", "max_nodes": 60, "n_init": 5, "num_workers": 0}
    if "hidden_channels" in known and "hidden_channels" not in given:
        chosen["hidden_channels"] = 8
    return Settings.create(**{**small, **chosen, **given})


def training_on(
    graph: Graph, chosen: Settings, device: torch.device = CPU
) -> tuple[TrainingData, torch.nn.Module, Any, Any, Step]:
    data = TrainingData(graph, chosen)
    return data, *loop._prepare(data, device)


def gradients(step: Step) -> list[Tensor | None]:
    return [parameter.grad for parameter in step.model.parameters()]
