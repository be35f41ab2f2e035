"""What a training needs besides the model: device, mini-batches, optimiser."""

from typing import Any

import torch
from torch import Tensor
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
from lgcn.training.settings import Settings

WALK_LENGTH = 4  # if max_hops is none


def pick_device(name: str) -> torch.device:
    """The device of that name; ``"auto"`` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta":  # tensors without values
            raise RuntimeError("its tensors have no values")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = first_line_of(error)
        if reason.startswith("Expected one of"):  # torch lists all types of devices that exist
            reason = "there is no such device type"
        raise UsageError(
            f"device {name!r} is not available: {reason}. Use device=auto or device=cpu"
        ) from error
    return device


def make_loader(graph: Graph, settings: Settings) -> BatchLoader | GraphLoader:
    """The mini-batches of the training nodes."""
    sampling = settings.sampling
    if sampling.training == "whole":
        return GraphLoader(graph, seed=settings.seed)
    common: dict[str, Any] = {
        "roots": graph.train_mask,
        "batch_size": sampling.subgraphs_per_batch,
        "resample": sampling.resample,
        # Without new sub-graphs in each epoch, those left out would never be trained on.
        "max_subgraphs": sampling.subgraphs_per_epoch if sampling.resample else None,
        "keep_degree": sampling.keep_degree,
        "seed": settings.seed,
        "num_workers": settings.hardware.num_workers,
    }
    if sampling.sampler == "neighbors":
        return NeighborLoader(
            graph,
            n_init=sampling.n_init,
            fanout=sampling.fanout,
            with_replacement=sampling.with_replacement,
            **common,
        )
    common["max_nodes"] = sampling.max_nodes
    if sampling.sampler == "clusters":
        return ClusterLoader(
            graph,
            clusters_per_subgraph=sampling.clusters,
            halo=sampling.halo,
            **common,
        )
    if sampling.sampler == "walks":
        length = WALK_LENGTH if sampling.max_hops is None else sampling.max_hops
        return RandomWalkLoader(graph, n_init=sampling.n_init, walk_length=length, **common)
    return SubgraphLoader(
        graph,
        n_init=sampling.n_init,
        max_expand=sampling.max_expand,
        max_hops=sampling.max_hops,
        start_nodes=sampling.start_nodes,
        scored_nodes=sampling.scored_nodes,
        **common,
    )


def make_optimizer(model: Module, settings: Settings) -> Optimizer:
    """Adam or Nadam, with an L2 term of ``weight_decay / 2`` times the squared norm of weights."""
    chosen = settings.optimisation
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() <= 1]
    decayed = weights + biases if chosen.decay_biases else weights
    if chosen.decay_layers == "first":
        first: Any = model.first_layer
        inside = {id(p) for p in first.parameters()}
        decayed = [p for p in decayed if id(p) in inside]
    taken = {id(p) for p in decayed}
    others = [p for p in weights + biases if id(p) not in taken]
    groups = [
        {"params": decayed, "weight_decay": chosen.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if chosen.optimizer == "nadam":
        return Nadam(groups, lr=chosen.lr)
    # fused: one kernel updates all weights. capturable: steps are counted on the device.
    on_gpu = any(p.is_cuda for p in weights)
    lr: float | Tensor = chosen.lr
    if on_gpu and chosen.lr_schedule != "constant":
        lr = torch.tensor(chosen.lr, device=weights[0].device)  # a CUDA graph reads it there
    return Adam(groups, lr=lr, fused=True, capturable=on_gpu)
