"""Class scores of all nodes of a graph."""

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.memory import needs_memory
from lgcn.sampling import separate


def predict(model: Module, graph: Graph) -> Tensor:
    """The scores of every node before softmax or sigmoid, in evaluation mode.

    Separate graphs (``graph.ptr``) are predicted one after the other, which bounds memory by the
    largest.
    """
    return torch.cat([forward(model, part) for part in separate(graph)])


@torch.no_grad()
def forward(model: Module, graph: Graph) -> Tensor:
    """The scores of every node of one graph; leaves the model in evaluation mode."""
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    model.eval()
    with needs_memory(f"the scores of a whole graph of {graph.num_nodes} nodes"):
        scores: Tensor = model(graph.x, graph)
    return scores
