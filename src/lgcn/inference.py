"""Class scores and embeddings of all nodes of a graph."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.memory import needs_memory
from lgcn.nn.lgcn import LGCN
from lgcn.sampling import separate


def predict(model: Module, graph: Graph) -> Tensor:
    """The scores of every node before softmax or sigmoid, in evaluation mode.

    Separate graphs (``graph.ptr``) are predicted one after the other, which bounds memory by the
    largest. Model and graph may be on different devices: the model's computes, the scores come
    back to the graph's.
    """
    return torch.cat([_on_device(model, part, embed=False) for part in separate(graph)])


def embed(model: LGCN, graph: Graph) -> Tensor:
    """What the classifier sees of every node, see :meth:`lgcn.LGCN.embed`; as :func:`predict`."""
    return torch.cat([_on_device(model, part, embed=True) for part in separate(graph)])


def forward(model: Module, graph: Graph, *, embed: bool = False) -> Tensor:
    """The scores, or the embeddings, of every node of one graph on the model's device.

    Leaves the model in evaluation mode.
    """
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    model.eval()
    function: Any = model.embed if embed else model
    with torch.no_grad(), needs_memory(f"the scores of a whole graph of {graph.num_nodes} nodes"):
        out: Tensor = function(graph.x, graph)
    return out


def _on_device(model: Module, graph: Graph, embed: bool) -> Tensor:
    device = next(model.parameters()).device
    return forward(model, graph.to(device), embed=embed).to(graph.rowptr.device)
