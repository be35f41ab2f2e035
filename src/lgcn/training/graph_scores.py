"""Scores and embeddings of whole graphs, batch by batch."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import GraphSet
from lgcn.sampling.graph_batches import batches_in_order
from lgcn.utils.out_of_memory import needs_memory
from lgcn.utils.progress import OnProgress

# Graphs, and nodes, that are computed at a time. A larger graph is computed alone.
GRAPHS, NODES = 1024, 100_000


def score_graphs(
    model: Module,
    graphs: GraphSet,
    *,
    embed: bool = False,
    on_progress: OnProgress | None = None,
) -> Tensor:
    """Returns one row of scores per graph, before softmax or sigmoid, in evaluation mode.

    Args:
        model: A model of whole graphs, called as `model(x, graph)`. It is left in evaluation mode.
        graphs: The graphs, with the features that the model takes.
        embed: Return what the classifier sees of each graph instead. (default: `False`)
        on_progress: Called after each batch. (default: none)

    Shapes:
        - **output:** $(graphs, classes)$, on the CPU
    """
    return score_batches(
        model, batches_in_order(graphs, GRAPHS, NODES), graphs.num_graphs, embed, on_progress
    )


def score_batches(
    model: Module,
    batches: Iterable[GraphSet],
    num_graphs: int,
    embed: bool = False,
    on_progress: OnProgress | None = None,
) -> Tensor:
    """The same for graphs that are in batches already."""
    if embed and not hasattr(model, "embed"):
        raise UsageError(f"{type(model).__name__} has no embeddings: it has no method embed")
    device = next(model.parameters()).device
    function: Any = model.embed if embed else model
    model.eval()
    found = []
    done = 0
    for batch in batches:
        graph = batch.graph.to(device)
        with torch.no_grad(), needs_memory(f"the scores of graphs of {graph.num_nodes} nodes"):
            found.append(function(graph.features(), graph).float().cpu())
        done += batch.num_graphs
        if on_progress is not None:
            on_progress("graphs", done, num_graphs)
    return torch.cat(found) if found else torch.empty(0, 0)
