"""Class scores and embeddings of all nodes of a graph."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.layerwise import layerwise
from lgcn.nn.lg_conv import MAX_GRID, LGConv
from lgcn.nn.lgcn import LGCN
from lgcn.sampling import separate
from lgcn.utils.out_of_memory import needs_memory

# Bytes that a forward over a whole graph may need on the CPU; above, it goes layer by layer, with
# so much memory. A GPU may be filled to a quarter.
MAX_FORWARD_BYTES = 2 * 10**9
# Bytes of the normalised adjacency for each entry: while it is made, and afterwards.
MAKING_ADJACENCY, ADJACENCY = 48, 16


def predict(model: Module, graph: Graph) -> Tensor:
    """The scores of every node before softmax or sigmoid, in evaluation mode.

    Separate graphs (``graph.ptr``) are predicted one after the other, which bounds memory by the
    largest. Where a forward would need more than ``MAX_FORWARD_BYTES``, it goes layer by layer
    (:func:`lgcn.nn.layerwise.layerwise`); scores that do not fit in half of that are a map of a
    file.
    Model and graph may be on different devices: the model's computes, the scores come back to the
    graph's.
    """
    return _all_rows(model, graph)


def embed(model: LGCN, graph: Graph, layer: int = -1) -> Tensor:
    """What the classifier sees of every node, see :meth:`lgcn.LGCN.embed`; as :func:`predict`."""
    if not isinstance(model, LGCN):
        raise UsageError(f"embeddings are of an LGCN's layers, got {type(model).__name__}")
    return _all_rows(model, graph, layer)


def forward(model: Module, graph: Graph, *, embed: bool = False) -> Tensor:
    """The scores, or the embeddings, of every node of one graph on the model's device.

    Leaves the model in evaluation mode. Goes layer by layer where :func:`predict` does.
    """
    return _of_one_graph(model, graph, -1 if embed else None).to(_device(model))


def _all_rows(model: Module, graph: Graph, layer: int | None = None) -> Tensor:
    device = graph.rowptr.device
    found = [_of_one_graph(model, part, layer).to(device) for part in separate(graph)]
    return found[0] if len(found) == 1 else torch.cat(found)


def _of_one_graph(model: Module, graph: Graph, layer: int | None) -> Tensor:
    """The scores, or the embeddings after a layer, on whatever device they were made."""
    if graph.x is None:
        raise UsageError(f"{graph.name} has no features (x), which the model needs")
    device = _device(model)
    if isinstance(model, LGCN) and _forward_bytes(model, graph) > _limit(device):
        return layerwise(model, graph, layer=layer, memory=MAX_FORWARD_BYTES)
    model.eval()
    graph = graph.to(device)
    function: Any = model if layer is None else model.embed
    options = {} if layer is None else {"layer": layer}
    with torch.no_grad(), needs_memory(f"the scores of a whole graph of {graph.num_nodes} nodes"):
        out: Tensor = function(_features(model, graph), graph, **options)
    return out


def _features(model: Module, graph: Graph) -> Tensor:
    """The features as the model takes them, without a copy where they are that already."""
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


def _forward_bytes(model: LGCN, graph: Graph) -> int:
    """About what a forward over the whole graph takes beside the graph, in float32."""
    nodes, entries = graph.num_nodes, graph.num_edges + graph.num_nodes
    first, classifier = model.embedding.out_channels, model.classifier
    decoded = 0
    if graph.x is not None and graph.x.layout == torch.strided and graph.x.dtype != torch.float32:
        decoded = 2 * graph.num_features
    grids = [(x.k + 1) * x.in_channels for x in model.layers if isinstance(x, LGConv)]
    grid = min(MAX_GRID, nodes * max(grids, default=0))
    begin = MAKING_ADJACENCY * entries + 4 * nodes * (first + decoded)
    widest = 2 * max(first, classifier.in_channels) + classifier.out_channels
    return max(begin, ADJACENCY * entries + 4 * (nodes * widest + 2 * grid))
