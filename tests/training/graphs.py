"""What the training tests share: small graphs and settings that train in a second."""

import hashlib
from dataclasses import replace
from typing import Any

import torch
from torch.nn import Module

from lgcn.datasets import synthetic
from lgcn.graph import Graph
from lgcn.training import Settings


def small_graph(num_nodes: int = 200, seed: int = 0) -> Graph:
    return synthetic(
        num_nodes=num_nodes,
        num_classes=3,
        num_features=8,
        noise=1.0,
        labels_per_class=10,
        num_val=60,
        seed=seed,
    )


def several_graphs() -> Graph:
    """Two graphs of training nodes, one of validation nodes, one of test nodes; several labels."""
    parts = []
    for number, split in enumerate(("train", "train", "val", "test")):
        graph = small_graph(60, seed=number)
        assert graph.x is not None
        masks: dict[str, Any] = {
            f"{name}_mask": torch.full((60,), name == split) for name in ("train", "val", "test")
        }
        parts.append(replace(graph, y=(graph.x[:, :4] > 0).long(), **masks))
    return Graph.concat(parts)


def settings(**given: Any) -> Settings:
    """A small model, and few epochs on the whole graph where nothing else is given."""
    small: dict[str, Any] = {
        "dataset": "cora",  # the paper's settings, where these say nothing else
        "hidden_channels": 8,
        "lgcl_channels": 4,
        "num_layers": 1,
        "k": 4,
        "dropout": 0.2,
        "lr": 0.05,
        "max_epochs": 6,
        "training": "whole",
        "evaluate_on": "graph",
        "num_workers": 0,
    }
    if given.get("model", "lgcn") != "lgcn":  # which has no LGCLs
        del small["k"], small["lgcl_channels"]
    return Settings.create(**{**small, **given})


def digest(model: Module) -> str:
    """A hash of the bytes of all weights."""
    found = hashlib.sha256()
    for key, value in sorted(model.state_dict().items()):
        found.update(key.encode())
        found.update(value.numpy().tobytes())
    return found.hexdigest()


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what differs from run to run."""
    return {
        key: value
        for key, value in record.items()
        if key not in ("seconds", "out") and not key.endswith("_per_second")
    }
