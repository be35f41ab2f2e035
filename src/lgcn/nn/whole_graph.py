"""Class scores and embeddings of all nodes of a graph, at once or layer by layer."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.layerwise import layerwise
from lgcn.nn.rows import RowModel
from lgcn.utils.out_of_memory import needs_memory

# Bytes that a forward over a whole graph may take on the CPU. If it needs more, it goes layer by
# layer, with this much memory. On a GPU it may take a quarter of the memory.
MAX_FORWARD_BYTES = 2 * 10**9
# Bytes per entry of the normalised adjacency: while it is made, and afterwards.
MAKING_ADJACENCY, ADJACENCY = 48, 16


def predict(model: Module, graph: Graph) -> Tensor:
    """Returns the scores of every node before softmax or sigmoid, in evaluation mode.

    Separate graphs (`graph.ptr`) are predicted one after the other, so that the largest one
    determines the memory. If a forward would need more than 2 GB, or more than a quarter of a GPU,
    the graph is computed layer by layer (`lgcn.nn.layerwise.layerwise`); large scores are then a
    memory map of a file. Model and graph may be on different devices: the model's device computes,
    and the scores are returned on the graph's.

    Args:
        model: A model of nodes, called as `model(x, graph)`. It is left in evaluation mode.
        graph: The graph, with features.

    Shapes:
        - **output:** $(N, classes)$
    """
    return _all_rows(model, graph)


def embed(model: Module, graph: Graph, layer: int = -1) -> Tensor:
    """Returns the embeddings of every node, which the classifier sees, in evaluation mode.

    Memory and devices are those of `predict`.

    Args:
        model: An `lgcn.LGCN`, or another model with a method `embed` like its. It is left in
            evaluation mode.
        graph: The graph, with features.
        layer: The last LGCL to apply, 0 for the embedding layer alone. (default: -1, all)
    """
    if not hasattr(model, "embed") and not hasattr(model, "of_graph"):
        raise UsageError(f"{type(model).__name__} has no embeddings: it has no method embed")
    return _all_rows(model, graph, layer)


def forward(model: Module, graph: Graph, *, embed: bool = False) -> Tensor:
    """Returns the scores, or the embeddings, of every node of one graph on the model's device.

    The model is left in evaluation mode. It is computed layer by layer if `predict` does so.
    """
    return _of_one_graph(model, graph, -1 if embed else None).to(_device(model))


def _all_rows(model: Module, graph: Graph, layer: int | None = None) -> Tensor:
    device = graph.rowptr.device
    found = [_of_one_graph(model, part, layer).to(device) for part in graph.separate()]
    return found[0] if len(found) == 1 else torch.cat(found)


def _of_one_graph(model: Module, graph: Graph, layer: int | None) -> Tensor:
    """The scores, or the embeddings after a layer, on the device where they were computed."""
    of_graph: Any = getattr(model.eval(), "of_graph", None)
    if of_graph is not None:  # an ensemble, whose models may each add features
        with torch.no_grad():
            found: Tensor = of_graph(graph, layer=layer)
        return found
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    device = _device(model)
    if isinstance(model, RowModel) and _forward_bytes(model, graph) > _limit(device):
        return layerwise(model, graph, layer=layer, memory=MAX_FORWARD_BYTES)
    model.eval()
    graph = graph.to(device)
    function: Any = model if layer is None else model.embed
    options = {} if layer is None else {"layer": layer}
    with torch.no_grad(), needs_memory(f"the scores of a whole graph of {graph.num_nodes} nodes"):
        out: Tensor = function(_features(model, graph), graph, **options)
    return out


def _features(model: Module, graph: Graph) -> Tensor:
    """The features as the model takes them, without a copy if they already are."""
    assert graph.x is not None
    if graph.x.dtype == next(model.parameters()).dtype and graph.feature_scale is None:
        return graph.x
    return graph.features()


def _device(model: Module) -> torch.device:
    return next(model.parameters()).device


def _limit(device: torch.device) -> int:
    if device.type != "cuda":
        return MAX_FORWARD_BYTES
    return int(torch.cuda.get_device_properties(device).total_memory) // 4


def _forward_bytes(model: RowModel, graph: Graph) -> int:
    """About what a forward over the whole graph takes beside the graph, in float32."""
    nodes, entries = graph.num_nodes, graph.num_edges + graph.num_nodes
    decoded = 0
    if graph.x is not None and graph.x.layout == torch.strided and graph.x.dtype != torch.float32:
        decoded = 2 * nodes * graph.num_features
    first, most = model.forward_values(nodes)
    return max(MAKING_ADJACENCY * entries + 4 * (first + decoded), ADJACENCY * entries + 4 * most)
