"""The fixed workloads that are counted: small, and the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from lgcn import Graph, LGConv, SubgraphLoader, select_subgraph
from lgcn.datasets import synthetic
from lgcn.nn import lg_conv
from lgcn.nn.layerwise import layerwise
from lgcn.training import Settings, loop
from lgcn.training.data import TrainingData

Run = Callable[[], object]
CHANNELS, OUT, K = 16, 8, 4
BLOCK = 2**13  # values of the grid of a block


def graph(device: str) -> Graph:
    return synthetic(num_nodes=400, num_features=CHANNELS, num_val=100).to(device)


def layer(device: str, *, hidden: bool, **options: Any) -> Run:
    """Forward and backward of a layer. A hidden one passes a gradient on to its input."""
    torch.manual_seed(0)
    data, conv = graph(device), LGConv(CHANNELS, OUT, K, **options).to(device)
    assert data.x is not None
    x = data.x.detach().requires_grad_(hidden)

    def run() -> tuple[Tensor, ...]:
        out = conv(x, data)
        wanted = [*conv.parameters(), *([x] if hidden else [])]
        return torch.autograd.grad(out, wanted, torch.ones_like(out))

    return run


def without_gradients(device: str, **options: Any) -> Run:
    torch.manual_seed(0)
    data, conv = graph(device), LGConv(CHANNELS, OUT, K, **options).to(device).eval()

    def run() -> Tensor:
        with torch.no_grad():
            out: Tensor = conv(data.x, data)
        return out

    return run


def in_blocks(make: Callable[[str], Run], device: str) -> Run:
    """As on a large graph, whose grid is made block by block of rows."""
    run = make(device)
    limits = ("MAX_GRID", "MAX_GRID_GPU", "MAX_RECOMPUTED_GPU")

    def smaller() -> object:
        with patch.multiple(lg_conv, **dict.fromkeys(limits, BLOCK)):
            return run()

    return smaller


def training_step(device: str, *, labels: str, training: str = "whole") -> Run:
    """A step with the defaults for own tables: its batch, forward, backward, optimiser."""
    settings = Settings.create(
        dataset="tables",
        labels=labels,
        device=device,
        training=training,
        max_nodes=200,
        n_init=20,
        num_workers=0,  # which counts in this thread
    )
    model, _, loader, step = loop._prepare(
        TrainingData(graph("cpu"), settings), torch.device(device)
    )
    return lambda: loop._train_epoch(model, step, loader, epoch=1, max_steps=1)


def subgraph(device: str) -> Run:
    data = graph(device)
    return lambda: select_subgraph(data, n_init=20, max_nodes=200, seed=0)


def loader_batch(device: str) -> Run:
    """What a training step on sub-graphs gets: labels, masks and degrees as well."""
    loader = SubgraphLoader(graph(device), n_init=20, max_nodes=200, num_workers=0)
    return lambda: loader.batch(1, 0)


def prediction(device: str) -> Run:
    """All nodes, layer by layer, in blocks of rows."""
    data = graph("cpu")
    settings = Settings.create(dataset="tables", labels="many", device=device)
    model, *_ = loop._prepare(TrainingData(data, settings), torch.device(device))
    return lambda: layerwise(model, data, memory="8MB")


# By device, since some are about the CPU alone.
ON_BOTH: dict[str, Callable[[str], Run]] = {
    "LGConv, first layer": partial(layer, hidden=False),
    "LGConv, hidden layer": partial(layer, hidden=True),
    "LGConv, hidden layer, one convolution, mean": partial(
        layer, hidden=True, cnn="single", mean=True
    ),
    "LGConv, hidden layer, recompute": partial(layer, hidden=True, recompute=True),
    "LGConv, hidden layer, recompute, mean, in blocks": partial(
        in_blocks, partial(layer, hidden=True, recompute=True, mean=True)
    ),
    "LGConv, no gradients": without_gradients,
    "LGConv, no gradients, mean": partial(without_gradients, mean=True),
    "LGConv, no gradients, in blocks": partial(in_blocks, without_gradients),
    "training step, few labels": partial(training_step, labels="few"),
    "training step, many labels": partial(training_step, labels="many"),
    "training step, many labels, new sub-graph": partial(
        training_step, labels="many", training="subgraph"
    ),
    "prediction layer by layer": prediction,
}
ON_CPU = {"select_subgraph": subgraph, "batch of the loader": loader_batch}
WORKLOADS = {"cpu": ON_BOTH | ON_CPU, "cuda": ON_BOTH}
