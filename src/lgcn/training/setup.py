"""What training needs besides the model: its device, its mini-batches, its optimiser."""

from typing import Any

import torch
from torch.nn import Module
from torch.optim import Adam, Optimizer

from lgcn.errors import UsageError, first_line_of
from lgcn.graph import Graph
from lgcn.sampling import (
    ClusterLoader,
    GraphLoader,
    NeighborLoader,
    RandomWalkLoader,
    SubgraphLoader,
)
from lgcn.sampling.batches import BatchLoader
from lgcn.training.nadam import Nadam
from lgcn.training.settings import Config

WALK_LENGTH = 4  # where max_hops is none


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":  # which has no numbers
            raise RuntimeError("it only knows shapes")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {name!r} is not available: {first_line_of(error)}") from error
    return device


def make_loader(graph: Graph, config: Config) -> BatchLoader | GraphLoader:
    """The mini-batches of the training nodes."""
    if config.training == "whole":
        return GraphLoader(graph, seed=config.seed)
    common: dict[str, Any] = {
        "roots": graph.train_mask,
        "batch_size": config.subgraphs_per_batch,
        "resample": config.resample,
        "keep_degree": config.keep_degree,
        "seed": config.seed,
        "num_workers": config.num_workers,
    }
    if config.sampler == "neighbors":
        return NeighborLoader(
            graph,
            n_init=config.n_init,
            fanout=config.fanout,
            with_replacement=config.with_replacement,
            **common,
        )
    common["max_nodes"] = config.max_nodes
    if config.sampler == "clusters":
        return ClusterLoader(graph, **common)
    if config.sampler == "walks":
        length = WALK_LENGTH if config.max_hops is None else config.max_hops
        return RandomWalkLoader(graph, n_init=config.n_init, walk_length=length, **common)
    return SubgraphLoader(
        graph,
        n_init=config.n_init,
        max_expand=config.max_expand,
        max_hops=config.max_hops,
        start_nodes=config.start_nodes,
        **common,
    )


def make_optimizer(model: Module, config: Config) -> Optimizer:
    """Adam or Nadam; their L2 term is that of lambda / 2 times the squared norm."""
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() <= 1]
    decayed = weights + biases if config.decay_biases else weights
    if config.decay_layers == "first":
        first: Any = model.first_layer
        inside = {id(p) for p in first.parameters()}
        decayed = [p for p in decayed if id(p) in inside]
    chosen = {id(p) for p in decayed}
    others = [p for p in weights + biases if id(p) not in chosen]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "nadam":
        return Nadam(groups, lr=config.lr)
    # Fused, a step is one kernel for all weights; capturable, it counts on the device.
    on_gpu = any(p.is_cuda for p in weights)
    return Adam(groups, lr=config.lr, fused=True, capturable=on_gpu)
